"builtin.module"() ({
  "func.func"() <{function_type = (tensor<?x4xf32>, tensor<*xf32>) -> index, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<?x4xf32>, %arg1: tensor<*xf32>):
    %0 = "arith.constant"() <{value = 1 : index}> : () -> index
    %1 = "arith.constant"() <{value = -7 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 2.500000e+00 : f64}> : () -> f64
    %3 = "arith.constant"() <{value = true}> : () -> i1
    %4 = "arith.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %5 = "arith.addi"(%1, %1) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
    %6 = "arith.cmpi"(%5, %1) <{predicate = 2 : i64}> : (i32, i32) -> i1
    %7 = "arith.select"(%6, %5, %1) : (i1, i32, i32) -> i32
    %8 = "arith.index_cast"(%7) : (i32) -> index
    %9 = "arith.mulf"(%2, %2) <{fastmath = #arith.fastmath<none>}> : (f64, f64) -> f64
    %10 = "tensor.dim"(%arg0, %0) : (tensor<?x4xf32>, index) -> index
    %11 = "tensor.from_elements"(%10, %8) : (index, index) -> tensor<2xindex>
    %12 = "tensor.extract"(%11, %0) : (tensor<2xindex>, index) -> index
    %13 = "tensor.cast"(%arg0) : (tensor<?x4xf32>) -> tensor<4x4xf32>
    %14 = "shape.shape_of"(%arg0) : (tensor<?x4xf32>) -> tensor<2xindex>
    %15 = "shape.broadcast"(%14, %11) : (tensor<2xindex>, tensor<2xindex>) -> tensor<2xindex>
    %16 = "shape.num_elements"(%15) : (tensor<2xindex>) -> index
    %17 = "shape.const_shape"() <{shape = dense<[1, 2]> : tensor<2xindex>}> : () -> tensor<2xindex>
    %18 = "shape.cstr_broadcastable"(%14, %17) : (tensor<2xindex>, tensor<2xindex>) -> !shape.witness
    %19 = "shape.assuming"(%18) ({
      "shape.assuming_yield"(%16) : (index) -> ()
    }) : (!shape.witness) -> index
    %20 = "builtin.unrealized_conversion_cast"(%19) : (index) -> i64
    "cf.br"(%19)[^bb1] : (index) -> ()
  ^bb1(%21: index):  // pred: ^bb0
    "func.return"(%21) : (index) -> ()
  }) : () -> ()
}) : () -> ()
