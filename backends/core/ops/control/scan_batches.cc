// SPDX-License-Identifier: Apache-2.0
//
// A sequence of its own length is cut before the scan, and what the scan gives is padded after it.

#include "backends/core/ops/control/scan_batches.h"

#include <string>
#include <utility>

#include "backends/core/ops/captures.h"
#include "backends/core/ops/graph_builder.h"

namespace onnxifi::ops {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueIds;

std::shared_ptr<Graph> MakeScanOfEntry(const Node& node, const Graph& body, bool has_lengths,
                                       int scanned) {
  auto graph = std::make_shared<Graph>();
  GraphBuilder entry(*graph, node);
  ValueId length = graph::kNoValue;
  if (has_lengths) {
    length = entry.Apply("Reshape", 14, {entry.AddInput("length"), entry.AddIntegers({1})});
  }
  ValueIds inputs;
  for (size_t k = 0; k < body.inputs.size(); ++k) {
    inputs.push_back(entry.AddInput("input" + std::to_string(k)));
  }
  const size_t first_scanned = inputs.size() - static_cast<size_t>(scanned);
  ValueId missing = graph::kNoValue;  // How many elements a sequence lacks.
  if (has_lengths) {
    const ValueId longest = entry.Apply("Shape", 15, {inputs[first_scanned]},
                                        {{"start", int64_t{0}}, {"end", int64_t{1}}});
    missing = entry.Apply("Sub", 14, {longest, length});
    const ValueId zero = entry.AddIntegers({0});
    for (size_t k = first_scanned; k < inputs.size(); ++k) {
      inputs[k] = entry.Apply("Slice", 13, {inputs[k], zero, length, zero});
    }
  }

  auto inner = std::make_shared<Graph>(body);
  Captures(*graph).PassOn(*inner);
  ValueIds outputs;
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    outputs.push_back(AddNamed(*graph, "output" + std::to_string(k)));
  }
  Node& scan = entry.AddNode("Scan", 9, inputs, outputs);
  scan.attributes.emplace("body", std::shared_ptr<const Graph>(std::move(inner)));
  scan.attributes.emplace("num_scan_inputs", int64_t{scanned});
  if (const auto* directions = node.FindAttribute<std::vector<int64_t>>("directions")) {
    scan.attributes.emplace("scan_input_directions", *directions);
  }
  for (size_t k = first_scanned; has_lengths && k < outputs.size(); ++k) {
    const ValueId zero = entry.AddIntegers({0});
    const ValueId pads = entry.Apply("Concat", 13, {zero, missing}, {{"axis", int64_t{0}}});
    outputs[k] = entry.Apply("Pad", 18, {outputs[k], pads, graph::kNoValue, zero});
  }
  graph->outputs = outputs;
  return graph;
}

}  // namespace onnxifi::ops
