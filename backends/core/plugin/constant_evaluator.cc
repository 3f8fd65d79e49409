// SPDX-License-Identifier: Apache-2.0
//
// ConstantEvaluator: the pipeline's own stages once more, without its passes.

#include "backends/core/plugin/constant_evaluator.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "backends/core/device/parallel.h"
#include "backends/core/execution/executor.h"
#include "backends/core/plan/plan.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::Tensor;

// Gives each output a tensor of its own, as long as all together stay within the limit.
class TensorOutputs : public execution::OutputAllocator {
 public:
  TensorOutputs(const program::Program& program, int64_t limit_bytes)
      : program_(program), remaining_bytes_(limit_bytes), tensors_(program.outputs.size()) {}

  Result<std::byte*> Allocate(int output, const tensor::Extents& extents) override {
    tensor::ElementType type = program_.buffers[program_.outputs[output].buffer].type;
    int64_t size_bytes = tensor::SizeBytes(type, tensor::ElementCount(extents));
    if (size_bytes > remaining_bytes_) {
      return Status(Code::kNoSystemMemory, "A folded constant of " + std::to_string(size_bytes) +
                                               " bytes exceeds the " +
                                               std::to_string(remaining_bytes_) + " left for it.");
    }
    remaining_bytes_ -= size_bytes;
    ONNXIFI_ASSIGN_OR_RETURN(tensors_[output], Tensor::Allocate(type, extents));
    return tensors_[output].mutable_data();
  }

  std::vector<Tensor> Take() { return std::move(tensors_); }

 private:
  const program::Program& program_;
  int64_t remaining_bytes_;
  std::vector<Tensor> tensors_;
};

// Told from what the operators were lowered to: no list of theirs could fall behind.
bool DrawsRandomNumbers(const program::Program& program) {
  for (program::ExprId id = 0; id < program.exprs.size(); ++id) {
    if (program.exprs[id].op == program::ExprOp::kRandom) return true;
  }
  for (const program::Step& step : program.steps) {
    const auto* control = step.As<program::Control>();
    if (control == nullptr) continue;
    for (const std::unique_ptr<program::Program>& body : control->bodies) {
      if (DrawsRandomNumbers(*body)) return true;
    }
  }
  return false;
}

// -1 where it depends on what is computed.
int64_t CountElements(const program::Buffer& buffer) {
  if (buffer.value) return -1;
  tensor::Extents extents;
  for (const program::Dim& dim : buffer.shape) {
    if (!dim.is_constant()) return -1;
    extents.push_back(dim.constant());
  }
  return tensor::ElementCount(extents);
}

Status CheckValues(const program::Program& program, int64_t limit_bytes) {
  if (limit_bytes == std::numeric_limits<int64_t>::max()) return base::Ok();
  for (const program::Buffer& buffer : program.buffers) {
    const int64_t count = CountElements(buffer);
    if (count >= 0 && tensor::SizeBytes(buffer.type, count) <= limit_bytes) continue;
    const std::string what = count < 0 ? "of a size that is not known beforehand"
                                       : "of " + std::to_string(count) + " elements";
    return Status(Code::kNoSystemMemory, "A value " + what + " is not within the limit of " +
                                             std::to_string(limit_bytes) + " bytes for each.");
  }
  return base::Ok();
}

int64_t ConstantBytes(const graph::Graph& graph) {
  int64_t bytes = 0;
  for (const graph::Value& value : graph.values) {
    if (value.constant) bytes += value.constant->size_bytes();
  }
  return bytes;
}

}  // namespace

ConstantEvaluator::ConstantEvaluator(const ops::FunctionSource* functions, device::Device* device)
    : functions_(functions), device_(device), reference_(std::make_unique<reference::Device>()) {}

ConstantEvaluator::~ConstantEvaluator() = default;

// By what goes in and what is known to come out, whatever is done with it.
device::Device& ConstantEvaluator::DeviceFor(const program::Program& program) const {
  // The reference's loops take some 30 us for so many elements, as long as it takes other devices
  // to make a kernel.
  constexpr int64_t kFewElements = int64_t{1} << 12;
  if (device_ == nullptr) return *reference_;
  int64_t most = 0;
  for (const Tensor& constant : program.constants) most = std::max(most, constant.element_count());
  for (const program::Buffer& buffer : program.buffers) {
    most = std::max(most, CountElements(buffer));
  }
  return most > kFewElements ? *device_ : *reference_;
}

size_t ConstantEvaluator::at_once() const {
  // Many for each of a few threads, so that all end at about the same time.
  constexpr size_t kAtOnce = 64;
  return device_ != nullptr && device_->parallel() != nullptr ? kAtOnce : 1;
}

std::vector<graph::Evaluator::Answer> ConstantEvaluator::EvaluateAll(
    std::span<const Request> requests) {
  if (requests.size() < 2 || at_once() == 1) return Evaluator::EvaluateAll(requests);
  std::vector<int64_t> bytes(requests.size());
  std::ranges::transform(requests, bytes.begin(),
                         [](const Request& request) { return ConstantBytes(request.graph); });
  const int64_t all_bytes = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  std::vector<std::optional<Answer>> answers(requests.size());
  std::vector<size_t> others;
  // Less is computed sooner than it is divided.
  constexpr int64_t kDividedBytes = int64_t{1} << 20;
  for (size_t k = 0; k < requests.size(); ++k) {
    // What is most of the work has all threads for itself.
    if (bytes[k] > std::max(all_bytes / 2, kDividedBytes)) {
      answers[k] = Evaluate(requests[k]);
    } else {
      others.push_back(k);
    }
  }
  device::ForEach(*device_->parallel(), std::span<const size_t>(others),
                  [&](size_t k) { answers[k] = Evaluate(requests[k]); });
  std::vector<Answer> all;
  all.reserve(answers.size());
  for (std::optional<Answer>& answer : answers) all.push_back(*std::move(answer));
  return all;
}

graph::Evaluator::Answer ConstantEvaluator::Evaluate(const Request& request) {
  const int64_t limit_bytes = request.limit_bytes;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<program::Program> program,
                           ops::LowerGraph(request.graph, functions_));
  for (const program::Port& output : program->outputs) {
    const program::Buffer& buffer = program->buffers[output.buffer];
    if (!buffer.value && !buffer.holds_strings) continue;
    return Status(Code::kUnsupportedDatatype, "Only tensors of numbers are folded.");
  }
  if (DrawsRandomNumbers(*program)) {
    return Status(Code::kUnsupportedOperator, "Random numbers are drawn when the graph runs.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckValues(*program, request.value_limit_bytes));
  plan::Counters counters;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<plan::Plan> plan,
                           plan::Plan::Create(*program, DeviceFor(*program), counters));
  std::vector<int64_t> symbols(program->dims->symbol_count(), 0);
  for (const tensor::Extents& extents : plan->OutputExtents(symbols)) {
    // Checked before anything is computed; what depends on data is checked when it is known.
    if (std::find(extents.begin(), extents.end(), -1) != extents.end()) continue;
    if (tensor::ElementCount(extents) > limit_bytes) {
      return Status(Code::kNoSystemMemory,
                    "A folded constant of shape " + tensor::ToString(extents) +
                        " exceeds the limit of " + std::to_string(limit_bytes) + " bytes.");
    }
  }
  execution::Executor executor(*plan);
  TensorOutputs places(*program, limit_bytes);
  ONNXIFI_RETURN_IF_ERROR(executor.Run({}, places));
  return places.Take();
}

}  // namespace onnxifi::plugin
