// SPDX-License-Identifier: Apache-2.0
//
// Graph: computes at once, then sleeps until the run's time is over.

#include "backends/mock/graph.h"

#include <string>
#include <thread>

namespace onnxifi::mock {

using base::Code;
using base::Status;

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
  const int64_t number = ++state_.runs;
  if (settings_.vanishes_at_run > 0 && number >= settings_.vanishes_at_run) {
    state_.is_gone = true;
    return state_.CheckPresent();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::shared_ptr<abi::Event> computed,
                           inner_->Run(binding, /*input=*/nullptr));
  ONNXIFI_RETURN_IF_ERROR(computed->Wait());
  if (run_time_.count() > 0) std::this_thread::sleep_until(end);
  if (settings_.fails_at_run > 0 && number >= settings_.fails_at_run) {
    return {Code::kInternalError,
            "Run " + std::to_string(number) + " of the mock device fails, as its settings say."};
  }
  ONNXIFI_ASSIGN_OR_RETURN(outputs.shapes, computed->OutputShapes());
  ONNXIFI_ASSIGN_OR_RETURN(outputs.kept, computed->OutputValues());
  return base::Ok();
}

void Graph::Close() {
  queue_->Drain();
  inner_->Close();
}

}  // namespace onnxifi::mock
