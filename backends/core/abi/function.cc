// SPDX-License-Identifier: Apache-2.0
//
// Function: what stands for a code that a function may not answer.

#include "backends/core/abi/function.h"

namespace onnxifi::abi {

using base::Code;

Code PermittedCode(Function function, Code code) {
  if (MayAnswer(function, code)) return code;
  return MayAnswer(function, Code::kInternalError) ? Code::kInternalError
                                                   : Code::kBackendUnavailable;
}

}  // namespace onnxifi::abi
