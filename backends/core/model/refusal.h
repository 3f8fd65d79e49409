// SPDX-License-Identifier: Apache-2.0
//
// Refusal: how the files of this folder say that a model breaks a rule of ONNX.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_REFUSAL_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_REFUSAL_H_

#include <string>
#include <string_view>
#include <utility>

#include "backends/core/base/status.h"

namespace onnxifi::model {

inline base::Status Invalid(std::string sentence) {
  return {base::Code::kInvalidModel, std::move(sentence)};
}

inline std::string Quote(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_REFUSAL_H_
