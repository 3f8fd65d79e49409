// SPDX-License-Identifier: Apache-2.0
//
// What a graph tells of itself: how many steps of each family it has, and what each step of a run
// was done by and cost.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_GRAPH_REPORT_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_GRAPH_REPORT_H_

#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/execution/run_profile.h"
#include "backends/core/plan/plan.h"
#include "backends/core/program/program.h"

namespace onnxifi::plugin {

// Sets the numbers of steps, those of bodies of control steps included.
void CountSteps(const program::Program& program, abi::GraphCounters& counters);

// A record for each step that the run timed, in its order. The plan is that of the program.
std::vector<abi::StepRecord> DescribeSteps(const program::Program& program, const plan::Plan& plan,
                                           const execution::RunProfile& profile);

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_GRAPH_REPORT_H_
