module {
 func.func @main(%a: tensor<2x4xf32>, %t: !stablehlo.token) -> !stablehlo.token {
%0="stablehlo.send"(%a,%t) {channel_handle = #stablehlo.channel_handle<handle=5,type=2>, is_host_transfer = true, mhlo.frontend_attributes = {_xla_host_transfer_rendezvous="x"}} : (tensor<2x4xf32>, !stablehlo.token) -> !stablehlo.token
 return %0 : !stablehlo.token
}
}