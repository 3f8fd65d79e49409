// SPDX-License-Identifier: Apache-2.0
//
// Digest: 128 bits that stand for any number of bytes, the same in every process and on every
// machine. Equal bytes have equal digests; that two others share one does not happen by chance, but
// whoever wants to can make it so, and nothing relies on that more than a claim, which compiling
// checks.

#ifndef ONNXIFI_ONNXIFI_SPLIT_DIGEST_H_
#define ONNXIFI_ONNXIFI_SPLIT_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onnxifi::split {

struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const Digest&) const = default;
  auto operator<=>(const Digest&) const = default;
  // 32 digits of base 16.
  std::string Text() const;
};

struct DigestHash {
  size_t operator()(const Digest& digest) const { return static_cast<size_t>(digest.low); }
};

// Collects what a digest stands for, piece by piece; where a piece ends is part of it.
class Digester {
 public:
  Digester& Add(uint64_t number);
  Digester& Add(std::string_view bytes);
  Digester& Add(const Digest& digest) { return Add(digest.high).Add(digest.low); }
  Digest Get() const;

 private:
  uint64_t high_ = 0x9ae16a3b2f90404fULL;
  uint64_t low_ = 0xc949c7defe3a1fb3ULL;
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_DIGEST_H_
