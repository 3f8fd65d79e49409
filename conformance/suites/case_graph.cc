// SPDX-License-Identifier: Apache-2.0
//
// The calls that every replay makes.

#include "conformance/suites/case_graph.h"

#include <algorithm>
#include <deque>

#include "client/guarded_buffer.h"
#include "client/step_families.h"
#include "client/value_run.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;

struct InferredExtents {
  std::vector<std::vector<int64_t>> extents;
  bool is_complete = true;
};

void ONNXIFI_ABI CollectExtents(void* context, const onnxTensorShape* shape) {
  auto& inferred = *static_cast<InferredExtents*>(context);
  inferred.is_complete = inferred.is_complete && shape->has_rank != 0;
  inferred.extents.emplace_back(shape->extents, shape->extents + shape->rank);
}

}  // namespace

std::string_view GraphRequest::claim_function() const {
  return by_values ? "onnxGetBackendValueCompatibility" : "onnxGetBackendCompatibility";
}

onnxStatus Claim(const Target& target, const GraphRequest& request) {
  if (request.by_values) {
    return target.extensions.get_backend_value_compatibility(target.id, request.model.size(),
                                                             request.model.data());
  }
  return target.library.onnxGetBackendCompatibility(target.id, request.model.size(),
                                                    request.model.data());
}

CaseGraph::~CaseGraph() {
  if (graph_ != nullptr) (void)target_.library.onnxReleaseGraph(graph_);
}

onnxStatus CaseGraph::Init(const GraphRequest& request) {
  std::deque<client::GuardedBuffer> buffers;
  client::DescriptorList weights;
  for (const DenseTensor& weight : request.weights) {
    client::GuardedBuffer& buffer = buffers.emplace_back(weight.bytes.size());
    std::ranges::copy(weight.bytes, buffer.data());
    weights.Add(weight.name, weight.type, weight.extents, buffer.data());
  }
  const onnxStatus status = target_.library.onnxInitGraph(
      target_.backend, request.properties.data(), request.model.size(), request.model.data(),
      weights.count(), weights.count() == 0 ? nullptr : weights.data(), &graph_);
  // A library that did not copy them computes with this.
  for (client::GuardedBuffer& buffer : buffers) std::ranges::fill(buffer.bytes(), std::byte{0xA5});
  return status;
}

base::Result<std::vector<DenseTensor>> CaseGraph::Run(
    std::span<const DenseTensor> inputs, std::span<const DenseTensor> outputs,
    const client::ExecutionOptions& options) const {
  return client::Execute(target_.library, target_.extensions, target_.backend, graph_, inputs,
                         outputs, options);
}

base::Result<std::vector<FileValue>> CaseGraph::RunOnValues(
    std::span<const FileValue> inputs, const client::ExecutionOptions& options) const {
  return client::ExecuteOnValues(target_.library, target_.extensions, target_.backend, graph_,
                                 inputs, options);
}

base::Result<std::optional<std::vector<std::vector<int64_t>>>> CaseGraph::InferExtents(
    std::span<const DenseTensor> inputs) const {
  using Extents = std::vector<std::vector<int64_t>>;
  if (target_.extensions.infer_output_shapes == nullptr) return std::optional<Extents>();
  client::DescriptorList list;
  for (const DenseTensor& input : inputs) list.Add(input.name, input.type, input.extents, nullptr);
  InferredExtents inferred;
  ONNXIFI_RETURN_IF_ERROR(
      client::ExpectSuccess(target_.library, "onnxInferOutputShapes",
                            target_.extensions.infer_output_shapes(
                                graph_, list.count(), list.data(), CollectExtents, &inferred)));
  if (!inferred.is_complete) return std::optional<Extents>();
  return std::optional(std::move(inferred.extents));
}

std::optional<std::vector<std::string>> CaseGraph::ReadStepFamilies() const {
  const auto counts = client::ReadStepFamilies(target_.extensions.get_graph_counters, graph_);
  if (!counts) return std::nullopt;
  std::vector<std::string> families;
  for (const auto& [family, count] : *counts) families.push_back(family);
  return families;
}

}  // namespace onnxifi::suites
