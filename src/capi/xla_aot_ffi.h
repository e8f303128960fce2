/* xla_aot_ffi.h: functions that programs call, in plain C.
 *
 * These are the structures of XLA's typed FFI, version 0.3, under XLA's own names, so that a function
 * written for XLA works here and the other way round. Whoever has XLA's headers
 * (`jax.ffi.include_dir()`) includes `xla/ffi/api/ffi.h` or `c_api.h` first or instead; this file then
 * says nothing.
 *
 *   static XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame) {
 *     if (!xla_aot_ffi_is_execute(frame)) return NULL;
 *     ...
 *   }
 *
 * The loader calls a function when the program runs (`XLA_FFI_ExecutionStage_EXECUTE`) and for nothing
 * else. XLA also calls it to ask for its version, with an extension in the frame, and
 * `xla_aot_ffi_is_execute` tells the one from the other.
 *
 * What the table of the frame gives here: errors, scratch memory, tasks (run at once, by the caller),
 * futures. Streams, states of other stages and XLA's registries are errors.
 */
#ifndef XLA_AOT_FFI_H
#define XLA_AOT_FFI_H

#include <stddef.h>
#include <stdint.h>

#ifndef XLA_FFI_API_C_API_H_

#ifdef __cplusplus
extern "C" {
#endif

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

typedef struct XLA_FFI_Api XLA_FFI_Api;
typedef struct XLA_FFI_InternalApi XLA_FFI_InternalApi;
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Future XLA_FFI_Future;

typedef enum { XLA_FFI_Extension_Metadata = 1 } XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  struct XLA_FFI_Extension_Base *next;
} XLA_FFI_Extension_Base;

typedef struct XLA_FFI_Api_Version {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  int major_version;
  int minor_version;
} XLA_FFI_Api_Version;

/* Codes of errors. */
typedef enum {
  XLA_FFI_Error_Code_OK = 0,
  XLA_FFI_Error_Code_CANCELLED = 1,
  XLA_FFI_Error_Code_UNKNOWN = 2,
  XLA_FFI_Error_Code_INVALID_ARGUMENT = 3,
  XLA_FFI_Error_Code_DEADLINE_EXCEEDED = 4,
  XLA_FFI_Error_Code_NOT_FOUND = 5,
  XLA_FFI_Error_Code_ALREADY_EXISTS = 6,
  XLA_FFI_Error_Code_PERMISSION_DENIED = 7,
  XLA_FFI_Error_Code_RESOURCE_EXHAUSTED = 8,
  XLA_FFI_Error_Code_FAILED_PRECONDITION = 9,
  XLA_FFI_Error_Code_ABORTED = 10,
  XLA_FFI_Error_Code_OUT_OF_RANGE = 11,
  XLA_FFI_Error_Code_UNIMPLEMENTED = 12,
  XLA_FFI_Error_Code_INTERNAL = 13,
  XLA_FFI_Error_Code_UNAVAILABLE = 14,
  XLA_FFI_Error_Code_DATA_LOSS = 15,
  XLA_FFI_Error_Code_UNAUTHENTICATED = 16
} XLA_FFI_Error_Code;

/* Element types: the numbers of `xla.PrimitiveType`, which `xla_aot.h` lists as XLA_AOT_F32 and so on. */
typedef int32_t XLA_FFI_DataType;

/* An array: its elements lie as the call's layouts say. */
typedef struct XLA_FFI_Buffer {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_DataType dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} XLA_FFI_Buffer;

typedef enum { XLA_FFI_ArgType_BUFFER = 1 } XLA_FFI_ArgType;
typedef enum { XLA_FFI_RetType_BUFFER = 1 } XLA_FFI_RetType;

/* What an attribute is: an XLA_FFI_Array, XLA_FFI_Attrs, XLA_FFI_Scalar or XLA_FFI_ByteSpan. */
typedef enum {
  XLA_FFI_AttrType_ARRAY = 1,
  XLA_FFI_AttrType_DICTIONARY = 2,
  XLA_FFI_AttrType_SCALAR = 3,
  XLA_FFI_AttrType_STRING = 4
} XLA_FFI_AttrType;

/* Text, which need not end with a zero byte. */
typedef struct XLA_FFI_ByteSpan {
  const char *ptr;
  size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void *value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void *data;
} XLA_FFI_Array;

typedef enum {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3
} XLA_FFI_ExecutionStage;

typedef struct XLA_FFI_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  int64_t size;
  XLA_FFI_ArgType *types;
  void **args;
} XLA_FFI_Args;

typedef struct XLA_FFI_Rets {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  int64_t size;
  XLA_FFI_RetType *types;
  void **rets;
} XLA_FFI_Rets;

/* Sorted by name. */
typedef struct XLA_FFI_Attrs {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  int64_t size;
  XLA_FFI_AttrType *types;
  XLA_FFI_ByteSpan **names;
  void **attrs;
} XLA_FFI_Attrs;

typedef struct XLA_FFI_CallFrame {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  const XLA_FFI_Api *api;
  XLA_FFI_ExecutionContext *ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future *future;
} XLA_FFI_CallFrame;

typedef XLA_FFI_Error *XLA_FFI_Handler(XLA_FFI_CallFrame *call_frame);

typedef struct XLA_FFI_Error_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  const char *message;
  XLA_FFI_Error_Code errc;
} XLA_FFI_Error_Create_Args;

typedef struct XLA_FFI_Error_GetMessage_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_Error *error;
  const char *message;
} XLA_FFI_Error_GetMessage_Args;

typedef struct XLA_FFI_Error_Destroy_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_Error *error;
} XLA_FFI_Error_Destroy_Args;

typedef struct XLA_FFI_DeviceMemory_Allocate_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_ExecutionContext *ctx;
  size_t size;
  size_t alignment;
  void *data;
} XLA_FFI_DeviceMemory_Allocate_Args;

typedef struct XLA_FFI_DeviceMemory_Free_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_ExecutionContext *ctx;
  size_t size;
  void *data;
} XLA_FFI_DeviceMemory_Free_Args;

/* How XLA asks a function for its version. */
typedef struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  uint32_t traits;
  int64_t state_type_id;
} XLA_FFI_Metadata;

typedef struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata *metadata;
} XLA_FFI_Metadata_Extension;

/* The table. What stands as `void *` here has no use outside of XLA, or needs its C++ headers. */
struct XLA_FFI_Api {
  size_t struct_size;
  XLA_FFI_Extension_Base *extension_start;
  XLA_FFI_Api_Version api_version;
  const XLA_FFI_InternalApi *internal_api;
  XLA_FFI_Error *(*XLA_FFI_Error_Create)(XLA_FFI_Error_Create_Args *args);
  void (*XLA_FFI_Error_GetMessage)(XLA_FFI_Error_GetMessage_Args *args);
  void (*XLA_FFI_Error_Destroy)(XLA_FFI_Error_Destroy_Args *args);
  void *XLA_FFI_Handler_Register;
  void *XLA_FFI_Stream_Get;
  void *XLA_FFI_Type_Register;
  void *XLA_FFI_ExecutionContext_Get;
  void *XLA_FFI_State_Set;
  void *XLA_FFI_State_Get;
  XLA_FFI_Error *(*XLA_FFI_DeviceMemory_Allocate)(XLA_FFI_DeviceMemory_Allocate_Args *args);
  XLA_FFI_Error *(*XLA_FFI_DeviceMemory_Free)(XLA_FFI_DeviceMemory_Free_Args *args);
  void *XLA_FFI_ThreadPool_Schedule;
  void *XLA_FFI_ThreadPool_NumThreads;
  void *XLA_FFI_Future_Create;
  void *XLA_FFI_Future_SetAvailable;
  void *XLA_FFI_Future_SetError;
  void *XLA_FFI_RunId_Get;
  void *XLA_FFI_DeviceOrdinal_Get;
};

#ifdef __cplusplus
}
#endif

#endif /* XLA_FFI_API_C_API_H_ */

/* Whether a call is one to do the work. When it is not, the version has been told, and the function
 * returns NULL. */
static inline int xla_aot_ffi_is_execute(XLA_FFI_CallFrame *frame) {
  XLA_FFI_Extension_Base *asked = frame->extension_start;
  if (asked && asked->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)asked)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    metadata->traits = 0;
    return 0;
  }
  return frame->stage == XLA_FFI_ExecutionStage_EXECUTE;
}

/* An error that the function returns. */
static inline XLA_FFI_Error *xla_aot_ffi_error(XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code,
                                               const char *message) {
  XLA_FFI_Error_Create_Args args = {sizeof(XLA_FFI_Error_Create_Args), NULL, message, code};
  return frame->api->XLA_FFI_Error_Create(&args);
}

/* The attribute of that name and kind, or NULL. */
static inline void *xla_aot_ffi_attribute(XLA_FFI_CallFrame *frame, const char *name,
                                          XLA_FFI_AttrType type) {
  int64_t i;
  for (i = 0; i < frame->attrs.size; ++i) {
    const XLA_FFI_ByteSpan *found = frame->attrs.names[i];
    size_t n = 0;
    while (n < found->len && name[n] != '\0' && name[n] == found->ptr[n]) ++n;
    if (n == found->len && name[n] == '\0' && frame->attrs.types[i] == type) {
      return frame->attrs.attrs[i];
    }
  }
  return NULL;
}

#endif
