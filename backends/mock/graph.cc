// SPDX-License-Identifier: Apache-2.0
//
// Graph: waits at the gate, computes at once, then sleeps until the run's time is over, or sets the
// clock forward.

#include "backends/mock/graph.h"

#include <string>
#include <thread>

namespace onnxifi::mock {

using base::Code;
using base::Status;

namespace {

// One row more than there is, or another type.
void Misstate(bool of_shape, bool of_type, std::vector<abi::TensorShape>& shapes) {
  if (shapes.empty()) return;
  abi::TensorShape& first = shapes.front();
  if (of_shape && !first.extents.empty()) first.extents.front() += 1;
  if (of_type) {
    first.data_type = first.data_type == ONNXIFI_DATATYPE_FLOAT64 ? ONNXIFI_DATATYPE_FLOAT32
                                                                  : ONNXIFI_DATATYPE_FLOAT64;
  }
}

Status PassGate(SharedNumber& gate, int64_t opens_at) {
  constexpr std::chrono::seconds kMaxTime(30);
  const auto deadline = std::chrono::steady_clock::now() + kMaxTime;
  gate.Add(1);
  while (gate.Get() < opens_at) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return {Code::kInternalError, "The gate of the mock device, which opens at " +
                                        std::to_string(opens_at) + ", was at " +
                                        std::to_string(gate.Get()) + " after 30 seconds."};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return base::Ok();
}

}  // namespace

base::Result<std::vector<abi::TensorShape>> Graph::InferOutputShapes(
    std::span<const abi::TensorDescriptor> inputs) {
  ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
  ONNXIFI_ASSIGN_OR_RETURN(std::vector<abi::TensorShape> shapes, inner_->InferOutputShapes(inputs));
  Misstate(settings_.misstates.contains("shapes"), settings_.misstates.contains("types"), shapes);
  return shapes;
}

base::Result<std::shared_ptr<const abi::Binding>> Graph::Bind(abi::GraphTensors tensors) {
  ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
  return inner_->Bind(std::move(tensors));
}

base::Result<std::shared_ptr<abi::Event>> Graph::Run(std::shared_ptr<const abi::Binding> binding,
                                                     std::shared_ptr<abi::Event> input) {
  ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
  // Events of this backend are local: the kit makes no others.
  auto local = std::static_pointer_cast<abi::LocalEvent>(std::move(input));
  return std::shared_ptr<abi::Event>(
      queue_->Add([this, binding](abi::RunOutputs& outputs) { return Work(binding, outputs); },
                  std::move(local)));
}

Status Graph::Work(const std::shared_ptr<const abi::Binding>& binding, abi::RunOutputs& outputs) {
  const std::lock_guard lock(state_.device_mutex);
  const auto end = std::chrono::steady_clock::now() + run_time_;
  ONNXIFI_RETURN_IF_ERROR(state_.CheckPresent());
  if (settings_.gate != nullptr) {
    ONNXIFI_RETURN_IF_ERROR(PassGate(*settings_.gate, settings_.gate_opens_at));
  }
  const int64_t number = ++state_.runs;
  if (settings_.vanishes_at_run > 0 && number >= settings_.vanishes_at_run) {
    state_.is_gone = true;
    return state_.CheckPresent();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<abi::Event> computed,
                           inner_->Run(binding, /*input=*/nullptr));
  ONNXIFI_RETURN_IF_ERROR(computed->Wait());
  if (settings_.clock != nullptr) {
    settings_.clock->Add(run_time_.count());
  } else if (run_time_.count() > 0) {
    std::this_thread::sleep_until(end);
  }
  if (settings_.fails_at_run > 0 && number >= settings_.fails_at_run) {
    return {Code::kInternalError,
            "Run " + std::to_string(number) + " of the mock device fails, as its settings say."};
  }
  ONNXIFI_ASSIGN_OR_RETURN(outputs.shapes, computed->OutputShapes());
  ONNXIFI_ASSIGN_OR_RETURN(outputs.kept, computed->OutputValues());
  const bool misstates_shapes = settings_.misstates.contains("run shapes");
  const bool misstates_types = settings_.misstates.contains("run types");
  if (outputs.shapes.empty() && (misstates_shapes || misstates_types)) {
    for (const abi::TensorDescriptor& bound : binding->tensors().outputs) {
      outputs.shapes.push_back(
          {bound.name, bound.data_type, true, {bound.shape.begin(), bound.shape.end()}});
    }
  }
  Misstate(misstates_shapes, misstates_types, outputs.shapes);
  if (settings_.misstates.contains("kept")) outputs.kept.clear();
  return base::Ok();
}

void Graph::Close() {
  queue_->Drain();
  inner_->Close();
}

}  // namespace onnxifi::mock
