// SPDX-License-Identifier: Apache-2.0
//
// Transfer: moving bytes to, from and within a device's memory, for code that runs on any device:
// through the run's queue, or plainly where there is none because the memory is the host's.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_TRANSFER_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_TRANSFER_H_

#include <cstring>

#include "backends/core/device/device.h"

namespace onnxifi::device {

// As Queue's functions; `queue` may be null. Nothing for no bytes.
inline base::Status Upload(Queue* queue, const std::byte* from_host, std::byte* to,
                           int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  if (queue != nullptr) return queue->Upload(from_host, to, size_bytes);
  std::memcpy(to, from_host, static_cast<size_t>(size_bytes));
  return base::Ok();
}

inline base::Status Copy(Queue* queue, const std::byte* from, std::byte* to, int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  if (queue != nullptr) return queue->Copy(from, to, size_bytes);
  std::memcpy(to, from, static_cast<size_t>(size_bytes));
  return base::Ok();
}

inline base::Status Download(Queue* queue, const std::byte* from, std::byte* to_host,
                             int64_t size_bytes) {
  if (size_bytes == 0) return base::Ok();
  if (queue != nullptr) return queue->Download(from, to_host, size_bytes);
  std::memcpy(to_host, from, static_cast<size_t>(size_bytes));
  return base::Ok();
}

inline base::Status Finish(Queue* queue) { return queue == nullptr ? base::Ok() : queue->Finish(); }

// What lies at `from` once everything before is done: waits.
inline base::Status Read(Queue* queue, const std::byte* from, std::byte* to_host,
                         int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(Download(queue, from, to_host, size_bytes));
  return Finish(queue);
}

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_TRANSFER_H_
