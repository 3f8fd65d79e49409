// SPDX-License-Identifier: Apache-2.0
//
// VariantRun: every data set is replayed by itself, since its inputs may be part of the model.

#include "conformance/suites/variant_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "client/onnx_file/model_inputs.h"
#include "client/status_names.h"
#include "conformance/suites/case_form.h"
#include "conformance/suites/draws.h"
#include "conformance/suites/kept_memory.h"
#include "conformance/suites/random_outputs.h"
#include "conformance/suites/tiling.h"
#include "conformance/suites/value_check.h"

namespace onnxifi::suites {
namespace {

using cases::Variant;
using client::StatusName;
using onnx_file::DenseTensor;
using onnx_file::FileValue;
using report::Verdict;

// So many enlargements that make sense are run; so many are tried.
constexpr int kMaxTiledRuns = 2;
constexpr int kMaxTiledTrials = 12;
// Threads that run a graph at once, and how often each does.
constexpr int kCallers = 3;
constexpr int kRunsOfACaller = 4;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

std::optional<int64_t> SizeOf(const DenseTensor& tensor) {
  const std::optional<int64_t> count = onnx_file::ElementCount(tensor.extents);
  return count ? onnx_file::SizeBytes(tensor.type, *count) : std::nullopt;
}

}  // namespace

void VariantRun::SetNotApplicable(std::string sentence) {
  result_.verdict = Verdict::kNotApplicable;
  result_.sentence = std::move(sentence);
}

base::Status VariantRun::Run() {
  result_.verdict = Verdict::kPass;
  for (int number = 0; number < description_.data_set_count; ++number) {
    ONNXIFI_ASSIGN_OR_RETURN(const DataSet data_set, ReadDataSet(description_, number, outline_));
    base::Status status = variant_ == Variant::kTiled ? RunTiled(data_set) : RunDataSet(data_set);
    if (!status.ok()) {
      return description_.data_set_count == 1
                 ? std::move(status)
                 : std::move(status).Context(fmt::format("in data set {}", number));
    }
    if (result_.verdict != Verdict::kPass) break;
  }
  return base::Ok();
}

base::Result<bool> VariantRun::InitGraph(const GraphRequest& request, CaseGraph& graph) {
  const onnxStatus claim = Claim(target_, request);
  if (!client::IsAcceptance(claim)) {
    result_.verdict = Verdict::kNotSupported;
    ONNXIFI_RETURN_IF_ERROR(CheckRefusal(target_, request, claim, result_));
    return false;
  }
  ONNXIFI_RETURN_IF_ERROR(
      client::ExpectSuccess(target_.library, "onnxInitGraph", graph.Init(request)));
  return true;
}

base::Status VariantRun::RunDataSet(const DataSet& data_set) {
  ONNXIFI_ASSIGN_OR_RETURN(const CaseForm form,
                           MakeForm(variant_, request_.model, outline_, data_set.inputs));
  if (!form.obstacle.empty()) {
    SetNotApplicable(form.obstacle);
    return base::Ok();
  }
  GraphRequest request = request_;
  request.model = form.model;
  request.weights = form.weights;
  CaseGraph graph(target_);
  ONNXIFI_ASSIGN_OR_RETURN(const bool is_initialised, InitGraph(request, graph));
  if (!is_initialised) return base::Ok();
  ONNXIFI_RETURN_IF_ERROR(RunGraph(graph, form.inputs, data_set, /*run_count=*/1));
  if (result_.verdict != Verdict::kPass) return base::Ok();
  if (variant_ == Variant::kRerun) return RunAgain(graph, form.inputs, data_set);
  if (variant_ == Variant::kCallers) return RunFromSeveralThreads(graph, form.inputs, data_set);
  return base::Ok();
}

base::Status VariantRun::RunFromSeveralThreads(const CaseGraph& graph,
                                               std::span<const FileValue> inputs,
                                               const DataSet& data_set) {
  if (target_.extensions.set_io_and_run_graph == nullptr || request_.by_values) {
    SetNotApplicable(request_.by_values ? "Values are bound to a graph, not to a run."
                                        : "The library does not offer onnxSetIOAndRunGraph.");
    return base::Ok();
  }
  const client::ExecutionOptions options = {.misalign = misalign_, .binds_with_run = true};
  const std::vector<DenseTensor> tensors = TensorsOf(inputs);
  const std::vector<DenseTensor> bounds = TensorsOf(data_set.outputs);
  struct Caller {
    base::Status status;
    double worst_ratio = -1;
  };
  std::vector<Caller> callers(kCallers);
  const auto run = [&](Caller& caller) -> base::Status {
    for (int number = 0; number < kRunsOfACaller; ++number) {
      ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DenseTensor> outputs,
                               graph.Run(tensors, bounds, options));
      ONNXIFI_RETURN_IF_ERROR(CheckOutputs(outputs, data_set, caller.worst_ratio));
    }
    return base::Ok();
  };
  {
    std::vector<std::jthread> threads;
    for (Caller& caller : callers) {
      threads.emplace_back([&] { caller.status = run(caller); });
    }
  }
  for (Caller& caller : callers) {
    result_.worst_ratio = std::max(result_.worst_ratio, caller.worst_ratio);
    ONNXIFI_RETURN_IF_ERROR(std::move(caller.status).Context("in runs of several threads"));
  }
  return base::Ok();
}

base::Status VariantRun::RunAgain(const CaseGraph& graph, std::span<const FileValue> inputs,
                                  const DataSet& data_set) {
  // NaN takes the place of what the first run left in temporaries. Whether numbers that are none
  // can be computed with does not matter; that the next run is right does.
  const std::vector<FileValue> poison = PoisonFloats({inputs.begin(), inputs.end()});
  const client::ExecutionOptions options = {.signal_before_run = true, .misalign = misalign_};
  const std::vector<DenseTensor> outputs = TensorsOf(data_set.outputs);
  const auto run = [&](std::span<const FileValue> values) -> base::Status {
    if (request_.by_values) return graph.RunOnValues(values, options).status();
    return graph.Run(TensorsOf(values), outputs, options).status();
  };
  (void)run(poison);
  ONNXIFI_RETURN_IF_ERROR(
      RunGraph(graph, inputs, data_set, /*run_count=*/1).Context("in the run after one on NaN"));
  ONNXIFI_RETURN_IF_ERROR(
      RunGraph(graph, inputs, data_set, /*run_count=*/2).Context("in runs after one on NaN"));
  bool is_measured = false;
  ONNXIFI_RETURN_IF_ERROR(CheckKeptMemory([&] { return run(inputs); }, is_measured));
  if (!is_measured) result_.note = "slow runs: memory that they keep is not measured";
  return base::Ok();
}

base::Status VariantRun::RunGraph(const CaseGraph& graph, std::span<const FileValue> inputs,
                                  const DataSet& data_set, int run_count) {
  const client::ExecutionOptions options = {
      .signal_before_run = false, .misalign = misalign_, .run_count = run_count};
  if (request_.by_values) {
    if (variant_ == Variant::kBounds) {
      SetNotApplicable("Outputs that are values have no bounds.");
      return base::Ok();
    }
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<FileValue> outputs,
                             graph.RunOnValues(inputs, options));
    return CheckValues(outputs, data_set.outputs, description_.tolerance, result_.worst_ratio);
  }
  std::vector<DenseTensor> bounds = TensorsOf(data_set.outputs);
  if (variant_ == Variant::kBounds) {
    ONNXIFI_ASSIGN_OR_RETURN(bounds, EnlargeBounds(graph, inputs, std::move(bounds)));
    if (result_.verdict != Verdict::kPass) return base::Ok();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DenseTensor> outputs,
                           graph.Run(TensorsOf(inputs), bounds, options));
  return CheckOutputs(outputs, data_set, result_.worst_ratio);
}

base::Status VariantRun::CheckOutputs(std::span<const DenseTensor> outputs, const DataSet& data_set,
                                      double& worst_ratio) const {
  if (description_.draws) return CheckDistribution(outputs.front(), *description_.draws);
  const std::vector<DenseTensor> expected = TensorsOf(data_set.outputs);
  const std::vector<DenseTensor> all_inputs = TensorsOf(data_set.inputs);
  if (DrawsRandomNumbers(outline_, all_inputs)) {
    return CheckRandomOutputs(outline_, all_inputs, expected, outputs);
  }
  return CheckTensors(outputs, expected, description_.tolerance, worst_ratio);
}

base::Result<std::vector<DenseTensor>> VariantRun::EnlargeBounds(const CaseGraph& graph,
                                                                 std::span<const FileValue> inputs,
                                                                 std::vector<DenseTensor> outputs) {
  if (target_.extensions.get_run_output_shapes == nullptr) {
    SetNotApplicable("The library does not tell the extents that a run gave its outputs.");
    return outputs;
  }
  ONNXIFI_ASSIGN_OR_RETURN(const auto inferred, graph.InferExtents(TensorsOf(inputs)));
  if (!inferred) {
    SetNotApplicable("The library does not tell which extents only data tell.");
    return outputs;
  }
  bool is_changed = false;
  for (size_t index = 0; index < outputs.size() && index < inferred->size(); ++index) {
    DenseTensor& output = outputs[index];
    for (size_t axis = 0; axis < output.extents.size(); ++axis) {
      if (axis >= (*inferred)[index].size()) {
        return Fault(
            fmt::format("onnxInferOutputShapes tells {} extents of output '{}', which has "
                        "rank {}.",
                        (*inferred)[index].size(), output.name, output.extents.size()));
      }
      if ((*inferred)[index][axis] != ONNXIFI_SDK_UNKNOWN) continue;
      output.extents[axis] = 2 * output.extents[axis] + 3;
      is_changed = true;
    }
    output.bytes.resize(static_cast<size_t>(SizeOf(output).value_or(0)));
  }
  if (!is_changed) SetNotApplicable("The extents of the outputs are known before a run.");
  return outputs;
}

base::Status VariantRun::RunTiled(const DataSet& data_set) {
  if (request_.by_values) {
    SetNotApplicable("Values that no descriptor carries are not tiled.");
    return base::Ok();
  }
  const std::vector<DenseTensor> inputs = TensorsOf(data_set.inputs);
  if (description_.draws || DrawsRandomNumbers(outline_, inputs)) {
    SetNotApplicable("The case draws random numbers.");
    return base::Ok();
  }
  const std::vector<Enlargement> enlargements = ListEnlargements(inputs);
  if (enlargements.empty()) {
    SetNotApplicable("No input of the case has an axis of more than one element.");
    return base::Ok();
  }
  if (const std::string& obstacle = oracle_.FindObstacle(); !obstacle.empty()) {
    SetNotApplicable(obstacle);
    return base::Ok();
  }
  // What expects the outputs is held against ONNX's own expectation first.
  const base::Result<std::vector<DenseTensor>> own = ComputeOwn(inputs);
  double ratio = -1;
  if (!own.ok() ||
      !CheckTensors(*own, TensorsOf(data_set.outputs), description_.tolerance, ratio).ok()) {
    SetNotApplicable("The oracle does not compute what the case expects.");
    return base::Ok();
  }
  int done_count = 0;
  for (size_t trial = 0; trial < std::min<size_t>(enlargements.size(), kMaxTiledTrials); ++trial) {
    bool is_done = false;
    ONNXIFI_RETURN_IF_ERROR(
        RunTiledOnce(enlargements[trial], is_done)
            .Context(fmt::format("with axes of {} elements in place of {}", enlargements[trial].to,
                                 enlargements[trial].from)));
    if (result_.verdict != Verdict::kPass) return base::Ok();
    done_count += is_done ? 1 : 0;
    if (done_count == kMaxTiledRuns) return base::Ok();
  }
  if (done_count == 0) SetNotApplicable("The operator takes no larger extents of its inputs.");
  return base::Ok();
}

base::Result<std::vector<DenseTensor>> VariantRun::ComputeOwn(
    std::span<const DenseTensor> inputs) const {
  std::vector<DenseTensor> lists, others;
  for (size_t position = 0; position < inputs.size(); ++position) {
    (MayBeList(inputs[position], position) ? lists : others).push_back(inputs[position]);
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::string model,
                           onnx_file::MakeInitializers(request_.model, lists));
  return oracle_.Compute(std::as_bytes(std::span(model)), others);
}

base::Status VariantRun::RunTiledOnce(const Enlargement& enlargement, bool& is_done) {
  onnx_file::ExtentsByName extents;
  for (const DenseTensor& input : enlargement.inputs) {
    extents[input.name].assign(input.extents.begin(), input.extents.end());
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::string enlarged,
                           onnx_file::ChangeExtents(request_.model, extents));
  ONNXIFI_ASSIGN_OR_RETURN(
      const std::string model,
      onnx_file::MakeInitializers(std::as_bytes(std::span(enlarged)), enlargement.lists));
  GraphRequest request = request_;
  request.model = std::as_bytes(std::span(model));
  const base::Result<std::vector<DenseTensor>> expected =
      oracle_.Compute(request.model, enlargement.inputs);
  if (!expected.ok()) return base::Ok();
  is_done = true;
  CaseGraph graph(target_);
  ONNXIFI_ASSIGN_OR_RETURN(const bool is_initialised, InitGraph(request, graph));
  if (!is_initialised) return base::Ok();
  const client::ExecutionOptions options = {.signal_before_run = false, .misalign = misalign_};
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DenseTensor> outputs,
                           graph.Run(enlargement.inputs, *expected, options));
  comparison::Tolerance tolerance;
  tolerance.between_devices = true;
  return CheckTensors(outputs, *expected, tolerance, result_.worst_ratio);
}

base::Status CheckRefusal(const Target& target, const GraphRequest& request, onnxStatus refusal,
                          report::CaseResult& result) {
  if (!client::IsRefusal(refusal)) {
    return Fault(fmt::format("{} answers {} to a legal model: {}", request.claim_function(),
                             StatusName(refusal), target.library.LastError()));
  }
  result.status = StatusName(refusal);
  result.sentence = target.library.LastError();
  if (result.sentence.empty()) {
    if (target.extensions.get_last_error_message != nullptr) {
      return Fault(fmt::format("{} comes without a sentence.", result.status));
    }
    result.sentence = "The library has no means to give a reason.";
  }
  CaseGraph graph(target);
  const onnxStatus initialised = graph.Init(request);
  if (initialised != refusal) {
    return Fault(fmt::format("{} answers {}, onnxInitGraph {}: {}", request.claim_function(),
                             result.status, StatusName(initialised), result.sentence));
  }
  if (graph.get() != nullptr)
    return Fault("onnxInitGraph refuses and stores a graph all the same.");
  return base::Ok();
}

}  // namespace onnxifi::suites
