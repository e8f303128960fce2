module {
 func.func @main(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
%0="stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle=0,type=0>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
 return %0 : tensor<2x4xf32>
}
}