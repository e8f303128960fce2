module {
  func.func @main(%a: tensor<4xf32>, %b: tensor<f32>, %p: tensor<i1>, %i: tensor<4xi32>, %g: tensor<2xi32>, %m: tensor<4x6xf32>, %n: tensor<2x6x3xf32>) -> tensor<4xf32> {
    %0 = chlo.broadcast_add %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = chlo.broadcast_subtract %a, %b {broadcast_dimensions = array<i64>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
    %3 = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = chlo.acos %a : tensor<4xf32> -> tensor<4xf32>
    %5 = chlo.erf_inv %a : tensor<4xf32> -> tensor<4xf32>
    %6 = chlo.is_inf %a : tensor<4xf32> -> tensor<4xi1>
    %7 = chlo.next_after %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %8 = chlo.polygamma %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %9 = chlo.zeta %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %values, %indices = chlo.top_k(%a, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)
    %10 = chlo.constant dense<1.0> : tensor<4xf32>
    %11 = "chlo.constant_like"(%a) <{value = 1.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
    %12 = "chlo.ragged_dot"(%m, %n, %g) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x6xf32>, tensor<2x6x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
    return %0 : tensor<4xf32>
  }
}
