// SPDX-License-Identifier: Apache-2.0
//
// Function: holds what core/abi answers to the table of functions and statuses (table 4.2 of the
// interface, completed where the table forgets a needed code).

#ifndef ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_

#include "backends/core/base/function.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {

using base::Function;
using base::FunctionName;

// `code` if the function may answer it, else the code that stands for any other fault there:
// INTERNAL_ERROR, or BACKEND_UNAVAILABLE for onnxGetBackendInfo, which has no INTERNAL_ERROR.
base::Code PermittedCode(Function function, base::Code code);

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_FUNCTION_H_
