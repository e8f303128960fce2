module {
  func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
    %a = stablehlo.uniform_quantize %x : (tensor<6xf32>) -> tensor<6x!quant.uniform<i8:f32, 0.5:3>>
    %b = stablehlo.uniform_quantize %y : (tensor<6xf32>) -> tensor<6x!quant.uniform<i8:f32, 0.25:-4>>
    %s = stablehlo.add %a, %b : (tensor<6x!quant.uniform<i8:f32, 0.5:3>>, tensor<6x!quant.uniform<i8:f32, 0.25:-4>>) -> tensor<6x!quant.uniform<i8:f32, 0.75:1>>
    %m = stablehlo.multiply %a, %b : (tensor<6x!quant.uniform<i8:f32, 0.5:3>>, tensor<6x!quant.uniform<i8:f32, 0.25:-4>>) -> tensor<6x!quant.uniform<i8:f32, 0.75:1>>
    %r = stablehlo.reverse %a, dims = [0] : tensor<6x!quant.uniform<i8:f32, 0.5:3>>
    %0 = stablehlo.uniform_dequantize %s : (tensor<6x!quant.uniform<i8:f32, 0.75:1>>) -> tensor<6xf32>
    %1 = stablehlo.uniform_dequantize %m : (tensor<6x!quant.uniform<i8:f32, 0.75:1>>) -> tensor<6xf32>
    %2 = stablehlo.uniform_dequantize %r : (tensor<6x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<6xf32>
    return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }
}
