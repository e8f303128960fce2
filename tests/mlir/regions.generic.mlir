"builtin.module"() <{sym_name = "regions"}> ({
  "func.func"() <{function_type = (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>, tensor<i1>, tensor<2x5xi32>) -> (tensor<4xf32>, tensor<i32>), sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>, %arg4: tensor<i1>, %arg5: tensor<2x5xi32>):
    %0 = "stablehlo.reduce"(%arg0, %arg2) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg20: tensor<f32>, %arg21: tensor<f32>):
      %30 = "stablehlo.add"(%arg20, %arg21) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%30) : (tensor<f32>) -> ()
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %1:2 = "stablehlo.reduce"(%arg0, %arg1, %arg2, %arg3) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<i32>, %arg18: tensor<f32>, %arg19: tensor<i32>):
      %28 = "stablehlo.maximum"(%arg16, %arg18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %29 = "stablehlo.minimum"(%arg17, %arg19) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%28, %29) : (tensor<f32>, tensor<i32>) -> ()
    }) {tag = 1 : i32} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    %2:2 = "stablehlo.while"(%arg3, %0) ({
    ^bb0(%arg14: tensor<i32>, %arg15: tensor<4xf32>):
      %26 = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
      %27 = "stablehlo.compare"(%arg14, %26) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%27) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg12: tensor<i32>, %arg13: tensor<4xf32>):
      %24 = "stablehlo.add"(%arg12, %arg12) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %25 = "func.call"(%arg13) <{callee = @helper}> : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%24, %25) : (tensor<i32>, tensor<4xf32>) -> ()
    }) {depth = 3 : i64} : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    %3 = "stablehlo.if"(%arg4) ({
      "stablehlo.return"(%arg3) : (tensor<i32>) -> ()
    }, {
      %23 = "stablehlo.negate"(%arg3) : (tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%23) : (tensor<i32>) -> ()
    }) : (tensor<i1>) -> tensor<i32>
    %4:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<i32>, %arg11: tensor<i32>):
      %22 = "stablehlo.compare"(%arg8, %arg9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%22) : (tensor<i1>) -> ()
    }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
    %5 = "stablehlo.reduce_window"(%arg0, %arg2) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %21 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%21) : (tensor<f32>) -> ()
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x3xf32>
    %6 = "stablehlo.gather"(%arg0, %arg5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1]>, slice_sizes = array<i64: 1, 2>}> : (tensor<4x6xf32>, tensor<2x5xi32>) -> tensor<5x2xf32>
    %7 = "stablehlo.optimization_barrier"(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %8:2 = "stablehlo.optimization_barrier"(%arg0, %arg3) : (tensor<4x6xf32>, tensor<i32>) -> (tensor<4x6xf32>, tensor<i32>)
    %9 = "stablehlo.tuple"(%arg0, %arg3) : (tensor<4x6xf32>, tensor<i32>) -> tuple<tensor<4x6xf32>, tensor<i32>>
    %10 = "stablehlo.get_tuple_element"(%9) <{index = 1 : i32}> : (tuple<tensor<4x6xf32>, tensor<i32>>) -> tensor<i32>
    %11 = "stablehlo.create_token"() : () -> !stablehlo.token
    %12 = "stablehlo.after_all"(%11, %11) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
    %13 = "stablehlo.after_all"() : () -> !stablehlo.token
    %14 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %15 = "stablehlo.custom_call"(%arg0, %arg3) <{api_version = 4 : i32, backend_config = {n = 3 : i64}, call_target_name = "my.target", operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}> : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x6xf32>
    %16 = "stablehlo.composite"(%0) <{composite_attributes = {n = 1 : i64, s = "x"}, decomposition = @helper, name = "my.op", version = 2 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
    %17 = "stablehlo.constant"() <{value = dense<3> : tensor<1xi64>}> : () -> tensor<1xi64>
    %18 = "stablehlo.constant"() <{value = dense<[1, 18446744073709551615]> : tensor<2xui64>}> : () -> tensor<2xui64>
    %19 = "stablehlo.rng"(%arg2, %arg2, %17) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
    %20:2 = "stablehlo.rng_bit_generator"(%18) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    "func.return"(%16, %10) : (tensor<4xf32>, tensor<i32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.x = 1 : i32}], function_type = (tensor<4xf32>) -> tensor<4xf32>, res_attrs = [{jax.y}], sym_name = "helper", sym_visibility = "private"}> ({
  }) : () -> ()
}) : () -> ()
