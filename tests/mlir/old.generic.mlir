"builtin.module"() <{sym_name = "old"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "twice", sym_visibility = "private"}> ({
  ^bb0(%arg22: tensor<4xf32>):
    %45 = "stablehlo.add"(%arg22, %arg22) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%45) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{jax.arg = "a", tf.aliasing_output = 0 : i32}, {}, {}, {}, {}, {}], function_type = (tensor<4xf32>, tensor<1x8x8x3xbf16>, tensor<3x3x3x5xbf16>, tensor<2x1xi32>, tensor<i1>, tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> (tensor<4xf32>, tensor<1x4x4x5xbf16>), res_attrs = [{jax.result_info = "r"}, {}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<1x8x8x3xbf16>, %arg2: tensor<3x3x3x5xbf16>, %arg3: tensor<2x1xi32>, %arg4: tensor<i1>, %arg5: tensor<?x4xf32, #stablehlo.bounds<8, ?>>):
    %0 = "stablehlo.constant"() <{value = dense<[true, false, true, true, false, false, true, true, false]> : tensor<9xi1>}> : () -> tensor<9xi1>
    %1 = "stablehlo.constant"() <{value = dense<true> : tensor<3xi1>}> : () -> tensor<3xi1>
    %2 = "stablehlo.constant"() <{value = dense<[-8, 7, 3]> : tensor<3xi4>}> : () -> tensor<3xi4>
    %3 = "stablehlo.constant"() <{value = dense<[15, 7, 3]> : tensor<3xui4>}> : () -> tensor<3xui4>
    %4 = "stablehlo.constant"() <{value = dense<[(1.000000e+00,-0.000000e+00), (0x7FC00000,2.000000e+00)]> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %5 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %6 = "stablehlo.constant"() <{value = dense<[1.500000e+00, 2.500000e+00, 3.500000e+00, 4.500000e+00]> : tensor<4xf32>}> : () -> tensor<4xf32>
    %7 = "stablehlo.constant"() <{value = dense<[18446744073709551615, 0]> : tensor<2xui64>}> : () -> tensor<2xui64>
    %8 = "stablehlo.constant"() <{value = dense<> : tensor<0xf64>}> : () -> tensor<0xf64>
    %9 = "func.call"(%arg0) <{callee = @twice}> : (tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.exponential"(%9) : (tensor<4xf32>) -> tensor<4xf32>
    %11 = "stablehlo.convolution"(%arg1, %arg2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<[[1, 0], [1, 0]]> : tensor<2x2xi64>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: true, false>, window_strides = array<i64: 2, 2>}> : (tensor<1x8x8x3xbf16>, tensor<3x3x3x5xbf16>) -> tensor<1x4x4x5xbf16>
    %12 = "stablehlo.dot_general"(%arg0, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %13 = "stablehlo.gather"(%arg0, %arg3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1>}> : (tensor<4xf32>, tensor<2x1xi32>) -> tensor<2xf32>
    %14 = "stablehlo.scatter"(%arg0, %arg3, %13) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg20: tensor<f32>, %arg21: tensor<f32>):
      %44 = "stablehlo.maximum"(%arg20, %arg21) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%44) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
    %15 = "stablehlo.reduce"(%14, %5) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>):
      %43 = "stablehlo.add"(%arg18, %arg19) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%43) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %16 = "stablehlo.reduce_window"(%arg0, %5) <{padding = dense<1> : tensor<1x2xi64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %42 = "stablehlo.add"(%arg16, %arg17) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%42) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
    %17:2 = "stablehlo.while"(%15, %arg0) ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<4xf32>):
      %41 = "stablehlo.compare"(%arg14, %5) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%41) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg12: tensor<f32>, %arg13: tensor<4xf32>):
      %40 = "stablehlo.negate"(%arg12) : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%40, %arg13) : (tensor<f32>, tensor<4xf32>) -> ()
    }) : (tensor<f32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
    %18 = "stablehlo.if"(%arg4) ({
      "stablehlo.return"(%17#1) : (tensor<4xf32>) -> ()
    }, {
      "stablehlo.return"(%6) : (tensor<4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<4xf32>
    %19:2 = "stablehlo.sort"(%18, %arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<f32>, %arg11: tensor<f32>):
      %39 = "stablehlo.compare"(%arg8, %arg9) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction GT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%39) : (tensor<i1>) -> ()
    }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %20 = "stablehlo.custom_call"(%19#0) <{api_version = 2 : i32, backend_config = "a\00\FFb", call_target_name = "foo", called_computations = [@twice], has_side_effect = true, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]}> {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
    %21 = "stablehlo.all_reduce"(%20) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
      %38 = "stablehlo.add"(%arg6, %arg7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%38) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %22 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>
    %23 = "stablehlo.pad"(%arg0, %5) <{edge_padding_high = array<i64: -1>, edge_padding_low = array<i64: 1>, interior_padding = array<i64: 0>}> : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %24 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 4>, start_indices = array<i64: 1>, strides = array<i64: 2>}> : (tensor<4xf32>) -> tensor<2xf32>
    %25 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 3, 0, 1, 2>}> : (tensor<1x8x8x3xbf16>) -> tensor<3x1x8x8xbf16>
    %26 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<4xi32>
    %27 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %28 = "stablehlo.dynamic_slice"(%arg0, %27) <{slice_sizes = array<i64: 2>}> : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %29 = "stablehlo.constant"() <{value = dense<[1, 2]> : tensor<2xui64>}> : () -> tensor<2xui64>
    %30:2 = "stablehlo.rng_bit_generator"(%29) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)
    %31 = "stablehlo.constant"() <{value = dense<(5.000000e-01,1.000000e+00)> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %32 = "stablehlo.fft"(%31) <{fft_length = array<i64: 2>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %33 = "stablehlo.uniform_quantize"(%arg0) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:3>>
    %34 = "stablehlo.create_token"() : () -> !stablehlo.token
    %35 = "stablehlo.outfeed"(%arg0, %34) <{outfeed_config = "cfg"}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %36 = "stablehlo.tuple"(%arg0, %15) : (tensor<4xf32>, tensor<f32>) -> tuple<tensor<4xf32>, tensor<f32>>
    %37 = "stablehlo.get_tuple_element"(%36) <{index = 1 : i32}> : (tuple<tensor<4xf32>, tensor<f32>>) -> tensor<f32>
    "func.return"(%21, %11) : (tensor<4xf32>, tensor<1x4x4x5xbf16>) -> ()
  }) : () -> ()
}) {a.list = [1, "x", @f, unit, true, 2.500000e+00 : f32, dense<[1, 2]> : tensor<2xi32>], mhlo.num_partitions = 1 : i32} : () -> ()
