module {
 func.func @main(%a: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %0:2=stablehlo.composite "my.op" %a {composite_attributes = {k = 3 : i64, s="q"}, decomposition = @impl, version = 2 : i32} : (tensor<6xf32>) -> (tensor<6xf32>,tensor<6xf32>)
  return %0#0, %0#1 : tensor<6xf32>,tensor<6xf32>
 }
 func.func private @impl(%a: tensor<6xf32>) -> (tensor<6xf32>,tensor<6xf32>) { return %a, %a : tensor<6xf32>,tensor<6xf32> }
}