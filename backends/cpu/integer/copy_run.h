// SPDX-License-Identifier: Apache-2.0
//
// CopyRun: a copy of bytes that are often few.

#ifndef ONNXIFI_BACKENDS_CPU_INTEGER_COPY_RUN_H_
#define ONNXIFI_BACKENDS_CPU_INTEGER_COPY_RUN_H_

#include <cstdint>
#include <cstring>

#include "backends/cpu/integer/byte_packing.h"

namespace onnxifi::integer {

// Of so many words of 8 bytes.
template <int kWords>
struct Line {
  uint64_t words[kWords];

  void Copy(const uint8_t* source, uint64_t flip, uint8_t* target) {
    std::memcpy(words, source, sizeof(words));
    for (uint64_t& word : words) word ^= flip;
    std::memcpy(target, words, sizeof(words));
  }
};

// From both ends, which overlap.
template <int kWords>
void CopyEnds(const uint8_t* source, int64_t count, uint64_t flip, uint8_t* target) {
  constexpr int64_t kBytes = sizeof(Line<kWords>);
  Line<kWords> first, last;
  first.Copy(source, flip, target);
  last.Copy(source + count - kBytes, flip, target + count - kBytes);
}

// As CopyBytes, whose call takes longer than a few bytes do. The two do not overlap.
inline void CopyRun(const uint8_t* source, int64_t count, uint8_t flip, uint8_t* target) {
  const uint64_t flips = flip * uint64_t{0x0101010101010101};
  if (count > 128) {
    CopyBytes(source, count, flip, target);
  } else if (count >= 32) {
    int64_t at = 0;
    for (; at + 64 <= count; at += 32) Line<4>().Copy(source + at, flips, target + at);
    CopyEnds<4>(source + at, count - at, flips, target + at);
  } else if (count >= 16) {
    CopyEnds<2>(source, count, flips, target);
  } else if (count >= 8) {
    CopyEnds<1>(source, count, flips, target);
  } else {
    for (int64_t k = 0; k < count; ++k) target[k] = static_cast<uint8_t>(source[k] ^ flip);
  }
}

}  // namespace onnxifi::integer

#endif  // ONNXIFI_BACKENDS_CPU_INTEGER_COPY_RUN_H_
