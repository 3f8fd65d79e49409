// SPDX-License-Identifier: Apache-2.0
//
// What a graph tells of itself.

#include "backends/core/plugin/graph_report.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "backends/core/program/cost.h"
#include "backends/core/program/host_function.h"

namespace onnxifi::plugin {
namespace {

// Counts the steps of a program and of the bodies in it, each under its family.
class FamilyCounter {
 public:
  explicit FamilyCounter(abi::GraphCounters& counters) : counters_(counters) {}

  void Count(const program::Program& program) {
    for (const program::Step& step : program.steps) std::visit(*this, step.body);
  }

  void operator()(const program::Map&) { ++counters_.map_steps; }
  void operator()(const program::Reduce&) { ++counters_.reduce_steps; }
  void operator()(const program::Row&) { ++counters_.row_steps; }
  void operator()(const program::Scan&) { ++counters_.scan_steps; }
  void operator()(const program::Contract&) { ++counters_.contract_steps; }
  void operator()(const program::Window&) { ++counters_.window_steps; }
  void operator()(const program::Attention&) { ++counters_.attention_steps; }
  void operator()(const program::Recurrent&) { ++counters_.recurrent_steps; }
  void operator()(const program::Index&) { ++counters_.index_steps; }
  // Numbers that execution reads are no work of their own.
  void operator()(const program::Cut&) {}
  void operator()(const program::Host&) { ++counters_.host_steps; }
  void operator()(const program::Control& control) {
    ++counters_.control_steps;
    for (const std::unique_ptr<program::Program>& body : control.bodies) Count(*body);
  }

 private:
  abi::GraphCounters& counters_;
};

}  // namespace

void CountSteps(const program::Program& program, abi::GraphCounters& counters) {
  counters.map_steps = counters.reduce_steps = counters.row_steps = counters.scan_steps = 0;
  counters.contract_steps = counters.window_steps = counters.index_steps = 0;
  counters.control_steps = 0;
  counters.host_steps = 0;
  counters.attention_steps = counters.recurrent_steps = 0;
  FamilyCounter(counters).Count(program);
}

std::vector<abi::StepRecord> DescribeSteps(const program::Program& program, const plan::Plan& plan,
                                           const execution::RunProfile& profile) {
  std::vector<abi::StepRecord> records;
  for (const execution::RunProfile::Step& timing : profile.steps) {
    const program::Step& step = program.steps[timing.step];
    const plan::Segment& segment = plan.segments()[timing.segment];
    const plan::SegmentBinding& binding = *profile.bindings[timing.segment];
    const bool is_boundary = timing.step == segment.end_step;
    const size_t position = timing.step - segment.first_step;
    abi::StepRecord& record = records.emplace_back();
    if (step.node >= 0) record.node_index = step.node;
    record.family = program::FamilyName(step);
    // What ends a segment is done by no device.
    record.implementation = is_boundary ? "execution" : plan.implementation(timing.step);
    if (!is_boundary) record.detail = binding.kernels[position]->Detail();
    if (const auto* host = step.As<program::Host>()) {
      record.detail = program::Name(*host->function);
    }
    for (const program::View& write : step.writes) {
      if (write.buffer == program::kNoBuffer) continue;
      record.data_type = static_cast<onnxEnum>(program.buffers[write.buffer].element_type());
      break;
    }
    const int count = plan.step_count(timing.step);
    record.extents = (is_boundary ? binding.boundary : binding.steps[position + count - 1]).domain;
    for (const base::Status& reason : plan.rejected(timing.step)) {
      record.rejected.push_back(reason.Text());
    }
    record.start_ns = static_cast<uint64_t>(timing.start_ns);
    record.duration_ns = static_cast<uint64_t>(timing.duration_ns);
    // What fused steps pass to each other is neither written nor read.
    int64_t intermediate_bytes = 0;
    for (int k = 0; k < count; ++k) {
      const program::StepCost cost =
          program::CostOf(program, program.steps[timing.step + k], binding.dims);
      record.flops += static_cast<uint64_t>(cost.flops);
      record.read_bytes +=
          static_cast<uint64_t>(std::max<int64_t>(0, cost.read_bytes - intermediate_bytes));
      intermediate_bytes = cost.written_bytes;
    }
    record.written_bytes = static_cast<uint64_t>(intermediate_bytes);
    if (!is_boundary) record.precision = static_cast<uint32_t>(plan.precision(timing.step));
  }
  return records;
}

}  // namespace onnxifi::plugin
