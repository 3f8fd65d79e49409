// SPDX-License-Identifier: Apache-2.0
//
// FoldConstantSteps: each such step is built, bound and run by itself, in order, so that chains
// fold whole.

#include "backends/core/plugin/constant_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/core/program/body_exprs.h"

namespace onnxifi::plugin {
namespace {

using base::Status;
using program::Buffer;
using program::BufferId;
using program::Dim;
using program::Program;
using program::Step;
using program::View;
using tensor::Tensor;

// Results of so many bytes are worth keeping, whatever they are made of.
constexpr int64_t kFewBytes = int64_t{1} << 16;
// Results of so many bytes are, where each element is made of so many others: the matrix of a
// Fourier transform, positions and weights.
constexpr int64_t kMaxComputedBytes = int64_t{1} << 26;
constexpr int kManyOperations = 8;
// Elements may become wider by this: bytes to float32.
constexpr int64_t kMaxWidening = 4;
// So many elements of a byte each may come out of one, where weights of few bits are unpacked.
constexpr int64_t kMaxUnpacking = 4;
// All results that are larger than what they are made of, together; what goes beyond is computed in
// each run. 4-bit weights as float32 take eight times their memory.
constexpr int64_t kMaxGrownBytes = int64_t{4} << 30;

bool AreNumbers(std::span<const Dim> dims) {
  return std::ranges::all_of(dims, [](const Dim& dim) { return dim.is_constant(); });
}

bool HasNumbers(const View& view) {
  return view.offset.is_constant() && AreNumbers(view.strides) &&
         std::ranges::all_of(view.guards, [](const program::Guard& guard) {
           return guard.offset.is_constant() && guard.extent.is_constant() &&
                  AreNumbers(guard.coefficients);
         });
}

// Whether the expressions have the same value in every run.
bool IsFixed(const Program& program, const Step& step) {
  return std::ranges::none_of(
      Reachable(program.exprs, program::BodyExprs(step)), [&](program::ExprId id) {
        const program::ExprOp op = program.exprs[id].op;
        return op == program::ExprOp::kDim || op == program::ExprOp::kRandom;
      });
}

int CountOperations(const Program& program, const Step& step) {
  int operations = 0;
  for (const program::ExprId id : Reachable(program.exprs, program::BodyExprs(step))) {
    const program::ExprNode& node = program.exprs[id];
    if (node.op != program::ExprOp::kLoad && !node.operands.empty()) ++operations;
  }
  return operations;
}

tensor::Extents NumbersOf(const program::Shape& shape) {
  tensor::Extents extents;
  for (const Dim& dim : shape) extents.push_back(dim.constant());
  return extents;
}

class Folder {
 public:
  Folder(Program& program, device::Device& device, int64_t max_bytes)
      : program_(program),
        device_(device),
        max_bytes_(max_bytes),
        writer_counts_(program.buffers.size(), 0) {
    for (const Step& step : program.steps) {
      for (const View& write : step.writes) {
        if (write.buffer != program::kNoBuffer) ++writer_counts_[write.buffer];
      }
    }
    // A caller's memory is written in each run.
    for (const program::Port& port : program.outputs) ++writer_counts_[port.buffer];
  }

  Status Run() {
    std::vector<Step> kept;
    for (Step& step : program_.steps) {
      if (!IsFoldable(step)) {
        kept.push_back(std::move(step));
        continue;
      }
      ONNXIFI_RETURN_IF_ERROR(FoldStep(step));
    }
    program_.steps = std::move(kept);
    return base::Ok();
  }

 private:
  // Counts what it answers true for.
  bool IsFoldable(const Step& step) {
    const bool is_loop_nest = step.As<program::Map>() != nullptr ||
                              step.As<program::Reduce>() != nullptr ||
                              step.As<program::Row>() != nullptr;
    if (!is_loop_nest || !AreNumbers(step.domain) || !IsFixed(program_, step)) return false;
    int64_t read_bytes = 0;
    for (const View& read : step.reads) {
      if (read.buffer == program::kNoBuffer || !HasNumbers(read)) return false;
      const Buffer& buffer = program_.buffers[read.buffer];
      if (buffer.kind != Buffer::Kind::kConstant) return false;
      // Packed elements count as the bytes that they may become.
      const Tensor& constant = program_.constants[buffer.index];
      read_bytes += std::max(constant.size_bytes(), constant.element_count());
    }
    int64_t written_bytes = 0, written_elements = 0;
    for (const View& write : step.writes) {
      if (write.buffer == program::kNoBuffer) return false;
      const Buffer& buffer = program_.buffers[write.buffer];
      // What several steps write together would have to fold together.
      if (buffer.kind != Buffer::Kind::kTemporary || writer_counts_[write.buffer] != 1 ||
          !HasNumbers(write) || !AreNumbers(buffer.shape)) {
        return false;
      }
      const int64_t elements = tensor::ElementCount(NumbersOf(buffer.shape));
      const int64_t unpacking = tensor::BitWidth(buffer.type) == 8 ? kMaxUnpacking : 1;
      written_bytes += tensor::SizeBytes(buffer.type, elements);
      written_elements = std::max(written_elements, elements / unpacking);
    }
    if (written_bytes > max_bytes_) return false;
    const bool is_costly =
        written_bytes <= kMaxComputedBytes && CountOperations(program_, step) >= kManyOperations;
    if (!is_costly && written_elements > read_bytes + kFewBytes) return false;
    if (!is_costly && written_bytes > std::max(kFewBytes, kMaxWidening * read_bytes)) return false;
    if (written_bytes <= read_bytes) return true;
    if (written_bytes > kMaxGrownBytes - grown_bytes_) return false;
    grown_bytes_ += written_bytes;
    return true;
  }

  Status FoldStep(const Step& step) {
    ONNXIFI_ASSIGN_OR_RETURN(const device::Selection selection, device_.Select({program_, step}));
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Kernel> kernel,
                             device_.Build(*selection.recipe));
    std::vector<std::byte*> constants(program_.buffers.size(), nullptr);
    for (const View& read : step.reads) {
      // Nothing is written to it.
      constants[read.buffer] =
          const_cast<std::byte*>(program_.constants[program_.buffers[read.buffer].index].data());
    }
    const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
    const device::BoundStep bound = device::Bind(program_, step, dims);
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::BoundKernel> ready,
                             kernel->Bind(bound, constants));
    std::vector<std::byte*> addresses = constants;
    std::vector<std::pair<BufferId, Tensor>> results;
    for (const View& write : step.writes) {
      const Buffer& buffer = program_.buffers[write.buffer];
      ONNXIFI_ASSIGN_OR_RETURN(Tensor result,
                               Tensor::Allocate(buffer.type, NumbersOf(buffer.shape)));
      addresses[write.buffer] = result.mutable_data();
      results.emplace_back(write.buffer, std::move(result));
    }
    ONNXIFI_RETURN_IF_ERROR(ready->Run(addresses));
    for (auto& [buffer, result] : results) {
      program_.buffers[buffer].kind = Buffer::Kind::kConstant;
      program_.buffers[buffer].index = static_cast<int>(program_.constants.size());
      program_.constants.push_back(std::move(result));
    }
    return base::Ok();
  }

  Program& program_;
  device::Device& device_;
  const int64_t max_bytes_;
  std::vector<int> writer_counts_;  // by buffer
  int64_t grown_bytes_ = 0;
};

}  // namespace

Status FoldConstantSteps(Program& program, device::Device& device, int64_t max_bytes) {
  return Folder(program, device, max_bytes).Run();
}

}  // namespace onnxifi::plugin
