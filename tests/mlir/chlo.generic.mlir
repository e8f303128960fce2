"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<f32>, tensor<i1>, tensor<4xi32>, tensor<2xi32>, tensor<4x6xf32>, tensor<2x6x3xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<i1>, %arg3: tensor<4xi32>, %arg4: tensor<2xi32>, %arg5: tensor<4x6xf32>, %arg6: tensor<2x6x3xf32>):
    %0 = "chlo.broadcast_add"(%arg0, %arg1) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = "chlo.broadcast_subtract"(%arg0, %arg1) <{broadcast_dimensions = array<i64>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = "chlo.broadcast_compare"(%arg0, %arg1) <{comparison_direction = #chlo<comparison_direction LT>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1>
    %3 = "chlo.broadcast_select"(%arg2, %arg0, %arg1) : (tensor<i1>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = "chlo.acos"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "chlo.erf_inv"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "chlo.is_inf"(%arg0) : (tensor<4xf32>) -> tensor<4xi1>
    %7 = "chlo.next_after"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %8 = "chlo.polygamma"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = "chlo.zeta"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10:2 = "chlo.top_k"(%arg0) <{k = 2 : i64}> : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
    %11 = "chlo.constant"() <{value = dense<1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %12 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
    %13 = "chlo.ragged_dot"(%arg5, %arg6, %arg4) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x6xf32>, tensor<2x6x3xf32>, tensor<2xi32>) -> tensor<4x3xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
