// SPDX-License-Identifier: Apache-2.0
//
// Memory: buffers of the device, from core/device/memory_pool.h or the caller's, under addresses
// from core/device/address_space.h.

#ifndef ONNXIFI_BACKENDS_OPENCL_MEMORY_H_
#define ONNXIFI_BACKENDS_OPENCL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"
#include "backends/core/device/memory_pool.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

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

  // A buffer over memory that the host uses, too. UNSUPPORTED_MEMORY_TYPE where the device has none
  // such; NO_DEVICE_MEMORY, resource codes. Both are given to others when the owner goes.
  struct Shared {
    std::byte* address = nullptr;
    cl_mem buffer = nullptr;
    std::shared_ptr<const void> owner;
  };
  base::Result<Shared> AllocateShared(int64_t size_bytes);

  using Location = device::AddressMap<cl_mem>::Location;
  // The buffer that an address lies in, and where; null for the null address. INTERNAL_ERROR for
  // an address that this memory never gave.
  base::Result<Location> Find(const std::byte* address) const;

  // Pieces of memory asked of the driver so far, for tests.
  int64_t buffer_count() const { return pool_.made_count(); }

 private:
  base::Status CheckSize(int64_t size_bytes, int64_t available_bytes) const;
  // As the device limits one allocation.
  int64_t LargestBytes() const;
  // Whether the system has as much; takes as long as a small run.
  base::Status CheckSystem(int64_t size_bytes) const;
  class SharedBlock;

  base::Result<std::unique_ptr<device::Allocation>> NewBuffer(int64_t size_bytes);
  base::Result<std::unique_ptr<device::Allocation>> NewShared(int64_t size_bytes);

  Runtime& runtime_;
  device::AddressMap<cl_mem> places_;
  std::mutex shared_mutex_;
  // Of all blocks, by their address for the host. Guarded by shared_mutex_.
  std::map<const std::byte*, cl_mem> shared_buffers_;
  device::MemoryPool pool_{[this](int64_t size_bytes) { return NewBuffer(size_bytes); }};
  device::MemoryPool shared_pool_{[this](int64_t size_bytes) { return NewShared(size_bytes); }};
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_MEMORY_H_
