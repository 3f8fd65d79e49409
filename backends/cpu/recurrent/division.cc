// SPDX-License-Identifier: Apache-2.0
//
// Division.

#include "backends/cpu/recurrent/division.h"

#include <algorithm>

#include "backends/cpu/recurrent/team.h"

namespace onnxifi::recurrent {
namespace {

// Multiply-adds that are worth a thread: in all, to wake it; at each time step, to wait for it.
constexpr double kMinProducts = 400'000;
constexpr int64_t kMinProductsPerMember = 24'000;

}  // namespace

Division Divide(const RecurrenceExtents& extents, int thread_count) {
  const auto directions = static_cast<int>(extents.directions);
  const double products =
      static_cast<double>(extents.products) * static_cast<double>(extents.time) * directions;
  // One direction comes after the other, so that caches have the weights of one at a time.
  const Division alone = {directions, 1, 1};
  if (thread_count < 2 || products < kMinProducts) return alone;
  // An odd number of threads goes through both directions together.
  const int teams = directions == 2 && thread_count % 2 == 0 ? 2 : 1;
  const int64_t worthwhile = extents.products * (directions / teams) / kMinProductsPerMember;
  const auto members = static_cast<int>(
      std::max<int64_t>(1, std::min({static_cast<int64_t>(thread_count / teams), worthwhile,
                                     extents.blocks, static_cast<int64_t>(Team::kMaxMembers)})));
  const Division division = {teams, members, teams * members};
  return division.threads == 1 ? alone : division;
}

}  // namespace onnxifi::recurrent
