// SPDX-License-Identifier: Apache-2.0
//
// Memory: buffers of the device, kept in a pool when they are given back. Addresses come from
// core/device/address_space.h.

#ifndef ONNXIFI_BACKENDS_OPENCL_MEMORY_H_
#define ONNXIFI_BACKENDS_OPENCL_MEMORY_H_

#include <map>
#include <memory>
#include <mutex>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

// A buffer and the addresses that stand for it.
struct Block {
  Handle<cl_mem> buffer;
  device::AddressRange range;
};

class Memory final : public device::Memory {
 public:
  // `runtime` outlives the memory, which outlives all allocations.
  explicit Memory(Runtime& runtime) : runtime_(runtime) {}

  base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
  base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

  // A buffer of the caller's, which stays as long as the allocation; addresses as for others.
  // INVALID_MEMORY_LOCATION if it is no buffer, of another context, or smaller than `size_bytes`;
  // resource codes. `forbidden`: flags of cl_mem_flags that it must not have been made with.
  base::Result<std::unique_ptr<device::Allocation>> Import(cl_mem buffer, int64_t size_bytes,
                                                           cl_mem_flags forbidden);

  using Place = device::AddressMap<cl_mem>::Place;
  // The buffer that an address lies in, and where; null for the null address. INTERNAL_ERROR for
  // an address that this memory never gave.
  base::Result<Place> Find(const std::byte* address) const;

  // Pieces of memory asked of the driver so far, for tests.
  int64_t buffer_count() const { return buffer_count_; }

 private:
  friend class PooledAllocation;
  friend class ImportedAllocation;

  base::Result<std::unique_ptr<Block>> NewBlock(int64_t size_bytes);
  base::Status CheckSize(int64_t size_bytes) const;
  void GiveBack(std::unique_ptr<Block> block);
  void Drop(std::unique_ptr<Block> block);

  Runtime& runtime_;
  device::AddressMap<cl_mem> places_;
  std::mutex mutex_;
  std::multimap<int64_t, std::unique_ptr<Block>> idle_;  // by size
  int64_t idle_bytes_ = 0;
  int64_t buffer_count_ = 0;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_MEMORY_H_
