// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionPlan: engines in the order of the library's heuristics.

#include "backends/cuda/libraries/convolution_engine.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/libraries/results_kernel.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;

class EngineChoice {
 public:
  EngineChoice(const Cudnn& library, const ContractForm& form) : library_(library), form_(form) {}

  Result<ConvolutionPlan> Choose(const CudnnDescriptor& graph) {
    int found = 0;
    std::string fault;
    for (const int mode : {dnn::kByTable, dnn::kFallback}) {
      Result<std::vector<CudnnDescriptor>> configs = FindConfigs(graph, mode);
      if (!configs.ok()) {
        if (IsOutOfMemory(configs.status())) return std::move(configs).status();
        fault = " " + std::string(configs.status().sentence());
        continue;
      }
      for (const CudnnDescriptor& config : *configs) {
        ++found;
        const Result<bool> is_exact = IsExact(config);
        if (is_exact.ok() && !*is_exact) continue;
        Result<ConvolutionPlan> plan = is_exact.ok() ? Finish(config) : Status(is_exact.status());
        if (plan.ok() && plan->workspace_bytes <= static_cast<int64_t>(kMaxWorkspaceBytes)) {
          return plan;
        }
        if (plan.ok()) continue;
        if (IsOutOfMemory(plan.status())) return plan;
        fault = " " + std::string(plan.status().sentence());
      }
    }
    return Status(Code::kUnsupportedOperator,
                  "None of cuDNN's " + std::to_string(found) + " engines computes in " +
                      std::string(form_.type) + ", each time alike, in 64 MiB of working memory." +
                      fault);
  }

 private:
  // What else keeps one engine from being built says nothing of the next.
  static bool IsOutOfMemory(const Status& status) {
    return status.code() == Code::kNoDeviceMemory || status.code() == Code::kNoSystemMemory;
  }

  Result<CudnnDescriptor> Make(dnn::Kind kind) { return CudnnDescriptor::Create(library_, kind); }

  // The library's engines with their settings, the one it thinks fastest first.
  Result<std::vector<CudnnDescriptor>> FindConfigs(const CudnnDescriptor& graph, int mode) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor heuristic, Make(dnn::kHeuristic));
    ONNXIFI_RETURN_IF_ERROR(heuristic.SetDescriptor(dnn::kHeuristicGraph, graph));
    ONNXIFI_RETURN_IF_ERROR(heuristic.Set(dnn::kHeuristicMode, dnn::kOfHeuristicMode, mode));
    ONNXIFI_RETURN_IF_ERROR(InContext([&] { return heuristic.Finalize(); }));
    std::vector<CudnnDescriptor> configs;
    std::vector<dnn::Descriptor> pointers;
    int64_t count = 0;
    const auto get = [&](int64_t wanted) {
      return InContext([&]() -> Status {
        ONNXIFI_ASSIGN_OR_RETURN(count,
                                 heuristic.Get(dnn::kHeuristicResults, dnn::kOfDescriptor, wanted,
                                               wanted == 0 ? nullptr : pointers.data()));
        return base::Ok();
      });
    };
    ONNXIFI_RETURN_IF_ERROR(get(0));
    const int64_t wanted = std::max<int64_t>(count, 0);
    for (int64_t k = 0; k < wanted; ++k) {
      ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor config, Make(dnn::kEngineConfig));
      pointers.push_back(config.get());
      configs.push_back(std::move(config));
    }
    if (wanted > 0) ONNXIFI_RETURN_IF_ERROR(get(wanted));
    configs.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, wanted)));
    return configs;
  }

  // Whether the engine rounds nothing but what the caller permits, and is the same each time.
  Result<bool> IsExact(const CudnnDescriptor& config) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor engine, Make(dnn::kEngine));
    dnn::Descriptor pointer = engine.get();
    ONNXIFI_RETURN_IF_ERROR(
        config.Get(dnn::kConfigEngine, dnn::kOfDescriptor, 1, &pointer).status());
    std::array<int, dnn::kMaxNotes> notes{};
    ONNXIFI_ASSIGN_OR_RETURN(
        const int64_t count,
        engine.Get(dnn::kEngineNotes, dnn::kOfNumericalNote, dnn::kMaxNotes, notes.data()));
    // float32 comes to tensor cores as TF32. To what an engine narrows its inputs it does not tell:
    // it may be float16, whose range is no float32's.
    const bool is_plain =
        form_.operand == ElementType::kFloat32 && form_.precision == tensor::Precision::kFloat32;
    const auto told = std::span(notes).first(static_cast<size_t>(std::min(count, dnn::kMaxNotes)));
    return std::ranges::all_of(told, [&](int note) {
      switch (note) {
        case dnn::kTensorCores:
          return !is_plain;
        case dnn::kStrictNan:
          return true;
        default:
          return false;
      }
    });
  }

  Result<ConvolutionPlan> Finish(const CudnnDescriptor& config) {
    ConvolutionPlan plan;
    ONNXIFI_ASSIGN_OR_RETURN(plan.descriptor, Make(dnn::kPlan));
    ONNXIFI_RETURN_IF_ERROR(
        plan.descriptor.Set(dnn::kPlanHandle, dnn::kOfHandle, library_.handle()));
    ONNXIFI_RETURN_IF_ERROR(plan.descriptor.SetDescriptor(dnn::kPlanConfig, config));
    ONNXIFI_RETURN_IF_ERROR(InContext([&] { return plan.descriptor.Finalize(); }));
    ONNXIFI_RETURN_IF_ERROR(
        plan.descriptor.Get(dnn::kPlanWorkspaceBytes, dnn::kOfInt64, 1, &plan.workspace_bytes)
            .status());
    return plan;
  }

  template <typename Call>
  Status InContext(const Call& call) {
    return library_.host().Do("choose an engine", call);
  }

  const Cudnn& library_;
  const ContractForm& form_;
};

}  // namespace

Result<ConvolutionPlan> ChooseEngine(const Cudnn& library, const ContractForm& form,
                                     const CudnnDescriptor& graph) {
  return EngineChoice(library, form).Choose(graph);
}

}  // namespace onnxifi::cuda
