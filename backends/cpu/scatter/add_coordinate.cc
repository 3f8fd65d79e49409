// SPDX-License-Identifier: Apache-2.0
//
// AddCoordinate: without branches. Vectors multiply 32 bits by 32, which is enough for all but the
// largest targets.

#include "backends/cpu/scatter/add_coordinate.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/scatter/add_coordinate.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::scatter {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Returns how many lanes are done.
int64_t AddVectors(const CoordinateLanes& coordinate, const int64_t* before, int64_t* offsets) {
  int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
  const bool is_narrow = coordinate.extent <= INT32_MAX && coordinate.stride <= INT32_MAX &&
                         coordinate.stride >= INT32_MIN;
  if (!is_narrow) return 0;
  const hn::ScalableTag<int64_t> d;
  const hn::Repartition<int32_t, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto extent = hn::Set(d, coordinate.extent);
  const auto stride = hn::BitCast(narrow, hn::Set(d, coordinate.stride));
  const auto outside = hn::Set(d, kOutside);
  for (; k + lanes <= coordinate.lanes; k += lanes) {
    const auto at = hn::LoadU(d, coordinate.coordinates + k);
    const auto is_inside = hn::AndNot(hn::Lt(at, hn::Zero(d)), hn::Lt(at, extent));
    const auto product = hn::MulEven(hn::BitCast(narrow, at), stride);
    hn::StoreU(hn::Add(hn::LoadU(d, before + k), hn::IfThenElse(is_inside, product, outside)), d,
               offsets + k);
  }
#else
  (void)coordinate;
  (void)before;
  (void)offsets;
#endif
  return k;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::scatter
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::scatter {

HWY_EXPORT(AddVectors);

void AddCoordinate(const CoordinateLanes& coordinate, const int64_t* before, int64_t* offsets) {
  const auto extent = static_cast<uint64_t>(coordinate.extent);
  int64_t k = HWY_DYNAMIC_DISPATCH(AddVectors)(coordinate, before, offsets);
  for (; k < coordinate.lanes; ++k) {
    const int64_t at = coordinate.coordinates[k];
    const bool is_inside = static_cast<uint64_t>(at) < extent;
    offsets[k] = before[k] + (is_inside ? at * coordinate.stride : kOutside);
  }
}

}  // namespace onnxifi::scatter
#endif
