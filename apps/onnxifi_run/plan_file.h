// SPDX-License-Identifier: Apache-2.0
//
// PlanFile: which device runs what of a model, as a file that programs read (JSON), that Graphviz
// draws (DOT) or that a browser shows (SVG).

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_PLAN_FILE_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_PLAN_FILE_H_

#include <filesystem>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::run {

// The plan's numbers of islands are sound, see WritePlan. `nodes`: what an explanation says of the
// model's nodes; they give names and operators.
std::string MakePlanJson(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes);
std::string MakePlanDot(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes);
// Islands coloured by device, in columns by what they wait for, with their times and the bytes that
// go between them.
std::string MakePlanSvg(const GraphPlan& plan, const std::vector<NodeVerdict>& nodes);

// As the ending of the file's name says: .json, .dot or .svg. INVALID_NAME; INTERNAL_ERROR for a
// plan whose numbers of islands mean none.
base::Status WritePlan(const std::filesystem::path& file, const GraphPlan& plan,
                       const std::vector<NodeVerdict>& nodes);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_PLAN_FILE_H_
