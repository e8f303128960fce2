module @sharding_proto attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<8x8xf32> {mhlo.sharding = "\08\03\1A\03\02\01\020\01J\01\04R\01\00"}) -> (tensor<8x8xf32> {mhlo.sharding = "\08\00"}) {
    %0 = stablehlo.add %arg0, %arg0 {mhlo.sharding = "\08\03\1A\03\02\01\020\01J\01\04R\01\00"} : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
