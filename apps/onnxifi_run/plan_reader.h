// SPDX-License-Identifier: Apache-2.0
//
// PlanReader: the plan of a .json file that onnxifi_run wrote, for the same model to be cut so
// again. The file may be anybody's: nothing in it is believed before it is checked.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_PLAN_READER_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_PLAN_READER_H_

#include <filesystem>
#include <onnxifi/onnxifi.hpp>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/node_names.h"

namespace onnxifi::run {

// `nodes`: of the model, with which the names and operators in the plan are compared where it has
// any. INVALID_PROPERTY for what is no plan, or one of another model.
base::Result<Placement> ParsePlan(std::string_view json,
                                  const std::vector<onnx_file::NodeName>& nodes);

// The same of a file. INVALID_NAME where it cannot be read.
base::Result<Placement> ReadPlan(const std::filesystem::path& file,
                                 const std::vector<onnx_file::NodeName>& nodes);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_PLAN_READER_H_
