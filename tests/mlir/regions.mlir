module @regions {
  func.func @main(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>, %z: tensor<f32>, %k: tensor<i32>, %p: tensor<i1>, %ii: tensor<2x5xi32>) -> (tensor<4xf32>, tensor<i32>) {
    %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %1:2 = stablehlo.reduce(%a init: %z), (%i init: %k) across dimensions = [0, 1] {tag = 1 : i32} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>)  {
      %20 = stablehlo.maximum %x, %y : tensor<f32>
      %21 = stablehlo.minimum %u, %v : tensor<i32>
      stablehlo.return %20, %21 : tensor<f32>, tensor<i32>
    }
    %2:2 = stablehlo.while(%iterArg = %k, %iterArg_0 = %0) : tensor<i32>, tensor<4xf32> attributes {depth = 3 : i64}
     cond {
      %c = stablehlo.constant dense<10> : tensor<i32>
      %20 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %20 : tensor<i1>
    } do {
      %20 = stablehlo.add %iterArg, %iterArg : tensor<i32>
      %21 = func.call @helper(%iterArg_0) : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %20, %21 : tensor<i32>, tensor<4xf32>
    }
    %3 = "stablehlo.if"(%p) ({
      stablehlo.return %k : tensor<i32>
    }, {
      %20 = stablehlo.negate %k : tensor<i32>
      stablehlo.return %20 : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    %4:2 = "stablehlo.sort"(%a, %i) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>, %u: tensor<i32>, %v: tensor<i32>):
      %20 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %20 : tensor<i1>
    }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
    %5 = "stablehlo.reduce_window"(%a, %z) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %20 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %20 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x3xf32>
    %6 = "stablehlo.gather"(%a, %ii) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 0>, slice_sizes = array<i64: 1, 2>}> : (tensor<4x6xf32>, tensor<2x5xi32>) -> tensor<5x2xf32>
    %7 = stablehlo.optimization_barrier %a : tensor<4x6xf32>
    %8:2 = stablehlo.optimization_barrier %a, %k : tensor<4x6xf32>, tensor<i32>
    %9 = stablehlo.tuple %a, %k : tuple<tensor<4x6xf32>, tensor<i32>>
    %10 = stablehlo.get_tuple_element %9[1] : (tuple<tensor<4x6xf32>, tensor<i32>>) -> tensor<i32>
    %11 = stablehlo.create_token : !stablehlo.token
    %12 = stablehlo.after_all %11, %11 : !stablehlo.token
    %13 = stablehlo.after_all  : !stablehlo.token
    %14 = stablehlo.replica_id : tensor<ui32>
    %15 = stablehlo.custom_call @"my.target"(%a, %k) {api_version = 4 : i32, backend_config = {n = 3 : i64}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x6xf32>
    %16 = stablehlo.composite "my.op" %0 {composite_attributes = {n = 1 : i64, s = "x"}, decomposition = @helper, version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %18 = stablehlo.constant dense<3> : tensor<1xi64>
    %19 = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
    %17 = stablehlo.rng %z, %z, %18, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
    %output_state, %output = stablehlo.rng_bit_generator %19, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    return %16, %10 : tensor<4xf32>, tensor<i32>
  }
  func.func private @helper(tensor<4xf32> {jax.x = 1 : i32}) -> (tensor<4xf32> {jax.y})
}
