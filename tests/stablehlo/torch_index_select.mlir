module {
 func.func @main(%a: tensor<5x1x5xi32>, %i: tensor<2xi32>) -> tensor<2x1x5xi32> {
%0="stablehlo.torch_index_select"(%a,%i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<5x1x5xi32>, tensor<2xi32>) -> tensor<2x1x5xi32>
 return %0 : tensor<2x1x5xi32>
}
}