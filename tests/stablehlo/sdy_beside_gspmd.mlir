module @sdy_beside_gspmd attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}", sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8x8xf32> {
    %0 = stablehlo.add %arg0, %arg0 {mhlo.sharding = "{devices=[4,1]<=[4]}", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<8x8xf32>
    %1 = stablehlo.negate %0 {mhlo.sharding = "{devices=[4,1]<=[4]}"} : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
