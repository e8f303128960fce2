module  {
 func.func @main(%a: tensor<5xf32>, %b: tensor<i32>) -> tensor<5xf32> {
%z=stablehlo.constant dense<0> : tensor<i32>
%0:2=stablehlo.while(%i=%z, %x=%a) : tensor<i32>, tensor<5xf32> cond { %p=stablehlo.compare LT, %i, %b : (tensor<i32>,tensor<i32>) -> tensor<i1>
 stablehlo.return %p : tensor<i1> } do { %o=stablehlo.constant dense<1> : tensor<i32>
 %j=stablehlo.add %i,%o : tensor<i32>
 %y=stablehlo.add %x,%a : tensor<5xf32>
 stablehlo.return %j,%y : tensor<i32>, tensor<5xf32> }
 return %0#1 : tensor<5xf32>
}
}