// SPDX-License-Identifier: Apache-2.0
//
// Memory: buffers are asked of the driver by the pool alone.

#include "backends/opencl/memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/device/mapped_allocation.h"
#include "backends/core/reference/host_memory.h"

namespace onnxifi::opencl {
namespace {

using base::Code;
using base::Result;
using base::Status;

using Mapped = device::MappedAllocation<cl_mem, Handle<cl_mem>>;

}  // namespace

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
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api.RetainMemObject(buffer), "share a buffer"));
  return Mapped::Create(places_, Handle<cl_mem>(buffer, api.ReleaseMemObject),
                        static_cast<int64_t>(actual_bytes));
}

Status Memory::CheckSize(int64_t size_bytes, int64_t available_bytes) const {
  if (size_bytes >= 0 && size_bytes <= available_bytes) return base::Ok();
  return Status(Code::kNoDeviceMemory, "An allocation of " + std::to_string(size_bytes) +
                                           " bytes exceeds the " + std::to_string(available_bytes) +
                                           " bytes that " + runtime_.info().name + " has for one.");
}

int64_t Memory::LargestBytes() const {
  return static_cast<int64_t>(
      std::min<uint64_t>(runtime_.info().largest_allocation_bytes, INT64_MAX / 2));
}

Status Memory::CheckSystem(int64_t size_bytes) const {
  // Drivers for processors hand out memory that the system does not have.
  if (!runtime_.info().is_unified) return base::Ok();
  return CheckSize(size_bytes, std::min(LargestBytes(), reference::AvailableBytes()));
}

Result<std::unique_ptr<device::Allocation>> Memory::NewBuffer(int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(CheckSystem(size_bytes));
  cl_int result = CL_SUCCESS;
  Handle<cl_mem> buffer(
      runtime_.api().CreateBuffer(runtime_.context(), CL_MEM_READ_WRITE,
                                  static_cast<size_t>(size_bytes), nullptr, &result),
      runtime_.api().ReleaseMemObject);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate " + std::to_string(size_bytes) + " bytes"));
  return Mapped::Create(places_, std::move(buffer), size_bytes);
}

Result<std::unique_ptr<device::Allocation>> Memory::Allocate(int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(CheckSize(size_bytes, LargestBytes()));
  return pool_.Allocate(size_bytes);
}

// A buffer and the host's memory that it lies over, which goes after it.
class Memory::SharedBlock final : public device::Allocation {
 public:
  static Result<std::unique_ptr<device::Allocation>> Create(Memory& memory, int64_t size_bytes) {
    std::unique_ptr<SharedBlock> block(new SharedBlock(memory, size_bytes));
    const Api& api = memory.runtime_.api();
    cl_context context = memory.runtime_.context();
    constexpr cl_uint kAlignment = 64;
    const std::string doing = "share " + std::to_string(size_bytes) + " bytes";
    block->address_ = api.SVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER,
                                   static_cast<size_t>(size_bytes), kAlignment);
    if (block->address_ == nullptr) return ToStatus(CL_MEM_OBJECT_ALLOCATION_FAILURE, doing);
    cl_int result = CL_SUCCESS;
    block->buffer_ =
        Handle<cl_mem>(api.CreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                        static_cast<size_t>(size_bytes), block->address_, &result),
                       api.ReleaseMemObject);
    ONNXIFI_RETURN_IF_ERROR(ToStatus(result, doing));
    const std::lock_guard lock(memory.shared_mutex_);
    memory.shared_buffers_[block->data()] = block->buffer_.get();
    return std::unique_ptr<device::Allocation>(std::move(block));
  }
  ~SharedBlock() override {
    if (address_ == nullptr) return;
    {
      const std::lock_guard lock(memory_.shared_mutex_);
      memory_.shared_buffers_.erase(data());
    }
    buffer_ = {};
    memory_.runtime_.api().SVMFree(memory_.runtime_.context(), address_);
  }
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(address_); }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  SharedBlock(Memory& memory, int64_t size_bytes) : memory_(memory), size_bytes_(size_bytes) {}

  Memory& memory_;
  const int64_t size_bytes_;
  void* address_ = nullptr;
  Handle<cl_mem> buffer_;
};

Result<std::unique_ptr<device::Allocation>> Memory::NewShared(int64_t size_bytes) {
  ONNXIFI_RETURN_IF_ERROR(CheckSystem(size_bytes));
  return SharedBlock::Create(*this, size_bytes);
}

Result<Memory::Shared> Memory::AllocateShared(int64_t size_bytes) {
  if (!runtime_.info().has_shared_memory) {
    return Status(Code::kUnsupportedMemoryType,
                  runtime_.info().name +
                      " has no memory that it shares with the host"
                      " (fine-grained shared virtual memory of OpenCL 2.0).");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckSize(size_bytes, LargestBytes()));
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<device::Allocation> block,
                           shared_pool_.Allocate(size_bytes));
  const std::lock_guard lock(shared_mutex_);
  return Shared{block->data(), shared_buffers_.at(block->data()), block};
}

Result<std::unique_ptr<device::Allocation>> Memory::Hold(const tensor::Tensor& constant) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held,
                           Allocate(constant.size_bytes()));
  if (constant.size_bytes() > 0) {
    ONNXIFI_ASSIGN_OR_RETURN(const Location place, Find(held->data()));
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(runtime_.api().EnqueueWriteBuffer(runtime_.queue().get(), place.handle, CL_TRUE, 0,
                                                   static_cast<size_t>(constant.size_bytes()),
                                                   constant.data(), 0, nullptr, nullptr),
                 "copy a constant of " + std::to_string(constant.size_bytes()) + " bytes"));
  }
  return held;
}

Result<Memory::Location> Memory::Find(const std::byte* address) const {
  Location place{nullptr, 0};
  if (address == nullptr || places_.Find(address, place)) return place;
  return Status(Code::kInternalError, "An address is none of the device's.");
}

}  // namespace onnxifi::opencl
