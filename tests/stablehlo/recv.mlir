module {
 func.func @main(%t: !stablehlo.token) -> tensor<2x4xf32> {
%0:2="stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle=5,type=3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<2x4xf32>,!stablehlo.token)
 return %0#0 : tensor<2x4xf32>
}
}