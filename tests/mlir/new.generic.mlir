"builtin.module"() <{sym_name = "new"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "body", sym_visibility = "private"}> ({
  ^bb0(%arg5: tensor<4xf32>):
    "func.return"(%arg5) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>, tensor<2x4xf32>, tensor<2x1x1xi32>, tensor<f8E3M4>, tensor<4x2x!quant.uniform<i8:f32:1, {5.000000e-01:3,2.500000e-01}>>) -> tensor<4xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<2x4xf32>, %arg2: tensor<2x1x1xi32>, %arg3: tensor<f8E3M4>, %arg4: tensor<4x2x!quant.uniform<i8:f32:1, {5.000000e-01:3,2.500000e-01}>>):
    %0 = "stablehlo.composite"(%arg0) <{composite_attributes = {k = 1 : i64, s = "t"}, decomposition = @body, name = "my.op", version = 3 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.custom_call"(%0) <{api_version = 4 : i32, backend_config = {a = 1 : i32, b = dense<[1, 2]> : tensor<2xi64>}, call_target_name = "ffi"}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.dot_general"(%arg1, %arg1) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2xf32>
    %3 = "stablehlo.tan"(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "stablehlo.exponential"(%3) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4xf32>) -> tensor<4xf32>
    %5:2 = "stablehlo.all_to_all"(%4, %arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %6 = "stablehlo.gather"(%arg1, %arg2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x4xf32>, tensor<2x1x1xi32>) -> tensor<2x1xf32>
    %7 = "stablehlo.constant"() <{value = dense<[1, -2, 0]> : tensor<3xi2>}> : () -> tensor<3xi2>
    %8 = "chlo.erf"(%4) : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%8) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
