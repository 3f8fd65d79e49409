// SPDX-License-Identifier: Apache-2.0
//
// Masks of keys in definitions, in the forms that attention of this domain takes them in.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PADDING_MASK_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PADDING_MASK_H_

#include "backends/core/base/result.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// What scores are over: int64 [1] each.
struct ScoreExtents {
  model::Definition::Value batch, queries, keys;
};

// Whether keys are there, as bool that broadcasts to [batch, heads, queries, keys], of input
// `mask`:
//   [batch]                   the number of keys
//   [2 * batch]               the ends, then the starts
//   [batch, keys]             not 0 where there is one
//   [batch, queries, keys]    likewise
//   [batch, 1, all, all]      likewise; the last queries of as many as there are keys
// UNSUPPORTED_SHAPE for other ranks.
base::Result<model::Definition::Value> KeysThatAreThere(model::Definition& d, int mask,
                                                        const ScoreExtents& extents);

// What is added to scores: 0 where `is_there`, else attribute mask_filter_value (-10000). Of all
// queries, which ONNX's Attention wants.
model::Definition::Value Filter(model::Definition& d, const model::Definition::Value& is_there,
                                const ScoreExtents& extents, tensor::ElementType type);

// Bool [queries, keys]: query s looks at no key behind s + keys - queries.
model::Definition::Value Causal(model::Definition& d, const ScoreExtents& extents);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PADDING_MASK_H_
