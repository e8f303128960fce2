module {
 func.func @main(%a: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<i1>) {
%0:2=stablehlo.custom_call @foo(%a) {backend_config = "xy\"z"} : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<i1>)
 return %0#0, %0#1 : tensor<2x4xf32>, tensor<i1>
}
}