// SPDX-License-Identifier: Apache-2.0
//
// Scan of opset 8, whose tensors have a batch in front: each entry of it is a Scan of opset 9.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTROL_SCAN_BATCHES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTROL_SCAN_BATCHES_H_

#include <memory>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// What is done with one entry of the batch, as a graph of the node's inputs without their first
// axis: the length of the sequence where the node has lengths, initial states, scanned inputs. Its
// outputs are those of the node; behind a shorter sequence they are 0. `scanned`: how many inputs
// are scanned.
std::shared_ptr<graph::Graph> MakeScanOfEntry(const graph::Node& node, const graph::Graph& body,
                                              bool has_lengths, int scanned);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTROL_SCAN_BATCHES_H_
