module @mhlo {
  func.func public @main(%a: tensor<4x6xf32>, %z: tensor<f32>, %x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x16xf32>, %t: !mhlo.token) -> tensor<4xf32> {
    %0 = mhlo.constant dense<1.0> : tensor<4x6xf32>
    %1 = mhlo.add %a, %0 : tensor<4x6xf32>
    %2 = "mhlo.broadcast_in_dim"(%z) {broadcast_dimensions = dense<> : tensor<0xi64>} : (tensor<f32>) -> tensor<4x6xf32>
    %3 = "mhlo.transpose"(%a) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %4 = "mhlo.dot_general"(%a, %3) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision HIGH>]} : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>
    %5 = mhlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x3x3x16xf32>
    %6 = mhlo.compare  LT, %a, %1,  FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %7 = mhlo.reduce(%1 init: %z) applies mhlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = mhlo.erf %7 : tensor<4xf32>
    %9 = mhlo.after_all %t, %t : !mhlo.token
    %10 = "mhlo.topk"(%8) {k = 2 : i64, largest = true} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %10 : tensor<4xf32>
  }
}
