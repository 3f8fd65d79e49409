/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plain ONNXIFI 1.0 plugin for tests, written without the kit: one CPU device, graphs that double
 * the first input, no extensions. Models with an Exp are refused. Definitions choose what is wrong
 * with it:
 *   FAKE_FAILS_ENUMERATION   onnxGetBackendIDs answers INTERNAL_ERROR
 *   FAKE_HAS_NO_DEVICE       it lists nothing
 *   FAKE_LACKS_WAIT          it does not define onnxWaitEvent
 *   FAKE_CALLS_NOBODY        it calls a function that no library defines
 * Its IDs differ at every enumeration, as those of published wrappers do, and its objects are
 * addresses, so that a wrong handle would crash.
 */

#include <onnx/onnxifi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct Id {
  struct Id* next;
};

/* IDs that are not released: libonnxifi keeps a plugin's for the rest of the process. */
static struct Id* kept_ids;
static pthread_mutex_t kept_ids_mutex = PTHREAD_MUTEX_INITIALIZER;

struct Graph;

struct Run {
  struct Graph* graph;
  const float* source;
  float* target;
  uint64_t count;
  struct Event* output;
};

struct Event {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_signalled;
  onnxStatus result;
  /* What starts when the event is signalled. */
  struct Run* pending;
  int references;
};

struct Graph {
  const float* source;
  float* target;
  uint64_t count;
  int is_bound;
};

#ifdef FAKE_CALLS_NOBODY
void onnxifi_test_function_that_nobody_defines(void);
#endif

static struct Event* NewEvent(int references) {
  struct Event* event = (struct Event*)calloc(1, sizeof(struct Event));
  pthread_mutex_init(&event->mutex, NULL);
  pthread_cond_init(&event->changed, NULL);
  event->references = references;
  return event;
}

static void Drop(struct Event* event) {
  int left;
  pthread_mutex_lock(&event->mutex);
  left = --event->references;
  pthread_mutex_unlock(&event->mutex);
  if (left > 0) return;
  pthread_cond_destroy(&event->changed);
  pthread_mutex_destroy(&event->mutex);
  free(event);
}

static void Signal(struct Event* event, onnxStatus result) {
  struct Run* run;
  uint64_t i;
  pthread_mutex_lock(&event->mutex);
  event->is_signalled = 1;
  event->result = result;
  run = event->pending;
  event->pending = NULL;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->mutex);
  if (run == NULL) return;
  for (i = 0; i < run->count; i++) run->target[i] = 2 * run->source[i];
  Signal(run->output, ONNXIFI_STATUS_SUCCESS);
  Drop(run->output);
  free(run);
}

onnxStatus ONNXIFI_ABI onnxGetBackendIDs(onnxBackendID* backendIDs, size_t* numBackends) {
#if defined(FAKE_FAILS_ENUMERATION)
  (void)backendIDs;
  (void)numBackends;
  return ONNXIFI_STATUS_INTERNAL_ERROR;
#elif defined(FAKE_HAS_NO_DEVICE)
  *numBackends = 0;
  return backendIDs == NULL ? ONNXIFI_STATUS_FALLBACK : ONNXIFI_STATUS_SUCCESS;
#else
  const size_t capacity = *numBackends;
#ifdef FAKE_CALLS_NOBODY
  onnxifi_test_function_that_nobody_defines();
#endif
  *numBackends = 1;
  if (backendIDs == NULL || capacity < 1) return ONNXIFI_STATUS_FALLBACK;
  {
    struct Id* id = (struct Id*)calloc(1, sizeof(struct Id));
    pthread_mutex_lock(&kept_ids_mutex);
    id->next = kept_ids;
    kept_ids = id;
    pthread_mutex_unlock(&kept_ids_mutex);
    backendIDs[0] = id;
  }
  return ONNXIFI_STATUS_SUCCESS;
#endif
}

onnxStatus ONNXIFI_ABI onnxReleaseBackendID(onnxBackendID backendID) {
  struct Id** link = &kept_ids;
  pthread_mutex_lock(&kept_ids_mutex);
  while (*link != NULL && *link != (struct Id*)backendID) link = &(*link)->next;
  if (*link != NULL) *link = (*link)->next;
  pthread_mutex_unlock(&kept_ids_mutex);
  free(backendID);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxGetBackendInfo(onnxBackendID backendID, onnxBackendInfo infoType,
                                          void* infoValue, size_t* infoValueSize) {
  static const char kName[] = "Plain";
  static const uint64_t kType = ONNXIFI_DEVICE_TYPE_CPU;
  const void* value = NULL;
  size_t size = 0;
  const size_t capacity = *infoValueSize;
  (void)backendID;
  if (infoType == ONNXIFI_BACKEND_NAME) {
    value = kName;
    size = sizeof(kName) - 1; /* One of those that do not count the NUL. */
  } else if (infoType == ONNXIFI_BACKEND_DEVICE_TYPE) {
    value = &kType;
    size = sizeof(kType);
  } else {
    return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
  *infoValueSize = size;
  if (infoValue == NULL || capacity < size) return ONNXIFI_STATUS_FALLBACK;
  memcpy(infoValue, value, size);
  return ONNXIFI_STATUS_SUCCESS;
}

/* Whether a node of the model is an Exp: op_type is field 4 of a NodeProto. */
static int HasExp(const char* model, size_t size) {
  static const char kField[] = {4 << 3 | 2, 3, 'E', 'x', 'p'};
  size_t i;
  for (i = 0; i + sizeof(kField) <= size; i++) {
    if (memcmp(model + i, kField, sizeof(kField)) == 0) return 1;
  }
  return 0;
}

onnxStatus ONNXIFI_ABI onnxGetBackendCompatibility(onnxBackendID backendID, size_t onnxModelSize,
                                                   const void* onnxModel) {
  (void)backendID;
  if (onnxModelSize >= 6 && memcmp(onnxModel, "refuse", 6) == 0) {
    return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  }
  if (HasExp((const char*)onnxModel, onnxModelSize)) return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxInitBackend(onnxBackendID backendID, const uint64_t* auxPropertiesList,
                                       onnxBackend* backend) {
  (void)backendID;
  (void)auxPropertiesList;
  *backend = malloc(1);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxReleaseBackend(onnxBackend backend) {
  free(backend);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxInitEvent(onnxBackend backend, onnxEvent* event) {
  (void)backend;
  *event = NewEvent(1);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxSignalEvent(onnxEvent event) {
  struct Event* object = (struct Event*)event;
  int was_signalled;
  pthread_mutex_lock(&object->mutex);
  was_signalled = object->is_signalled;
  pthread_mutex_unlock(&object->mutex);
  if (was_signalled) return ONNXIFI_STATUS_INVALID_STATE;
  Signal(object, ONNXIFI_STATUS_SUCCESS);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxGetEventState(onnxEvent event, onnxEventState* state) {
  struct Event* object = (struct Event*)event;
  pthread_mutex_lock(&object->mutex);
  *state = object->is_signalled ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED;
  pthread_mutex_unlock(&object->mutex);
  return ONNXIFI_STATUS_SUCCESS;
}

#ifndef FAKE_LACKS_WAIT
onnxStatus ONNXIFI_ABI onnxWaitEvent(onnxEvent event) {
  struct Event* object = (struct Event*)event;
  onnxStatus result;
  pthread_mutex_lock(&object->mutex);
  while (!object->is_signalled) pthread_cond_wait(&object->changed, &object->mutex);
  result = object->result;
  pthread_mutex_unlock(&object->mutex);
  return result;
}
#endif

onnxStatus ONNXIFI_ABI onnxReleaseEvent(onnxEvent event) {
  struct Event* object = (struct Event*)event;
  struct Run* run;
  pthread_mutex_lock(&object->mutex);
  run = object->pending;
  object->pending = NULL;
  pthread_mutex_unlock(&object->mutex);
  if (run != NULL) {
    Signal(run->output, ONNXIFI_STATUS_INTERNAL_ERROR);
    Drop(run->output);
    free(run);
  }
  Drop(object);
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxInitGraph(onnxBackend backend, const uint64_t* auxPropertiesList,
                                     size_t onnxModelSize, const void* onnxModel,
                                     uint32_t weightsCount,
                                     const onnxTensorDescriptorV1* weightDescriptors,
                                     onnxGraph* graph) {
  (void)backend;
  (void)auxPropertiesList;
  (void)onnxModelSize;
  (void)onnxModel;
  (void)weightsCount;
  (void)weightDescriptors;
  *graph = calloc(1, sizeof(struct Graph));
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxSetGraphIO(onnxGraph graph, uint32_t inputsCount,
                                      const onnxTensorDescriptorV1* inputDescriptors,
                                      uint32_t outputsCount,
                                      const onnxTensorDescriptorV1* outputDescriptors) {
  struct Graph* object = (struct Graph*)graph;
  object->is_bound = 0;
  if (inputsCount != 1 || outputsCount != 1) return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  object->source = (const float*)(uintptr_t)inputDescriptors[0].buffer;
  object->target = (float*)(uintptr_t)outputDescriptors[0].buffer;
  object->count = inputDescriptors[0].shape[0];
  object->is_bound = 1;
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* inputFence,
                                    onnxMemoryFenceV1* outputFence) {
  struct Graph* object = (struct Graph*)graph;
  struct Event* input = (struct Event*)inputFence->event;
  struct Run* run;
  int is_ready;
  if (!object->is_bound) return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  run = (struct Run*)calloc(1, sizeof(struct Run));
  run->graph = object;
  run->source = object->source;
  run->target = object->target;
  run->count = object->count;
  run->output = NewEvent(2);
  outputFence->event = run->output;
  pthread_mutex_lock(&input->mutex);
  is_ready = input->is_signalled;
  if (!is_ready) input->pending = run;
  pthread_mutex_unlock(&input->mutex);
  if (is_ready) {
    struct Event* start = NewEvent(1);
    start->pending = run;
    Signal(start, ONNXIFI_STATUS_SUCCESS);
    Drop(start);
  }
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus ONNXIFI_ABI onnxReleaseGraph(onnxGraph graph) {
  free(graph);
  return ONNXIFI_STATUS_SUCCESS;
}
