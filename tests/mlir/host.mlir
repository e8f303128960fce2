module {
  func.func @main(%t: tensor<?x4xf32>, %u: tensor<*xf32>) -> index {
    %c1 = arith.constant 1 : index
    %c = arith.constant -7 : i32
    %f = arith.constant 2.500000e+00 : f64
    %true = arith.constant true
    %d = arith.constant dense<[1, 2]> : tensor<2xi32>
    %0 = arith.addi %c, %c : i32
    %1 = arith.cmpi slt, %0, %c : i32
    %2 = arith.select %1, %0, %c : i32
    %3 = arith.index_cast %2 : i32 to index
    %4 = arith.mulf %f, %f : f64
    %5 = tensor.dim %t, %c1 : tensor<?x4xf32>
    %6 = tensor.from_elements %5, %3 : tensor<2xindex>
    %7 = tensor.extract %6[%c1] : tensor<2xindex>
    %8 = tensor.cast %t : tensor<?x4xf32> to tensor<4x4xf32>
    %9 = shape.shape_of %t : tensor<?x4xf32> -> tensor<2xindex>
    %10 = shape.broadcast %9, %6 : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
    %11 = shape.num_elements %10 : tensor<2xindex> -> index
    %12 = shape.const_shape [1, 2] : tensor<2xindex>
    %13 = shape.cstr_broadcastable %9, %12 : tensor<2xindex>, tensor<2xindex>
    %14 = shape.assuming %13 -> (index) {
      shape.assuming_yield %11 : index
    }
    %15 = builtin.unrealized_conversion_cast %14 : index to i64
    "cf.br"(%14)[^bb1] : (index) -> ()
  ^bb1(%x: index):
    return %x : index
  }
}
