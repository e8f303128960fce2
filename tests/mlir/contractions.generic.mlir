"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x4x6xf32>, tensor<2x6x5xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<2x4x5xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2x4x6xf32>, %arg1: tensor<2x6x5xf32>, %arg2: tensor<4x6xf32>, %arg3: tensor<6x4xf32>, %arg4: tensor<1x8x8x3xf32>, %arg5: tensor<3x3x3x16xf32>):
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}> : (tensor<2x4x6xf32>, tensor<2x6x5xf32>) -> tensor<2x4x5xf32>
    %1 = "stablehlo.dot_general"(%arg2, %arg3) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %2 = "stablehlo.dot_general"(%arg2, %arg3) <{dot_dimension_numbers = #stablehlo.dot<>}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x6x6x4xf32>
    %3 = "stablehlo.dot_general"(%arg2, %arg3) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %4 = "stablehlo.dot"(%arg2, %arg3) <{precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %5 = "stablehlo.einsum"(%arg2, %arg3) <{einsum_config = "ab,bc->ac"}> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %6 = "stablehlo.convolution"(%arg4, %arg5) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 2>}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x4x4x16xf32>
    %7 = "stablehlo.fft"(%arg2) <{fft_length = array<i64: 6>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
    %8 = "stablehlo.cholesky"(%1) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %9 = "stablehlo.triangular_solve"(%8, %1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %10 = "stablehlo.convolution"(%arg4, %arg5) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
    "func.return"(%0) : (tensor<2x4x5xf32>) -> ()
  }) : () -> ()
}) : () -> ()
