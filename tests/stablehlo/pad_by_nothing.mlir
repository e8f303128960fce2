module {
 func.func @main(%a: tensor<f32>, %b: tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>, tensor<3xf32>) {
%0=stablehlo.pad %a, %a, low=[], high=[], interior=[] : (tensor<f32>, tensor<f32>) -> tensor<f32>
%1=stablehlo.pad %b, %a, low=[0], high=[0], interior=[0] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
%2=stablehlo.pad %b, %a, low=[0], high=[1], interior=[0] : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>
 return %0, %1, %2 : tensor<f32>, tensor<2xf32>, tensor<3xf32>
 }
}
