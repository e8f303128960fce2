module @old attributes {a.list = [1, "x", @f, unit, true, 2.500000e+00 : f32, dense<[1, 2]> : tensor<2xi32>], mhlo.num_partitions = 1 : i32} {
  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func public @main(%arg0: tensor<4xf32> {jax.arg = "a", tf.aliasing_output = 0 : i32}, %arg1: tensor<1x8x8x3xbf16>, %arg2: tensor<3x3x3x5xbf16>, %arg3: tensor<2x1xi32>, %arg4: tensor<i1>, %arg5: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> (tensor<4xf32> {jax.result_info = "r"}, tensor<1x4x4x5xbf16>) {
    %c = stablehlo.constant dense<[true, false, true, true, false, false, true, true, false]> : tensor<9xi1>
    %c_0 = stablehlo.constant dense<true> : tensor<3xi1>
    %c_1 = stablehlo.constant dense<[-8, 7, 3]> : tensor<3xi4>
    %c_2 = stablehlo.constant dense<[15, 7, 3]> : tensor<3xui4>
    %cst = stablehlo.constant dense<[(1.000000e+00,-0.000000e+00), (0x7FC00000,2.000000e+00)]> : tensor<2xcomplex<f32>>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<[1.500000e+00, 2.500000e+00, 3.500000e+00, 4.500000e+00]> : tensor<4xf32>
    %c_5 = stablehlo.constant dense<[18446744073709551615, 0]> : tensor<2xui64>
    %cst_6 = stablehlo.constant dense<> : tensor<0xf64>
    %0 = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.exponential %0 : tensor<4xf32>
    %2 = stablehlo.convolution(%arg1, %arg2) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 0], [1, 0]], rhs_dilate = [1, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xbf16>, tensor<3x3x3x5xbf16>) -> tensor<1x4x4x5xbf16>
    %3 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %4 = "stablehlo.gather"(%arg0, %arg3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1>}> : (tensor<4xf32>, tensor<2x1xi32>) -> tensor<2xf32>
    %5 = "stablehlo.scatter"(%arg0, %arg3, %4) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %25 = stablehlo.maximum %arg6, %arg7 : tensor<f32>
      stablehlo.return %25 : tensor<f32>
    }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
    %6 = stablehlo.reduce(%5 init: %cst_3) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %7 = "stablehlo.reduce_window"(%arg0, %cst_3) <{padding = dense<1> : tensor<1x2xi64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %25 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %25 : tensor<f32>
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
    %8:2 = stablehlo.while(%iterArg = %6, %iterArg_10 = %arg0) : tensor<f32>, tensor<4xf32>
    cond {
      %25 = stablehlo.compare LT, %iterArg, %cst_3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %25 : tensor<i1>
    } do {
      %25 = stablehlo.negate %iterArg : tensor<f32>
      stablehlo.return %25, %iterArg_10 : tensor<f32>, tensor<4xf32>
    }
    %9 = "stablehlo.if"(%arg4) ({
      stablehlo.return %8#1 : tensor<4xf32>
    }, {
      stablehlo.return %cst_4 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %10:2 = "stablehlo.sort"(%9, %arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>, %arg8: tensor<f32>, %arg9: tensor<f32>):
      %25 = stablehlo.compare GT, %arg6, %arg7, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %25 : tensor<i1>
    }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %11 = stablehlo.custom_call @foo(%10#0) {api_version = 2 : i32, backend_config = "a\00\FFb", called_computations = [@twice], has_side_effect = true, mhlo.sharding = "{replicated}", operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %25 = stablehlo.add %arg6, %arg7 : tensor<f32>
      stablehlo.return %25 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %13 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    %14 = stablehlo.pad %arg0, %cst_3, low = [1], high = [-1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
    %16 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2] : (tensor<1x8x8x3xbf16>) -> tensor<3x1x8x8xbf16>
    %17 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %18 = stablehlo.dynamic_slice %arg0, %c_7, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %c_8 = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %c_8, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)
    %cst_9 = stablehlo.constant dense<(5.000000e-01,1.000000e+00)> : tensor<2xcomplex<f32>>
    %19 = stablehlo.fft %cst_9, type = FFT, length = [2] : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %20 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:3>>
    %21 = stablehlo.create_token : !stablehlo.token
    %22 = "stablehlo.outfeed"(%arg0, %21) <{outfeed_config = "cfg"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %23 = stablehlo.tuple %arg0, %6 : tuple<tensor<4xf32>, tensor<f32>>
    %24 = stablehlo.get_tuple_element %23[1] : (tuple<tensor<4xf32>, tensor<f32>>) -> tensor<f32>
    return %12, %2 : tensor<4xf32>, tensor<1x4x4x5xbf16>
  }
}
