// SPDX-License-Identifier: Apache-2.0
//
// Function: every function of the interface and of this SDK's extensions, and which statuses each
// of them may answer. The one table of it: core/abi holds libraries to it from the inside, the
// conformance suite from the outside.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_BASE_FUNCTION_H_

#include <array>
#include <cstddef>
#include <string_view>

#include "backends/core/base/status.h"

// The fifteen functions of ONNXIFI 1.0 that every library exports, then the others. In the order of
// the columns in function.cc.
// clang-format off
#define ONNXIFI_FUNCTIONS(X) \
  X(GetBackendIDs) \
  X(ReleaseBackendID) \
  X(GetBackendInfo) \
  X(GetBackendCompatibility) \
  X(InitBackend) \
  X(ReleaseBackend) \
  X(InitEvent) \
  X(SignalEvent) \
  X(GetEventState) \
  X(WaitEvent) \
  X(ReleaseEvent) \
  X(InitGraph) \
  X(SetGraphIO) \
  X(RunGraph) \
  X(ReleaseGraph) \
  X(GetExtensionFunctionAddress) \
  X(SetIOAndRunGraph) \
  X(WaitEventFor) \
  X(GetLastErrorMessage) \
  X(ExplainModel) \
  X(InferOutputShapes) \
  X(GetRunOutputShapes) \
  X(GetGraphCounters) \
  X(GetBackendKey) \
  X(GetDiscoveryReport) \
  X(GetGraphProfile) \
  X(GetGraphLoadProfile) \
  X(GetBackendValueCompatibility) \
  X(SetGraphValues) \
  X(GetRunValues) \
  X(ImportEvent) \
  X(ExportEvent) \
  X(GetGraphPlan) \
  X(ExplainModelOnDevices) \
  X(AllocateSharedMemory) \
  X(ReleaseSharedMemory)
// clang-format on

namespace onnxifi::base {

enum class Function : int {
#define ONNXIFI_MEMBER(name) k##name,
  ONNXIFI_FUNCTIONS(ONNXIFI_MEMBER)
#undef ONNXIFI_MEMBER
};

// E.g. "onnxInitGraph"; each ends in a NUL.
inline constexpr std::string_view kFunctionNames[] = {
#define ONNXIFI_MEMBER(name) "onnx" #name,
    // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): each is one literal of two.
    ONNXIFI_FUNCTIONS(ONNXIFI_MEMBER)
#undef ONNXIFI_MEMBER
};
inline constexpr size_t kFunctionCount = std::size(kFunctionNames);
inline constexpr size_t kStandardFunctionCount = 15;

inline constexpr std::string_view FunctionName(Function function) {
  return kFunctionNames[static_cast<size_t>(function)];
}

// Whether the interface lists the code for the function, or needs it there but forgets to list it.
// No for a number that is no code.
bool MayAnswer(Function function, Code code);

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_FUNCTION_H_
