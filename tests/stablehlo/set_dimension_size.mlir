module {
 func.func @main(%a: tensor<8x4xf32>, %n: tensor<i32>) -> (tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<i32>) {
%0=stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>>
 %1=stablehlo.get_dimension_size %0, dim=0 : (tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<i32>
 return %0, %1 : tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<i32>
}
}