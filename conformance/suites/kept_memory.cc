// SPDX-License-Identifier: Apache-2.0
//
// KeptMemory: the C library counts the bytes that are allocated.

#include "conformance/suites/kept_memory.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

namespace onnxifi::suites {
namespace {

using std::chrono::steady_clock;

constexpr int kWarmingRuns = 4;
constexpr int kRounds = 3;
// What threads keep of freed memory grows for a while, the longer the less.
constexpr std::array<int, 4> kRunsPerRound = {8, 100, 400, 1600};
constexpr int64_t kMinBytes = 16;  // The smallest piece that malloc gives.
constexpr std::chrono::milliseconds kMaxPerRun{20};
constexpr std::chrono::seconds kMaxPerMeasurement{6};

int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

// The least growth of three rounds, in bytes per run.
base::Result<int64_t> MeasureGrowth(const std::function<base::Status()>& run, int runs_per_round) {
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t before = AllocatedBytes();
  for (int round = 0; round < kRounds; ++round) {
    for (int number = 0; number < runs_per_round; ++number) ONNXIFI_RETURN_IF_ERROR(run());
    const int64_t after = AllocatedBytes();
    least = std::min(least, (after - before) / runs_per_round);
    before = after;
  }
  return least;
}

}  // namespace

base::Status CheckKeptMemory(const std::function<base::Status()>& run, bool& is_measured) {
  is_measured = false;
  const steady_clock::time_point start = steady_clock::now();
  for (int number = 0; number < kWarmingRuns; ++number) ONNXIFI_RETURN_IF_ERROR(run());
  const steady_clock::duration per_run = (steady_clock::now() - start) / kWarmingRuns;
  if (per_run > kMaxPerRun) return base::Ok();
  is_measured = true;
  int64_t growth = 0;
  for (const int runs_per_round : kRunsPerRound) {
    if (runs_per_round > 100 && kRounds * runs_per_round * per_run > kMaxPerMeasurement) break;
    ONNXIFI_ASSIGN_OR_RETURN(growth, MeasureGrowth(run, runs_per_round));
    if (growth < kMinBytes) return base::Ok();
  }
  return base::Status(base::Code::kInternalError,
                      fmt::format("Each run leaves {} bytes or more allocated.", growth));
}

}  // namespace onnxifi::suites
