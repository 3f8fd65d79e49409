// SPDX-License-Identifier: Apache-2.0
//
// Device: counts what is allocated.

#include "backends/mock/device.h"

#include <string>
#include <utility>

namespace onnxifi::mock {
namespace {

class CountedAllocation final : public device::Allocation {
 public:
  CountedAllocation(std::unique_ptr<device::Allocation> inner, State& state, int64_t counted_bytes)
      : inner_(std::move(inner)), state_(state), counted_bytes_(counted_bytes) {}
  ~CountedAllocation() override { state_.used_bytes -= counted_bytes_; }
  CountedAllocation(const CountedAllocation&) = delete;
  CountedAllocation& operator=(const CountedAllocation&) = delete;

  std::byte* data() override { return inner_->data(); }
  int64_t size_bytes() const override { return inner_->size_bytes(); }

 private:
  const std::unique_ptr<device::Allocation> inner_;
  State& state_;
  const int64_t counted_bytes_;
};

}  // namespace

template <typename Make>
base::Result<std::unique_ptr<device::Allocation>> LimitedMemory::Count(int64_t size_bytes,
                                                                       const Make& make) {
  const int64_t used = state_.used_bytes += size_bytes;
  if (limit_bytes_ > 0 && used > limit_bytes_) {
    state_.used_bytes -= size_bytes;
    return base::Status(base::Code::kNoDeviceMemory,
                        std::to_string(size_bytes) + " bytes are asked for where " +
                            std::to_string(used - size_bytes) + " of the mock device's " +
                            std::to_string(limit_bytes_) + " bytes are in use.");
  }
  base::Result<std::unique_ptr<device::Allocation>> inner = make();
  if (!inner.ok()) {
    state_.used_bytes -= size_bytes;
    return inner;
  }
  return std::unique_ptr<device::Allocation>(
      std::make_unique<CountedAllocation>(*std::move(inner), state_, size_bytes));
}

base::Result<std::unique_ptr<device::Allocation>> LimitedMemory::Allocate(int64_t size_bytes) {
  return Count(size_bytes, [&] { return host_.Allocate(size_bytes); });
}

base::Result<std::unique_ptr<device::Allocation>> LimitedMemory::Hold(
    const tensor::Tensor& constant) {
  return Count(constant.size_bytes(), [&] { return host_.Hold(constant); });
}

}  // namespace onnxifi::mock
