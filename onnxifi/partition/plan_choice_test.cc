// SPDX-License-Identifier: Apache-2.0
//
// ChoosePlan: which plan, and with what times.

#include "onnxifi/partition/plan_choice.h"

#include <gtest/gtest.h>

#include <utility>

namespace onnxifi::partition {
namespace {

// Of that many islands, one after the other, each as long; told apart by the first one's device.
Candidate Make(DeviceIndex device, int island_count, int64_t duration_ns,
               std::optional<int64_t> measured_ns = {}) {
  Candidate candidate;
  for (int k = 0; k < island_count; ++k) {
    Island& island = candidate.plan.islands.emplace_back();
    island.device = device;
    island.start_ns = duration_ns / island_count * k;
    island.duration_ns = duration_ns / island_count;
  }
  candidate.plan.duration_ns = duration_ns;
  candidate.measured_ns = measured_ns;
  return candidate;
}

DeviceIndex Chosen(std::vector<Candidate> candidates) {
  return ChoosePlan(std::move(candidates)).islands.front().device;
}

TEST(PlanChoice, IsTheExpectedOneWhereNothingWasMeasured) {
  EXPECT_EQ(Chosen({Make(0, 3, 900), Make(1, 1, 500)}), 0);
}

TEST(PlanChoice, GoesByRunsRatherThanByWhatWasExpected) {
  EXPECT_EQ(Chosen({Make(0, 1, 500, 900), Make(1, 1, 700, 800)}), 1);
  EXPECT_EQ(Chosen({Make(0, 1, 500, 800), Make(1, 1, 700, 800)}), 0);
}

TEST(PlanChoice, AsksACutForATenth) {
  EXPECT_EQ(Chosen({Make(0, 2, 500, 91), Make(1, 1, 700, 100)}), 1);
  EXPECT_EQ(Chosen({Make(0, 2, 500, 89), Make(1, 1, 700, 100)}), 0);
  // Cuts among themselves are compared as they are.
  EXPECT_EQ(Chosen({Make(0, 2, 500, 91), Make(1, 3, 700, 90)}), 1);
}

TEST(PlanChoice, ExpectsOfAPlanThatNeverRanWhatOthersWereOffBy) {
  // Those that ran took twice as long as expected.
  EXPECT_EQ(Chosen({Make(0, 1, 400), Make(1, 1, 500, 1000)}), 0);
  EXPECT_EQ(Chosen({Make(0, 1, 400), Make(1, 1, 500, 1000), Make(2, 1, 600, 700)}), 0);
  EXPECT_EQ(Chosen({Make(0, 2, 400), Make(1, 1, 500, 800)}), 0);
  EXPECT_EQ(Chosen({Make(0, 2, 460), Make(1, 1, 500, 800)}), 1);
}

Candidate MakeForGain(DeviceIndex device, int64_t duration_ns,
                      std::optional<int64_t> measured_ns = {}) {
  Candidate candidate = Make(device, 2, duration_ns, measured_ns);
  candidate.needs_gain = true;
  return candidate;
}

TEST(PlanChoice, TakesWhatNeedsAGainForAMeasuredOneAlone) {
  // Whatever is expected of it, and of one device or of several.
  EXPECT_EQ(Chosen({Make(0, 1, 900), MakeForGain(1, 100)}), 0);
  EXPECT_EQ(Chosen({Make(0, 1, 900, 100), MakeForGain(1, 100)}), 0);
  EXPECT_EQ(Chosen({Make(0, 1, 900), MakeForGain(1, 100, 10)}), 0);
  EXPECT_EQ(Chosen({Make(0, 1, 900, 100), MakeForGain(1, 100, 91)}), 0);
  EXPECT_EQ(Chosen({Make(0, 1, 900, 100), MakeForGain(1, 100, 89)}), 1);
  // A cut of another kind is compared with it by its own time.
  EXPECT_EQ(Chosen({Make(0, 2, 900, 80), Make(2, 1, 900, 100), MakeForGain(1, 100, 73)}), 0);
  EXPECT_EQ(Chosen({Make(0, 2, 900, 80), Make(2, 1, 900, 100), MakeForGain(1, 100, 71)}), 1);
  // The first is expected to take 50 and was not measured.
  EXPECT_EQ(Chosen({Make(0, 1, 50), Make(2, 1, 100, 100), MakeForGain(1, 100, 40)}), 0);
}

TEST(PlanChoice, CorrectsTheTimesOfWhatNeededAGain) {
  const Plan plan = ChoosePlan({Make(0, 1, 100, 100), MakeForGain(1, 500, 50)});
  EXPECT_EQ(plan.duration_ns, 50);
  EXPECT_EQ(plan.islands[1].start_ns, 25);
}

TEST(PlanChoice, CorrectsTheTimesOfWhatItChooses) {
  const Plan measured = ChoosePlan({Make(0, 2, 500, 250), Make(1, 1, 700, 700)});
  EXPECT_EQ(measured.duration_ns, 250);
  EXPECT_EQ(measured.islands[1].start_ns, 125);
  EXPECT_EQ(measured.islands[1].duration_ns, 125);
  const Plan expected = ChoosePlan({Make(0, 1, 400), Make(1, 1, 500, 1000)});
  EXPECT_EQ(expected.duration_ns, 800);
  const Plan unknown = ChoosePlan({Make(0, 1, 400)});
  EXPECT_EQ(unknown.duration_ns, 400);
}

}  // namespace
}  // namespace onnxifi::partition
