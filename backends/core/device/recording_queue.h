// SPDX-License-Identifier: Apache-2.0
//
// RecordingQueue: what a queue has besides Queue if it can record what is put in and put it in
// again as a whole. Executors ask for it and record segments that come again.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_RECORDING_QUEUE_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_RECORDING_QUEUE_H_

#include <memory>

#include "backends/core/base/result.h"

namespace onnxifi::device {

// Work by the addresses that it uses. The memory there outlives it, and so do the kernels unless
// the queue was told to keep them (Queue::Keep). Goes on any thread, before its device.
class Recording {
 public:
  virtual ~Recording() = default;
};

class RecordingQueue {
 public:
  virtual ~RecordingQueue() = default;

  // What is put in from now on is recorded and not done: kernels and copies within the device.
  // Uploads, downloads and Finish have no place in a recording: INTERNAL_ERROR.
  virtual base::Status BeginRecording() = 0;
  // Ends what BeginRecording began, also where something that was put in failed. Nothing of it is
  // in the queue.
  virtual base::Result<std::shared_ptr<const Recording>> EndRecording() = 0;
  // Puts in what this queue or another of the device recorded, and keeps it until it is done. Any
  // number of times, also at once. If it fails nothing is put in.
  virtual base::Status Replay(std::shared_ptr<const Recording> recording) = 0;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_RECORDING_QUEUE_H_
