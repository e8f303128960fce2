module {
  func.func @main(%a: tensor<4xf32>, %q: tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>, %p: tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {1.000000e-01,2.000000e-01:5,0.300000e+00}>>, %s: tensor<4x2x!quant.uniform<u4:f32:{0:2, 1:1}, {{1.000000e+00:1, 2.000000e+00}, {3.000000e+00, 4.000000e+00:2}}>>) -> tensor<4xf32> {
    %0 = stablehlo.uniform_quantize %a : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>
    %1 = stablehlo.add %0, %q : tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>
    %2 = stablehlo.uniform_dequantize %1 : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
