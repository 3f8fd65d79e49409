// SPDX-License-Identifier: Apache-2.0
//
// Guard: the one way in which a function of the interface is left. No exception passes it, only
// codes of the status table pass it, and the sentence of a failure is kept for the caller.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_GUARD_H_
#define ONNXIFI_BACKENDS_CORE_ABI_GUARD_H_

#include <onnx/onnxifi.h>

#include <exception>
#include <new>

#include "backends/core/abi/function.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {

// Records the last error and gives the code to answer.
onnxStatus Answer(Function function, const base::Status& status) noexcept;
onnxStatus AnswerOutOfMemory(Function function) noexcept;
onnxStatus AnswerException(Function function, const char* what) noexcept;

// Runs `body`, which returns a Status.
template <typename Body>
onnxStatus Guard(Function function, Body&& body) noexcept {
  try {
    return Answer(function, body());
  } catch (const std::bad_alloc&) {
    return AnswerOutOfMemory(function);
  } catch (const std::exception& exception) {
    return AnswerException(function, exception.what());
  } catch (...) {
    return AnswerException(function, "an exception of unknown type");
  }
}

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_GUARD_H_
