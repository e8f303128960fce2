module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %q = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:0>>
    %s = stablehlo.add %q, %q : (tensor<4x!quant.uniform<i8:f32, 0.5:0>>, tensor<4x!quant.uniform<i8:f32, 0.5:0>>) -> tensor<4x!quant.uniform<i8:f32, 1.0:0>>
    %o = stablehlo.uniform_dequantize %s : (tensor<4x!quant.uniform<i8:f32, 1.0:0>>) -> tensor<4xf32>
    return %o : tensor<4xf32>
  }
}
