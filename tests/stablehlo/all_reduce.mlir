module {
 func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
%0="stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32>
 stablehlo.return %s : tensor<f32> }) {replica_groups = dense<[[0,1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle=3,type=1>, use_global_device_ids} : (tensor<2x3xf32>) -> tensor<2x3xf32>
 return %0 : tensor<2x3xf32>
}
}