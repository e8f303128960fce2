module {
 func.func @main(%a: tensor<5xi32>) -> tensor<5xi32> {
%0=chlo.mulhi %a, %a : tensor<5xi32>, tensor<5xi32> -> tensor<5xi32>
 return %0 : tensor<5xi32>
}
}