// SPDX-License-Identifier: Apache-2.0
//
// StatedCaches: for tests: kernels choose as on a processor with these caches, whatever the machine
// has, so that what a test expects of them holds everywhere.

#ifndef ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_STATED_CACHES_H_
#define ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_STATED_CACHES_H_

#include "backends/cpu/processor/processor.h"

namespace onnxifi::processor {

// What cores have: Xeons since Sapphire Rapids; EPYCs of Zen 4; Cores of the sixth generation.
inline constexpr Caches kLargeCaches = {48 << 10, 2 << 20};
inline constexpr Caches kMediumCaches = {32 << 10, 1 << 20};
inline constexpr Caches kSmallCaches = {32 << 10, 256 << 10};

// While it lives; the last of several counts.
class StatedCaches {
 public:
  explicit StatedCaches(Caches caches) : before_(UsedCaches()) { StateCaches(caches); }
  ~StatedCaches() { StateCaches(before_); }
  StatedCaches(const StatedCaches&) = delete;
  StatedCaches& operator=(const StatedCaches&) = delete;

 private:
  const Caches before_;
};

}  // namespace onnxifi::processor

#endif  // ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_STATED_CACHES_H_
