/* Holds the library to what its header says: checks FOLDER, which has bundles of the programs here. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xla_aot.h>
#include <xla_aot_ffi.h>

#define CHECK(fact)                                                    \
  do {                                                                 \
    if (!(fact)) {                                                     \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #fact); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static const char *folder;

static void good(xla_aot_error *error) {
  if (error) {
    fprintf(stderr, "%s\n", xla_aot_error_text(error));
    exit(1);
  }
}

/* The error is of this kind and code, and its message holds these words. */
static void bad(xla_aot_error *error, int kind, int code, const char *words) {
  CHECK(error);
  if (xla_aot_error_kind(error) != kind || xla_aot_error_code(error) != code ||
      !strstr(xla_aot_error_message(error), words)) {
    fprintf(stderr, "wanted kind %d, code %d, `%s`; got kind %d:\n%s\n", kind, code, words,
            xla_aot_error_kind(error), xla_aot_error_text(error));
    exit(1);
  }
  xla_aot_error_free(error);
}

static void misused(xla_aot_error *error, const char *words) {
  bad(error, XLA_AOT_KIND_USAGE, 8008, words);
}

static xla_aot_bundle *open_bundle(const char *name) {
  char path[4096];
  xla_aot_bundle *bundle = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  good(xla_aot_bundle_open(path, &bundle));
  return bundle;
}

static void bundles_are_read_from_files_and_memory(void) {
  xla_aot_bundle *bundle = (xla_aot_bundle *)1;
  bad(xla_aot_bundle_open("/nonexistent/x.xla", &bundle), XLA_AOT_KIND_INPUT, 0, "/nonexistent/x.xla");
  bad(xla_aot_bundle_read("nonsense", 8, &bundle), XLA_AOT_KIND_BUNDLE, 7001, "");
  bad(xla_aot_bundle_read(NULL, 0, &bundle), XLA_AOT_KIND_BUNDLE, 7001, "");
  misused(xla_aot_bundle_read(NULL, 8, &bundle), "`bytes` is null");
  misused(xla_aot_bundle_read("x", SIZE_MAX, &bundle), "more than memory can hold");
  misused(xla_aot_bundle_open(NULL, &bundle), "`path` is null");
  misused(xla_aot_bundle_open("x", NULL), "`bundle` is null");
  CHECK(bundle == (xla_aot_bundle *)1);

  char path[4096];
  snprintf(path, sizeof path, "%s/axpy.xla", folder);
  FILE *file = fopen(path, "rb");
  CHECK(file);
  char *bytes = malloc(1 << 20);
  size_t size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  good(xla_aot_bundle_read(bytes, size, &bundle));
  memset(bytes, 0, size);
  CHECK(!strcmp(xla_aot_bundle_name(bundle), "axpy"));
  xla_aot_bundle_free(bundle);
  free(bytes);
}

static void bundles_describe_themselves(void) {
  xla_aot_bundle *bundle = open_bundle("tuple.xla");
  CHECK(!strcmp(xla_aot_bundle_platform(bundle), "cpu"));
  CHECK(strstr(xla_aot_bundle_target(bundle), "-linux-"));
  CHECK(strstr(xla_aot_bundle_describe(bundle), "\"parameters\""));
  CHECK(xla_aot_bundle_devices(bundle) == 1);
  CHECK(xla_aot_bundle_argument_count(bundle) == 3);
  CHECK(xla_aot_bundle_result_count(bundle) == 3);
  CHECK(xla_aot_bundle_import_count(bundle) == 0);
  CHECK(xla_aot_bundle_import(bundle, 0) == NULL);

  xla_aot_array array = {.struct_size = sizeof array};
  good(xla_aot_bundle_argument(bundle, 0, &array));
  CHECK(!strcmp(array.name, "state.0") && !strcmp(array.type_name, "s4"));
  CHECK(array.type == XLA_AOT_S4 && array.element_bits == 4 && array.bytes == 2);
  CHECK(array.parameter == 0 && array.path_length == 1 && array.path[0] == 0);
  good(xla_aot_bundle_argument(bundle, 1, &array));
  CHECK(array.type == XLA_AOT_BF16 && array.rank == 2 && array.dims[0] == 2 && array.dims[1] == 3);
  CHECK(array.minor_to_major[0] == 0 && array.minor_to_major[1] == 1 && array.bytes == 12);
  CHECK(array.dynamic[0] == 0 && array.donated == 0);
  good(xla_aot_bundle_argument(bundle, 2, &array));
  CHECK(!strcmp(array.name, "rows") && array.parameter == 1 && array.path_length == 0);
  CHECK(array.dynamic[0] == 1 && array.dims[0] == 4 && array.bytes == 16);
  good(xla_aot_bundle_result(bundle, 2, &array));
  CHECK(!strcmp(array.name, "result.1.1") && array.path_length == 2 && array.path[1] == 1);

  misused(xla_aot_bundle_argument(bundle, 3, &array), "there is no argument 3, the bundle has 3");
  misused(xla_aot_bundle_argument(NULL, 0, &array), "`bundle` is null");
  misused(xla_aot_bundle_argument(bundle, 0, NULL), "`array` is null");
  array.struct_size = 16;
  misused(xla_aot_bundle_argument(bundle, 0, &array), "`struct_size` of `xla_aot_array` is 16");

  /* A caller that is newer than the library has more fields, which stay as they are. */
  struct {
    xla_aot_array array;
    long later;
  } newer = {{.struct_size = sizeof newer}, 7};
  good(xla_aot_bundle_argument(bundle, 0, &newer.array));
  CHECK(newer.later == 7 && newer.array.struct_size == sizeof newer);
  xla_aot_bundle_free(bundle);

  CHECK(!strcmp(xla_aot_bundle_name(NULL), "") && xla_aot_bundle_argument_count(NULL) == 0);
  xla_aot_bundle_free(NULL);
}

static void arrays_are_packed_laid_out_and_sized(void) {
  xla_aot_bundle *bundle = open_bundle("tuple.xla");
  xla_aot_program *program = NULL;
  good(xla_aot_program_load(bundle, NULL, &program));
  xla_aot_bundle_free(bundle);

  const uint8_t small[2] = {0x2f, 0x07}; /* -1, 2, 7 */
  const uint16_t wide[6] = {1, 2, 3, 4, 5, 6};
  const float rows[4] = {1.5f, 2, 3, 4};
  const void *arguments[3] = {small, wide, rows};
  size_t argument_bytes[3] = {sizeof small, sizeof wide, 2 * sizeof(float)};
  const int64_t two[1] = {2};
  const int64_t *argument_dims[3] = {NULL, NULL, two};
  uint8_t out_small[2] = {9, 9};
  void *results[3] = {out_small, NULL, NULL};
  size_t result_bytes[3] = {sizeof out_small, 0, 0};
  int64_t wide_dims[2], rows_dims[1];
  int64_t *result_dims[3] = {NULL, wide_dims, rows_dims};
  xla_aot_call call = {sizeof call, 3, arguments, argument_bytes, argument_dims,
                       3, results, result_bytes, result_dims};
  good(xla_aot_program_run(program, &call));
  CHECK(out_small[0] == 0x2f && out_small[1] == 0x07);
  CHECK(!memcmp(results[1], wide, sizeof wide));
  CHECK((uintptr_t)results[1] % XLA_AOT_ALIGNMENT == 0);
  CHECK(wide_dims[0] == 2 && wide_dims[1] == 3 && rows_dims[0] == 2);
  CHECK(((float *)results[2])[0] == 3 && ((float *)results[2])[1] == 4);
  xla_aot_memory_free(results[1]);
  xla_aot_memory_free(results[2]);
  results[1] = results[2] = NULL;

  /* What does not fit is told, and no memory is left behind. */
  argument_bytes[2] = 3 * sizeof(float);
  bad(xla_aot_program_run(program, &call), XLA_AOT_KIND_INPUT, 8001, "`rows` has 12 bytes, wanted 8");
  CHECK(results[1] == NULL && results[2] == NULL);
  argument_dims[2] = (const int64_t[]){5};
  bad(xla_aot_program_run(program, &call), XLA_AOT_KIND_INPUT, 8001, "wanted [<=4]");
  argument_dims[2] = (const int64_t[]){-1};
  misused(xla_aot_program_run(program, &call), "negative");
  call.argument_dims = NULL;
  argument_bytes[2] = sizeof rows;
  result_bytes[0] = 1;
  bad(xla_aot_program_run(program, &call), XLA_AOT_KIND_INPUT, 8001,
      "`result.0` has room for 1 bytes, wanted 2");
  result_bytes[0] = 2;
  arguments[1] = NULL;
  misused(xla_aot_program_run(program, &call), "`arguments[1]` is null");
  call.argument_count = 2;
  misused(xla_aot_program_run(program, &call), "2 arguments, wanted 3");
  call.struct_size = 8;
  misused(xla_aot_program_run(program, &call), "`struct_size`");
  misused(xla_aot_program_run(program, NULL), "`call` is null");
  misused(xla_aot_program_run(NULL, &call), "`program` is null");
  xla_aot_program_free(program);
}

/* Large arrays are used where they are when they are aligned, and copied when not: nobody sees which. */
static void memory_of_any_alignment_will_do(void) {
  enum { N = 65536 };
  const size_t bytes[2] = {N * sizeof(float), N * sizeof(float)};
  xla_aot_bundle *bundle = open_bundle("large.xla");
  xla_aot_program *program = NULL;
  xla_aot_array array = {.struct_size = sizeof array};
  good(xla_aot_bundle_argument(bundle, 1, &array));
  CHECK(array.donated == 1);
  good(xla_aot_program_load(bundle, NULL, &program));
  xla_aot_bundle_free(bundle);
  char *memory[4];
  for (int i = 0; i < 4; ++i) memory[i] = xla_aot_memory_new(bytes[0] + 64);
  for (int round = 0; round < 24; ++round) {
    float *at[4];
    for (int i = 0; i < 4; ++i) at[i] = (float *)(memory[(i + round / 8) % 4] + (round >> i & 1) * 4);
    for (int i = 0; i < N; ++i) {
      at[0][i] = (float)(i + round);
      at[1][i] = (float)(i % 1000);
    }
    const void *arguments[2] = {at[0], at[1]};
    void *results[2] = {at[2], round % 3 ? at[3] : NULL};
    xla_aot_call call = {sizeof call, 2, arguments, bytes, NULL, 2, results, bytes, NULL};
    good(xla_aot_program_run(program, &call));
    const float *sum = results[0], *square = results[1];
    for (int i = 0; i < N; ++i) {
      float y = (float)(i % 1000);
      CHECK(at[0][i] == (float)(i + round) && at[1][i] == y);
      CHECK(sum[i] == (float)(i + round) + y && square[i] == y * y);
    }
    if (round % 3 == 0) xla_aot_memory_free(results[1]);
  }
  for (int i = 0; i < 4; ++i) xla_aot_memory_free(memory[i]);
  xla_aot_program_free(program);
}

static void results_lie_apart(void) {
  xla_aot_bundle *bundle = open_bundle("axpy.xla");
  xla_aot_program *program = NULL;
  good(xla_aot_program_load(bundle, NULL, &program));
  xla_aot_bundle_free(bundle);
  float a = 2, memory[12] = {1, 2, 3, 4, 10, 20, 30, 40};
  const void *arguments[3] = {&a, memory, memory + 4};
  size_t bytes[3] = {sizeof a, 16, 16}, room[1] = {16};
  void *results[1] = {memory + 3};
  xla_aot_call call = {sizeof call, 3, arguments, bytes, NULL, 1, results, room, NULL};
  misused(xla_aot_program_run(program, &call), "`results[0]` and `arguments[1]` overlap");
  results[0] = memory + 4;
  misused(xla_aot_program_run(program, &call), "`results[0]` and `arguments[2]` overlap");
  CHECK(memory[0] == 1 && memory[4] == 10 && memory[8] == 0);
  /* What is beyond the result may be anybody's, and arguments may be one array. */
  results[0] = memory + 8;
  room[0] = SIZE_MAX;
  good(xla_aot_program_run(program, &call));
  CHECK(memory[8] == 12 && memory[11] == 48);
  arguments[2] = arguments[1];
  good(xla_aot_program_run(program, &call));
  CHECK(memory[8] == 3 && memory[11] == 12);
  bytes[1] = SIZE_MAX;
  misused(xla_aot_program_run(program, &call), "`results[0]` and `arguments[1]` overlap");
  arguments[1] = memory + 11;
  results[0] = memory + 4;
  misused(xla_aot_program_run(program, &call), "`arguments[1]` has");
  bytes[1] = 16;
  results[0] = memory + 8;
  misused(xla_aot_program_run(program, &call), "`arguments[1]` and `results[0]` overlap");
  xla_aot_program_free(program);

  bundle = open_bundle("two.xla");
  good(xla_aot_program_load(bundle, NULL, &program));
  xla_aot_bundle_free(bundle);
  const void *both[2] = {memory, memory};
  const size_t sizes[2] = {8, 8};
  void *same[2] = {memory + 4, memory + 5};
  xla_aot_call two = {sizeof two, 2, both, sizes, NULL, 2, same, sizes, NULL};
  misused(xla_aot_program_run(program, &two), "`results[1]` and `results[0]` overlap");
  xla_aot_program_free(program);
}

static void a_child_process_runs_what_its_parent_loaded(void) {
  enum { N = 65536 };
  xla_aot_bundle *bundle = open_bundle("large.xla");
  xla_aot_options *options = xla_aot_options_new();
  xla_aot_program *program = NULL;
  good(xla_aot_options_set_threads(options, 3));
  good(xla_aot_program_load(bundle, options, &program));
  xla_aot_options_free(options);
  float *x = xla_aot_memory_new(N * sizeof *x);
  x[N - 1] = 3;
  const void *arguments[2] = {x, x};
  const size_t bytes[2] = {N * sizeof *x, N * sizeof *x};
  for (int round = 0; round < 2; ++round) {
    const pid_t child = round == 0 ? fork() : 0;
    CHECK(child >= 0);
    if (child > 0) {
      int status = -1;
      CHECK(waitpid(child, &status, 0) == child && status == 0);
      continue;
    }
    if (round == 0) alarm(60);
    void *results[2] = {NULL, NULL};
    xla_aot_call call = {sizeof call, 2, arguments, bytes, NULL, 2, results, NULL, NULL};
    good(xla_aot_program_run(program, &call));
    CHECK(((float *)results[0])[N - 1] == 6 && ((float *)results[1])[N - 1] == 9);
    xla_aot_memory_free(results[0]);
    xla_aot_memory_free(results[1]);
    xla_aot_program_free(program);
    xla_aot_bundle_free(bundle);
    if (round == 0) _exit(0);
  }
  xla_aot_memory_free(x);
}

static void several_devices_take_turns(void) {
  xla_aot_bundle *bundle = open_bundle("two.xla");
  xla_aot_program *program;
  CHECK(xla_aot_bundle_devices(bundle) == 2);
  good(xla_aot_program_load(bundle, NULL, &program));
  float first[2] = {1, 2}, second[2] = {10, 20}, sums[2][2];
  const void *arguments[2] = {first, second};
  const size_t bytes[2] = {sizeof first, sizeof second};
  void *results[2] = {sums[0], sums[1]};
  xla_aot_call call = {sizeof call, 2, arguments, bytes, NULL, 2, results, bytes, NULL};
  good(xla_aot_program_run(program, &call));
  CHECK(sums[0][0] == 11 && sums[0][1] == 22 && sums[1][0] == 11 && sums[1][1] == 22);
  xla_aot_program_free(program);
  xla_aot_bundle_free(bundle);
}

XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame);

static void programs_call_functions_of_the_caller(void) {
  xla_aot_bundle *bundle = open_bundle("call.xla");
  xla_aot_program *program = NULL;
  xla_aot_options *options = xla_aot_options_new();
  CHECK(xla_aot_bundle_import_count(bundle) == 1);
  CHECK(!strcmp(xla_aot_bundle_import(bundle, 0), "scale"));
  CHECK(xla_aot_bundle_import_is_provided(bundle, 0) == 0);
  bad(xla_aot_program_load(bundle, options, &program), XLA_AOT_KIND_BUNDLE, 8003, "`scale`");
  CHECK(program == NULL);
  misused(xla_aot_options_add_call(options, "scale", NULL), "`handler` is null");
  misused(xla_aot_options_add_call(options, NULL, scale), "`name` is null");
  good(xla_aot_options_add_call(options, "scale", scale));
  good(xla_aot_program_load(bundle, options, &program));
  xla_aot_options_free(options);
  xla_aot_bundle_free(bundle);

  float x[6] = {0, 1, 2, 3, 4, 5}, y[6];
  const void *arguments[1] = {x};
  const size_t bytes[1] = {sizeof x};
  void *results[1] = {y};
  xla_aot_call call = {sizeof call, 1, arguments, bytes, NULL, 1, results, bytes, NULL};
  good(xla_aot_program_run(program, &call));
  const float wanted[6] = {1, 4.5f, 8, 8.5f, 12, 15.5f};
  CHECK(!memcmp(y, wanted, sizeof y));
  x[5] = -1;
  bad(xla_aot_program_run(program, &call), XLA_AOT_KIND_INPUT, 8004,
      "`scale` failed: a number below zero (out of range)");
  xla_aot_program_free(program);
}

static void options_choose_device_and_threads(void) {
  xla_aot_bundle *bundle = open_bundle("axpy.xla");
  xla_aot_program *program = NULL;
  xla_aot_options *options = xla_aot_options_new();
  good(xla_aot_options_set_threads(options, 1));
  good(xla_aot_options_set_device(options, "cpu"));
  good(xla_aot_program_load(bundle, options, &program));
  CHECK(xla_aot_program_threads(program) == 1);
  xla_aot_program_free(program);
  misused(xla_aot_options_set_device(options, "tpu"), "no such device `tpu`");
  misused(xla_aot_options_set_device(NULL, "cpu"), "`options` is null");
  good(xla_aot_options_set_device(options, "cuda:0"));
  bad(xla_aot_program_load(bundle, options, &program), XLA_AOT_KIND_BUNDLE, 8006, "for a CPU");
  misused(xla_aot_program_load(NULL, options, &program), "`bundle` is null");
  xla_aot_options_free(options);
  xla_aot_bundle_free(bundle);
  xla_aot_program_free(NULL);
  xla_aot_options_free(NULL);
  xla_aot_error_free(NULL);
}

static void a_simulated_gpu_runs_a_bundle(void) {
  if (!strstr(xla_aot_devices(), "simulator")) return;
  xla_aot_bundle *bundle = open_bundle("axpy.h100.xla");
  xla_aot_program *program = NULL;
  xla_aot_options *options = xla_aot_options_new();
  CHECK(!strcmp(xla_aot_bundle_platform(bundle), "cuda"));
  CHECK(!strncmp(xla_aot_bundle_target(bundle), "sm_90", 5));
  good(xla_aot_options_set_device(options, "sim:h100_sxm"));
  good(xla_aot_program_load(bundle, options, &program));
  float a = 2, x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, sum[4];
  const void *arguments[3] = {&a, x, y};
  const size_t bytes[3] = {sizeof a, sizeof x, sizeof y};
  void *results[1] = {sum};
  xla_aot_call call = {sizeof call, 3, arguments, bytes, NULL, 1, results, &bytes[1], NULL};
  good(xla_aot_program_run(program, &call));
  CHECK(sum[0] == 12 && sum[3] == 48);
  xla_aot_program_free(program);
  xla_aot_options_free(options);
  xla_aot_bundle_free(bundle);
}

static void *run_many(void *shared) {
  xla_aot_program *program = shared;
  for (int i = 0; i < 200; ++i) {
    float a = (float)i, x[4] = {1, 2, 3, 4}, y[4] = {0, 0, 0, 1}, sum[4];
    const void *arguments[3] = {&a, x, y};
    size_t bytes[3] = {sizeof a, sizeof x, sizeof y};
    void *results[1] = {sum};
    xla_aot_call call = {sizeof call, 3, arguments, bytes, NULL, 1, results, &bytes[1], NULL};
    good(xla_aot_program_run(program, &call));
    CHECK(sum[0] == a && sum[3] == 4 * a + 1);
    bytes[0] = 3;
    bad(xla_aot_program_run(program, &call), XLA_AOT_KIND_INPUT, 8001, "`a` has 3 bytes");
  }
  return NULL;
}

static void threads_share_a_program(void) {
  xla_aot_bundle *bundle = open_bundle("axpy.xla");
  xla_aot_program *program = NULL;
  good(xla_aot_program_load(bundle, NULL, &program));
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(!pthread_create(&threads[i], NULL, run_many, program));
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  xla_aot_program_free(program);
  xla_aot_bundle_free(bundle);
}

int main(int count, char **words) {
  CHECK(count == 2);
  folder = words[1];
  CHECK(xla_aot_abi() == XLA_AOT_ABI);
  CHECK(strchr(xla_aot_version(), '.'));
  void *memory = xla_aot_memory_new(100);
  CHECK(memory && (uintptr_t)memory % XLA_AOT_ALIGNMENT == 0 && ((char *)memory)[99] == 0);
  xla_aot_memory_free(memory);
  xla_aot_memory_free(NULL);
  bundles_are_read_from_files_and_memory();
  bundles_describe_themselves();
  arrays_are_packed_laid_out_and_sized();
  memory_of_any_alignment_will_do();
  results_lie_apart();
  a_child_process_runs_what_its_parent_loaded();
  several_devices_take_turns();
  programs_call_functions_of_the_caller();
  options_choose_device_and_threads();
  a_simulated_gpu_runs_a_bundle();
  threads_share_a_program();
  puts("all is as the header says");
  return 0;
}
