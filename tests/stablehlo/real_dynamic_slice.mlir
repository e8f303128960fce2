module @real_dynamic_slice {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<2xi64>) -> tensor<1x3xf32> {
    %0 = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
    %1 = stablehlo.add %arg1, %0 : tensor<2xi64>
    %2 = stablehlo.constant dense<1> : tensor<2xi64>
    %3 = stablehlo.real_dynamic_slice %arg0, %arg1, %1, %2 : (tensor<4x6xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<1x3xf32>
    return %3 : tensor<1x3xf32>
  }
}
