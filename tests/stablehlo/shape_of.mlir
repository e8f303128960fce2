module  {
 func.func @main(%a: tensor<6xf32>) -> (tensor<6xf32>) {
%0=shape.shape_of %a : tensor<6xf32> -> tensor<1xindex>
 %1=stablehlo.dynamic_reshape %a,%0 : (tensor<6xf32>, tensor<1xindex>) -> tensor<6xf32>
 return %1 : tensor<6xf32>
}
}