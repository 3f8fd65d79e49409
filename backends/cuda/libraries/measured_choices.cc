// SPDX-License-Identifier: Apache-2.0
//
// MeasuredChoices: the shortest of a few runs counts, so that what others put into the device's
// stream meanwhile does not.

#include "backends/cuda/libraries/measured_choices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/device/timed_queue.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using device::BoundView;

constexpr int kRounds = 5;

// Memory for every buffer of a step that is no constant, filled with floats and numbers that are
// small and none of them 0, which a device may compute faster.
class Operands {
 public:
  static Result<Operands> Allocate(const device::BoundStep& step, device::Addresses constants,
                                   device::Memory& memory, device::Queue& queue) {
    Operands operands;
    operands.addresses_.assign(constants.begin(), constants.end());
    operands.addresses_.resize(step.program->buffers.size());
    for (const auto* const views : {&step.reads, &step.writes}) {
      for (const BoundView& view : *views) {
        ONNXIFI_RETURN_IF_ERROR(operands.Add(view, memory, queue));
      }
    }
    return operands;
  }
  device::Addresses addresses() const { return addresses_; }

 private:
  Status Add(const BoundView& view, device::Memory& memory, device::Queue& queue) {
    std::byte*& address = addresses_[static_cast<size_t>(view.buffer)];
    if (address != nullptr) return base::Ok();
    if (view.buffer_bytes < 0) {
      return Status(Code::kUnsupportedOperator, "The size of an operand is not known.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held,
                             memory.Allocate(std::max<int64_t>(view.buffer_bytes, 1)));
    address = held->data();
    held_.push_back(std::move(held));
    for (int64_t at = 0; at < view.buffer_bytes; at += static_cast<int64_t>(kFill.size())) {
      const int64_t bytes = std::min(static_cast<int64_t>(kFill.size()), view.buffer_bytes - at);
      ONNXIFI_RETURN_IF_ERROR(queue.Upload(kFill.data(), address + at, bytes));
    }
    return base::Ok();
  }

  static constexpr std::array<std::byte, 1 << 16> kFill = [] {
    std::array<std::byte, 1 << 16> fill{};
    fill.fill(std::byte{0x3c});
    return fill;
  }();

  std::vector<std::byte*> addresses_;
  std::vector<std::unique_ptr<device::Allocation>> held_;
};

std::string Text(const BoundView& view) {
  std::string text = std::to_string(static_cast<int>(view.type)) + "@" +
                     std::to_string(view.offset) + tensor::ToString(view.strides);
  for (const device::BoundGuard& guard : view.guards) {
    text += "?" + tensor::ToString(guard.coefficients) + std::to_string(guard.offset) + "<" +
            std::to_string(guard.extent);
  }
  return text;
}

// Expressions in a pool of their own, where a node's number follows from them alone.
class OwnExpressions {
 public:
  explicit OwnExpressions(const program::ExprPool& from) : from_(from) {}

  std::string Text(program::ExprId root) {
    return ToString(own_, root == program::kNoExpr ? root : Copied(root)) + "\n";
  }

 private:
  // Depth of the expression costs no stack.
  program::ExprId Copied(program::ExprId root) {
    std::vector<program::ExprId> pending = {root};
    while (!pending.empty()) {
      const program::ExprId id = pending.back();
      program::ExprNode node = from_[id];
      const auto missing = std::ranges::find_if(
          node.operands, [&](program::ExprId operand) { return !copies_.contains(operand); });
      if (missing != node.operands.end()) {
        pending.push_back(*missing);
        continue;
      }
      pending.pop_back();
      for (program::ExprId& operand : node.operands) operand = copies_.at(operand);
      copies_.emplace(id, own_.Add(std::move(node)));
    }
    return copies_.at(root);
  }

  const program::ExprPool& from_;
  program::ExprPool own_;
  std::unordered_map<program::ExprId, program::ExprId> copies_;
};

}  // namespace

std::string DescribeStep(const device::BoundStep& step) {
  const auto& contract = *step.step->As<program::Contract>();
  std::string text = "form " + std::to_string(static_cast<int>(contract.form)) + " axes " +
                     std::to_string(contract.batch_axes) + " " + std::to_string(contract.m_axes) +
                     " group " + std::to_string(contract.group) + " precision " +
                     std::to_string(static_cast<int>(step.program->precision)) +
                     (step.program->has_fast_algorithms ? " fast" : "") + " domain " +
                     tensor::ToString(step.domain) + " inner";
  for (const program::Dim& dim : contract.inner) text += " " + std::to_string(step.Number(dim));
  text += " image";
  for (const program::Dim& dim : contract.a_spatial) text += " " + std::to_string(step.Number(dim));
  text += " pads";
  for (const program::Dim& dim : contract.pads_begin) {
    text += " " + std::to_string(step.Number(dim));
  }
  text += " strides " + tensor::ToString(contract.strides) + " dilations " +
          tensor::ToString(contract.dilations) + "\n";
  for (size_t read = 0; read < step.reads.size(); ++read) {
    const program::Buffer& buffer =
        step.program->buffers[static_cast<size_t>(step.reads[read].buffer)];
    text += Text(step.reads[read]);
    text += buffer.kind == program::Buffer::Kind::kConstant ? " constant\n" : "\n";
  }
  for (const BoundView& view : step.writes) text += "to " + Text(view) + "\n";
  OwnExpressions expressions(step.program->exprs);
  for (const program::ExprId root : {contract.a_prologue, contract.b_prologue}) {
    text += expressions.Text(root);
  }
  for (const program::ExprId root : contract.roots) text += expressions.Text(root);
  return text;
}

const MeasuredChoices::Choice* MeasuredChoices::FindMeasured(std::string_view key) const {
  const auto known = measured_.find(key);
  if (known == measured_.end()) return nullptr;
  known->second.asked = ++questions_;
  return &known->second.choice;
}

void MeasuredChoices::Keep(std::string_view key, const Choice& choice) const {
  if (measured_.size() >= most_answers_ && !measured_.contains(key)) {
    measured_.erase(std::ranges::min_element(
        measured_, {}, [](const auto& answer) { return answer.second.asked; }));
  }
  measured_.insert_or_assign(std::string(key), Answer{choice, ++questions_});
}

std::optional<MeasuredChoices::Choice> MeasuredChoices::Find(std::string_view key) const {
  {
    const std::lock_guard lock(measuring_);
    if (const Choice* const known = FindMeasured(key)) return *known;
  }
  const std::optional<std::vector<std::byte>> kept = files_.Find(key);
  if (!kept) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(kept->data()), kept->size());
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return Choice{std::string(text.substr(0, end)), std::string(text.substr(end + 1))};
}

Result<MeasuredChoices::Choice> MeasuredChoices::Measure(std::string_view key,
                                                         const device::BoundStep& step,
                                                         device::Addresses constants,
                                                         device::Memory& memory,
                                                         std::span<const Runner> runners) const {
  using Clock = device::TimedQueue::Clock;
  const std::lock_guard lock(measuring_);
  const Choice* const known = FindMeasured(key);
  if (known != nullptr && std::ranges::find(runners, known->name, &Runner::name) != runners.end()) {
    return *known;
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Queue> queue, host_.NewQueue());
  auto* const timed = dynamic_cast<device::TimedQueue*>(queue.get());
  const Status no_times(Code::kUnsupportedOperator, "The device tells no times.");
  if (timed == nullptr) return base::Status(no_times);
  ONNXIFI_ASSIGN_OR_RETURN(const Operands operands,
                           Operands::Allocate(step, constants, memory, *queue));
  // What is done for the first time only is not timed.
  for (const Runner& runner : runners) {
    ONNXIFI_RETURN_IF_ERROR(runner.kernel->Enqueue(*queue, operands.addresses()));
  }
  ONNXIFI_ASSIGN_OR_RETURN(const bool tells_times, timed->StartTiming());
  if (!tells_times) return base::Status(no_times);
  for (int round = 0; round < kRounds; ++round) {
    for (const Runner& runner : runners) {
      timed->OpenInterval();
      Status put = runner.kernel->Enqueue(*queue, operands.addresses());
      timed->CloseInterval();
      ONNXIFI_RETURN_IF_ERROR(std::move(put));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(const auto intervals, timed->TakeIntervals());
  std::vector<Clock::duration> shortest(runners.size(), Clock::duration::max());
  for (size_t k = 0; k < intervals.size(); ++k) {
    Clock::duration& of_runner = shortest[k % runners.size()];
    of_runner = std::min(of_runner, intervals[k].duration);
  }
  Choice choice;
  choice.name =
      runners[static_cast<size_t>(std::ranges::min_element(shortest) - shortest.begin())].name;
  for (size_t k = 0; k < runners.size(); ++k) {
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), " %.4f ms",
                  std::chrono::duration<double, std::milli>(shortest[k]).count());
    choice.times += (k == 0 ? "" : ", ") + runners[k].name + time.data();
  }
  const std::string kept = choice.name + "\n" + choice.times;
  files_.Store(key, std::as_bytes(std::span(kept)));
  Keep(key, choice);
  return choice;
}

}  // namespace onnxifi::cuda
