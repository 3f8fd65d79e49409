// SPDX-License-Identifier: Apache-2.0
//
// Function: the exported and extension functions of core/abi, and which status codes each of them
// may answer (table 4.2 of the interface, completed where the table forgets a needed code).

#ifndef ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_

#include <string_view>

#include "backends/core/base/status.h"

namespace onnxifi::abi {

// In the order of the columns in function.cc.
enum class Function : int {
  kGetBackendIDs,
  kReleaseBackendID,
  kGetBackendInfo,
  kGetBackendCompatibility,
  kInitBackend,
  kReleaseBackend,
  kInitEvent,
  kSignalEvent,
  kGetEventState,
  kWaitEvent,
  kReleaseEvent,
  kInitGraph,
  kSetGraphIO,
  kRunGraph,
  kReleaseGraph,
  kGetExtensionFunctionAddress,
  kSetIOAndRunGraph,
  kWaitEventFor,
  kGetLastErrorMessage,
  kExplainModel,
  kInferOutputShapes,
  kGetRunOutputShapes,
  kGetGraphCounters,
  kGetBackendKey,
  kGetDiscoveryReport,
  kGetGraphProfile,
  kGetGraphLoadProfile,
  kGetBackendValueCompatibility,
  kSetGraphValues,
  kGetRunValues,
  kImportEvent,
  kExportEvent,
  kGetGraphPlan,
  kExplainModelOnDevices,
  kAllocateSharedMemory,
  kReleaseSharedMemory,
};
inline constexpr int kFunctionCount = 36;

// E.g. "onnxInitGraph".
std::string_view FunctionName(Function function);

bool MayAnswer(Function function, base::Code code);

// `code` if the function may answer it, else the code that stands for any other fault there:
// INTERNAL_ERROR, or BACKEND_UNAVAILABLE for onnxGetBackendInfo, which has no INTERNAL_ERROR.
base::Code PermittedCode(Function function, base::Code code);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_
