"builtin.module"() <{sym_name = "shardy"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2, "y"=4, "z"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x", "z"}>}], function_type = (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<16x8xf32>, %arg1: tensor<16x8xf32>):
    %0 = "sdy.all_to_all"(%arg0) <{out_sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>, params = #sdy<all_to_all_param_list[{"x"}: 0->1]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %1 = "sdy.all_to_all"(%0) <{out_sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>, params = #sdy<all_to_all_param_list[{"y", "x"}: 1->0]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %2 = "sdy.all_to_all"(%1) <{out_sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>, params = #sdy<all_to_all_param_list[{"x"}: 0->1]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %3 = "sdy.collective_permute"(%2) <{out_sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {"y":(2)2}]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %4 = "sdy.all_reduce"(%arg1) <{out_sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"z"}>, reduction_axes = #sdy<axis_ref_list{"x"}>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %5 = "sdy.all_reduce"(%4) <{out_sharding = #sdy.sharding<@mesh, [{}, {}]>, reduction_axes = #sdy<axis_ref_list{"z"}>}> {a.b = 1 : i32} : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %6 = "sdy.all_reduce"(%5) <{out_sharding = #sdy.sharding<@mesh, [{}, {}]>, reduction_axes = #sdy<axis_ref_list{}>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %7 = "sdy.reduce_scatter"(%arg1) <{out_sharding = #sdy.sharding<@mesh, [{"z"}, {"x"}]>, reduce_scatter_axes = #sdy<list_of_axis_ref_lists[{"z"}, {"x"}]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %8 = "sdy.sharded_to_unreduced"(%7) <{axes = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, out_sharding = #sdy.sharding<@mesh, [{"z"}, {}], unreduced={"x"}>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %9 = "sdy.replicated_to_unreduced"(%6) <{axes = #sdy<axis_ref_list{"x", "y":(1)2}>, out_sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x", "y":(1)2}>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %10 = "stablehlo.add"(%3, %8) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %11 = "sdy.data_flow_edge"(%10) <{sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}p1]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %12 = "stablehlo.add"(%11, %9) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    %13 = "sdy.data_flow_edge"(%12) : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %14 = "sdy.constant"() <{value = dense<1.000000e+00> : tensor<16x8xf32>}> : () -> tensor<16x8xf32>
    "func.return"(%13) {a.c = [#sdy<axis_ref"x":(1)2>, #sdy<mesh_axis"x"=2>, #sdy<sub_axis_info(1)2>, #sdy<all_to_all_param{"x", "y"}: 0->1>, #sdy<all_to_all_param_list[{"x"}: 0->1]>, #sdy<dimension_sharding{"x", ?}p0>, #sdy<axis_ref_list{"x"}>, #sdy<list_of_axis_ref_lists[{"x"}, {}]>, #sdy<manual_axes{"x"}>]} : (tensor<16x8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
