// SPDX-License-Identifier: Apache-2.0
//
// GraphRun: what onnxSetGraphIO, onnxRunGraph and onnxSetIOAndRunGraph share, i.e. making a binding
// from descriptors, checking fences and starting one run.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_GRAPH_RUN_H_
#define ONNXIFI_BACKENDS_CORE_ABI_GRAPH_RUN_H_

#include <onnx/onnxifi.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <memory>

#include "backends/core/abi/library.h"
#include "backends/core/base/result.h"

namespace onnxifi::abi {

// The descriptors of one call, as they came, and the values of onnxSetGraphValues.
struct IoDescriptors {
  uint32_t inputs_count = 0;
  const onnxTensorDescriptorV1* inputs = nullptr;
  uint32_t outputs_count = 0;
  const onnxTensorDescriptorV1* outputs = nullptr;
  uint32_t values_count = 0;
  const onnxValue* const* values = nullptr;
  // Outputs without a descriptor are kept by the run; there may be none with one.
  bool keeps_others = false;
};

// Checks the pointers, then each descriptor, then the set of them, and binds.
base::Status CheckPointers(const IoDescriptors& io);
enum class BindingUse { kStanding, kOneRun };
base::Result<std::shared_ptr<const Binding>> MakeBinding(const GraphObject& graph,
                                                         const IoDescriptors& io, BindingUse use);
// For one run. Callers who give the same descriptors again get the binding of the last time.
base::Result<std::shared_ptr<const Binding>> BindOneRun(GraphObject& graph,
                                                        const IoDescriptors& io);

// The checks of a fence; `which` is "input" or "output".
base::Status CheckFenceTag(const onnxMemoryFenceV1& fence, const char* which);
base::Status CheckFenceType(const onnxMemoryFenceV1& fence, const char* which,
                            const Backend& backend);

// When the inputs of a run are complete.
struct RunStart {
  // Null when they are complete now, or with the shared queue.
  std::shared_ptr<Event> input;
  bool is_after_shared_queue = false;
};

// Starts a run and stores its event in `output_fence`, which is untouched after a failure.
base::Status StartRun(const GraphObject& graph, std::shared_ptr<const Binding> binding,
                      RunStart start, onnxMemoryFenceV1* output_fence);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_GRAPH_RUN_H_
