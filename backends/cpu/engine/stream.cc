// SPDX-License-Identifier: Apache-2.0
//
// Stream: whole lines by non-temporal stores.

#include "backends/cpu/engine/stream.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/engine/stream.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::engine {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `size_bytes` is a multiple of a line, `target` at the begin of one.
void StreamLines(const std::byte* source, int64_t size_bytes, std::byte* target) {
  const hn::ScalableTag<uint64_t> d;
  const auto* from = reinterpret_cast<const uint64_t*>(source);
  auto* to = reinterpret_cast<uint64_t*>(target);
  const int64_t words = size_bytes / 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t word = 0; word < words; word += lanes) {
    hn::Stream(hn::LoadU(d, from + word), d, to + word);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::engine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::engine {

HWY_EXPORT(StreamLines);

void StreamBytes(const std::byte* source, int64_t size_bytes, std::byte* target) {
  constexpr int64_t kLine = 64;
  const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(target) % kLine);
  const int64_t head = std::min(size_bytes, (kLine - misaligned) % kLine);
  std::memcpy(target, source, static_cast<size_t>(head));
  const int64_t lines = (size_bytes - head) / kLine * kLine;
  HWY_DYNAMIC_DISPATCH(StreamLines)(source + head, lines, target + head);
  const int64_t done = head + lines;
  std::memcpy(target + done, source + done, static_cast<size_t>(size_bytes - done));
}

void FinishStreams() { hwy::FlushStream(); }

}  // namespace onnxifi::engine
#endif
