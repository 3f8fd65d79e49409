// SPDX-License-Identifier: Apache-2.0
//
// ChoosePlan: what takes the least bids the least.

#include "onnxifi/partition/plan_choice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace onnxifi::partition {
namespace {

// A cut bids so much more than its time that what times vary by does not decide for it.
constexpr double kMinGainOfACut = 0.1;

double Bid(const Plan& plan, double time_ns) {
  return plan.islands.size() > 1 ? time_ns / (1 - kMinGainOfACut) : time_ns;
}

}  // namespace

Plan ChoosePlan(std::vector<Candidate> candidates) {
  // Parts that run together are faster than one by one, so that a plan which never ran is compared
  // with those that did by how much these were off.
  std::optional<double> least_bid;
  double correction = 1;
  size_t best = 0;
  for (size_t index = 0; index < candidates.size(); ++index) {
    const auto& [plan, measured_ns, needs_gain] = candidates[index];
    if (!measured_ns || needs_gain) continue;
    const auto time_ns = static_cast<double>(*measured_ns);
    const double bid = Bid(plan, time_ns);
    if (least_bid && bid >= *least_bid) continue;
    least_bid = bid;
    best = index;
    correction = time_ns / static_cast<double>(std::max<int64_t>(plan.duration_ns, 1));
  }
  if (!least_bid) return std::move(candidates.front().plan);
  const Candidate& expected = candidates.front();
  if (!expected.measured_ns &&
      Bid(expected.plan, correction * static_cast<double>(expected.plan.duration_ns)) <
          *least_bid) {
    best = 0;
  }
  if (candidates[best].measured_ns) {
    for (size_t index = 1; index < candidates.size(); ++index) {
      const auto& [plan, measured_ns, needs_gain] = candidates[index];
      if (!needs_gain || !measured_ns) continue;
      const auto time_ns = static_cast<double>(*measured_ns);
      if (Bid(plan, time_ns) >= static_cast<double>(*candidates[best].measured_ns)) continue;
      best = index;
      correction = time_ns / static_cast<double>(std::max<int64_t>(plan.duration_ns, 1));
    }
  }
  Plan plan = std::move(candidates[best].plan);
  const auto correct = [&](int64_t& time) {
    time = static_cast<int64_t>(static_cast<double>(time) * correction);
  };
  correct(plan.duration_ns);
  for (Island& island : plan.islands) {
    correct(island.start_ns);
    correct(island.duration_ns);
  }
  return plan;
}

}  // namespace onnxifi::partition
