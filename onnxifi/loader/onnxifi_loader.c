/* SPDX-License-Identifier: Apache-2.0 */

/*
 * onnxifi_load and onnxifi_unload: open an ONNXIFI library and fill its function table. Compiled
 * into callers, so it is C90, keeps no state and reads no environment variable.
 */

#include "onnx/onnxifi_loader.h"

#include <string.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#if defined(_WIN32)
static const wchar_t kDefaultName[] = L"onnxifi.dll";
#elif defined(__APPLE__)
static const char kDefaultName[] = "libonnxifi.dylib";
#else
static const char kDefaultName[] = "libonnxifi.so";
#endif

/* In the order of `functions` in struct onnxifi_library. */
static const char* const kFunctionNames[ONNXIFI_LOADER_FUNCTION_COUNT] = {
    "onnxGetBackendIDs",
    "onnxReleaseBackendID",
    "onnxGetBackendInfo",
    "onnxGetBackendCompatibility",
    "onnxInitBackend",
    "onnxReleaseBackend",
    "onnxInitEvent",
    "onnxSignalEvent",
    "onnxGetEventState",
    "onnxWaitEvent",
    "onnxReleaseEvent",
    "onnxInitGraph",
    "onnxSetGraphIO",
    "onnxRunGraph",
    "onnxReleaseGraph",
#ifdef ONNXIFI_ENABLE_EXT
    "onnxGetExtensionFunctionAddress",
#endif
};

#ifdef _WIN32

static void* OpenLibrary(const wchar_t* path) {
  return (void*)LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
}

static void* FindFunction(void* handle, const char* name) {
  return (void*)GetProcAddress((HMODULE)handle, name);
}

static void CloseLibrary(void* handle) { FreeLibrary((HMODULE)handle); }

int ONNXIFI_ABI onnxifi_load(uint32_t flags, const wchar_t* path, struct onnxifi_library* library)
#else

static void* OpenLibrary(const char* path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

static void* FindFunction(void* handle, const char* name) { return dlsym(handle, name); }

static void CloseLibrary(void* handle) { dlclose(handle); }

int ONNXIFI_ABI onnxifi_load(uint32_t flags, const char* path, struct onnxifi_library* library)

#endif
{
  int i;
  if (library == NULL) return 0;
  memset(library, 0, sizeof(*library));
  if ((flags & ONNXIFI_LOADER_FLAG_VERSION_1_0) == 0) return 0;
  library->handle = OpenLibrary(path != NULL ? path : kDefaultName);
  if (library->handle == NULL) return 0;
  for (i = 0; i < ONNXIFI_LOADER_FUNCTION_COUNT; i++) {
    library->functions[i] = FindFunction(library->handle, kFunctionNames[i]);
    if (library->functions[i] == NULL) {
      onnxifi_unload(library);
      return 0;
    }
  }
  library->flags = flags & ONNXIFI_LOADER_FLAG_VERSION_MASK;
  return 1;
}

void ONNXIFI_ABI onnxifi_unload(struct onnxifi_library* library) {
  if (library == NULL) return;
  if (library->handle != NULL) CloseLibrary(library->handle);
  memset(library, 0, sizeof(*library));
}
