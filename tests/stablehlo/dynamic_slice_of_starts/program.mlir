module {
  func.func @main(%x: tensor<?x3xf32>, %i: tensor<i32>, %limit: tensor<2xi32>) -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<3x2xf32>) {
    %z = stablehlo.constant dense<0> : tensor<1xi32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %ones = stablehlo.constant dense<1> : tensor<2xi32>
    %twos = stablehlo.constant dense<2> : tensor<2xi32>
    %sizes = stablehlo.constant dense<[4, 3]> : tensor<2xi32>
    %i1 = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %starts = stablehlo.concatenate %i1, %z, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %limits = stablehlo.add %sizes, %starts : tensor<2xi32>
    %0 = stablehlo.real_dynamic_slice %x, %starts, %limits, %ones : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %j = stablehlo.add %i, %two : tensor<i32>
    %j1 = stablehlo.reshape %j : (tensor<i32>) -> tensor<1xi32>
    %ends = stablehlo.concatenate %j1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %1 = stablehlo.real_dynamic_slice %x, %starts, %ends, %ones : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %h = stablehlo.subtract %i, %two : tensor<i32>
    %h1 = stablehlo.reshape %h : (tensor<i32>) -> tensor<1xi32>
    %befores = stablehlo.concatenate %h1, %z, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %2 = stablehlo.real_dynamic_slice %x, %befores, %ends, %twos : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
    %3 = stablehlo.real_dynamic_slice %x, %starts, %limit, %twos : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<3x2xf32>
    return %0, %1, %2, %3 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<3x2xf32>
  }
}
