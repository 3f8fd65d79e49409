// SPDX-License-Identifier: Apache-2.0
//
// List, run, check, report.

#include "conformance/suite_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <thread>

#include "client/default_library.h"
#include "client/onnx_file/tensor_file.h"
#include "client/standard_output.h"
#include "conformance/cases/case_list.h"
#include "conformance/cases/expectations.h"
#include "conformance/cases/pair_table.h"
#include "conformance/cases/variant.h"
#include "conformance/process/pool.h"
#include "conformance/report/html.h"
#include "conformance/report/junit.h"
#include "conformance/report/progress.h"
#include "conformance/report/summary.h"
#include "conformance/suites/interface/interface_suite.h"
#include "conformance/suites/interface/status_table.h"
#include "conformance/worker_task.h"
#include "discovery/probe/plugin_probe.h"

namespace onnxifi::conformance {
namespace {

using report::CaseResult;
using report::Verdict;

// A case before it has run; `id` is what the worker is given.
struct ListedCase {
  std::string id;
  std::string name;
  std::string group;
  bool is_expanded = false;
  std::string variant;
};

// The variants that the options ask for; INVALID_NAME where the suite has none.
base::Result<std::vector<cases::Variant>> FindVariants(const Options& options) {
  std::vector<cases::Variant> variants;
  if (options.variants.empty()) return variants;
  if (options.suite == "interface" || options.suite == "models") {
    return base::Status(
        base::Code::kInvalidName,
        fmt::format("The suite '{}' has no variants; operators, opsets and domains have.",
                    options.suite));
  }
  for (const cases::Variant variant : cases::kVariants) {
    const auto is_asked = [&](const std::string& name) {
      return name == "all" || name == NameOf(variant);
    };
    if (std::ranges::any_of(options.variants, is_asked)) variants.push_back(variant);
  }
  return variants;
}

base::Result<std::vector<ListedCase>> ListCases(const Options& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<cases::Variant> variants, FindVariants(options));
  std::vector<ListedCase> cases;
  if (options.suite == "interface") {
    for (const suites::InterfaceCase& interface_case : suites::ListInterfaceCases()) {
      cases.push_back({.id = std::string(interface_case.name),
                       .name = std::string(interface_case.name),
                       .group = std::string(interface_case.group),
                       .variant = {}});
    }
    return cases;
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<cases::CaseEntry> entries,
                           cases::ReadIndex(options.cases));
  for (const cases::CaseEntry& entry : entries) {
    cases.push_back({.id = entry.path,
                     .name = entry.name,
                     .group = entry.group,
                     .is_expanded = entry.is_expanded,
                     .variant = {}});
    for (const cases::Variant variant : variants) {
      cases.push_back({.id = cases::WithVariant(entry.path, variant),
                       .name = cases::WithVariant(entry.name, variant),
                       .group = entry.group,
                       .is_expanded = entry.is_expanded,
                       .variant = std::string(NameOf(variant))});
    }
  }
  return cases;
}

base::Status KeepMatching(const std::string& filter, std::vector<ListedCase>& cases) {
  if (filter.empty()) return base::Ok();
  std::regex expression;
  try {  // The standard library knows no other way to check an expression.
    expression = std::regex(filter);
  } catch (const std::regex_error&) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("The filter '{}' is no regular expression.", filter));
  }
  std::erase_if(
      cases, [&](const ListedCase& listed) { return !std::regex_search(listed.name, expression); });
  if (cases.empty()) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("The filter '{}' matches no case.", filter));
  }
  return base::Ok();
}

CaseResult MakeResult(const ListedCase& listed, const process::CaseEnding& ending) {
  CaseResult result;
  if (ending.ending == process::Ending::kFinished) {
    base::Result<CaseResult> reported = report::FromJsonLine(ending.report);
    if (reported.ok()) {
      result = *std::move(reported);
    } else {
      result.sentence = reported.status().Text();
    }
  } else {
    result.verdict = ending.ending == process::Ending::kHung ? Verdict::kHang : Verdict::kCrash;
    result.sentence = ending.sentence;
    result.printed = ending.printed;
  }
  result.name = listed.name;
  result.group = listed.group;
  result.is_expanded = listed.is_expanded;
  result.variant = listed.variant;
  result.seconds = ending.seconds;
  return result;
}

process::PoolOptions MakePoolOptions(const Options& options, size_t case_count) {
  const bool is_models = options.suite == "models";
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  process::PoolOptions pool;
  pool.command = MakeWorkerCommand("/proc/self/exe", options);
  pool.jobs = options.jobs != 0 ? options.jobs : is_models ? 1 : cores;
  const double limit_s = options.timeout_s != 0 ? options.timeout_s : is_models ? 600 : 60;
  pool.time_limit = std::chrono::milliseconds(static_cast<int64_t>(limit_s * 1000));
  // Small enough that all jobs have work to the end, large enough that starting processes costs
  // little.
  const auto share = static_cast<int>(case_count) / (4 * pool.jobs);
  pool.batch_size = is_models ? 1 : std::clamp(share, 1, 32);
  return pool;
}

// Asks a child for the device, so that a library that crashes when opened does not take this
// process along.
base::Result<CaseResult> ProbeDevice(const Options& options) {
  process::PoolOptions pool = MakePoolOptions(options, 1);
  pool.jobs = 1;
  const std::vector<std::string> ids = {kProbeId};
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<process::CaseEnding> endings,
                           process::RunCases(pool, ids, [] {}));
  ListedCase probe;
  probe.name = kProbeId;
  CaseResult result = MakeResult(probe, endings.front());
  if (result.has_failed()) {
    return base::Status(base::Code::kBackendUnavailable,
                        result.sentence + (result.printed.empty() ? "" : "\n" + result.printed));
  }
  return result;
}

// The file that is to be written, if it is there already; else the file named by the option, or the
// plugin's own beside the program's data, if it exists.
base::Result<cases::Expectations> LoadExpectations(const Options& options,
                                                   const std::string& device_key) {
  std::error_code error;
  if (!options.write_expectations.empty()) {
    if (!std::filesystem::exists(options.write_expectations, error)) return cases::Expectations();
    return cases::ReadExpectations(options.write_expectations, options.suite);
  }
  if (!options.expectations.empty())
    return cases::ReadExpectations(options.expectations, options.suite);
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path path = program.parent_path() / ".." / "share" / "onnxifi" /
                                     "expectations" /
                                     (device_key.substr(0, device_key.find(':')) + ".json");
  if (!std::filesystem::exists(path, error)) return cases::Expectations();
  return cases::ReadExpectations(path, options.suite);
}

base::Status WriteReports(const Options& options, const std::string& heading,
                          const std::vector<CaseResult>& results) {
  if (!options.json.empty()) {
    std::string lines;
    for (const CaseResult& result : results) lines += report::ToJsonLine(result) + "\n";
    ONNXIFI_RETURN_IF_ERROR(onnx_file::WriteFile(options.json, lines));
  }
  if (!options.junit.empty()) {
    ONNXIFI_RETURN_IF_ERROR(
        onnx_file::WriteFile(options.junit, report::MakeJunit(heading, results)));
  }
  if (!options.report.empty()) {
    ONNXIFI_RETURN_IF_ERROR(
        onnx_file::WriteFile(options.report, report::MakeHtml(heading, results)));
  }
  return base::Ok();
}

}  // namespace

base::Result<int> RunSuite(Options options) {
  if (options.cases.empty() && options.suite != "interface") {
    ONNXIFI_ASSIGN_OR_RETURN(
        options.cases,
        cases::FindGeneratedFolder(options.suite == "operators" ? "cases" : options.suite));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<ListedCase> cases, ListCases(options));
  ONNXIFI_RETURN_IF_ERROR(KeepMatching(options.filter, cases));
  if (options.list) {
    std::string names;
    for (const ListedCase& listed : cases) names += listed.group + "/" + listed.name + "\n";
    ONNXIFI_RETURN_IF_ERROR(client::WriteOutput(names));
    return 0;
  }
  if (options.library.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(options.library, client::FindDefaultLibrary());
  }
  // Workers inherit what is disabled.
  const auto findings = probe::ProbePlugins(options.library, probe::ListDevices(options.library));
  for (const probe::Finding& finding : findings) {
    fmt::print(stderr, "Plugin '{}' is not used. {}\n", finding.path.string(), finding.sentence);
  }
  probe::Disable(findings);
  ONNXIFI_ASSIGN_OR_RETURN(const CaseResult device, ProbeDevice(options));
  ONNXIFI_ASSIGN_OR_RETURN(cases::Expectations expectations,
                           LoadExpectations(options, device.note));
  const std::string heading = fmt::format("Suite {} on {}: {}, {}", options.suite, device.note,
                                          device.status, options.library.string());
  ONNXIFI_RETURN_IF_ERROR(
      client::WriteOutput(fmt::format("{}\n{} cases\n", heading, cases.size())));

  std::vector<std::string> ids;
  for (const ListedCase& listed : cases) ids.push_back(listed.id);
  std::vector<process::CaseEnding> endings;
  {
    report::Progress progress(options.suite, cases.size());
    ONNXIFI_ASSIGN_OR_RETURN(endings, process::RunCases(MakePoolOptions(options, cases.size()), ids,
                                                        [&progress] { progress.Advance(); }));
  }
  std::vector<CaseResult> results;
  for (size_t index = 0; index < cases.size(); ++index) {
    results.push_back(MakeResult(cases[index], endings[index]));
  }
  if (!options.write_expectations.empty()) {
    ONNXIFI_RETURN_IF_ERROR(
        cases::WriteExpectations(options.write_expectations, options.suite, results));
    ONNXIFI_ASSIGN_OR_RETURN(expectations, LoadExpectations(options, device.note));
  }
  const bool is_partial = !options.filter.empty();
  cases::ApplyExpectations(expectations, is_partial, results);
  if (options.suite == "interface") {
    ONNXIFI_RETURN_IF_ERROR(
        client::WriteOutput("\n" + suites::CheckStatusTable(is_partial, results)));
  }
  if (options.suite == "opsets" && !is_partial) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<cases::Pair> pairs, cases::ReadPairs(options.cases));
    ONNXIFI_RETURN_IF_ERROR(client::WriteOutput("\n" + cases::CheckPairs(pairs, results)));
  }
  if (!is_partial && report::CountAll(results, /*is_expanded=*/false).passed == 0) {
    CaseResult nothing;
    nothing.name = "any case";
    nothing.group = options.suite;
    nothing.sentence = "No case passed. A device that refuses everything passes no suite.";
    results.push_back(std::move(nothing));
  }
  ONNXIFI_RETURN_IF_ERROR(WriteReports(options, heading, results));
  ONNXIFI_RETURN_IF_ERROR(client::WriteOutput(
      "\n" + report::MakeSummary(results, /*with_ratios=*/options.suite == "models")));
  return static_cast<int>(std::ranges::count_if(results, &CaseResult::has_failed));
}

}  // namespace onnxifi::conformance
