// SPDX-License-Identifier: Apache-2.0
//
// Guard: from a Status to what the caller sees.

#include "backends/core/abi/guard.h"

#include <string>

#include "backends/core/abi/last_error.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

onnxStatus Answer(Function function, const Status& status) noexcept {
  const Code code = PermittedCode(function, status.code());
  // FALLBACK is a way of succeeding: it leaves the last error alone.
  if (code == Code::kOk || code == Code::kFallback) return static_cast<onnxStatus>(code);
  try {
    std::string text = status.Text();
    if (code != status.code()) {
      text.append("\n  answered as ").append(CodeName(code)).append(" because ");
      text.append(FunctionName(function)).append(" cannot answer ");
      text.append(CodeName(status.code()));
    }
    LastError::Set(std::move(text));
  } catch (...) {
    LastError::SetLiteral("The call fails and there is no memory for the reason.");
  }
  return static_cast<onnxStatus>(code);
}

onnxStatus AnswerOutOfMemory(Function function) noexcept {
  LastError::SetLiteral("The system has no memory left for this call.");
  return static_cast<onnxStatus>(PermittedCode(function, Code::kNoSystemMemory));
}

onnxStatus AnswerException(Function function, const char* what) noexcept {
  try {
    return Answer(function, Status(Code::kInternalError,
                                   std::string("The call is ended by an exception: ") + what));
  } catch (...) {
    return AnswerOutOfMemory(function);
  }
}

}  // namespace onnxifi::abi
