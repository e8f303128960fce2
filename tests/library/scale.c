/* A function that programs call, in plain C: `x * by + offsets`, the offsets along the last dimension. */
#include <stdint.h>
#include <string.h>

#include <xla_aot.h>
#include <xla_aot_ffi.h>

#define CHECK(fact) \
  if (!(fact)) return xla_aot_ffi_error(frame, XLA_FFI_Error_Code_INTERNAL, "not so: " #fact)

XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame);

XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame) {
  if (!xla_aot_ffi_is_execute(frame)) return NULL;
  CHECK(frame->struct_size == 168 && frame->api->struct_size >= 192);
  CHECK(frame->api->api_version.major_version == XLA_FFI_API_MAJOR);
  CHECK(frame->args.size == 1 && frame->rets.size == 1 && frame->attrs.size == 3);
  const XLA_FFI_Buffer *x = frame->args.args[0], *y = frame->rets.rets[0];
  CHECK(x->dtype == XLA_AOT_F32 && x->rank == 2 && x->dims[0] == 2 && x->dims[1] == 3);
  const XLA_FFI_Scalar *by = xla_aot_ffi_attribute(frame, "by", XLA_FFI_AttrType_SCALAR);
  const XLA_FFI_Array *offsets = xla_aot_ffi_attribute(frame, "offsets", XLA_FFI_AttrType_ARRAY);
  const XLA_FFI_ByteSpan *name = xla_aot_ffi_attribute(frame, "name", XLA_FFI_AttrType_STRING);
  CHECK(by && by->dtype == XLA_AOT_F32 && name && name->len == 5 && !memcmp(name->ptr, "three", 5));
  CHECK(offsets && offsets->dtype == XLA_AOT_S32 && offsets->size == 3);
  CHECK(!xla_aot_ffi_attribute(frame, "b", XLA_FFI_AttrType_SCALAR));
  CHECK(!xla_aot_ffi_attribute(frame, "by", XLA_FFI_AttrType_STRING));
  XLA_FFI_DeviceMemory_Allocate_Args room = {sizeof room, NULL, frame->ctx, 24, 64, NULL};
  XLA_FFI_Error *refused = frame->api->XLA_FFI_DeviceMemory_Allocate(&room);
  float own[6], *scratch = room.data;
  if (refused) {
    /* XLA has no scratch memory on CPUs. */
    XLA_FFI_Error_Destroy_Args args = {sizeof args, NULL, refused};
    frame->api->XLA_FFI_Error_Destroy(&args);
    scratch = own;
  }
  CHECK(refused || (uintptr_t)room.data % 64 == 0);
  for (int i = 0; i < 6; ++i) {
    scratch[i] = ((const float *)x->data)[i] * *(const float *)by->value;
    if (scratch[i] < 0) {
      return xla_aot_ffi_error(frame, XLA_FFI_Error_Code_OUT_OF_RANGE, "a number below zero");
    }
    ((float *)y->data)[i] = scratch[i] + (float)((const int32_t *)offsets->data)[i % 3];
  }
  return NULL;
}
