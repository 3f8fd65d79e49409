// SPDX-License-Identifier: Apache-2.0
//
// Memory: the driver is asked by the pool alone.

#include "backends/cuda/memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cuda/copies.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

class Piece final : public device::Allocation {
 public:
  Piece(std::shared_ptr<Gates> gates, CUdeviceptr address, int64_t size_bytes)
      : gates_(std::move(gates)), address_(address), size_bytes_(size_bytes) {}
  ~Piece() override {
    if (gates_ != nullptr) gates_->Free(address_);
  }

  std::byte* data() override {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address_));
  }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  const std::shared_ptr<Gates> gates_;  // null: the memory is the caller's
  const CUdeviceptr address_;
  const int64_t size_bytes_;
};

}  // namespace

std::unique_ptr<device::Allocation> CallersMemory(CUdeviceptr address, int64_t size_bytes) {
  return std::make_unique<Piece>(nullptr, address, size_bytes);
}

Result<std::unique_ptr<device::Allocation>> Memory::NewPiece(int64_t size_bytes) {
  const int64_t asked_bytes = std::max<int64_t>(size_bytes, 1);
  CUdeviceptr address = 0;
  const std::string doing = "allocate " + std::to_string(size_bytes) + " of the " +
                            std::to_string(runtime_.info().memory_bytes) + " bytes of " +
                            runtime_.info().name;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do(
      doing, [&] { return runtime_.api().MemAlloc(&address, static_cast<size_t>(asked_bytes)); }));
  return std::unique_ptr<device::Allocation>(std::make_unique<Piece>(gates_, address, size_bytes));
}

Result<std::unique_ptr<device::Allocation>> Memory::Allocate(int64_t size_bytes) {
  const uint64_t limit_bytes = runtime_.info().memory_bytes;
  if (size_bytes < 0 || static_cast<uint64_t>(size_bytes) > limit_bytes) {
    return Status(Code::kNoDeviceMemory, "An allocation of " + std::to_string(size_bytes) +
                                             " bytes exceeds the " + std::to_string(limit_bytes) +
                                             " bytes of " + runtime_.info().name + ".");
  }
  return pool_.Allocate(size_bytes);
}

Result<std::unique_ptr<device::Allocation>> Memory::Hold(const tensor::Tensor& constant) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held,
                           Allocate(constant.size_bytes()));
  if (constant.size_bytes() == 0) return held;
  ONNXIFI_RETURN_IF_ERROR(runtime_.CheckNoCapture("copy a constant"));
  Copies copies(runtime_, staging_);
  Status copied = copies.ToDevice(constant.data(), held->data(), constant.size_bytes());
  if (copied.ok()) {
    copied = runtime_.Do("copy a constant",
                         [&] { return runtime_.api().StreamSynchronize(runtime_.stream()); });
  }
  copies.staging().Clear(/*is_done=*/copied.ok());
  ONNXIFI_RETURN_IF_ERROR(std::move(copied));
  return held;
}

}  // namespace onnxifi::cuda
