// SPDX-License-Identifier: Apache-2.0
//
// ForEachTarget: for tests: the vector code of every instruction set that the processor has, not
// only of the best.

#ifndef ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_EACH_TARGET_H_
#define ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_EACH_TARGET_H_

#include <hwy/targets.h>

#include <cstdint>

namespace onnxifi::processor {

// Calls body(name) with the dynamic dispatch of Highway set to one target after the other.
template <class Body>
void ForEachTarget(const Body& body) {
  for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace onnxifi::processor

#endif  // ONNXIFI_BACKENDS_CPU_PROCESSOR_TESTING_EACH_TARGET_H_
