/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Extension functions of ONNXIFI as published with ONNX: how a function beyond the base fifteen is
 * found, and the one standard extension. This project's own extensions are in <onnxifi/sdk.h>.
 */

#ifndef ONNXIFI_EXT_H
#define ONNXIFI_EXT_H 1

#include "onnx/onnxifi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any extension function; cast it to its own type before calling it. */
typedef onnxStatus(ONNXIFI_ABI* onnxExtensionFunctionPointer)(void);

typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxGetExtensionFunctionAddressFunction)(
    onnxBackendID backendID, const char* name, onnxExtensionFunctionPointer* function);
typedef ONNXIFI_CHECK_RESULT onnxStatus(ONNXIFI_ABI* onnxSetIOAndRunGraphFunction)(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t outputsCount, const onnxTensorDescriptorV1* outputDescriptors,
    onnxMemoryFenceV1* outputFence);

/*
 * Finds an extension function by its name, with or without the suffix "Function". The function is
 * good for objects of `backendID`; functions of the whole library are found with a NULL ID too.
 * `*function` is NULL after a failure.
 * Statuses: INVALID_ID, INVALID_POINTER, UNIDENTIFIED_NAME (no such function),
 * BACKEND_UNAVAILABLE, INTERNAL_ERROR.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxGetExtensionFunctionAddress(
    onnxBackendID backendID, const char* name, onnxExtensionFunctionPointer* function);

/*
 * Binds memory and starts one run with it in one step; the inputs are complete at the call and the
 * binding of onnxSetGraphIO stays as it was. The event stored in `outputFence->event` is the
 * caller's to release. May be called from several threads at once: runs of several threads may go
 * side by side, and end in any order, where the tensors that one of them writes share no memory
 * with those of the others. On one device, runs of one thread end in the order of the calls; the
 * runs of a graph that is cut between several devices may end in any order.
 * Statuses: those of onnxSetGraphIO, INVALID_FENCE_TYPE, UNSUPPORTED_FENCE_TYPE.
 */
ONNXIFI_PUBLIC ONNXIFI_CHECK_RESULT onnxStatus ONNXIFI_ABI onnxSetIOAndRunGraph(
    onnxGraph graph, uint32_t inputsCount, const onnxTensorDescriptorV1* inputDescriptors,
    uint32_t outputsCount, const onnxTensorDescriptorV1* outputDescriptors,
    onnxMemoryFenceV1* outputFence);

#ifdef __cplusplus
}
#endif

#endif /* ONNXIFI_EXT_H */
