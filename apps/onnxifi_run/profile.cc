// SPDX-License-Identifier: Apache-2.0
//
// Profile: medians per step and what the machine would allow.

#include "apps/onnxifi_run/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "apps/onnxifi_run/precision.h"
#include "apps/onnxifi_run/run_times.h"
#include "client/onnx_file/element_type.h"

namespace onnxifi::run {
namespace {

using nlohmann::json;

// The table ends with the steps that together take this share of the time.
constexpr double kShownShare = 0.98;

std::string ExtentsText(const StepRecord& record) {
  std::string text;
  for (const int64_t extent : record.extents) {
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  }
  return text.empty() ? "scalar" : text;
}

std::string NodeText(const StepRecord& record, const std::vector<NodeVerdict>& nodes) {
  if (record.node_index == ONNXIFI_SDK_UNKNOWN) return {};
  const auto node = std::ranges::find(nodes, record.node_index, &NodeVerdict::node_index);
  if (node == nodes.end()) return fmt::format("node {}", record.node_index);
  return node->node_name.empty() ? fmt::format("{} {}", node->operator_type, record.node_index)
                                 : fmt::format("{} '{}'", node->operator_type, node->node_name);
}

void Predict(const machine::ThreadLimits& limits, ProfiledStep& step) {
  const auto bytes = static_cast<double>(step.record.read_bytes + step.record.written_bytes);
  const double bandwidth = limits.BandwidthFor(static_cast<int64_t>(bytes));
  const double compute_us = limits.float32_gflops > 0 ? static_cast<double>(step.record.flops) /
                                                            limits.float32_gflops * 1e-3
                                                      : 0;
  const double memory_us = bandwidth > 0 ? bytes / bandwidth * 1e-3 : 0;
  step.predicted_us = std::max(compute_us, memory_us);
  if (step.predicted_us > 0) step.bound = compute_us > memory_us ? "compute" : "memory";
}

std::string Share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

// Implementation with its detail, as the rows of both tables name it.
std::string DoneBy(const StepRecord& record) {
  return record.detail.empty() ? record.implementation
                               : fmt::format("{} ({})", record.implementation, record.detail);
}

void AppendSums(const Profile& profile, std::string& text) {
  struct Sum {
    int count = 0;
    double us = 0;
    double predicted_us = 0;
    double flops = 0;
    double bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const ProfiledStep& step : profile.steps) {
    Sum& sum = sums[{step.record.family, step.record.implementation}];
    ++sum.count;
    sum.us += step.median_us;
    sum.predicted_us += step.predicted_us;
    sum.flops += static_cast<double>(step.record.flops);
    sum.bytes += static_cast<double>(step.record.read_bytes + step.record.written_bytes);
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Sum>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(
      sorted, [](const auto& left, const auto& right) { return left.second.us > right.second.us; });
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<11} {:<36} {:>5} {:>10} {:>6} {:>9} {:>8} {:>9}\n", "FAMILY",
                 "IMPLEMENTATION", "STEPS", "MS", "SHARE", "GFLOP/S", "GB/S", "OF LIMIT");
  for (const auto& [names, sum] : sorted) {
    fmt::format_to(
        out, "{:<11} {:<36} {:>5} {:>10.3f} {:>6} {:>9.1f} {:>8.1f} {:>9}\n", names.first,
        names.second, sum.count, sum.us * 1e-3, Share(sum.us, profile.steps_ms * 1e3),
        sum.us > 0 ? sum.flops / sum.us * 1e-3 : 0, sum.us > 0 ? sum.bytes / sum.us * 1e-3 : 0,
        sum.predicted_us > 0 ? Share(sum.predicted_us, sum.us) : "-");
  }
  fmt::format_to(out, "{:<48} {:>5} {:>10.3f}\n", "steps", profile.steps.size(), profile.steps_ms);
  fmt::format_to(out, "{:<48} {:>5} {:>10.3f}\n", "run, with all between the steps", "",
                 profile.run_ms);
}

void AppendLoad(const Profile& profile, std::string& text) {
  if (profile.load.empty()) return;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<48} {:>5} {:>10} {:>6}\n", "STAGE OF THE LOAD", "TIMES", "MS", "SHARE");
  double others_ms = profile.load_ms;
  for (const LoadRecord& stage : profile.load) {
    const double ms = static_cast<double>(stage.duration_ns) * 1e-6;
    others_ms -= ms;
    fmt::format_to(out, "{:<48} {:>5} {:>10.3f} {:>6}\n", stage.stage, stage.count, ms,
                   Share(ms, profile.load_ms));
  }
  fmt::format_to(out, "{:<48} {:>5} {:>10.3f} {:>6}\n", "between the stages", "", others_ms,
                 Share(others_ms, profile.load_ms));
  fmt::format_to(out, "{:<48} {:>5} {:>10.3f}\n\n", "load", "", profile.load_ms);
}

void AppendSteps(const Profile& profile, std::string& text) {
  std::vector<const ProfiledStep*> sorted;
  for (const ProfiledStep& step : profile.steps) sorted.push_back(&step);
  std::ranges::stable_sort(sorted, [](const ProfiledStep* left, const ProfiledStep* right) {
    return left->median_us > right->median_us;
  });
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\n{:>5} {:>10} {:>6} {:>9} {:>8} {:>10} {:>8} {:<8} {:<9} {:<22} {}\n",
                 "STEP", "US", "SHARE", "GFLOP/S", "GB/S", "PREDICTED", "OF LIMIT", "BOUND",
                 "FAMILY", "EXTENTS", "DONE BY / NODE");
  double shown_us = 0;
  size_t shown = 0;
  for (; shown < sorted.size() && shown_us < kShownShare * profile.steps_ms * 1e3; ++shown) {
    const ProfiledStep& step = *sorted[shown];
    shown_us += step.median_us;
    const bool is_predicted = step.predicted_us > 0;
    fmt::format_to(
        out, "{:>5} {:>10.1f} {:>6} {:>9.1f} {:>8.1f} {:>10} {:>8} {:<8} {:<9} {:<22} {} / {}\n",
        &step - profile.steps.data(), step.median_us, Share(step.median_us, profile.steps_ms * 1e3),
        step.gflops, step.gigabytes_per_s,
        is_predicted ? fmt::format("{:.1f}", step.predicted_us) : "-",
        is_predicted ? Share(step.predicted_us, step.median_us) : "-",
        step.bound.empty() ? "-" : step.bound, step.record.family, ExtentsText(step.record),
        DoneBy(step.record), step.node.empty() ? "-" : step.node);
  }
  if (shown < sorted.size()) {
    fmt::format_to(out, "{} more steps take {:.3f} ms\n", sorted.size() - shown,
                   profile.steps_ms - shown_us * 1e-3);
  }
}

// A sentence with its context lines as one line.
std::string OneLine(std::string text) {
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end)) {
    const size_t next = text.find_first_not_of(' ', end + 1);
    text.replace(end, (next == std::string::npos ? text.size() : next) - end, " ");
  }
  return text;
}

void AppendReasons(const Profile& profile, std::string& text) {
  std::map<std::string, std::pair<int, double>> reasons;
  for (const ProfiledStep& step : profile.steps) {
    for (const std::string& reason : step.record.rejected) {
      auto& [count, us] = reasons[reason];
      ++count;
      us += step.median_us;
    }
  }
  if (reasons.empty()) return;
  std::vector<std::pair<std::string, std::pair<int, double>>> sorted(reasons.begin(),
                                                                     reasons.end());
  std::ranges::stable_sort(sorted, [](const auto& left, const auto& right) {
    return left.second.second > right.second.second;
  });
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\nPassed over\n{:>5} {:>10}  REASON\n", "STEPS", "MS");
  for (const auto& [reason, sum] : sorted) {
    fmt::format_to(out, "{:>5} {:>10.3f}  {}\n", sum.first, sum.second * 1e-3, OneLine(reason));
  }
}

// What the steps made of the permission to round to a precision.
void AppendPrecision(const Profile& profile, std::string& text) {
  if (profile.rounding.precision == ONNXIFI_SDK_PRECISION_FLOAT32) return;
  std::map<uint32_t, int> rounded;
  for (const ProfiledStep& step : profile.steps) {
    if (step.record.precision != ONNXIFI_SDK_PRECISION_FLOAT32) ++rounded[step.record.precision];
  }
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\nOperands of products may be rounded to {}; ",
                 PrecisionName(profile.rounding.precision));
  if (rounded.empty()) {
    text += "every step computed in float32.\n";
    return;
  }
  std::string_view separator;
  for (const auto& [precision, count] : rounded) {
    fmt::format_to(out, "{}{} step{} rounded to {}", separator, count, count == 1 ? "" : "s",
                   PrecisionName(precision));
    separator = ", ";
  }
  text += ".\n";
}

// What was permitted, what became of it, and what it does to the outputs.
void AppendRounding(const Profile& profile, std::string& text) {
  AppendPrecision(profile, text);
  if (profile.rounding.dynamic_quantization) {
    text += "\nRows may be rounded to 8 bits; details of the steps tell where they are.\n";
  }
  for (const OutputError& error : profile.errors) {
    fmt::format_to(std::back_inserter(text),
                   "Output '{}': error against float32 {:.3g} of |b| + rms(b) at worst\n",
                   error.output, error.worst);
  }
}

// What the runs cost beside their steps.
void AppendCounters(const Profile& profile, std::string& text) {
  if (!profile.counters) return;
  const onnxGraphCounters& counters = *profile.counters;
  auto out = std::back_inserter(text);
  const auto append = [&](uint64_t count, std::string_view noun, std::string_view plural) {
    if (count == ~uint64_t{0}) {
      fmt::format_to(out, ", unknown {}", plural);
    } else {
      fmt::format_to(out, ", {} {}", count, count == 1 ? noun : plural);
    }
  };
  fmt::format_to(out, "\nSince the load: {} {}", counters.runs,
                 counters.runs == 1 ? "run" : "runs");
  append(counters.submissions, "submission", "submissions");
  append(counters.recordings, "recording", "recordings");
  append(counters.copies, "copy", "copies");
  append(counters.allocations, "allocation", "allocations");
  append(counters.waits, "wait", "waits");
  text += ".\n";
}

}  // namespace

base::Result<Profile> MakeProfile(const std::vector<std::vector<StepRecord>>& runs,
                                  const std::vector<NodeVerdict>& nodes, double run_ms, int threads,
                                  const std::optional<machine::ThreadLimits>& limits) {
  Profile profile;
  profile.threads = threads;
  profile.limits = limits;
  profile.run_ms = run_ms;
  for (const std::vector<StepRecord>& run : runs) {
    if (run.size() == runs.back().size()) continue;
    return base::Status(base::Code::kInternalError, fmt::format("One run had {} steps, another {}.",
                                                                run.size(), runs.back().size()));
  }
  for (size_t index = 0; !runs.empty() && index < runs.back().size(); ++index) {
    ProfiledStep& step = profile.steps.emplace_back();
    step.record = runs.back()[index];
    step.node = NodeText(step.record, nodes);
    std::vector<double> times_us;
    for (const std::vector<StepRecord>& run : runs) {
      times_us.push_back(static_cast<double>(run[index].duration_ns) * 1e-3);
    }
    step.best_us = *std::ranges::min_element(times_us);
    step.median_us = MedianOf(std::move(times_us));
    profile.steps_ms += step.median_us * 1e-3;
    if (step.median_us > 0) {
      step.gflops = static_cast<double>(step.record.flops) / step.median_us * 1e-3;
      step.gigabytes_per_s =
          static_cast<double>(step.record.read_bytes + step.record.written_bytes) / step.median_us *
          1e-3;
    }
    if (limits) Predict(*limits, step);
  }
  return profile;
}

std::string MakeProfileTable(const Profile& profile) {
  std::string text = "\n";
  AppendLoad(profile, text);
  AppendSums(profile, text);
  AppendSteps(profile, text);
  AppendReasons(profile, text);
  AppendRounding(profile, text);
  AppendCounters(profile, text);
  auto out = std::back_inserter(text);
  if (profile.limits) {
    fmt::format_to(
        out,
        "\nLimits of {} thread{}: {:.0f} GFLOP/s, {:.1f} GB/s in main memory; what fits a "
        "cache is held against the cache.\n",
        profile.limits->threads, profile.limits->threads == 1 ? "" : "s",
        profile.limits->float32_gflops,
        profile.limits->copies.empty() ? 0 : profile.limits->copies.back().gigabytes_per_s);
  } else {
    text += "\nThe limits of this machine are unknown; 'onnxifi_bench --machine' measures them.\n";
  }
  return text;
}

json MakeProfileJson(const Profile& profile) {
  json steps = json::array();
  for (const ProfiledStep& step : profile.steps) {
    const StepRecord& record = step.record;
    steps.push_back({{"family", record.family},
                     {"implementation", record.implementation},
                     {"detail", record.detail},
                     {"node_index", record.node_index},
                     {"node", step.node},
                     {"type", NameOf(static_cast<onnx_file::ElementType>(record.data_type))},
                     {"extents", record.extents},
                     {"rejected", record.rejected},
                     {"start_us", static_cast<double>(record.start_ns) * 1e-3},
                     {"median_us", step.median_us},
                     {"best_us", step.best_us},
                     {"flops", record.flops},
                     {"read_bytes", record.read_bytes},
                     {"written_bytes", record.written_bytes},
                     {"gflops", step.gflops},
                     {"gigabytes_per_s", step.gigabytes_per_s},
                     {"predicted_us", step.predicted_us},
                     {"bound", step.bound},
                     {"precision", PrecisionName(record.precision)}});
  }
  json load = json::array();
  for (const LoadRecord& stage : profile.load) {
    load.push_back({{"stage", stage.stage},
                    {"count", stage.count},
                    {"ms", static_cast<double>(stage.duration_ns) * 1e-6}});
  }
  json object = {{"threads", profile.threads},   {"load_ms", profile.load_ms},
                 {"load", std::move(load)},      {"run_ms", profile.run_ms},
                 {"steps_ms", profile.steps_ms}, {"steps", std::move(steps)}};
  object["precision"] = PrecisionName(profile.rounding.precision);
  object["dynamic_quantization"] = profile.rounding.dynamic_quantization;
  json errors = json::array();
  for (const OutputError& error : profile.errors) {
    // Null where it is infinite.
    errors.push_back({{"output", error.output}, {"worst", error.worst}});
  }
  object["errors_against_float32"] = std::move(errors);
  if (profile.limits) {
    object["limits"] = {
        {"threads", profile.limits->threads},
        {"float32_gflops", profile.limits->float32_gflops},
        {"main_memory_gigabytes_per_s",
         profile.limits->copies.empty() ? 0 : profile.limits->copies.back().gigabytes_per_s}};
  }
  return object;
}

std::string MakeTrace(const Profile& profile) {
  json events = json::array();
  for (const ProfiledStep& step : profile.steps) {
    const StepRecord& record = step.record;
    events.push_back({{"name", step.node.empty() ? record.family : step.node},
                      {"cat", record.family},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(record.start_ns) * 1e-3},
                      {"dur", static_cast<double>(record.duration_ns) * 1e-3},
                      {"args",
                       {{"done by", DoneBy(record)},
                        {"extents", ExtentsText(record)},
                        {"flops", record.flops},
                        {"bytes", record.read_bytes + record.written_bytes},
                        {"predicted_us", step.predicted_us},
                        {"passed over", record.rejected}}}});
  }
  const json object = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return object.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

}  // namespace onnxifi::run
