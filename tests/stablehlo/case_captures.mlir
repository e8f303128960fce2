module  {
 func.func @main(%i: tensor<i32>, %a: tensor<5xf32>, %b: tensor<5xf32>) -> tensor<5xf32> {
%c=stablehlo.constant dense<2.0> : tensor<5xf32>
%0="stablehlo.case"(%i) ({ %x=stablehlo.add %b, %a : tensor<5xf32>
 stablehlo.return %x : tensor<5xf32> }, { stablehlo.return %c : tensor<5xf32> }, { stablehlo.return %a : tensor<5xf32> }) : (tensor<i32>) -> tensor<5xf32>
 return %0 : tensor<5xf32>
}
}