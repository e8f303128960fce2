module @sharding {
  sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  sdy.mesh @empty = <[]>
  func.func public @main(%arg0: tensor<8x8xf32> {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>, tf.aliasing_output = 0 : i32}) -> (tensor<8x8xf32> {jax.result_info = "", sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {?}p2], replicated={"y":(2)2}>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg1: tensor<4x8xf32>) {
      sdy.return %arg1 : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.sharding_group %1 group_id=3 : tensor<8x8xf32>
    %2 = sdy.reshard %1 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %3 = sdy.propagation_barrier %2 allowed_direction=BACKWARD : tensor<8x8xf32>
    %4 = sdy.all_gather [{"x"}, {}] %2 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
    %5 = sdy.all_slice [{}, {"y":(1)2}] %4 out_sharding=<@mesh, [{}, {"y":(1)2}]> : tensor<8x8xf32>
    %6 = sdy.named_computation<"f">(%5) in_shardings=[<@mesh, [{}, {}]>] (%arg1: tensor<8x8xf32>) {
      sdy.return %arg1 : tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %7 = stablehlo.custom_call @f(%6) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=8, k=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %7 : tensor<8x8xf32>
  }
}
