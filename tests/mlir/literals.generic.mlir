#map = affine_map<(d0, d1) -> (d1, d0)>
"builtin.module"() <{sym_name = "literals"}> ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<3xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<2x3xf32>):
    %0 = "stablehlo.constant"() <{value = dense<[[1, -2, 3], [4, 5, 6]]> : tensor<2x3xi8>}> : () -> tensor<2x3xi8>
    %1 = "stablehlo.constant"() <{value = dense<[true, false, true]> : tensor<3xi1>}> : () -> tensor<3xi1>
    %2 = "stablehlo.constant"() <{value = dense<false> : tensor<2x2xi1>}> : () -> tensor<2x2xi1>
    %3 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 2.000000e+00, -3.000000e+00]> : tensor<3xf32>}> : () -> tensor<3xf32>
    %4 = "stablehlo.constant"() <{value = dense<[(1.000000e+00,-2.000000e+00), (5.000000e-01,0x7F800000)]> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %5 = "stablehlo.constant"() <{value = dense<(1.000000e+00,2.000000e+00)> : tensor<4xcomplex<f64>>}> : () -> tensor<4xcomplex<f64>>
    %6 = "stablehlo.constant"() <{value = dense<> : tensor<0x4xf32>}> : () -> tensor<0x4xf32>
    %7 = "stablehlo.constant"() <{value = dense<0x7FC00001> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 1.000000e-01, 3.14159274, 1.000000e-30, 0xFF800000]> : tensor<5xf32>}> : () -> tensor<5xf32>
    %9 = "stablehlo.constant"() <{value = dense<[1.000000e-01, 1.000000e+300]> : tensor<2xf64>}> : () -> tensor<2xf64>
    %10 = "stablehlo.constant"() <{value = dense<[7, -8, 0]> : tensor<3xi4>}> : () -> tensor<3xi4>
    %11 = "stablehlo.constant"() <{value = dense<[15, 0, 8]> : tensor<3xui4>}> : () -> tensor<3xui4>
    %12 = "stablehlo.constant"() <{value = dense<[1.500000e+00, -6.000000e+00]> : tensor<2xf4E2M1FN>}> : () -> tensor<2xf4E2M1FN>
    %13 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 4.480000e+02, 0x7F]> : tensor<3xf8E4M3FN>}> : () -> tensor<3xf8E4M3FN>
    %14 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 6.550400e+04]> : tensor<2xf16>}> : () -> tensor<2xf16>
    %15 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 3.004060e+38]> : tensor<2xbf16>}> : () -> tensor<2xbf16>
    %16 = "stablehlo.constant"() <{value = dense<5> : tensor<3xi64>}> : () -> tensor<3xi64>
    %17 = "stablehlo.constant"() <{value = dense<18446744073709551615> : tensor<ui64>}> : () -> tensor<ui64>
    %18 = "stablehlo.constant"() <{value = dense<-9223372036854775808> : tensor<i64>}> : () -> tensor<i64>
    %19 = "stablehlo.constant"() <{value = dense_resource<blob> : tensor<2xf32>}> : () -> tensor<2xf32>
    %20 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<1000000x1000000xf32>}> : () -> tensor<1000000x1000000xf32>
    %21 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> {tag = "kept"} : () -> tensor<i32>
    %22 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 1, 0>}> {x = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %23 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    "func.return"(%3) : (tensor<3xf32>) -> ()
  }) : () -> ()
}) {a.affine = #map, a.array = [1, 2.500000e+00, "s", @sym, i32], a.big = 170141183460469231731687303715884105727 : i128, a.bool = true, a.dict = {"odd name", x = -1 : i8}, a.empty = [], a.f = 0x7FC00000 : f32, a.f16 = 9.997550e-02 : f16, a.hex = -1 : i8, a.nested = @m::@f::@"g h", a.si = -3 : si16, a.string = "a\22b\\c\0A\C3\A9\FF", a.type = (tensor<?xf32>, tuple<>) -> (), a.ui = 255 : ui8, a.unit, a.unknown = #nobody.knows<"x", [1]>} : () -> ()

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F00000040"
    }
  }
#-}
