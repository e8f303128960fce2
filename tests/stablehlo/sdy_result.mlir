module @sdy_result attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "c"=1, "b"=2]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {jax.result_info = "", sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"c"}]>}) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1:2 = stablehlo.reduce(%arg0 init: %0), (%arg0 init: %0) across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>, <@mesh, [{"a", "b"}]>]>} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
     reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) (%arg3: tensor<f32>, %arg4: tensor<f32>)  {
      %3 = stablehlo.add %arg1, %arg2 : tensor<f32>
      %4 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %3, %4 : tensor<f32>, tensor<f32>
    }
    %2 = stablehlo.dot_general %1#0, %1#1, contracting_dims = [] x [] : (tensor<8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.custom_call @f(%2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=8, k=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %5 : tensor<8x8xf32>
  }
}
