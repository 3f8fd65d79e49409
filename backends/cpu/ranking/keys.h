// SPDX-License-Identifier: Apache-2.0
//
// Keys: the sort keys of a row's elements, and those of them that lie below a bound, in vector code
// for the processor at hand.

#ifndef ONNXIFI_BACKENDS_CPU_RANKING_KEYS_H_
#define ONNXIFI_BACKENDS_CPU_RANKING_KEYS_H_

#include <cstdint>

#include "backends/cpu/ranking/sort_key.h"

namespace onnxifi::ranking {

// keys[k] = make(elements[k]), or the complement where the largest come first. Of uint8_t,
// uint16_t, uint32_t and uint64_t.
template <typename Bits>
void MakeKeys(const KeyMaker<Bits>& make, bool is_largest, const Bits* elements, int64_t count,
              Bits* keys);

// The first position in [begin, end) whose key is less than `bound`, or `end`.
template <typename Bits>
int64_t FindBelow(const Bits* keys, int64_t begin, int64_t end, Bits bound);

}  // namespace onnxifi::ranking

#endif  // ONNXIFI_BACKENDS_CPU_RANKING_KEYS_H_
