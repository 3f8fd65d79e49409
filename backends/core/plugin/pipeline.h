// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: how a graph becomes a program, as one list of stages. The only place that knows
// their order.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_PIPELINE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_PIPELINE_H_

#include <memory>
#include <vector>

#include "backends/core/base/log.h"
#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/graph/graph.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/plugin/load_times.h"
#include "backends/core/plugin/operator_source.h"
#include "backends/core/program/program.h"

namespace onnxifi::plugin {

// Whether the device can run each node of `graph`, in order: the compile attempt, without passes
// and without building; and whether its inputs and outputs can be carried. `operators`: those that
// the graph was imported with.
ops::SupportAnswer CheckSupportOfNodes(const graph::Graph& graph, const device::Selector& selector,
                                       ops::Carrier carrier = ops::Carrier::kDescriptors,
                                       const OperatorSource& operators = OperatorSource());

// The first refusal of CheckSupportOfNodes with its node, or ok. This alone decides support, for
// claims and for initialisation. `out_is_emulated`, unless null, becomes whether the reference
// computes any of the nodes.
base::Status CheckSupport(const graph::Graph& graph, const device::Selector& selector,
                          ops::Carrier carrier = ops::Carrier::kDescriptors,
                          bool* out_is_emulated = nullptr,
                          const OperatorSource& operators = OperatorSource());

// Rewrites the graph, lowers it and fuses its steps for the device. Every pass is a stage of
// `times`. `branches` as ops::LowerGraph takes them.
base::Result<std::unique_ptr<program::Program>> Compile(
    graph::Graph graph, device::Device& device, const base::Log& log, LoadTimes& times,
    const tensor::Permissions& permissions = {}, const OperatorSource& operators = OperatorSource(),
    ops::BranchRequest* branches = nullptr);

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_PIPELINE_H_
