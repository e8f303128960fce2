"builtin.module"() <{sym_name = "arith"}> ({
  "func.func"() <{function_type = (i32, i32, f32, f32, f64, tensor<4xi32>, tensor<?x4xf32>, vector<4xf32>) -> tensor<4xi1>, sym_name = "main"}> ({
  ^bb0(%arg0: i32, %arg1: i32, %arg2: f32, %arg3: f32, %arg4: f64, %arg5: tensor<4xi32>, %arg6: tensor<?x4xf32>, %arg7: vector<4xf32>):
    %0 = "arith.addi"(%arg0, %arg1) <{overflowFlags = #arith.overflow<nsw, nuw>}> : (i32, i32) -> i32
    %1 = "arith.subi"(%arg0, %arg1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %2 = "arith.muli"(%0, %1) <{overflowFlags = #arith.overflow<nuw>}> {a.b} : (i32, i32) -> i32
    %3 = "arith.shli"(%2, %arg0) <{overflowFlags = #arith.overflow<nsw>}> : (i32, i32) -> i32
    %4 = "arith.addf"(%arg2, %arg3) <{fastmath = #arith.fastmath<fast>}> : (f32, f32) -> f32
    %5 = "arith.subf"(%arg2, %4) <{fastmath = #arith.fastmath<nnan,ninf>, roundingmode = 3 : i32}> : (f32, f32) -> f32
    %6 = "arith.mulf"(%arg2, %5) <{fastmath = #arith.fastmath<none>, roundingmode = 2 : i32}> : (f32, f32) -> f32
    %7 = "arith.divsi"(%arg0, %arg1) <{isExact}> : (i32, i32) -> i32
    %8 = "arith.shrui"(%arg0, %7) <{isExact}> : (i32, i32) -> i32
    %9 = "arith.floordivsi"(%arg0, %arg1) : (i32, i32) -> i32
    %10 = "arith.extui"(%8) <{nonNeg}> : (i32) -> i64
    %11 = "arith.uitofp"(%9) <{nonNeg}> : (i32) -> f32
    %12 = "arith.cmpf"(%arg2, %11) <{fastmath = #arith.fastmath<nnan>, predicate = 2 : i64}> : (f32, f32) -> i1
    %13 = "arith.cmpf"(%arg6, %arg6) <{fastmath = #arith.fastmath<none>, predicate = 15 : i64}> : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xi1>
    %14 = "arith.cmpi"(%arg5, %arg5) <{predicate = 3 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %15 = "arith.cmpf"(%arg7, %arg7) <{fastmath = #arith.fastmath<none>, predicate = 13 : i64}> : (vector<4xf32>, vector<4xf32>) -> vector<4xi1>
    %16 = "arith.select"(%12, %arg2, %arg3) : (i1, f32, f32) -> f32
    %17 = "arith.select"(%14, %arg5, %arg5) : (tensor<4xi1>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %18 = "arith.truncf"(%arg4) <{fastmath = #arith.fastmath<reassoc>, roundingmode = 0 : i32}> : (f64) -> f32
    %19 = "arith.extf"(%16) <{fastmath = #arith.fastmath<contract>}> : (f32) -> f64
    %20 = "arith.trunci"(%10) <{overflowFlags = #arith.overflow<nsw>}> : (i64) -> i8
    %21 = "arith.bitcast"(%18) : (f32) -> i32
    %22 = "arith.minnumf"(%arg2, %18) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %23 = "arith.maximumf"(%arg2, %22) <{fastmath = #arith.fastmath<arcp>}> : (f32, f32) -> f32
    %24 = "arith.negf"(%23) <{fastmath = #arith.fastmath<nsz>}> : (f32) -> f32
    %25 = "arith.remf"(%24, %arg2) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %26:2 = "arith.mulsi_extended"(%arg0, %arg1) : (i32, i32) -> (i32, i32)
    %27 = "arith.constant"() <{value = true}> : () -> i1
    %28 = "arith.constant"() <{value = -4 : index}> : () -> index
    %29 = "arith.constant"() <{value = 1.500000e+00 : f64}> : () -> f64
    %30 = "arith.constant"() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2xi8>
    %31 = "arith.index_cast"(%28) : (index) -> i32
    %32 = "arith.ceildivui"(%31, %26#1) : (i32, i32) -> i32
    "func.return"(%14) : (tensor<4xi1>) -> ()
  }) : () -> ()
}) : () -> ()
