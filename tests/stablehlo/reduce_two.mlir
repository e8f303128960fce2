module  {
 func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xi32>, %c: tensor<f32>, %d: tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>) {
%0:2=stablehlo.reduce(%a init: %c), (%b init: %d) across dimensions=[1] : (tensor<2x3xf32>,tensor<2x3xi32>,tensor<f32>,tensor<i32>) -> (tensor<2xf32>,tensor<2xi32>)
 reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) { stablehlo.return %x, %v : tensor<f32>,tensor<i32> }
 return %0#0,%0#1 : tensor<2xf32>,tensor<2xi32>
}
}