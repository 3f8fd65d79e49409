// SPDX-License-Identifier: Apache-2.0
//
// MultiplyAdd, compiled once per instruction set by Highway, which chooses at run time.

#include "benchmarks/machine/multiply_add.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmarks/machine/multiply_add.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// Behind it: it includes this file again for every instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::machine::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

int64_t MultiplyAddHere(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  // Latency times throughput of multiply-adds is 8 to 10 vectors on current cores; 12 hide it and
  // leave registers, of which there may be 16. Values stay near 1: no denormal, no infinity.
  const auto factor = hn::Set(d, 0.999f + 0 * *sink);
  const auto addend = hn::Set(d, 0.001f);
  // All different, so that no two can be computed as one.
  auto a = hn::Iota(d, 0.30f);
  auto b = hn::Iota(d, 0.35f);
  auto c = hn::Iota(d, 0.40f);
  auto e = hn::Iota(d, 0.45f);
  auto f = hn::Iota(d, 0.50f);
  auto g = hn::Iota(d, 0.55f);
  auto h = hn::Iota(d, 0.60f);
  auto i = hn::Iota(d, 0.65f);
  auto j = hn::Iota(d, 0.70f);
  auto k = hn::Iota(d, 0.75f);
  auto l = hn::Iota(d, 0.80f);
  auto m = hn::Iota(d, 0.85f);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, addend);
    b = hn::MulAdd(b, factor, addend);
    c = hn::MulAdd(c, factor, addend);
    e = hn::MulAdd(e, factor, addend);
    f = hn::MulAdd(f, factor, addend);
    g = hn::MulAdd(g, factor, addend);
    h = hn::MulAdd(h, factor, addend);
    i = hn::MulAdd(i, factor, addend);
    j = hn::MulAdd(j, factor, addend);
    k = hn::MulAdd(k, factor, addend);
    l = hn::MulAdd(l, factor, addend);
    m = hn::MulAdd(m, factor, addend);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i))),
              hn::Add(hn::Add(j, k), hn::Add(l, m)));
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return rounds * 12 * 2 * static_cast<int64_t>(hn::Lanes(d));
}

const char* NameHere() { return hwy::TargetName(HWY_TARGET); }

}  // namespace onnxifi::machine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::machine {

HWY_EXPORT(MultiplyAddHere);
HWY_EXPORT(NameHere);

int64_t MultiplyAdd(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddHere)(rounds, sink);
}

const char* InstructionsUsed() { return HWY_DYNAMIC_DISPATCH(NameHere)(); }

}  // namespace onnxifi::machine
#endif  // HWY_ONCE
