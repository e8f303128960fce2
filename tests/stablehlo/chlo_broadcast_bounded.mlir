module @chlo_broadcast_bounded {
  func.func public @main(%arg0: tensor<?xf64, #stablehlo.bounds<10>>, %arg1: tensor<f64>) -> tensor<?xf64, #stablehlo.bounds<10>> {
    %0 = chlo.broadcast_add %arg1, %arg0 : (tensor<f64>, tensor<?xf64, #stablehlo.bounds<10>>) -> tensor<?xf64, #stablehlo.bounds<10>>
    return %0 : tensor<?xf64, #stablehlo.bounds<10>>
  }
}
