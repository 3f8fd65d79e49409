// SPDX-License-Identifier: Apache-2.0
//
// Profile: what the steps of a model took over several runs, held against what this machine can do,
// as a table, as JSON and as a trace that Chrome's viewer (chrome://tracing) and Perfetto open.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_PROFILE_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_PROFILE_H_

#include <nlohmann/json_fwd.hpp>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/onnxifi_run/precision.h"
#include "backends/core/base/result.h"
#include "benchmarks/machine/limits.h"

namespace onnxifi::run {

struct ProfiledStep {
  // Of the last run.
  StepRecord record;
  // "Conv 'conv1'": the first of the nodes that the step does; empty if unknown.
  std::string node;
  double median_us = 0;
  double best_us = 0;
  double gflops = 0;           // of the median, as the next
  double gigabytes_per_s = 0;  // read and written
  // The time that the machine's limits allow; 0 where limits or work are unknown.
  double predicted_us = 0;
  // Which limit that is: "compute" or "memory"; empty where there is none.
  std::string bound;
};

// How far an output is from that of a run in float32.
struct OutputError {
  std::string output;
  // Largest |a - b| / (|b| + rms(b)), where b is float32's. Infinite where integers or what is not
  // finite differ.
  double worst = 0;
};

struct Profile {
  std::vector<ProfiledStep> steps;
  // What InitGraph did, then SetIO as a whole, and how long both took as their caller saw it; no
  // stages where the library does not tell.
  std::vector<LoadRecord> load;
  double load_ms = 0;
  int threads = 0;
  // Of `threads`; nothing when the machine has not been measured.
  std::optional<machine::ThreadLimits> limits;
  double run_ms = 0;    // median of the runs
  double steps_ms = 0;  // sum of the steps' medians
  // What the caller permits; the steps tell what they did.
  RoundingPermissions rounding;
  // Per output, where a step rounded operands, or may have.
  std::vector<OutputError> errors;
  // Since the graph was initialised; nothing where the library does not tell.
  std::optional<onnxGraphCounters> counters;
};

// From the records of every run, all of the same steps. INTERNAL_ERROR if they are not.
base::Result<Profile> MakeProfile(const std::vector<std::vector<StepRecord>>& runs,
                                  const std::vector<NodeVerdict>& nodes, double run_ms, int threads,
                                  const std::optional<machine::ThreadLimits>& limits);

// The stages of the load, sums per implementation, then the steps, longest first, why others were
// passed over, and the graph's counters.
std::string MakeProfileTable(const Profile& profile);
nlohmann::json MakeProfileJson(const Profile& profile);
// Trace events of the last run.
std::string MakeTrace(const Profile& profile);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_PROFILE_H_
