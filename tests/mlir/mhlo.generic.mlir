"builtin.module"() <{sym_name = "mhlo"}> ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<f32>, tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>, !stablehlo.token) -> tensor<4xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x6xf32>, %arg1: tensor<f32>, %arg2: tensor<1x8x8x3xf32>, %arg3: tensor<3x3x3x16xf32>, %arg4: !stablehlo.token):
    %0 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<4x6xf32>}> : () -> tensor<4x6xf32>
    %1 = "stablehlo.add"(%arg0, %0) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4x6xf32>
    %3 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 1, 0>}> : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %4 = "stablehlo.dot_general"(%arg0, %3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %5 = "stablehlo.convolution"(%arg2, %arg3) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 2>}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x3x3x16xf32>
    %6 = "stablehlo.compare"(%arg0, %1) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %7 = "stablehlo.reduce"(%1, %arg1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %11 = "stablehlo.maximum"(%arg5, %arg6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%11) : (tensor<f32>) -> ()
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = "chlo.erf"(%7) : (tensor<4xf32>) -> tensor<4xf32>
    %9 = "stablehlo.after_all"(%arg4, %arg4) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
    %10 = "mhlo.topk"(%8) {k = 2 : i64, largest = true} : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%10) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
