// SPDX-License-Identifier: Apache-2.0
//
// DescriptorCheck: from the caller's onnxTensorDescriptorV1 array to checked TensorDescriptors. The
// checks of one descriptor come first, in the documented order; then those that need the graph.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_DESCRIPTOR_CHECK_H_
#define ONNXIFI_BACKENDS_CORE_ABI_DESCRIPTOR_CHECK_H_

#include <onnx/onnxifi.h>

#include <cstdint>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::abi {

enum class DescriptorRole { kWeight, kInput, kOutput };

// Copies `count` descriptors after checking of each: tag, name, element type, memory type, shape,
// buffer. `declared` are the graph's tensors of that role, by which an extent of 0 is checked; null
// where they are not known here, and an extent of 0 passes. `needs_buffer` false takes buffers of
// 0. UNSUPPORTED_TAG, INVALID_NAME, INVALID_DATATYPE, UNSUPPORTED_DATATYPE, INVALID_MEMORY_TYPE,
// UNSUPPORTED_MEMORY_TYPE, INVALID_POINTER, INVALID_SHAPE, INVALID_MEMORY_LOCATION.
base::Result<std::vector<TensorDescriptor>> CopyDescriptors(
    DescriptorRole role, uint32_t count, const onnxTensorDescriptorV1* descriptors,
    const Backend& backend, const std::vector<DeclaredTensor>* declared, bool needs_buffer = true);

// INVALID_NAME when a name is not declared (`declared` null: not checked) or occurs twice.
base::Status CheckNames(DescriptorRole role, const std::vector<TensorDescriptor>& tensors,
                        const std::vector<DeclaredTensor>* declared);

// Puts `tensors`, whose names are checked, into the order of `declared`. UNIDENTIFIED_NAME when a
// declared tensor has no descriptor.
base::Result<std::vector<TensorDescriptor>> Arrange(DescriptorRole role,
                                                    std::vector<TensorDescriptor> tensors,
                                                    const std::vector<DeclaredTensor>& declared);

// Compares element types and shapes with the declarations, in order, and requires one number for
// each symbol over inputs and outputs. MISMATCHING_DATATYPE, MISMATCHING_SHAPE.
base::Status CheckDeclarations(const GraphTensors& tensors, const Signature& signature);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_DESCRIPTOR_CHECK_H_
