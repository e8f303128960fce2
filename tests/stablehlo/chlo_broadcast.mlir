module  {
 func.func @main(%a: tensor<6x1xf32>, %b: tensor<3xf32>) -> (tensor<6x3xf32>) {
%0=chlo.broadcast_add %a,%b : (tensor<6x1xf32>, tensor<3xf32>) -> tensor<6x3xf32>
 %1=chlo.broadcast_compare %a, %b {comparison_direction=#chlo<comparison_direction LT>} : (tensor<6x1xf32>, tensor<3xf32>) -> tensor<6x3xi1>
 %2=chlo.broadcast_select %1, %0, %b : (tensor<6x3xi1>, tensor<6x3xf32>, tensor<3xf32>) -> tensor<6x3xf32>
 return %2 : tensor<6x3xf32>
}
}