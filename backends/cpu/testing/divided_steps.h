// SPDX-License-Identifier: Apache-2.0
//
// For tests: steps of one implementation against the reference, whole, cut into as many parts as
// there can be, and on three threads.

#ifndef ONNXIFI_BACKENDS_CPU_TESTING_DIVIDED_STEPS_H_
#define ONNXIFI_BACKENDS_CPU_TESTING_DIVIDED_STEPS_H_

#include <gtest/gtest.h>

#include "backends/core/reference/device.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/testing/recipe_device.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::cpu {

// Everything is worth a thread, so that it is cut.
inline constexpr engine::Settings kCut = {.worth_a_thread = 0};

inline void CompareDividedStep(RecipeDevice::Selection select, const reference::RandomStep& step) {
  reference::Device reference;
  const auto expected = RunStep(reference, step);
  ASSERT_TRUE(expected.ok()) << expected.status().Text();
  device::Serial serial;
  engine::Shredder shredder;
  threads::ThreadPool pool(3);
  RecipeDevice whole(select, serial, {});
  RecipeDevice cut(select, shredder, kCut);
  RecipeDevice threaded(select, pool, kCut);
  for (RecipeDevice* device : {&whole, &cut, &threaded}) {
    const auto actual = RunStep(*device, step);
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const auto difference = FindDifference(step, *expected, *actual);
    ASSERT_FALSE(difference) << *difference << "\n" << ToString(step.program);
  }
}

// 12,000 random steps of a family, of which `least_share` are not refused.
inline void CompareDividedRandomSteps(RecipeDevice::Selection select, reference::Family family,
                                      double least_share) {
  device::Serial serial;
  RecipeDevice whole(select, serial, {});
  CompareRandomSteps(whole, family, /*seed=*/1, /*count=*/6000, least_share);
  engine::Shredder shredder;
  RecipeDevice cut(select, shredder, kCut);
  CompareRandomSteps(cut, family, /*seed=*/50'000, /*count=*/6000, least_share);
}

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_TESTING_DIVIDED_STEPS_H_
