module @arith {
  func.func @main(%arg0: i32, %arg1: i32, %arg2: f32, %arg3: f32, %arg4: f64, %arg5: tensor<4xi32>, %arg6: tensor<?x4xf32>, %arg7: vector<4xf32>) -> tensor<4xi1> {
    %0 = arith.addi %arg0, %arg1 overflow<nsw, nuw> : i32
    %1 = arith.subi %arg0, %arg1 : i32
    %2 = arith.muli %0, %1 overflow<nuw> {a.b} : i32
    %3 = arith.shli %2, %arg0 overflow<nsw> : i32
    %4 = arith.addf %arg2, %arg3 fastmath<fast> : f32
    %5 = arith.subf %arg2, %4 toward_zero fastmath<nnan,ninf> : f32
    %6 = arith.mulf %arg2, %5 upward : f32
    %7 = arith.divsi %arg0, %arg1 exact : i32
    %8 = arith.shrui %arg0, %7 exact : i32
    %9 = arith.floordivsi %arg0, %arg1 : i32
    %10 = arith.extui %8 nneg : i32 to i64
    %11 = arith.uitofp %9 nneg : i32 to f32
    %12 = arith.cmpf ogt, %arg2, %11 fastmath<nnan> : f32
    %13 = arith.cmpf true, %arg6, %arg6 : tensor<?x4xf32>
    %14 = arith.cmpi sle, %arg5, %arg5 : tensor<4xi32>
    %15 = arith.cmpf une, %arg7, %arg7 : vector<4xf32>
    %16 = arith.select %12, %arg2, %arg3 : f32
    %17 = arith.select %14, %arg5, %arg5 : tensor<4xi1>, tensor<4xi32>
    %18 = arith.truncf %arg4 to_nearest_even fastmath<reassoc> : f64 to f32
    %19 = arith.extf %16 fastmath<contract> : f32 to f64
    %20 = arith.trunci %10 overflow<nsw> : i64 to i8
    %21 = arith.bitcast %18 : f32 to i32
    %22 = arith.minnumf %arg2, %18 : f32
    %23 = arith.maximumf %arg2, %22 fastmath<arcp> : f32
    %24 = arith.negf %23 fastmath<nsz> : f32
    %25 = arith.remf %24, %arg2 : f32
    %26:2 = arith.mulsi_extended %arg0, %arg1 : i32
    %27 = arith.constant true
    %28 = arith.constant -4 : index
    %29 = arith.constant 1.500000e+00 : f64
    %30 = arith.constant dense<[1, 2]> : tensor<2xi8>
    %31 = arith.index_cast %28 : index to i32
    %32 = arith.ceildivui %31, %26#1 : i32
    return %14 : tensor<4xi1>
  }
}
