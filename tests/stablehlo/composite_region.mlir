module @composite_region {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = "stablehlo.composite"(%arg0) <{composite_attributes = {}, decomposition = @impl, name = "my.scan", version = 3 : i32}> ({
    ^bb0(%arg1: tensor<f32>):
      %1 = stablehlo.negate %arg1 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
  func.func private @impl(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.negate %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
