module @async_all_gather {
  func.func public @main(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = "stablehlo.async_start"(%arg0) ({
    ^bb0(%arg1: tensor<2x2xf32>):
      %2 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<2x2xf32>) -> tensor<2x2xf32>
      stablehlo.return %2 : tensor<2x2xf32>
    }) : (tensor<2x2xf32>) -> !stablehlo.future<tensor<2x2xf32>>
    %1 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2x2xf32>>) -> tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
  }
}
