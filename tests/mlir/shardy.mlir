module @shardy {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=2]>
  func.func @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x", "z"}>}) -> tensor<16x8xf32> {
    %0 = sdy.all_to_all [{"x"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y", "x"}]> : tensor<16x8xf32>
    %1 = sdy.all_to_all [{"y", "x"}: 1->0] %0 out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<16x8xf32>
    %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
    %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{"x", "y":(1)2}, {"y":(2)2}]> : tensor<16x8xf32>
    %4 = sdy.all_reduce {"x"} %arg1 out_sharding=<@mesh, [{}, {}], unreduced={"z"}> : tensor<16x8xf32>
    %5 = sdy.all_reduce {"z"} %4 out_sharding=<@mesh, [{}, {}]> {a.b = 1 : i32} : tensor<16x8xf32>
    %6 = sdy.all_reduce {} %5 out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
    %7 = sdy.reduce_scatter [{"z"}, {"x"}] %arg1 out_sharding=<@mesh, [{"z"}, {"x"}]> : tensor<16x8xf32>
    %8 = sdy.sharded_to_unreduced [{}, {"x"}] %7 out_sharding=<@mesh, [{"z"}, {}], unreduced={"x"}> : tensor<16x8xf32>
    %9 = sdy.replicated_to_unreduced {"x", "y":(1)2} %6 out_sharding=<@mesh, [{}, {}], unreduced={"x", "y":(1)2}> : tensor<16x8xf32>
    %10 = stablehlo.add %3, %8 : tensor<16x8xf32>
    %11 = sdy.data_flow_edge %10 sharding=<@mesh, [{"x", ?}, {?}p1]> : tensor<16x8xf32>
    %12 = stablehlo.add %11, %9 : tensor<16x8xf32>
    %13 = sdy.data_flow_edge %12 : tensor<16x8xf32>
    %14 = sdy.constant dense<1.000000e+00> : tensor<16x8xf32>
    return {a.c = [#sdy<axis_ref"x":(1)2>, #sdy<mesh_axis"x"=2>, #sdy<sub_axis_info(1)2>, #sdy<all_to_all_param{"x", "y"}: 0->1>, #sdy<all_to_all_param_list[{"x"}: 0->1]>, #sdy<dimension_sharding{"x", ?}p0>, #sdy<axis_ref_list{"x"}>, #sdy<list_of_axis_ref_lists[{"x"}, {}]>, #sdy<manual_axes{"x"}>]} %13 : tensor<16x8xf32>
  }
}
