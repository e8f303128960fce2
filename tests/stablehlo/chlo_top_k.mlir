module  {
 func.func @main(%a: tensor<2x16xf32>) -> (tensor<2x4xf32>,tensor<2x4xi32>) {
%0:2=chlo.top_k(%a, k=4) : tensor<2x16xf32> -> (tensor<2x4xf32>,tensor<2x4xi32>)
 return %0#0,%0#1 : tensor<2x4xf32>,tensor<2x4xi32>
}
}