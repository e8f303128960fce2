module {
  func.func @main(%a: tensor<2x4x6xf32>, %b: tensor<2x6x5xf32>, %m: tensor<4x6xf32>, %n: tensor<6x4xf32>, %x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<2x4x5xf32> {
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, HIGHEST] : (tensor<2x4x6xf32>, tensor<2x6x5xf32>) -> tensor<2x4x5xf32>
    %1 = stablehlo.dot_general %m, %n, contracting_dims = [1] x [0] : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.dot_general %m, %n, contracting_dims = [] x [] : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x6x6x4xf32>
    %3 = stablehlo.dot_general %m, %n, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %4 = stablehlo.dot %m, %n, precision = [HIGH, DEFAULT] : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.einsum %m, %n, config = "ab,bc->ac" : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %6 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [0, 1]], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x4x4x16xf32>
    %7 = stablehlo.fft %m, type = RFFT, length = [6] : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
    %8 = stablehlo.cholesky %1, lower = true : tensor<4x4xf32>
    %9 = "stablehlo.triangular_solve"(%8, %1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %10 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
    return %0 : tensor<2x4x5xf32>
  }
}
