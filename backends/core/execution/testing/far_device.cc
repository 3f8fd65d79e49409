// SPDX-License-Identifier: Apache-2.0
//
// FarDevice: addresses are translated where the reference's kernels and copies run.

#include "backends/core/execution/testing/far_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::execution {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr auto kRubbish = std::byte{0xa5};

// INTERNAL_ERROR for an address that is none of the device's.
Result<std::byte*> Near(const device::AddressMap<std::byte*>& places, const std::byte* far) {
  if (far == nullptr) return static_cast<std::byte*>(nullptr);
  device::AddressMap<std::byte*>::Location place{};
  if (places.Find(far, place)) return place.handle + place.offset_bytes;
  return Status(Code::kInternalError, "An address is none of the far device's.");
}

// Null for what lies nowhere on the device: buffers of no bytes, and those that the step that is
// given the addresses does not touch.
std::vector<std::byte*> AllNear(const device::AddressMap<std::byte*>& places,
                                device::Addresses far) {
  std::vector<std::byte*> near;
  for (const std::byte* address : far) {
    device::AddressMap<std::byte*>::Location place{};
    const bool is_found = address != nullptr && places.Find(address, place);
    near.push_back(is_found ? place.handle + place.offset_bytes : nullptr);
  }
  return near;
}

}  // namespace

class FarDevice::Allocation final : public device::Allocation {
 public:
  Allocation(Places& places, Line& line, device::AddressRange range, int64_t size_bytes)
      : places_(places),
        line_(line),
        range_(std::move(range)),
        size_bytes_(size_bytes),
        block_(static_cast<size_t>(range_.size_bytes() + kAlignment), kRubbish) {
    void* begin = block_.data();
    size_t space = block_.size();
    places_.Insert(range_,
                   static_cast<std::byte*>(std::align(
                       kAlignment, static_cast<size_t>(range_.size_bytes()), begin, space)));
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  // What is under way with it is done first, as drivers do it.
  ~Allocation() override {
    line_.Do();
    places_.Erase(range_);
  }

  std::byte* data() override { return range_.begin(); }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  static constexpr int64_t kAlignment = 64;

  Places& places_;
  Line& line_;
  const device::AddressRange range_;
  const int64_t size_bytes_;
  std::vector<std::byte> block_;
};

Result<std::unique_ptr<device::Allocation>> FarDevice::Memory::Allocate(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(device::AddressRange range,
                           device::AddressRange::Reserve(std::max<int64_t>(size_bytes, 1)));
  return std::unique_ptr<device::Allocation>(
      std::make_unique<Allocation>(places_, line_, std::move(range), size_bytes));
}

Result<std::unique_ptr<device::Allocation>> FarDevice::Memory::Hold(
    const tensor::Tensor& constant) {
  const int64_t size_bytes = tensor::SizeBytes(constant.type(), constant.element_count());
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> held, Allocate(size_bytes));
  ONNXIFI_ASSIGN_OR_RETURN(std::byte * near, Near(places_, held->data()));
  if (size_bytes > 0) std::memcpy(near, constant.data(), static_cast<size_t>(size_bytes));
  return held;
}

void FarDevice::Line::Add(std::function<Status()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
}

void FarDevice::Line::Do() {
  const std::lock_guard lock(mutex_);
  for (const std::function<Status()>& work : work_) {
    Status status = work();
    if (first_.ok()) first_ = std::move(status);
  }
  work_.clear();
}

Status FarDevice::Line::Finish() {
  Do();
  const std::lock_guard lock(mutex_);
  return std::exchange(first_, base::Ok());
}

class FarDevice::Queue final : public device::Queue {
 public:
  Queue(const Places& places, Line& line) : places_(places), line_(line) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() override { line_.Do(); }

  Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override {
    return Add([this, from_host, to, size_bytes]() -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(std::byte * near, Near(places_, to));
      std::memcpy(near, from_host, static_cast<size_t>(size_bytes));
      return base::Ok();
    });
  }
  Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override {
    return Add([this, from, to_host, size_bytes]() -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(const std::byte* near, Near(places_, from));
      std::memcpy(to_host, near, static_cast<size_t>(size_bytes));
      return base::Ok();
    });
  }
  Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override {
    return Add([this, from, to, size_bytes]() -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(const std::byte* near_from, Near(places_, from));
      ONNXIFI_ASSIGN_OR_RETURN(std::byte * near_to, Near(places_, to));
      std::memcpy(near_to, near_from, static_cast<size_t>(size_bytes));
      return base::Ok();
    });
  }
  Status Finish() override { return line_.Finish(); }

  Status Add(std::function<Status()> work) {
    line_.Add(std::move(work));
    return base::Ok();
  }

 private:
  const Places& places_;
  Line& line_;
};

class FarDevice::BoundKernel final : public device::BoundKernel {
 public:
  BoundKernel(const Places& places, std::unique_ptr<device::BoundKernel> near)
      : places_(places), near_(std::move(near)) {}

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    std::vector<std::byte*> far(addresses.begin(), addresses.end());
    return static_cast<Queue&>(queue).Add(
        [this, far = std::move(far)]() -> Status { return near_->Run(AllNear(places_, far)); });
  }
  bool ReadsAtRun(int read) const override { return near_->ReadsAtRun(read); }

 private:
  const Places& places_;
  const std::unique_ptr<device::BoundKernel> near_;
};

class FarDevice::Kernel final : public device::Kernel {
 public:
  Kernel(const Places& places, std::unique_ptr<device::Kernel> near)
      : places_(places), near_(std::move(near)) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                             near_->Bind(step, AllNear(places_, constants)));
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<BoundKernel>(places_, std::move(bound)));
  }

 private:
  const Places& places_;
  const std::unique_ptr<device::Kernel> near_;
};

Result<std::unique_ptr<device::Queue>> FarDevice::NewQueue() {
  return std::unique_ptr<device::Queue>(std::make_unique<Queue>(places_, line_));
}

Result<std::unique_ptr<device::Kernel>> FarDevice::Build(const device::Recipe& recipe) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> near, reference_.Build(recipe));
  return std::unique_ptr<device::Kernel>(std::make_unique<Kernel>(places_, std::move(near)));
}

}  // namespace onnxifi::execution
