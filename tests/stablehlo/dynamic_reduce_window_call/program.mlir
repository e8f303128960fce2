module @dynamic_reduce_window_call {
  func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %1 = stablehlo.constant dense<-1> : tensor<i32>
    %2 = stablehlo.add %0, %1 : tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1x1xi32>
    %4 = stablehlo.constant dense<0> : tensor<1x1xi32>
    %5 = stablehlo.concatenate %3, %4, dim = 1 : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %6 = stablehlo.constant dense<0> : tensor<1x2xi32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
    %8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.constant dense<1> : tensor<1xi32>
    %11 = stablehlo.concatenate %9, %10, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %12 = stablehlo.constant dense<1> : tensor<2xi32>
    %13 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%arg0, %8, %11, %12, %12, %12, %7) {api_version = 2 : i32, called_computations = [@add]} : (tensor<?x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> tensor<?x4xf32>
    return %13 : tensor<?x4xf32>
  }
  func.func private @add(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    return %0 : tensor<f32>
  }
}
