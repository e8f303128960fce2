module  {
 func.func @main(%a: tensor<6xf32>, %b: tensor<f32>) -> (tensor<6xf32>, tensor<f32>) {
%0:2 = "chlo.scan"(%a, %b) ({ ^bb0(%x: tensor<f32>, %c: tensor<f32>): %s=stablehlo.add %x,%c : tensor<f32>
 stablehlo.return %s,%s : tensor<f32>,tensor<f32> }) {dimension=0:i64, operandSegmentSizes=array<i32:1,1>, resultSegmentSizes=array<i32:1,1>} : (tensor<6xf32>,tensor<f32>) -> (tensor<6xf32>,tensor<f32>)
 return %0#0,%0#1 : tensor<6xf32>,tensor<f32>
}
}