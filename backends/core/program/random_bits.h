// SPDX-License-Identifier: Apache-2.0
//
// The numbers of ExprOp::kRandom: a pure function of seed and counter, so that every device draws
// the same ones in any order. Code generators print the same arithmetic.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_RANDOM_BITS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_RANDOM_BITS_H_

#include <cstdint>

namespace onnxifi::program {

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
constexpr uint64_t MixBits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

// Uniform in [0, 1), with 53 random bits.
constexpr double RandomUniform(uint64_t seed, int64_t counter) {
  constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;
  const uint64_t start = MixBits(seed + kGoldenGamma);
  const uint64_t bits = MixBits(start + (static_cast<uint64_t>(counter) + 1) * kGoldenGamma);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_RANDOM_BITS_H_
