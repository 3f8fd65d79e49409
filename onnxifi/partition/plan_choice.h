// SPDX-License-Identifier: Apache-2.0
//
// ChoosePlan: one of several plans for a model, by what they are expected to take and what runs of
// them took.

#ifndef ONNXIFI_ONNXIFI_PARTITION_PLAN_CHOICE_H_
#define ONNXIFI_ONNXIFI_PARTITION_PLAN_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "onnxifi/partition/plan.h"

namespace onnxifi::partition {

// A plan, and what a run by it took where one was measured, nanoseconds.
struct Candidate {
  Plan plan;
  std::optional<int64_t> measured_ns;
  // Whether it is taken only for a gain that was measured: a cut between twins (twins.h).
  bool needs_gain = false;
};

// The first of the candidates is the one that is expected to be the best. It is chosen where no run
// was measured. Else that with the least measured time is, or the first, where that was not
// measured and is expected to take less; a cut only where it gains a tenth, since the times of one
// plan vary from run to run. One that needs a gain
// is taken where its run and that of the plan which would be chosen else were measured, and it took
// a tenth less; the first needs none. Of equals the earlier. Times of what is returned are as
// measured, or corrected by as much as those of the best measured plan were off.
Plan ChoosePlan(std::vector<Candidate> candidates);

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_PLAN_CHOICE_H_
