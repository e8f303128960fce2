module @shape_operands {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<4xf32>) -> (tensor<2x3xf32>, tensor<4xf32>) {
    %c = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %c_0 = stablehlo.constant dense<4> : tensor<1xi32>
    %0:2 = stablehlo.custom_call @two(%c, %arg0, %c_0, %arg1) {backend_config = "", indices_of_shape_operands = dense<[0, 2]> : tensor<2xi64>, operand_layouts = [dense<0> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : (tensor<2xi32>, tensor<2x3xf32>, tensor<1xi32>, tensor<4xf32>) -> (tensor<2x3xf32>, tensor<4xf32>)
    return %0#0, %0#1 : tensor<2x3xf32>, tensor<4xf32>
  }
}
