// SPDX-License-Identifier: Apache-2.0
//
// ReadBytes, compiled once per instruction set by Highway, which chooses at run time.

#include "benchmarks/machine/read_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/machine/read_bytes.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// Behind it: it includes this file again for every instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::machine::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

uint64_t ReadBytesHere(const std::byte* memory, int64_t size_bytes) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const numbers = reinterpret_cast<const uint64_t*>(memory);
  const int64_t count = size_bytes / kReadGroup * (kReadGroup / int64_t{sizeof(uint64_t)});
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  // A group is a multiple of four vectors.
  for (int64_t k = 0; k < count; k += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, numbers + k));
    b = hn::Add(b, hn::LoadU(d, numbers + k + lanes));
    c = hn::Add(c, hn::LoadU(d, numbers + k + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, numbers + k + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace onnxifi::machine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::machine {

HWY_EXPORT(ReadBytesHere);

uint64_t ReadBytes(const std::byte* memory, int64_t size_bytes) {
  return HWY_DYNAMIC_DISPATCH(ReadBytesHere)(memory, size_bytes);
}

}  // namespace onnxifi::machine
#endif  // HWY_ONCE
