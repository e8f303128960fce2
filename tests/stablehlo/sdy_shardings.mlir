module @sdy_shardings attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  sdy.mesh @one = <[], device_ids=[3]>
  sdy.mesh @none = <[]>
  sdy.mesh @turned = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a", ?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}, tensor<8x8xf32>) {
    %0 = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b":(1)2}, {"b":(2)2}]>]>} : tensor<8x8xf32>
    %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b":(2)2}, {}]>]>} : tensor<8x8xf32>
    %2 = stablehlo.sine %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", "a"}, {}]>]>} : tensor<8x8xf32>
    %3 = stablehlo.cosine %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {?}], replicated={"b"}>]>} : tensor<8x8xf32>
    %4 = stablehlo.tanh %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}], unreduced={"b"}>]>} : tensor<8x8xf32>
    %5 = stablehlo.sign %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}], unreduced={"b":(2)2}>]>} : tensor<8x8xf32>
    %6 = stablehlo.abs %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a", "b"}>]>} : tensor<8x8xf32>
    %7 = stablehlo.negate %6 {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : tensor<8x8xf32>
    %8 = stablehlo.negate %7 {sdy.sharding = #sdy.sharding_per_value<[<@none, [{}, {}]>]>} : tensor<8x8xf32>
    %9 = stablehlo.negate %8 {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"y"}, {}]>]>} : tensor<8x8xf32>
    %10 = stablehlo.negate %9 {sdy.sharding = #sdy.sharding_per_value<[<@turned, [{"x"}, {"y"}]>]>} : tensor<8x8xf32>
    %11 = sdy.sharding_constraint %10 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
    %12 = sdy.propagation_barrier %11 allowed_direction=BACKWARD : tensor<8x8xf32>
    sdy.sharding_group %12 group_id=3 : tensor<8x8xf32>
    return %12, %0 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
