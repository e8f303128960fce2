module {
 func.func @main(%t: !stablehlo.token) -> tensor<2x4xf32> {
%0:2="stablehlo.infeed"(%t) {infeed_config="abc", layout=[[0,1]]} : (!stablehlo.token) -> (tensor<2x4xf32>,!stablehlo.token)
 return %0#0 : tensor<2x4xf32>
}
}