/* xla_aot.h: runs bundles of xla-aot from C.
 *
 * A bundle is read, looked at, loaded, and run any number of times:
 *
 *   xla_aot_bundle *bundle;
 *   xla_aot_program *program;
 *   xla_aot_error *error = xla_aot_bundle_open("model.xla", &bundle);
 *   if (!error) error = xla_aot_program_load(bundle, NULL, &program);
 *   ...
 *   if (error) { puts(xla_aot_error_text(error)); xla_aot_error_free(error); }
 *
 * Rules that hold for all of it:
 *
 * - A function that can fail gives an error, or NULL when all went well. Whoever gets an error frees
 *   it. A function that failed has changed none of its outputs, but for the memory of results of a
 *   run that failed, which may hold anything.
 * - Handles may be used by several threads at a time, but options while they are being filled and
 *   whatever is being freed. There is no state of threads and none of the process: an error belongs
 *   to who got it.
 * - Pointers that functions give belong to the handle they were asked of and are good until that is
 *   freed. Freeing NULL does nothing. Handles may be freed in any order.
 * - A child of `fork` may use and free what it has of its parent's, if no other thread of the parent
 *   was in the library then; programs on a CPU run there on the calling thread alone.
 * - Strings are UTF-8 and end with a zero byte.
 * - A structure that a caller fills begins with `struct_size`, which the caller sets to its size. A
 *   library newer than its caller reads and writes no more than that.
 */
#ifndef XLA_AOT_H
#define XLA_AOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define XLA_AOT_CHECKED __attribute__((warn_unused_result))
#else
#define XLA_AOT_CHECKED
#endif

/* The number of this interface. Libraries of the same number only gain functions and fields. */
#define XLA_AOT_ABI 1

/* The number of the library's interface. */
uint32_t xla_aot_abi(void);

/* The library's version, such as "0.1.0". */
const char *xla_aot_version(void);

/* What the library can run, separated by commas: "cpu", "cuda", "simulator". */
const char *xla_aot_devices(void);

/* ---- Errors ---- */

typedef struct xla_aot_error xla_aot_error;

/* Who has to act. The numbers are the exit codes of the program `xla-aot`. */
enum {
  XLA_AOT_KIND_INPUT = 1,     /* an argument of the program does not fit, or running it failed */
  XLA_AOT_KIND_USAGE = 2,     /* a function was called in a way that this file forbids */
  XLA_AOT_KIND_BUNDLE = 3,    /* the bundle is damaged, or does not fit this machine */
  XLA_AOT_KIND_INTERNAL = 70  /* the library is at fault */
};

int32_t xla_aot_error_kind(const xla_aot_error *error);

/* The number of the diagnostic: 7002 for XA7002, which `xla-aot explain XA7002` explains. 0 when a
 * file cannot be read, which has none. */
int32_t xla_aot_error_code(const xla_aot_error *error);

/* What was found and what was wanted. */
const char *xla_aot_error_message(const xla_aot_error *error);

/* What to do about it; "" when there is nothing to say. */
const char *xla_aot_error_help(const xla_aot_error *error);

/* All of it on a few lines: code, message, place, notes, help. */
const char *xla_aot_error_text(const xla_aot_error *error);

void xla_aot_error_free(xla_aot_error *error);

/* ---- Memory ---- */

/* What arguments and results should be aligned to, in bytes: large ones are then used where they are on
 * a CPU. */
#define XLA_AOT_ALIGNMENT 64

/* Zeroed memory of that alignment; NULL when there is none to be had. */
void *xla_aot_memory_new(size_t bytes);

void xla_aot_memory_free(void *memory);

/* ---- Bundles ---- */

typedef struct xla_aot_bundle xla_aot_bundle;

/* Reads a file. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_bundle_open(const char *path, xla_aot_bundle **bundle);

/* Reads bytes in memory, which are needed no longer when it is done. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_bundle_read(const void *bytes, size_t size,
                                                   xla_aot_bundle **bundle);

void xla_aot_bundle_free(xla_aot_bundle *bundle);

/* The name of the module it was compiled from. */
const char *xla_aot_bundle_name(const xla_aot_bundle *bundle);

/* "cpu" or "cuda". */
const char *xla_aot_bundle_platform(const xla_aot_bundle *bundle);

/* What it was compiled for: a triple such as "x86_64-unknown-linux-gnu", or a capability such as
 * "sm_90a". */
const char *xla_aot_bundle_target(const xla_aot_bundle *bundle);

/* All there is to say of it, as the JSON of `xla-aot inspect --json`. */
const char *xla_aot_bundle_describe(const xla_aot_bundle *bundle);

/* Devices that run it together: replicas times partitions. */
size_t xla_aot_bundle_devices(const xla_aot_bundle *bundle);

/* Element types, by the numbers of `xla.PrimitiveType`. A pred is a byte, 0 or 1 and nothing else. */
enum {
  XLA_AOT_PRED = 1,
  XLA_AOT_S8 = 2,
  XLA_AOT_S16 = 3,
  XLA_AOT_S32 = 4,
  XLA_AOT_S64 = 5,
  XLA_AOT_U8 = 6,
  XLA_AOT_U16 = 7,
  XLA_AOT_U32 = 8,
  XLA_AOT_U64 = 9,
  XLA_AOT_F16 = 10,
  XLA_AOT_F32 = 11,
  XLA_AOT_F64 = 12,
  XLA_AOT_C64 = 15,
  XLA_AOT_BF16 = 16,
  XLA_AOT_C128 = 18,
  XLA_AOT_F8E5M2 = 19,
  XLA_AOT_F8E4M3FN = 20,
  XLA_AOT_S4 = 21,
  XLA_AOT_U4 = 22,
  XLA_AOT_F8E4M3B11FNUZ = 23,
  XLA_AOT_F8E5M2FNUZ = 24,
  XLA_AOT_F8E4M3FNUZ = 25,
  XLA_AOT_S2 = 26,
  XLA_AOT_U2 = 27,
  XLA_AOT_F8E4M3 = 28,
  XLA_AOT_F8E3M4 = 29,
  XLA_AOT_S1 = 30,
  XLA_AOT_U1 = 31,
  XLA_AOT_F4E2M1FN = 32,
  XLA_AOT_F8E8M0FNU = 33,
  XLA_AOT_F6E3M2FN = 35,
  XLA_AOT_F6E2M3FN = 36
};

/* An array that a program takes or gives. Parameters and results that are tuples are told as the
 * arrays in them, in order. */
typedef struct xla_aot_array {
  size_t struct_size;
  /* The parameter's name; of an array in a tuple with its place after it, such as "state.0". The
   * program itself knows no names of results; they are "result", "result.0" and so on. */
  const char *name;
  /* The name of the element type: "f32". */
  const char *type_name;
  /* The number of the element type. */
  int32_t type;
  /* Bits of an element in memory; those of less than a byte are packed, the first in the low bits. */
  int32_t element_bits;
  size_t rank;
  /* Sizes; of a dimension that may be smaller when the program runs, the bound. */
  const int64_t *dims;
  /* For each dimension 1 when it may be smaller, else 0. */
  const uint8_t *dynamic;
  /* The dimensions from the one that varies fastest in memory on. */
  const int64_t *minor_to_major;
  /* Bytes of the array with all dimensions at their bounds. */
  size_t bytes;
  /* The parameter it is part of; 0 for results. */
  size_t parameter;
  /* Where it is in that parameter, or in the result: numbers of elements of tuples. */
  size_t path_length;
  const int64_t *path;
  /* Whether the program was compiled to reuse its memory for a result. This library copies such
   * arguments: it never writes to them. */
  int32_t donated;
} xla_aot_array;

size_t xla_aot_bundle_argument_count(const xla_aot_bundle *bundle);
size_t xla_aot_bundle_result_count(const xla_aot_bundle *bundle);

/* Fills in what argument or result `number`, counted from 0, is. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_bundle_argument(const xla_aot_bundle *bundle, size_t number,
                                                       xla_aot_array *array);
XLA_AOT_CHECKED xla_aot_error *xla_aot_bundle_result(const xla_aot_bundle *bundle, size_t number,
                                                     xla_aot_array *array);

/* The functions that the program calls by name. */
size_t xla_aot_bundle_import_count(const xla_aot_bundle *bundle);

/* The name of such a function; NULL when there are not so many. */
const char *xla_aot_bundle_import(const xla_aot_bundle *bundle, size_t number);

/* 1 when it comes with the library, 0 when `xla_aot_options_add_call` must provide it. */
int32_t xla_aot_bundle_import_is_provided(const xla_aot_bundle *bundle, size_t number);

/* What goes before the bytes of the bundle so that `deserialize_executable` of jaxlib 0.9.1 and later
 * takes them: its envelope, or nothing when it is there. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_bundle_jax_prefix(const xla_aot_bundle *bundle,
                                                         const void **prefix, size_t *size);

/* ---- Options of loading ---- */

typedef struct xla_aot_options xla_aot_options;

/* Options that say nothing: what the bundle was compiled for, all threads of the process. */
xla_aot_options *xla_aot_options_new(void);

void xla_aot_options_free(xla_aot_options *options);

/* Where it runs: "cpu", "cuda" or "cuda:N", "sim" or "sim:h100_sxm" for a simulated GPU, "fitting" for
 * what fits the bundle. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_options_set_device(xla_aot_options *options,
                                                          const char *device);

/* Threads that work on a run on a CPU, the caller's among them; 0 for all the process may use. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_options_set_threads(xla_aot_options *options, size_t threads);

struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

/* A function that programs may call, by the convention of XLA's typed FFI: one that is made with XLA's
 * own headers (`XLA_FFI_DEFINE_HANDLER`), or with `xla_aot_ffi.h`. */
typedef struct XLA_FFI_Error *xla_aot_handler(struct XLA_FFI_CallFrame *frame);

/* Provides a function under the name by which programs call it, before one of the library's own. It
 * may be called by several threads at a time. On a GPU operands are copied to the host for it. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_options_add_call(xla_aot_options *options, const char *name,
                                                        xla_aot_handler *handler);

/* ---- Programs ---- */

typedef struct xla_aot_program xla_aot_program;

/* Checks a bundle against this machine and loads it. Without options it is loaded as with new ones. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_program_load(const xla_aot_bundle *bundle,
                                                    const xla_aot_options *options,
                                                    xla_aot_program **program);

void xla_aot_program_free(xla_aot_program *program);

/* Threads that work on a run. */
size_t xla_aot_program_threads(const xla_aot_program *program);

/* One run. With several devices the arrays of the first come first, then those of the second. */
typedef struct xla_aot_call {
  size_t struct_size;
  /* Where the arguments are, which are only read, and their bytes. Arrays lie in memory as
   * `minor_to_major` says, without gaps. */
  size_t argument_count;
  const void *const *arguments;
  const size_t *argument_bytes;
  /* For each argument its sizes, or NULL when they are those of `dims`. NULL when all are. */
  const int64_t *const *argument_dims;
  /* Where the results go, and how much room there is. A result that overlaps another or an argument
   * is refused. Where NULL stands the library puts memory of its own, which `xla_aot_memory_free`
   * frees; room is not asked then. */
  size_t result_count;
  void **results;
  const size_t *result_bytes;
  /* For each result where its sizes go, or NULL; NULL when nobody wants them. */
  int64_t *const *result_dims;
} xla_aot_call;

/* Runs a program. Several threads may run one program at a time. */
XLA_AOT_CHECKED xla_aot_error *xla_aot_program_run(const xla_aot_program *program,
                                                   xla_aot_call *call);

#ifdef __cplusplus
}
#endif

#endif
