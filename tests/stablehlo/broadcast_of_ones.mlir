module {
 func.func @main(%a: tensor<1x4x1xf32>) -> tensor<3x2x4x5xf32> {
%0=stablehlo.broadcast_in_dim %a, dims=[0,2,3] : (tensor<1x4x1xf32>) -> tensor<3x2x4x5xf32>
 return %0 : tensor<3x2x4x5xf32>
}
}