// SPDX-License-Identifier: Apache-2.0
//
// Copies: a queue's copies to and from the host: pageable memory through staging, memory that the
// driver knows to be pinned as it is.

#ifndef ONNXIFI_BACKENDS_CUDA_COPIES_H_
#define ONNXIFI_BACKENDS_CUDA_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/core/device/staging.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// One thread at a time.
class Copies final : private device::StagingDriver {
 public:
  // Both outlive it.
  Copies(const Runtime& runtime, device::StagingPool& pool)
      : runtime_(runtime), staging_(*this, pool) {}

  base::Status ToDevice(const std::byte* from_host, std::byte* to, int64_t size_bytes);
  // Pageable memory is written at the latest when `staging().CopyOut()` returns.
  base::Status ToHost(const std::byte* from, std::byte* to_host, int64_t size_bytes);
  device::Staging& staging() { return staging_; }

 private:
  std::unique_ptr<device::StagingChunk> MakeChunk(size_t size_bytes) override;
  base::Status Upload(const std::byte* from_host, std::byte* to, size_t size_bytes) override;
  base::Status Download(const std::byte* from, std::byte* to_host, size_t size_bytes) override;
  base::Status Mark(device::StagingChunk& chunk) override;
  base::Result<bool> IsDone(device::StagingChunk& chunk) override;
  base::Status Wait(device::StagingChunk& chunk) override;
  bool IsPinned(const std::byte* host, int64_t size_bytes) const;

  const Runtime& runtime_;
  device::Staging staging_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_COPIES_H_
