/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens an ONNXIFI library at run time into a table of its functions. The two functions are in the
 * static library onnxifi_loader, which a caller links; they are no part of an ONNXIFI library.
 */

#ifndef ONNXIFI_LOADER_H
#define ONNXIFI_LOADER_H 1

#include "onnx/onnxifi.h"
#include "onnx/onnxifi_ext.h"

#ifndef ONNXIFI_HIDDEN
#if defined(__ELF__) || defined(__MACH__)
#define ONNXIFI_HIDDEN __attribute__((__visibility__("hidden")))
#else
#define ONNXIFI_HIDDEN
#endif
#endif

#ifdef ONNXIFI_ENABLE_EXT
#define ONNXIFI_LOADER_FUNCTION_COUNT 16
#else
#define ONNXIFI_LOADER_FUNCTION_COUNT 15
#endif

#define ONNXIFI_LOADER_FLAG_VERSION_MASK 0xFF
#define ONNXIFI_LOADER_FLAG_VERSION_1_0 0x01

/* An open library: plain data that may be copied; `functions[i]` is the i-th named member. */
struct onnxifi_library {
  /* The system's handle; NULL when nothing is open. */
  void* handle;
  /* The ONNXIFI_LOADER_FLAG_VERSION_* that was asked for. */
  uint32_t flags;
  ONNXIFI_UNNAMED_ union {
    ONNXIFI_UNNAMED_ struct {
      onnxGetBackendIDsFunction onnxGetBackendIDs;
      onnxReleaseBackendIDFunction onnxReleaseBackendID;
      onnxGetBackendInfoFunction onnxGetBackendInfo;
      onnxGetBackendCompatibilityFunction onnxGetBackendCompatibility;
      onnxInitBackendFunction onnxInitBackend;
      onnxReleaseBackendFunction onnxReleaseBackend;
      onnxInitEventFunction onnxInitEvent;
      onnxSignalEventFunction onnxSignalEvent;
      onnxGetEventStateFunction onnxGetEventState;
      onnxWaitEventFunction onnxWaitEvent;
      onnxReleaseEventFunction onnxReleaseEvent;
      onnxInitGraphFunction onnxInitGraph;
      onnxSetGraphIOFunction onnxSetGraphIO;
      onnxRunGraphFunction onnxRunGraph;
      onnxReleaseGraphFunction onnxReleaseGraph;
#ifdef ONNXIFI_ENABLE_EXT
      onnxGetExtensionFunctionAddressFunction onnxGetExtensionFunctionAddress;
#endif
    };
    void* functions[ONNXIFI_LOADER_FUNCTION_COUNT];
  };
};

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Opens the library at `path` (NULL: the system's libonnxifi) and finds all its functions. `flags`
 * must hold ONNXIFI_LOADER_FLAG_VERSION_1_0. Returns 1, or 0 with `*library` zeroed.
 */
#ifdef _WIN32
ONNXIFI_HIDDEN int ONNXIFI_ABI onnxifi_load(uint32_t flags, const wchar_t* path,
                                            struct onnxifi_library* library);
#else
ONNXIFI_HIDDEN int ONNXIFI_ABI onnxifi_load(uint32_t flags, const char* path,
                                            struct onnxifi_library* library);
#endif

/* Closes what onnxifi_load opened and zeroes the structure. Safe to call twice and with NULL. */
ONNXIFI_HIDDEN void ONNXIFI_ABI onnxifi_unload(struct onnxifi_library* library);

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_LOADER_H */
