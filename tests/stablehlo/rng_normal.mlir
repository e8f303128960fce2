module {
 func.func @main() -> tensor<2x4xf32> {
%a=stablehlo.constant dense<0.0> : tensor<f32>
 %b=stablehlo.constant dense<1.0> : tensor<f32>
 %s=stablehlo.constant dense<[2,4]> : tensor<2xi64>
 %0=stablehlo.rng %a, %b, %s, distribution = NORMAL : (tensor<f32>,tensor<f32>,tensor<2xi64>) -> tensor<2x4xf32>
 return %0 : tensor<2x4xf32>
}
}