// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding in definitions.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ROTARY_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ROTARY_H_

#include <optional>

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// `value` [batch, heads, sequence, head_size] turned by angles, whose cosines and sines are inputs
// `cosines` and `cosines` + 1 ([positions, half of what is turned]), at `positions` (int64 [batch,
// sequence]). Elements past twice that half stay as they are. `head_size`: where it is known.
base::Result<model::Definition::Value> Rotate(model::Definition& d, model::Definition::Value value,
                                              int cosines, model::Definition::Value positions,
                                              bool is_interleaved,
                                              std::optional<int64_t> head_size);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_ROTARY_H_
