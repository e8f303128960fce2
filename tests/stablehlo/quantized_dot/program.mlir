module {
  func.func @main(%x: tensor<3x4xf32>, %w: tensor<4x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
    %a = stablehlo.uniform_quantize %x : (tensor<3x4xf32>) -> tensor<3x4x!quant.uniform<i8:f32, 0.05:2>>
    %b = stablehlo.uniform_quantize %w : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32, 0.04:-3>>
    %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x4x!quant.uniform<i8:f32, 0.05:2>>, tensor<4x2x!quant.uniform<i8:f32, 0.04:-3>>) -> tensor<3x2x!quant.uniform<i8:f32, 0.2:5>>
    %0 = stablehlo.uniform_dequantize %c : (tensor<3x2x!quant.uniform<i8:f32, 0.2:5>>) -> tensor<3x2xf32>
    %p = stablehlo.uniform_quantize %w : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32:1, {0.03:0, 0.06:0}>>
    %1 = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x2x!quant.uniform<i8:f32:1, {0.03:0, 0.06:0}>>) -> tensor<3x2xf32>
    return %0, %1 : tensor<3x2xf32>, tensor<3x2xf32>
  }
}
