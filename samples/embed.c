/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a model the way a framework embeds ONNXIFI: nothing is linked but the loader archive, the
 * library is opened at run time, and the program copes when it is not there. The model is the digit
 * classifier; the image is drawn here. C89.
 *
 *   embed LIBRARY MODEL
 */

#include <onnx/onnxifi_loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS 64
#define CLASSES 10

/* A zero: dark where '#'. */
static const char kPicture[] =
    "..####.."
    ".##..##."
    ".##..##."
    ".#....#."
    ".#....#."
    ".##..##."
    ".##.###."
    "..####..";

static void* ReadFile(const char* path, size_t* size_bytes) {
  FILE* file = fopen(path, "rb");
  void* bytes = NULL;
  long length;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0 &&
      fseek(file, 0, SEEK_SET) == 0) {
    *size_bytes = (size_t)length;
    bytes = malloc(*size_bytes);
    if (bytes != NULL && fread(bytes, 1, *size_bytes, file) != *size_bytes) {
      free(bytes);
      bytes = NULL;
    }
  }
  fclose(file);
  return bytes;
}

static onnxTensorDescriptorV1 Describe(const char* name, const uint64_t* shape, uint32_t rank,
                                       float* data) {
  onnxTensorDescriptorV1 descriptor;
  memset(&descriptor, 0, sizeof(descriptor));
  descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  descriptor.name = name;
  descriptor.dataType = ONNXIFI_DATATYPE_FLOAT32;
  descriptor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  descriptor.dimensions = rank;
  descriptor.shape = shape;
  descriptor.buffer = (onnxPointer)(uintptr_t)data;
  return descriptor;
}

/* One run: the input event is signalled after the run was started, which is the usual order. */
static onnxStatus Run(const struct onnxifi_library* library, onnxBackend backend, onnxGraph graph) {
  onnxMemoryFenceV1 input;
  onnxMemoryFenceV1 output;
  onnxStatus status;
  memset(&input, 0, sizeof(input));
  memset(&output, 0, sizeof(output));
  input.tag = output.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  input.type = output.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  status = library->onnxInitEvent(backend, &input.event);
  if (status != ONNXIFI_STATUS_SUCCESS) return status;
  status = library->onnxRunGraph(graph, &input, &output);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    status = library->onnxSignalEvent(input.event);
    if (status == ONNXIFI_STATUS_SUCCESS) status = library->onnxWaitEvent(output.event);
    library->onnxReleaseEvent(output.event);
  }
  library->onnxReleaseEvent(input.event);
  return status;
}

static onnxStatus Classify(const struct onnxifi_library* library, onnxBackendID id,
                           const void* model, size_t model_size_bytes, float* image,
                           float* scores) {
  static const uint64_t image_shape[] = {1, 1, 8, 8};
  static const uint64_t scores_shape[] = {1, CLASSES};
  onnxTensorDescriptorV1 input = Describe("image", image_shape, 4, image);
  onnxTensorDescriptorV1 output = Describe("scores", scores_shape, 2, scores);
  onnxBackend backend = NULL;
  onnxGraph graph = NULL;
  onnxStatus status = library->onnxInitBackend(id, NULL, &backend);
  if (status != ONNXIFI_STATUS_SUCCESS) return status;
  status = library->onnxInitGraph(backend, NULL, model_size_bytes, model, 0, NULL, &graph);
  if (status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK) {
    status = library->onnxSetGraphIO(graph, 1, &input, 1, &output);
    if (status == ONNXIFI_STATUS_SUCCESS) status = Run(library, backend, graph);
    library->onnxReleaseGraph(graph);
  }
  library->onnxReleaseBackend(backend);
  return status;
}

int main(int argc, char** argv) {
  struct onnxifi_library library;
  onnxBackendID ids[64];
  size_t count = sizeof(ids) / sizeof(ids[0]);
  float image[PIXELS];
  float scores[CLASSES];
  size_t model_size_bytes = 0;
  void* model;
  onnxStatus status;
  int k;
  int best = 0;
  if (argc != 3) {
    fprintf(stderr, "usage: embed LIBRARY MODEL\n");
    return 2;
  }
  if (!onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, argv[1], &library)) {
    fprintf(stderr, "%s is no ONNXIFI library; a framework would go on without it.\n", argv[1]);
    return 1;
  }
  model = ReadFile(argv[2], &model_size_bytes);
  if (model == NULL) {
    fprintf(stderr, "The model %s cannot be read.\n", argv[2]);
    onnxifi_unload(&library);
    return 1;
  }
  for (k = 0; k < PIXELS; ++k) image[k] = kPicture[k] == '#' ? 1.0f : 0.0f;
  status = library.onnxGetBackendIDs(ids, &count);
  if (status == ONNXIFI_STATUS_SUCCESS && count > 0) {
    status = Classify(&library, ids[0], model, model_size_bytes, image, scores);
    for (k = 0; k < (int)count; ++k) library.onnxReleaseBackendID(ids[k]);
  } else if (count == 0) {
    fprintf(stderr, "%s has no device.\n", argv[1]);
  }
  free(model);
  onnxifi_unload(&library);
  if (status != ONNXIFI_STATUS_SUCCESS || count == 0) {
    fprintf(stderr, "The model did not run: status 0x%04x.\n", (unsigned)status);
    return 1;
  }
  for (k = 1; k < CLASSES; ++k) {
    if (scores[k] > scores[best]) best = k;
  }
  printf("The picture is a %d (score %.3f).\n", best, (double)scores[best]);
  return 0;
}
