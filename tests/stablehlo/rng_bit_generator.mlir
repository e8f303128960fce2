module  {
 func.func @main(%a: tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>) {
%0,%1=stablehlo.rng_bit_generator %a, algorithm=THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
 return %0,%1 : tensor<2xui64>, tensor<4xui32>
}
}