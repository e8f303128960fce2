module @sdy_one_device attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=1]>
  func.func public @main(%arg0: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<2x3xf32>) -> (tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<3xf32>) {
    sdy.sharding_group %arg0 group_id=0 : tensor<2x3xf32>
    %0 = sdy.reshard %arg1 <@mesh, [{"a"}, {}]> : tensor<2x3xf32>
    %1:2 = sdy.manual_computation(%arg0, %0) in_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>, <@mesh, [{}]>] manual_axes={"a"} (%arg2: tensor<2x3xf32>, %arg3: tensor<2x3xf32>) {
      %3 = stablehlo.multiply %arg2, %arg3 : tensor<2x3xf32>
      %4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.reduce(%arg3 init: %4) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
      %6 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0]]> : tensor<1x1xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %7 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }) : (tensor<3xf32>) -> tensor<3xf32>
      sdy.return %3, %6 : tensor<2x3xf32>, tensor<3xf32>
    } : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
    %2 = sdy.named_computation<"f">(%1#0) (%arg2: tensor<2x3xf32>) {
      %3 = stablehlo.negate %arg2 : tensor<2x3xf32>
      sdy.return %3 : tensor<2x3xf32>
    } : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %2, %1#1 : tensor<2x3xf32>, tensor<3xf32>
  }
}
