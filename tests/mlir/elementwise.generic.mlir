"builtin.module"() <{sym_name = "elementwise"}> ({
  "func.func"() <{function_type = (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi1>) -> tensor<2x3xf32>, sym_name = "real"}> ({
  ^bb0(%arg4: tensor<2x3xf32>, %arg5: tensor<2x3xf32>, %arg6: tensor<2x3xi1>):
    %16 = "stablehlo.abs"(%arg4) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %17 = "stablehlo.add"(%16, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %18 = "stablehlo.atan2"(%17, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %19 = "stablehlo.cbrt"(%18) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %20 = "stablehlo.ceil"(%19) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %21 = "stablehlo.clamp"(%arg4, %20, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %22 = "stablehlo.cosine"(%21) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %23 = "stablehlo.divide"(%22, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %24 = "stablehlo.exponential"(%23) <{result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %25 = "stablehlo.exponential_minus_one"(%24) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-03, ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %26 = "stablehlo.floor"(%25) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %27 = "stablehlo.log"(%26) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %28 = "stablehlo.log_plus_one"(%27) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %29 = "stablehlo.logistic"(%28) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %30 = "stablehlo.maximum"(%29, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %31 = "stablehlo.minimum"(%30, %arg5) {note = "kept"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %32 = "stablehlo.multiply"(%31, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %33 = "stablehlo.negate"(%32) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %34 = "stablehlo.power"(%33, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %35 = "stablehlo.remainder"(%34, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %36 = "stablehlo.round_nearest_afz"(%35) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %37 = "stablehlo.round_nearest_even"(%36) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %38 = "stablehlo.rsqrt"(%37) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %39 = "stablehlo.sign"(%38) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %40 = "stablehlo.sine"(%39) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %41 = "stablehlo.sqrt"(%40) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %42 = "stablehlo.subtract"(%41, %arg5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %43 = "stablehlo.tan"(%42) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %44 = "stablehlo.tanh"(%43) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %45 = "stablehlo.select"(%arg6, %44, %arg5) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %46 = "stablehlo.is_finite"(%45) : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %47 = "stablehlo.reduce_precision"(%45) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %48 = "stablehlo.compare"(%47, %arg5) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %49 = "stablehlo.compare"(%47, %arg5) <{comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    "func.return"(%47) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xi32>, tensor<4xui8>, tensor<4xcomplex<f32>>, tensor<4xf64>) -> (tensor<4xi32>, tensor<4xcomplex<f64>>), sym_name = "other"}> ({
  ^bb0(%arg0: tensor<4xi32>, %arg1: tensor<4xui8>, %arg2: tensor<4xcomplex<f32>>, %arg3: tensor<4xf64>):
    %0 = "stablehlo.and"(%arg0, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %1 = "stablehlo.count_leading_zeros"(%0) : (tensor<4xi32>) -> tensor<4xi32>
    %2 = "stablehlo.not"(%1) : (tensor<4xi32>) -> tensor<4xi32>
    %3 = "stablehlo.or"(%2, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %4 = "stablehlo.popcnt"(%3) : (tensor<4xi32>) -> tensor<4xi32>
    %5 = "stablehlo.shift_left"(%4, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %6 = "stablehlo.shift_right_arithmetic"(%5, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %7 = "stablehlo.shift_right_logical"(%6, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %8 = "stablehlo.xor"(%7, %arg0) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    %9 = "stablehlo.abs"(%arg2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %10 = "stablehlo.imag"(%arg2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %11 = "stablehlo.real"(%arg2) : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %12 = "stablehlo.complex"(%10, %11) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
    %13 = "stablehlo.complex"(%arg3, %arg3) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xcomplex<f64>>
    %14 = "stablehlo.convert"(%arg1) : (tensor<4xui8>) -> tensor<4xf8E4M3FN>
    %15 = "stablehlo.bitcast_convert"(%arg0) : (tensor<4xi32>) -> tensor<4x2xf16>
    "func.return"(%8, %13) : (tensor<4xi32>, tensor<4xcomplex<f64>>) -> ()
  }) : () -> ()
}) : () -> ()
