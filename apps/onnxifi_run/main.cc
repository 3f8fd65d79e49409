// SPDX-License-Identifier: Apache-2.0
//
// onnxifi_run. Exit status 0: it ran, as expected where that was asked; 1: it did not; 2: the
// command line is wrong.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "apps/onnxifi_run/compiled_kernels.h"
#include "apps/onnxifi_run/model_run.h"
#include "apps/onnxifi_run/options.h"
#include "apps/onnxifi_run/plan_file.h"
#include "apps/onnxifi_run/report_text.h"
#include "apps/onnxifi_run/run_times.h"
#include "apps/onnxifi_run/stopwatch.h"
#include "client/onnx_file/mapped_file.h"
#include "client/printable.h"
#include "client/standard_output.h"

namespace onnxifi::run {
namespace {

base::Status WriteOutputs(const Options& options, const RunReport& report) {
  if (options.output.empty()) return base::Ok();
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error) {
    return base::Status(
        base::Code::kInvalidName,
        fmt::format("Folder '{}' cannot be made: {}.", options.output.string(), error.message()));
  }
  for (size_t index = 0; index < report.outputs.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(onnx_file::WriteFile(
        options.output / fmt::format("output_{}.pb", index),
        onnx_file::SerializeValue(report.outputs[index], report.output_kinds[index])));
  }
  return base::Ok();
}

// Names of nodes come from the explanation, limits from the cache.
base::Status AddProfile(const Options& options, const Device& device,
                        std::span<const std::byte> model, RunReport& report) {
  if (!options.profile) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(const Explanation explanation, ExplainModel(device, model));
  const int threads = machine::ThreadsInUse();
  std::optional<machine::ThreadLimits> limits;
  if (const base::Result<machine::Limits> all = machine::ReadCached(); all.ok()) {
    if (const machine::ThreadLimits* found = all->For(threads)) limits = *found;
  }
  ONNXIFI_ASSIGN_OR_RETURN(report.profile, MakeProfile(report.step_records, explanation.nodes,
                                                       MedianOf(report.run_ms), threads, limits));
  report.profile->load = report.load_records;
  report.profile->rounding = options.rounding;
  report.profile->errors = report.errors;
  report.profile->counters = report.counters;
  if (!report.load_records.empty()) {
    // Libraries prepare kernels in either call.
    const double bind_ns = report.first_result.bind_ms * 1e6;
    report.profile->load.push_back({"set_io", 1, static_cast<uint64_t>(bind_ns)});
  }
  report.profile->load_ms = report.first_result.init_graph_ms + report.first_result.bind_ms;
  if (options.trace.empty()) return base::Ok();
  std::ofstream file(options.trace);
  file << MakeTrace(*report.profile);
  if (!file.flush()) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("'{}' cannot be written.", options.trace.string()));
  }
  return base::Ok();
}

base::Status WritePlanFile(const Options& options, const Device& device,
                           std::span<const std::byte> model, const RunReport& report) {
  if (options.plan.empty() || !report.plan) return base::Ok();
  ONNXIFI_ASSIGN_OR_RETURN(const Explanation explanation, ExplainModel(device, model));
  GraphPlan plan = *report.plan;
  // A graph that one device has whole takes what the run takes.
  if (plan.islands.size() == 1 && plan.islands[0].nodes.empty() && !report.run_ms.empty()) {
    plan.islands[0].measured_duration_ns = static_cast<uint64_t>(report.run_ms.back() * 1e6);
  }
  return WritePlan(options.plan, plan, explanation.nodes);
}

base::Result<RunReport> ReadAndRun(const Options& options, const Device& device,
                                   std::span<const Device> beside, std::span<const std::byte> model,
                                   FirstResult before) {
  Stopwatch stopwatch;
  base::Result<onnx_file::ModelOutline> outline = onnx_file::ParseModelOutline(model);
  if (!outline.ok()) {
    return std::move(outline).status().Context(
        fmt::format("while reading '{}' as an ONNX model", options.model.string()));
  }
  before.read_ms += stopwatch.Lap();
  return RunModel(options, device, beside, model, *outline, before);
}

base::Result<bool> RunAndPrint(Options options) {
  std::unique_ptr<CompiledKernels> kernels;
  if (!options.compile_for.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(kernels, CompiledKernels::Begin(options.compile_for));
    options.device = "cuda";
  }
  FirstResult before;
  Stopwatch stopwatch;
  ONNXIFI_ASSIGN_OR_RETURN(const onnx_file::MappedFile file,
                           onnx_file::MappedFile::Open(options.model));
  const std::span<const std::byte> model = file.content();
  before.read_ms = stopwatch.Lap();
  ONNXIFI_ASSIGN_OR_RETURN(const std::filesystem::path path, FindSafeLibrary(options));
  before.probe_ms = stopwatch.Lap();
  ONNXIFI_ASSIGN_OR_RETURN(const Library library, OpenLibrary(path));
  ONNXIFI_ASSIGN_OR_RETURN(const Device device, FindDevice(library, options.device));
  before.discover_ms = stopwatch.Lap();
  std::vector<Device> beside;
  for (const std::string& name : options.beside) {
    ONNXIFI_ASSIGN_OR_RETURN(Device found, FindDevice(library, name));
    beside.push_back(std::move(found));
  }
  std::optional<client::ModelAnswers> answers;
  if (options.explain) {
    ONNXIFI_ASSIGN_OR_RETURN(answers, AskDevices(library, options, model));
  }
  base::Result<RunReport> ran = ReadAndRun(options, device, beside, model, before);
  // Wanted most when the model does not run.
  if (answers && !options.json) {
    ONNXIFI_RETURN_IF_ERROR(client::WriteOutput(
        client::Printable(MakeExplanationText(*answers, ran.ok() ? &*ran : nullptr)) + "\n"));
  }
  if (answers && options.json && !ran.ok()) {
    ONNXIFI_RETURN_IF_ERROR(client::WriteOutput(MakeRefusalJson(*answers, ran.status().Text())));
  }
  if (!ran.ok()) return std::move(ran).status();
  if (kernels) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<CompiledKernel> used, kernels->End());
    ONNXIFI_RETURN_IF_ERROR(
        client::WriteOutput(options.json ? MakeKernelJson(used) : MakeKernelText(*kernels, used)));
    return true;
  }
  RunReport& report = *ran;
  report.answers = std::move(answers);
  ONNXIFI_RETURN_IF_ERROR(WriteOutputs(options, report));
  ONNXIFI_RETURN_IF_ERROR(AddProfile(options, device, model, report));
  ONNXIFI_RETURN_IF_ERROR(WritePlanFile(options, device, model, report));
  ONNXIFI_RETURN_IF_ERROR(
      client::WriteOutput(options.json ? MakeJson(report) : client::Printable(MakeText(report))));
  return report.is_as_expected();
}

}  // namespace
}  // namespace onnxifi::run

int main(int argument_count, char** arguments) {
  onnxifi::run::Options options;
  if (const std::optional<int> status =
          onnxifi::run::ParseOptions(argument_count, arguments, options)) {
    return *status;
  }
  const auto is_as_expected = onnxifi::run::RunAndPrint(options);
  if (!is_as_expected.ok()) {
    fmt::print(stderr, "onnxifi_run: {}\n",
               onnxifi::client::Printable(is_as_expected.status().Text()));
    return 1;
  }
  return *is_as_expected ? 0 : 1;
}
