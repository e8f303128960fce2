module {
 func.func @main(%a: tuple<tensor<2xf32>, tuple<tensor<3xi32>>>) -> tuple<tensor<3xi32>> {
%0=stablehlo.get_tuple_element %a[1] : (tuple<tensor<2xf32>, tuple<tensor<3xi32>>>) -> tuple<tensor<3xi32>>
 return %0 : tuple<tensor<3xi32>>
}
}