// SPDX-License-Identifier: Apache-2.0
//
// Memory: sizes are rounded to classes an eighth apart at most, so that a buffer that is given back
// fits what is asked for next.

#include "backends/opencl/memory.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "backends/core/reference/host_memory.h"

namespace onnxifi::opencl {
namespace {

using base::Code;
using base::Result;
using base::Status;

// What the pool keeps at most beyond what is in use.
constexpr int64_t kMostIdleBytes = int64_t{1} << 30;
// A multiple of any element and of what packed elements are written by.
constexpr int64_t kLeastBytes = 256;

int64_t RoundToClass(int64_t size_bytes) {
  const int64_t size = std::max(size_bytes, kLeastBytes);
  const int64_t step =
      std::max(kLeastBytes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size)) / 8));
  return (size + step - 1) / step * step;
}

}  // namespace

class PooledAllocation final : public device::Allocation {
 public:
  PooledAllocation(Memory& memory, std::unique_ptr<Block> block)
      : memory_(memory), block_(std::move(block)) {}
  ~PooledAllocation() override { memory_.GiveBack(std::move(block_)); }
  PooledAllocation(const PooledAllocation&) = delete;
  PooledAllocation& operator=(const PooledAllocation&) = delete;

  std::byte* data() override { return block_->range.begin(); }
  int64_t size_bytes() const override { return block_->range.size_bytes(); }
  cl_mem buffer() const { return block_->buffer.get(); }

 private:
  Memory& memory_;
  std::unique_ptr<Block> block_;
};

// Forgets its addresses and lets go of the buffer.
class ImportedAllocation final : public device::Allocation {
 public:
  ImportedAllocation(Memory& memory, std::unique_ptr<Block> block)
      : memory_(memory), block_(std::move(block)) {}
  ~ImportedAllocation() override { memory_.Drop(std::move(block_)); }
  ImportedAllocation(const ImportedAllocation&) = delete;
  ImportedAllocation& operator=(const ImportedAllocation&) = delete;

  std::byte* data() override { return block_->range.begin(); }
  int64_t size_bytes() const override { return block_->range.size_bytes(); }

 private:
  Memory& memory_;
  std::unique_ptr<Block> block_;
};

Result<std::unique_ptr<device::Allocation>> Memory::Import(cl_mem buffer, int64_t size_bytes,
                                                           cl_mem_flags forbidden) {
  const auto unfit = [](std::string sentence) {
    return Status(Code::kInvalidMemoryLocation, std::move(sentence));
  };
  if (buffer == nullptr) return unfit("The OpenCL buffer is NULL.");
  const Api& api = runtime_.api();
  cl_mem_object_type type = 0;
  cl_context context = nullptr;
  cl_mem_flags flags = 0;
  size_t actual_bytes = 0;
  const auto ask = [&](cl_mem_info query, size_t size, void* value) {
    return api.GetMemObjectInfo(buffer, query, size, value, nullptr) == CL_SUCCESS;
  };
  if (!ask(CL_MEM_TYPE, sizeof(type), &type) ||
      !ask(CL_MEM_CONTEXT, sizeof(context), static_cast<void*>(&context)) ||
      !ask(CL_MEM_FLAGS, sizeof(flags), &flags) ||
      !ask(CL_MEM_SIZE, sizeof(actual_bytes), &actual_bytes)) {
    return unfit("The handle is no memory object of OpenCL.");
  }
  if (type != CL_MEM_OBJECT_BUFFER) return unfit("The memory object of OpenCL is no buffer.");
  if (context != runtime_.context()) {
    return unfit(runtime_.shares_context()
                     ? "The OpenCL buffer lies in another context than the backend's."
                     : "The OpenCL buffer lies in a context of the caller's; the backend was"
                       " initialised without ONNXIFI_BACKEND_OPENCL_CONTEXT and has its own.");
  }
  if (actual_bytes < static_cast<size_t>(size_bytes)) {
    return unfit("The OpenCL buffer has " + std::to_string(actual_bytes) +
                 " bytes; the tensor needs " + std::to_string(size_bytes) + ".");
  }
  if ((flags & forbidden) != 0) {
    return unfit((forbidden & CL_MEM_READ_ONLY) != 0
                     ? "The OpenCL buffer was made for kernels that only read it."
                     : "The OpenCL buffer was made for kernels that only write it.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(device::AddressRange range,
                           device::AddressRange::Reserve(static_cast<int64_t>(actual_bytes)));
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.RetainMemObject(buffer), "share a buffer"));
  auto block = std::make_unique<Block>(
      Block{Handle<cl_mem>(buffer, api.ReleaseMemObject), std::move(range)});
  places_.Insert(block->range, buffer);
  return std::unique_ptr<device::Allocation>(
      std::make_unique<ImportedAllocation>(*this, std::move(block)));
}

Status Memory::CheckSize(int64_t size_bytes) const {
  const DeviceInfo& info = runtime_.info();
  const auto largest =
      static_cast<int64_t>(std::min<uint64_t>(info.largest_allocation_bytes, INT64_MAX / 2));
  int64_t available = largest;
  // Drivers for processors hand out memory that the system does not have.
  if (info.is_unified) available = std::min(available, reference::AvailableBytes());
  if (size_bytes >= 0 && size_bytes <= available) return base::Ok();
  return Status(Code::kNoDeviceMemory, "An allocation of " + std::to_string(size_bytes) +
                                           " bytes exceeds the " + std::to_string(available) +
                                           " bytes that " + info.name + " has for one.");
}

Result<std::unique_ptr<Block>> Memory::NewBlock(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(device::AddressRange range, device::AddressRange::Reserve(size_bytes));
  cl_int result = CL_SUCCESS;
  Handle<cl_mem> buffer(
      runtime_.api().CreateBuffer(runtime_.context(), CL_MEM_READ_WRITE,
                                  static_cast<size_t>(size_bytes), nullptr, &result),
      runtime_.api().ReleaseMemObject);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate " + std::to_string(size_bytes) + " bytes"));
  auto block = std::make_unique<Block>(Block{std::move(buffer), std::move(range)});
  places_.Insert(block->range, block->buffer.get());
  const std::lock_guard lock(mutex_);
  ++buffer_count_;
  return block;
}

Result<std::unique_ptr<device::Allocation>> Memory::Allocate(int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(CheckSize(size_bytes));
  const int64_t wanted = RoundToClass(size_bytes);
  std::unique_ptr<Block> block;
  {
    const std::lock_guard lock(mutex_);
    const auto found = idle_.lower_bound(wanted);
    if (found != idle_.end() && found->first <= wanted + wanted / 4) {
      idle_bytes_ -= found->first;
      block = std::move(found->second);
      idle_.erase(found);
    }
  }
  if (block == nullptr) {
    Result<std::unique_ptr<Block>> made = NewBlock(wanted);
    if (!made.ok()) {
      // What the pool keeps may be what is missing.
      std::multimap<int64_t, std::unique_ptr<Block>> idle;
      {
        const std::lock_guard lock(mutex_);
        idle.swap(idle_);
        idle_bytes_ = 0;
      }
      if (idle.empty()) return std::move(made).status();
      for (auto& [size, unused] : idle) Drop(std::move(unused));
      made = NewBlock(wanted);
      if (!made.ok()) return std::move(made).status();
    }
    block = *std::move(made);
  }
  return std::unique_ptr<device::Allocation>(
      std::make_unique<PooledAllocation>(*this, std::move(block)));
}

void Memory::GiveBack(std::unique_ptr<Block> block) {
  const int64_t size_bytes = block->range.size_bytes();
  {
    const std::lock_guard lock(mutex_);
    if (idle_bytes_ + size_bytes <= kMostIdleBytes) {
      idle_bytes_ += size_bytes;
      idle_.emplace(size_bytes, std::move(block));
      return;
    }
  }
  Drop(std::move(block));
}

// OpenCL keeps a released buffer until the commands that use it are done.
void Memory::Drop(std::unique_ptr<Block> block) { places_.Erase(block->range); }

Result<std::unique_ptr<device::Allocation>> Memory::Hold(const tensor::Tensor& constant) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held,
                           Allocate(constant.size_bytes()));
  if (constant.size_bytes() > 0) {
    ONNXIFI_ASSIGN_OR_RETURN(const Place place, Find(held->data()));
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(runtime_.api().EnqueueWriteBuffer(runtime_.queue().get(), place.handle, CL_TRUE, 0,
                                                   static_cast<size_t>(constant.size_bytes()),
                                                   constant.data(), 0, nullptr, nullptr),
                 "copy a constant of " + std::to_string(constant.size_bytes()) + " bytes"));
  }
  return held;
}

Result<Memory::Place> Memory::Find(const std::byte* address) const {
  Place place{nullptr, 0};
  if (address == nullptr || places_.Find(address, place)) return place;
  return Status(Code::kInternalError, "An address is none of the device's.");
}

}  // namespace onnxifi::opencl
