// SPDX-License-Identifier: Apache-2.0
//
// GraphPlanFunction: onnxGetGraphPlan, by which callers ask for the plan of a graph.

#ifndef ONNXIFI_ONNXIFI_DISPATCH_GRAPH_PLAN_FUNCTION_H_
#define ONNXIFI_ONNXIFI_DISPATCH_GRAPH_PLAN_FUNCTION_H_

#include <onnxifi/sdk.h>

namespace onnxifi::dispatch {

// See onnxGetGraphPlanFunction.
onnxStatus ONNXIFI_ABI GetGraphPlan(onnxGraph handle, onnxPlanIslandCallback island_callback,
                                    onnxPlanCutCallback cut_callback, void* context);

}  // namespace onnxifi::dispatch

#endif  // ONNXIFI_ONNXIFI_DISPATCH_GRAPH_PLAN_FUNCTION_H_
