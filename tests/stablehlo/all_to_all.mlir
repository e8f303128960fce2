module {
 func.func @main(%a: tensor<2x4xf32>) -> tensor<4x2xf32> {
%0="stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0,1]]> : tensor<1x2xi64>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
 return %0 : tensor<4x2xf32>
}
}