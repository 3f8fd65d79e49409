/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The public headers as a C89 compiler sees them: they compile under -std=c89 -pedantic-errors, and
 * every layout of the interface is what published binaries expect. Building this file is the test.
 */

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnx/onnxifi_loader.h>
#include <onnxifi/sdk.h>
#include <onnxifi/statuses.h>
#include <stddef.h>

#define ONNXIFI_ASSERT(name, condition) typedef char name[(condition) ? 1 : -1]

ONNXIFI_ASSERT(status_is_32_bits, sizeof(onnxStatus) == 4 && sizeof(onnxEventState) == 4 &&
                                      sizeof(onnxBackendInfo) == 4);
ONNXIFI_ASSERT(enum_is_64_bits, sizeof(onnxEnum) == 8 && (onnxEnum)-1 > 0);
ONNXIFI_ASSERT(bitfield_is_64_bits, sizeof(onnxBitfield) == 8 && (onnxBitfield)-1 > 0);
ONNXIFI_ASSERT(pointer_is_64_bits, sizeof(onnxPointer) == 8 && (onnxPointer)-1 > 0);

#if defined(__LP64__)
ONNXIFI_ASSERT(descriptor_size, sizeof(onnxTensorDescriptorV1) == 56);
ONNXIFI_ASSERT(descriptor_tag, offsetof(onnxTensorDescriptorV1, tag) == 0);
ONNXIFI_ASSERT(descriptor_name, offsetof(onnxTensorDescriptorV1, name) == 8);
ONNXIFI_ASSERT(descriptor_data_type, offsetof(onnxTensorDescriptorV1, dataType) == 16);
ONNXIFI_ASSERT(descriptor_memory_type, offsetof(onnxTensorDescriptorV1, memoryType) == 24);
ONNXIFI_ASSERT(descriptor_dimensions, offsetof(onnxTensorDescriptorV1, dimensions) == 32);
ONNXIFI_ASSERT(descriptor_shape, offsetof(onnxTensorDescriptorV1, shape) == 40);
ONNXIFI_ASSERT(descriptor_buffer, offsetof(onnxTensorDescriptorV1, buffer) == 48);

ONNXIFI_ASSERT(fence_size, sizeof(onnxMemoryFenceV1) == 24);
ONNXIFI_ASSERT(fence_type, offsetof(onnxMemoryFenceV1, type) == 8);
ONNXIFI_ASSERT(fence_event, offsetof(onnxMemoryFenceV1, event) == 16);

ONNXIFI_ASSERT(library_size,
               sizeof(struct onnxifi_library) == 16 + 8 * ONNXIFI_LOADER_FUNCTION_COUNT);
ONNXIFI_ASSERT(library_flags, offsetof(struct onnxifi_library, flags) == 8);
ONNXIFI_ASSERT(library_functions, offsetof(struct onnxifi_library, functions) == 16);
ONNXIFI_ASSERT(library_first, offsetof(struct onnxifi_library, onnxGetBackendIDs) == 16);
ONNXIFI_ASSERT(library_wait, offsetof(struct onnxifi_library, onnxWaitEvent) == 16 + 8 * 9);
ONNXIFI_ASSERT(library_last, offsetof(struct onnxifi_library, onnxReleaseGraph) == 16 + 8 * 14);
#endif

ONNXIFI_ASSERT(sdk_sizes_come_first, offsetof(onnxNodeVerdict, struct_size) == 0 &&
                                         offsetof(onnxTensorShape, struct_size) == 0 &&
                                         offsetof(onnxGraphCounters, struct_size) == 0 &&
                                         offsetof(onnxStepRecord, struct_size) == 0 &&
                                         offsetof(onnxDiscoveryRecord, struct_size) == 0);

/* Callers initialise fences with braces; the union asks for one level more. */
onnxMemoryFenceV1 onnxifi_header_test_fence = {
    ONNXIFI_TAG_MEMORY_FENCE_V1, ONNXIFI_SYNCHRONIZATION_EVENT, {NULL}};

#define ONNXIFI_COUNT(name, code_name, meaning) +1
ONNXIFI_ASSERT(statuses_are_a_list, (ONNXIFI_SDK_STATUSES(ONNXIFI_COUNT)) == 36);
