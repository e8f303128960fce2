"builtin.module"() <{sym_name = "sharding"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>, sym_name = "mesh"}> : () -> ()
  "sdy.mesh"() <{mesh = #sdy.mesh<[]>, sym_name = "empty"}> : () -> ()
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>, tf.aliasing_output = 0 : i32}], function_type = (tensor<8x8xf32>) -> tensor<8x8xf32>, res_attrs = [{jax.result_info = "", sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {?}p2], replicated={"y":(2)2}>}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x8xf32>):
    %0 = "sdy.sharding_constraint"(%arg0) <{sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = "sdy.manual_computation"(%0) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}> ({
    ^bb0(%arg2: tensor<4x8xf32>):
      "sdy.return"(%arg2) : (tensor<4x8xf32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    "sdy.sharding_group"(%1) <{group_id = 3 : i64}> : (tensor<8x8xf32>) -> ()
    %2 = "sdy.reshard"(%1) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = "sdy.propagation_barrier"(%2) <{allowed_direction = 2 : i32}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = "sdy.all_gather"(%2) <{gathering_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, out_sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = "sdy.all_slice"(%4) <{out_sharding = #sdy.sharding<@mesh, [{}, {"y":(1)2}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{}, {"y":(1)2}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %6 = "sdy.named_computation"(%5) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>, name = "f"}> ({
    ^bb0(%arg1: tensor<8x8xf32>):
      "sdy.return"(%arg1) : (tensor<8x8xf32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %7 = "stablehlo.custom_call"(%6) <{call_target_name = "f"}> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=8, k=8}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    "func.return"(%7) : (tensor<8x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
