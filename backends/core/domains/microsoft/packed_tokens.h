// SPDX-License-Identifier: Apache-2.0
//
// Tokens of several sequences, one after another without padding, in definitions.

#ifndef ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PACKED_TOKENS_H_
#define ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PACKED_TOKENS_H_

#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {

// What the sums of lengths tell: int64 [sequences + 1], 0 first.
struct PackedTokens {
  using Value = model::Definition::Value;

  Value starts, lengths;   // int64 [sequences]
  Value sequence, place;   // int64 [tokens]: whose each token is, and how many of it come before
  Value longest;           // int64 [1]
  Value padded, is_there;  // [sequences, longest]: which token stands there (any in padding), and
                           // whether one does
};

// `sums` is an input of integers; `tokens`, int64 [1], how many there are.
PackedTokens ReadPackedTokens(model::Definition& d, int sums,
                              const model::Definition::Value& tokens);

// [tokens, ...] as [sequences, longest, ...], with any token as padding, and back.
model::Definition::Value WithPadding(model::Definition& d, const PackedTokens& packed,
                                     const model::Definition::Value& rows);
model::Definition::Value WithoutPadding(model::Definition& d, const PackedTokens& packed,
                                        const model::Definition::Value& padded);

}  // namespace onnxifi::microsoft

#endif  // ONNXIFI_BACKENDS_CORE_DOMAINS_MICROSOFT_PACKED_TOKENS_H_
