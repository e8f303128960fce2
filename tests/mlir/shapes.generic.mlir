"builtin.module"() <{sym_name = "shapes"}> ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<f32>, tensor<i32>, tensor<2xi32>) -> tensor<4x6xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x6xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>, %arg3: tensor<2xi32>):
    %0 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<4x6xi32>
    %1 = "stablehlo.broadcast_in_dim"(%arg0) <{broadcast_dimensions = array<i64: 0, 2>}> : (tensor<4x6xf32>) -> tensor<4x5x6xf32>
    %2 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64>}> {why} : (tensor<f32>) -> tensor<4xf32>
    %3 = "stablehlo.broadcast"(%arg1) <{broadcast_sizes = array<i64: 2, 3>}> : (tensor<f32>) -> tensor<2x3xf32>
    %4 = "stablehlo.reshape"(%arg0) : (tensor<4x6xf32>) -> tensor<24xf32>
    %5 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 1, 0>}> : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %6 = "stablehlo.reverse"(%arg0) <{dimensions = array<i64: 0, 1>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %7 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 4, 5>, start_indices = array<i64: 0, 1>, strides = array<i64: 2, 1>}> : (tensor<4x6xf32>) -> tensor<2x4xf32>
    %8 = "stablehlo.dynamic_slice"(%arg0, %arg2, %arg2) <{slice_sizes = array<i64: 2, 2>}> : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %9 = "stablehlo.dynamic_update_slice"(%arg0, %8, %arg2, %arg2) : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    %10 = "stablehlo.concatenate"(%arg0, %9) <{dimension = 0 : i64}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %11 = "stablehlo.pad"(%arg0, %arg1) <{edge_padding_high = array<i64: 1, 0>, edge_padding_low = array<i64: 0, -1>, interior_padding = array<i64: 0, 2>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x15xf32>
    %12 = "stablehlo.get_dimension_size"(%arg0) <{dimension = 1 : i64}> : (tensor<4x6xf32>) -> tensor<i32>
    %13 = "stablehlo.dynamic_iota"(%arg3) <{iota_dimension = 0 : i64}> : (tensor<2xi32>) -> tensor<?x?xf32>
    %14 = "stablehlo.dynamic_reshape"(%arg0, %arg3) : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %15 = "stablehlo.dynamic_broadcast_in_dim"(%arg1, %arg3) <{broadcast_dimensions = array<i64>, known_expanding_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
    %16 = "stablehlo.real_dynamic_slice"(%arg0, %arg3, %arg3, %arg3) : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %17 = "stablehlo.dynamic_pad"(%arg0, %arg1, %arg3, %arg3, %arg3) : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %18 = "stablehlo.set_dimension_size"(%arg0, %arg2) <{dimension = 0 : i64}> : (tensor<4x6xf32>, tensor<i32>) -> tensor<?x6xf32, #stablehlo.bounds<4, ?>>
    %19 = "stablehlo.add"(%18, %18) : (tensor<?x6xf32, #stablehlo.bounds<4, ?>>, tensor<?x6xf32, #stablehlo.bounds<4, ?>>) -> tensor<?x6xf32, #stablehlo.bounds<4, ?>>
    "func.return"(%arg0) : (tensor<4x6xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32} : () -> ()
