module @shapes attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%a: tensor<4x6xf32>, %s: tensor<f32>, %i: tensor<i32>, %n: tensor<2xi32>) -> tensor<4x6xf32> {
    %0 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %1 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x5x6xf32>
    %2 = stablehlo.broadcast_in_dim %s, dims = [] {why = unit} : (tensor<f32>) -> tensor<4xf32>
    %3 = stablehlo.broadcast %s, sizes = [2, 3] : (tensor<f32>) -> tensor<2x3xf32>
    %4 = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<24xf32>
    %5 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %6 = stablehlo.reverse %a, dims = [0, 1] : tensor<4x6xf32>
    %7 = stablehlo.slice %a [0:4:2, 1:5] : (tensor<4x6xf32>) -> tensor<2x4xf32>
    %8 = stablehlo.dynamic_slice %a, %i, %i, sizes = [2, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %9 = stablehlo.dynamic_update_slice %a, %8, %i, %i : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    %10 = stablehlo.concatenate %a, %9, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %11 = stablehlo.pad %a, %s, low = [0, -1], high = [1, 0], interior = [0, 2] : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x15xf32>
    %12 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
    %13 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<?x?xf32>
    %14 = stablehlo.dynamic_reshape %a, %n : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %15 = stablehlo.dynamic_broadcast_in_dim %s, %n, dims = [] {known_expanding_dimensions = array<i64>} : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
    %16 = stablehlo.real_dynamic_slice %a, %n, %n, %n : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %17 = stablehlo.dynamic_pad %a, %s, %n, %n, %n : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %18 = stablehlo.set_dimension_size %a, %i, dim = 0 : (tensor<4x6xf32>, tensor<i32>) -> tensor<?x6xf32, #stablehlo.bounds<4, ?>>
    %19 = stablehlo.add %18, %18 : tensor<?x6xf32, #stablehlo.bounds<4, ?>>
    return %a : tensor<4x6xf32>
  }
}
