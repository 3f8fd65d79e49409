// SPDX-License-Identifier: Apache-2.0
//
// Kernel and BoundKernel: a kernel is asked to work in the way of its device and recipe alone.

#include "backends/core/device/device.h"

namespace onnxifi::device {

base::Result<std::unique_ptr<BoundKernel>> Kernel::BindFused(std::span<const BoundStep> steps,
                                                             Addresses /*constants*/) {
  return base::Status(base::Code::kInternalError, "A kernel for one step is bound to " +
                                                      std::to_string(steps.size()) + " steps.");
}

base::Status BoundKernel::Run(Addresses /*addresses*/) const {
  return base::Status(base::Code::kInternalError,
                      "A kernel of a device with queues is run without one.");
}

base::Status BoundKernel::Enqueue(Queue& /*queue*/, Addresses /*addresses*/) const {
  return base::Status(base::Code::kInternalError,
                      "A kernel of a device without queues is put into one.");
}

base::Status Queue::UploadCopy(std::span<const std::byte> from_host, std::byte* to) {
  auto copy = std::make_shared<const std::vector<std::byte>>(from_host.begin(), from_host.end());
  ONNXIFI_RETURN_IF_ERROR(Upload(copy->data(), to, std::ssize(*copy)));
  Keep(std::move(copy));
  return base::Ok();
}

}  // namespace onnxifi::device
