#alias = array<i64: 1, 0>
!row = tensor<3xf32>
module @literals attributes {a.affine = affine_map<(d0, d1) -> (d1, d0)>, a.array = [1, 2.500000e+00, "s", @sym, i32], a.big = 170141183460469231731687303715884105727 : i128, a.bool = true, a.dict = {"odd name" = unit, x = -1 : i8}, a.empty = [], a.f = 0x7FC00000 : f32, a.f16 = 1.000000e-01 : f16, a.hex = 255 : i8, a.nested = @m::@f::@"g h", a.si = -3 : si16, a.string = "a\22b\5Cc\0A\C3\A9\FF", a.type = (tensor<?xf32>, tuple<>) -> (), a.ui = 255 : ui8, a.unit, a.unknown = #nobody.knows<"x", [1]>} {
  func.func @main(%arg0: tensor<2x3xf32>) -> !row {
    %0 = stablehlo.constant dense<[[1, -2, 3], [4, 5, 6]]> : tensor<2x3xi8>
    %1 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %2 = stablehlo.constant dense<false> : tensor<2x2xi1>
    %3 = stablehlo.constant dense<"0x0000803F00000040000040C0"> : !row
    %4 = stablehlo.constant dense<[(1.0, -2.0), (0.5, 0x7F800000)]> : tensor<2xcomplex<f32>>
    %5 = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f64>>
    %6 = stablehlo.constant dense<> : tensor<0x4xf32>
    %7 = stablehlo.constant dense<0x7FC00001> : tensor<f32>
    %8 = stablehlo.constant dense<[1.0, 0.1, 3.14159274, 1.0e-30, 0xFF800000]> : tensor<5xf32>
    %9 = stablehlo.constant dense<[0.1, 1.0e+300]> : tensor<2xf64>
    %10 = stablehlo.constant dense<[7, -8, 0]> : tensor<3xi4>
    %11 = stablehlo.constant dense<[15, 0, 8]> : tensor<3xui4>
    %12 = stablehlo.constant dense<[1.5, -6.0]> : tensor<2xf4E2M1FN>
    %13 = stablehlo.constant dense<[1.0, 448.0, 0x7F]> : tensor<3xf8E4M3FN>
    %14 = stablehlo.constant dense<[1.0, 65504.0]> : tensor<2xf16>
    %15 = stablehlo.constant dense<[1.0, 3.0e38]> : tensor<2xbf16>
    %16 = stablehlo.constant dense<[5, 5, 5]> : tensor<3xi64>
    %17 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    %18 = stablehlo.constant dense<-9223372036854775808> : tensor<i64>
    %19 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
    %20 = stablehlo.constant dense<0.0> : tensor<1000000x1000000xf32>
    %21 = stablehlo.constant {tag = "kept"} dense<0> : tensor<i32>
    %22 = stablehlo.transpose %arg0, dims = [1, 0] {x = #alias} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %23 = stablehlo.constant() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    return %3 : !row
  }
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F00000040"
    }
  }
#-}
