// SPDX-License-Identifier: Apache-2.0
//
// ReplaceMeasured: what nodes take, as far as it was measured, in place of what was assumed.

#ifndef ONNXIFI_ONNXIFI_COST_MEASURED_NODES_H_
#define ONNXIFI_ONNXIFI_COST_MEASURED_NODES_H_

#include <span>
#include <string_view>

#include "onnxifi/cost/device_table.h"
#include "onnxifi/partition/problem.h"
#include "onnxifi/split/digest.h"

namespace onnxifi::cost {

// `tables`: by device; `signatures` and `operator_types`: by node. A node that a device claims and
// that was not measured on it takes as much longer than assumed as its like did: the nodes of its
// operator on that device, else all on that device, else all there are.
void ReplaceMeasured(std::span<const DeviceTable* const> tables,
                     std::span<const split::Digest> signatures,
                     std::span<const std::string_view> operator_types, partition::Problem& problem);

}  // namespace onnxifi::cost

#endif  // ONNXIFI_ONNXIFI_COST_MEASURED_NODES_H_
