/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists the devices that libonnxifi finds: the shortest program that links the library. C89.
 *
 *   list_devices
 */

#include <onnx/onnxifi.h>
#include <stdio.h>
#include <stdlib.h>

static void PrintText(onnxBackendID id, onnxBackendInfo query) {
  char text[256];
  size_t size_bytes = sizeof(text);
  if (onnxGetBackendInfo(id, query, text, &size_bytes) == ONNXIFI_STATUS_SUCCESS) {
    printf("  %s", text);
  } else {
    printf("  -");
  }
}

int main(void) {
  size_t count = 0;
  size_t k;
  onnxBackendID* ids;
  onnxStatus status = onnxGetBackendIDs(NULL, &count);
  if (status != ONNXIFI_STATUS_FALLBACK) {
    fprintf(stderr, "The devices cannot be listed: status 0x%04x.\n", (unsigned)status);
    return 1;
  }
  if (count == 0) {
    fprintf(stderr, "There is no device.\n");
    return 1;
  }
  ids = (onnxBackendID*)malloc(count * sizeof(*ids));
  if (ids == NULL) return 1;
  status = onnxGetBackendIDs(ids, &count);
  if (status != ONNXIFI_STATUS_SUCCESS) {
    fprintf(stderr, "The devices cannot be listed: status 0x%04x.\n", (unsigned)status);
    free(ids);
    return 1;
  }
  for (k = 0; k < count; ++k) {
    printf("%lu", (unsigned long)k);
    PrintText(ids[k], ONNXIFI_BACKEND_VENDOR);
    PrintText(ids[k], ONNXIFI_BACKEND_NAME);
    PrintText(ids[k], ONNXIFI_BACKEND_DEVICE);
    printf("\n");
    onnxReleaseBackendID(ids[k]);
  }
  free(ids);
  return 0;
}
