// SPDX-License-Identifier: Apache-2.0
//
// Processor: asks the system for caches and Highway for vectors.

#include "backends/cpu/processor/processor.h"

#include <unistd.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/processor/processor.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::processor {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Two units, of which each multiplies and adds at once where there is an instruction for it.
double Rate() {
  constexpr double kPerUnit = HWY_NATIVE_FMA ? 1 : 0.5;
  return 2 * kPerUnit * static_cast<double>(hn::Lanes(hn::ScalableTag<float>()));
}

const char* Name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::processor
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::processor {
namespace {

HWY_EXPORT(Rate);
HWY_EXPORT(Name);

// Where the system does not tell, what most processors have at least.
int64_t CacheFloats(int64_t told_bytes, int64_t otherwise_bytes) {
  return (told_bytes > 0 ? told_bytes : otherwise_bytes) / static_cast<int64_t>(sizeof(float));
}

}  // namespace

int64_t L1Floats() {
  constexpr int64_t kBytes = int64_t{32} << 10;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  static const int64_t floats = CacheFloats(sysconf(_SC_LEVEL1_DCACHE_SIZE), kBytes);
#else
  static const int64_t floats = CacheFloats(0, kBytes);
#endif
  return floats;
}

int64_t L2Floats() {
  constexpr int64_t kBytes = int64_t{1} << 20;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t floats = CacheFloats(sysconf(_SC_LEVEL2_CACHE_SIZE), kBytes);
#else
  static const int64_t floats = CacheFloats(0, kBytes);
#endif
  return floats;
}

double MultiplyAddsPerCycle() { return HWY_DYNAMIC_DISPATCH(Rate)(); }

const char* VectorName() { return HWY_DYNAMIC_DISPATCH(Name)(); }

}  // namespace onnxifi::processor
#endif
