// SPDX-License-Identifier: Apache-2.0
//
// A driver in CUDA's place that compiles for an architecture and runs nothing, so that a cache
// folder can be filled on a machine without a GPU. Memory has addresses and no content: what a run
// reads back is zero.

#ifndef ONNXIFI_BACKENDS_CUDA_COMPILE_ONLY_H_
#define ONNXIFI_BACKENDS_CUDA_COMPILE_ONLY_H_

#include "backends/cuda/api.h"

namespace onnxifi::cuda {

// The number of an architecture's name: 90. INVALID_NAME for what is none, with the text.
base::Result<int> ParseArchitecture(std::string_view name);

// One device of that architecture. The table is of the process: a second call gives all that were
// given the second architecture.
Api CompileOnlyApi(int architecture);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_COMPILE_ONLY_H_
