"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4x!quant.uniform<i8:f32, 0.5:-3>>, tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5, 0.3}>>, tensor<4x2x!quant.uniform<u4<0:15>:f32:{0:2, 1:1}, {{1.0:1, 2.0}, {3.0, 4.0:2}}>>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4x!quant.uniform<i8:f32, 0.5:-3>>, %arg2: tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5, 0.3}>>, %arg3: tensor<4x2x!quant.uniform<u4<0:15>:f32:{0:2, 1:1}, {{1.0:1, 2.0}, {3.0, 4.0:2}}>>):
    %0 = "stablehlo.uniform_quantize"(%arg0) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
    %1 = "stablehlo.add"(%0, %arg1) : (tensor<4x!quant.uniform<i8:f32, 0.5:-3>>, tensor<4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
    %2 = "stablehlo.uniform_dequantize"(%1) : (tensor<4x!quant.uniform<i8:f32, 0.5:-3>>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
