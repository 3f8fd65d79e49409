// SPDX-License-Identifier: Apache-2.0
//
// BoundKernel: a kernel is asked to work in the way of its device alone.

#include "backends/core/device/device.h"

namespace onnxifi::device {

base::Status BoundKernel::Run(Addresses /*addresses*/) const {
  return base::Status(base::Code::kInternalError,
                      "A kernel of a device with queues is run without one.");
}

base::Status BoundKernel::Enqueue(Queue& /*queue*/, Addresses /*addresses*/) const {
  return base::Status(base::Code::kInternalError,
                      "A kernel of a device without queues is put into one.");
}

}  // namespace onnxifi::device
