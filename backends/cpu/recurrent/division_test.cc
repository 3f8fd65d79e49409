// SPDX-License-Identifier: Apache-2.0
//
// Division: directions first, then hidden units, and neither where a thread would wait longer than
// it works.

#include "backends/cpu/recurrent/division.h"

#include <gtest/gtest.h>

#include "backends/cpu/recurrent/team.h"

namespace onnxifi::recurrent {
namespace {

// Of an LSTM on one row.
RecurrenceExtents Extents(int64_t directions, int64_t time, int64_t hidden) {
  return {directions, time, hidden / 8, 4 * hidden * hidden};
}

void Expect(const Division& division, int teams, int members, int threads) {
  EXPECT_EQ(division.teams, teams);
  EXPECT_EQ(division.members, members);
  EXPECT_EQ(division.threads, threads);
}

TEST(DivisionTest, OneThreadDoesOneDirectionAfterTheOther) {
  Expect(Divide(Extents(2, 100, 512), 1), 2, 1, 1);
  Expect(Divide(Extents(1, 100, 512), 1), 1, 1, 1);
}

TEST(DivisionTest, DirectionsHaveTeamsOfTheirOwn) {
  Expect(Divide(Extents(2, 100, 128), 2), 2, 1, 2);
  Expect(Divide(Extents(2, 100, 512), 8), 2, 4, 8);
  Expect(Divide(Extents(2, 100, 512), 3), 1, 3, 3);
}

TEST(DivisionTest, SmallTimeStepsAreNotDivided) {
  Expect(Divide(Extents(1, 100, 512), 4), 1, 4, 4);
  Expect(Divide(Extents(1, 1000, 64), 4), 1, 1, 1);
  Expect(Divide(Extents(2, 1000, 64), 8), 2, 1, 2);
  // All of it is done before another thread has woken up.
  Expect(Divide(Extents(2, 3, 64), 8), 2, 1, 1);
  Expect(Divide(Extents(2, 0, 512), 8), 2, 1, 1);
}

TEST(DivisionTest, HasNoMoreMembersThanBlocksOrATeamTakes) {
  Expect(Divide({1, 100, 3, 1'000'000'000}, 16), 1, 3, 3);
  Expect(Divide({1, 100, 5000, 1'000'000'000}, 100), 1, Team::kMaxMembers, Team::kMaxMembers);
}

}  // namespace
}  // namespace onnxifi::recurrent
