/* Runs a bundle of `a * x + y`, with a: f32[] and x, y: f32[4]: example BUNDLE */
#include <stdio.h>
#include <xla_aot.h>

static int failed(xla_aot_error *error) {
  if (!error) return 0;
  fprintf(stderr, "%s\n", xla_aot_error_text(error));
  xla_aot_error_free(error);
  return 1;
}

int main(int count, char **words) {
  xla_aot_bundle *bundle;
  xla_aot_program *program;
  if (count != 2) return 2;
  if (failed(xla_aot_bundle_open(words[1], &bundle))) return 1;
  printf("%s for %s\n", xla_aot_bundle_name(bundle), xla_aot_bundle_target(bundle));
  for (size_t i = 0; i < xla_aot_bundle_argument_count(bundle); ++i) {
    xla_aot_array array = {.struct_size = sizeof array};
    if (failed(xla_aot_bundle_argument(bundle, i, &array))) return 1;
    printf("%s: %s, rank %zu, %zu bytes\n", array.name, array.type_name, array.rank, array.bytes);
  }
  if (failed(xla_aot_program_load(bundle, NULL, &program))) return 1;

  float a = 2, x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, sum[4];
  const void *arguments[] = {&a, x, y};
  const size_t argument_bytes[] = {sizeof a, sizeof x, sizeof y};
  void *results[] = {sum};
  const size_t result_bytes[] = {sizeof sum};
  xla_aot_call call = {
      .struct_size = sizeof call,
      .argument_count = 3,
      .arguments = arguments,
      .argument_bytes = argument_bytes,
      .result_count = 1,
      .results = results,
      .result_bytes = result_bytes,
  };
  if (failed(xla_aot_program_run(program, &call))) return 1;
  printf("%g %g %g %g\n", sum[0], sum[1], sum[2], sum[3]);

  xla_aot_program_free(program);
  xla_aot_bundle_free(bundle);
  return 0;
}
