module @elementwise {
  func.func @real(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xi1>) -> tensor<2x3xf32> {
    %0 = stablehlo.abs %a : tensor<2x3xf32>
    %1 = stablehlo.add %0, %b : tensor<2x3xf32>
    %2 = stablehlo.atan2 %1, %b : tensor<2x3xf32>
    %3 = stablehlo.cbrt %2 : tensor<2x3xf32>
    %4 = stablehlo.ceil %3 : tensor<2x3xf32>
    %5 = stablehlo.clamp %a, %4, %b : tensor<2x3xf32>
    %6 = stablehlo.cosine %5 : tensor<2x3xf32>
    %7 = stablehlo.divide %6, %b : tensor<2x3xf32>
    %8 = stablehlo.exponential %7 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
    %9 = stablehlo.exponential_minus_one %8 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-03, ulps = 4, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
    %10 = stablehlo.floor %9 : tensor<2x3xf32>
    %11 = stablehlo.log %10 : tensor<2x3xf32>
    %12 = stablehlo.log_plus_one %11 : tensor<2x3xf32>
    %13 = stablehlo.logistic %12 : tensor<2x3xf32>
    %14 = stablehlo.maximum %13, %b : tensor<2x3xf32>
    %15 = stablehlo.minimum %14, %b {note = "kept"} : tensor<2x3xf32>
    %16 = stablehlo.multiply %15, %b : tensor<2x3xf32>
    %17 = stablehlo.negate %16 : tensor<2x3xf32>
    %18 = stablehlo.power %17, %b : tensor<2x3xf32>
    %19 = stablehlo.remainder %18, %b : tensor<2x3xf32>
    %20 = stablehlo.round_nearest_afz %19 : tensor<2x3xf32>
    %21 = stablehlo.round_nearest_even %20 : tensor<2x3xf32>
    %22 = stablehlo.rsqrt %21 : tensor<2x3xf32>
    %23 = stablehlo.sign %22 : tensor<2x3xf32>
    %24 = stablehlo.sine %23 : tensor<2x3xf32>
    %25 = stablehlo.sqrt %24 : tensor<2x3xf32>
    %26 = stablehlo.subtract %25, %b : tensor<2x3xf32>
    %27 = stablehlo.tan %26 : tensor<2x3xf32>
    %28 = stablehlo.tanh %27 : tensor<2x3xf32>
    %29 = stablehlo.select %p, %28, %b : tensor<2x3xi1>, tensor<2x3xf32>
    %30 = stablehlo.is_finite %29 : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %31 = stablehlo.reduce_precision %29, format = e5m10 : tensor<2x3xf32>
    %32 = stablehlo.compare LT, %31, %b, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %33 = stablehlo.compare  NE, %31, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    return %31 : tensor<2x3xf32>
  }
  func.func @other(%i: tensor<4xi32>, %u: tensor<4xui8>, %c: tensor<4xcomplex<f32>>, %f: tensor<4xf64>) -> (tensor<4xi32>, tensor<4xcomplex<f64>>) {
    %0 = stablehlo.and %i, %i : tensor<4xi32>
    %1 = stablehlo.count_leading_zeros %0 : tensor<4xi32>
    %2 = stablehlo.not %1 : tensor<4xi32>
    %3 = stablehlo.or %2, %i : tensor<4xi32>
    %4 = stablehlo.popcnt %3 : tensor<4xi32>
    %5 = stablehlo.shift_left %4, %i : tensor<4xi32>
    %6 = stablehlo.shift_right_arithmetic %5, %i : tensor<4xi32>
    %7 = stablehlo.shift_right_logical %6, %i : tensor<4xi32>
    %8 = stablehlo.xor %7, %i : tensor<4xi32>
    %9 = stablehlo.abs %c : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %10 = stablehlo.imag %c : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %11 = stablehlo.real %c : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %12 = stablehlo.complex %10, %11 : tensor<4xcomplex<f32>>
    %13 = stablehlo.complex %f, %f : tensor<4xcomplex<f64>>
    %14 = stablehlo.convert %u : (tensor<4xui8>) -> tensor<4xf8E4M3FN>
    %15 = stablehlo.bitcast_convert %i : (tensor<4xi32>) -> tensor<4x2xf16>
    return %8, %13 : tensor<4xi32>, tensor<4xcomplex<f64>>
  }
}
