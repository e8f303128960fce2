module {
 func.func @main(%a: tensor<2x4xf32>, %t: !stablehlo.token) -> !stablehlo.token {
%0="stablehlo.outfeed"(%a,%t) {outfeed_config="abc"} : (tensor<2x4xf32>,!stablehlo.token) -> !stablehlo.token
 return %0 : !stablehlo.token
}
}