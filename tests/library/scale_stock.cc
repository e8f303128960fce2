// The same function as scale.c, with XLA's own headers.
#include <cstdint>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Scale(ffi::ScratchAllocator scratch, float by, std::string_view name,
                        ffi::Span<const int32_t> offsets, ffi::Buffer<ffi::F32> x,
                        ffi::ResultBuffer<ffi::F32> y) {
  if (name != "three" || offsets.size() != 3 || !scratch.Allocate(64)) {
    return ffi::Error::Internal("not so");
  }
  for (size_t i = 0; i < x.element_count(); ++i) {
    if (x.typed_data()[i] < 0) return ffi::Error(ffi::ErrorCode::kOutOfRange, "a number below zero");
    y->typed_data()[i] = x.typed_data()[i] * by + offsets.begin()[i % 3];
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Attr<float>("by")
                                  .Attr<std::string_view>("name")
                                  .Attr<ffi::Span<const int32_t>>("offsets")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
