// SPDX-License-Identifier: Apache-2.0
//
// OperatorSetsOf: what a model imports, for those who report it.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_OPERATOR_SETS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_OPERATOR_SETS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "backends/core/base/result.h"

namespace onnxifi::model {

// The version of each operator set that the model imports, by canonical domain. Refuses a model for
// what Import would refuse it for before it reads the graph.
base::Result<std::map<std::string, int64_t>> OperatorSetsOf(std::span<const std::byte> model);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_OPERATOR_SETS_H_
