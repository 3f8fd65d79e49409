// SPDX-License-Identifier: Apache-2.0
//
// FarDevice: addresses are translated where the reference's kernels and copies run.

#include "backends/core/execution/testing/far_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/device/recording_queue.h"
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

// Work that can be done again and again, the addresses that it uses and what it needs besides.
class FarDevice::Recording final : public device::Recording {
 public:
  explicit Recording(Watch& watch) : watch_(watch) { watch_.Add(*this); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() override { watch_.Remove(*this); }

  std::vector<std::shared_ptr<const void>> kept;
  std::vector<std::function<Status()>> work;
  std::vector<const std::byte*> addresses;

 private:
  Watch& watch_;
};

void FarDevice::Watch::Add(const Recording& recording) {
  const std::lock_guard lock(mutex_);
  recordings_.insert(&recording);
}

void FarDevice::Watch::Remove(const Recording& recording) {
  const std::lock_guard lock(mutex_);
  recordings_.erase(&recording);
}

void FarDevice::Watch::MemoryGoes(const device::AddressRange& range) {
  const std::lock_guard lock(mutex_);
  for (const Recording* recording : recordings_) {
    mistakes_ += std::ranges::any_of(recording->addresses, [&](const std::byte* address) {
      return std::less_equal<>()(range.begin(), address) &&
             std::less<>()(address, range.begin() + range.size_bytes());
    });
  }
}

void FarDevice::Watch::Enqueued() {
  const std::lock_guard lock(mutex_);
  ++enqueued_;
}

Status FarDevice::Watch::Call() {
  const std::lock_guard lock(mutex_);
  if (calls_until_fault_ < 0 || calls_until_fault_-- > 0) return base::Ok();
  has_failed_ = true;
  return {Code::kNoDeviceResources, "The far device refuses to record."};
}

void FarDevice::Watch::FailCall(int call) {
  const std::lock_guard lock(mutex_);
  calls_until_fault_ = call;
  has_failed_ = false;
}

class FarDevice::Allocation final : public device::Allocation {
 public:
  Allocation(Places& places, Line& line, Watch& watch, device::AddressRange range,
             int64_t size_bytes)
      : places_(places),
        line_(line),
        watch_(watch),
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
    watch_.MemoryGoes(range_);
    places_.Erase(range_);
  }

  std::byte* data() override { return range_.begin(); }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  static constexpr int64_t kAlignment = 64;

  Places& places_;
  Line& line_;
  Watch& watch_;
  const device::AddressRange range_;
  const int64_t size_bytes_;
  std::vector<std::byte> block_;
};

Result<std::unique_ptr<device::Allocation>> FarDevice::Memory::Allocate(int64_t size_bytes) {
  ONNXIFI_ASSIGN_OR_RETURN(device::AddressRange range,
                           device::AddressRange::Reserve(std::max<int64_t>(size_bytes, 1)));
  return std::unique_ptr<device::Allocation>(
      std::make_unique<Allocation>(places_, line_, watch_, std::move(range), size_bytes));
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
  // Goes before the lock, with what it keeps: nobody sees a recording that is done and still there.
  std::vector<std::function<Status()>> done;
  for (const std::function<Status()>& work : work_) {
    Status status = work();
    if (first_.ok()) first_ = std::move(status);
  }
  done.swap(work_);
}

Status FarDevice::Line::Finish() {
  Do();
  const std::lock_guard lock(mutex_);
  return std::exchange(first_, base::Ok());
}

class FarDevice::Queue final : public device::Queue, public device::RecordingQueue {
 public:
  Queue(const Places& places, Line& line, Watch& watch)
      : places_(places), line_(line), watch_(watch) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() override { line_.Do(); }

  Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) override {
    ONNXIFI_RETURN_IF_ERROR(CheckOutside());
    return Add([this, from_host, to, size_bytes]() -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(std::byte * near, Near(places_, to));
      std::memcpy(near, from_host, static_cast<size_t>(size_bytes));
      return base::Ok();
    });
  }
  Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) override {
    ONNXIFI_RETURN_IF_ERROR(CheckOutside());
    return Add([this, from, to_host, size_bytes]() -> Status {
      ONNXIFI_ASSIGN_OR_RETURN(const std::byte* near, Near(places_, from));
      std::memcpy(to_host, near, static_cast<size_t>(size_bytes));
      return base::Ok();
    });
  }
  Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) override {
    const std::array<const std::byte*, 2> used = {from, to};
    return Add(
        [&places = places_, from, to, size_bytes]() -> Status {
          ONNXIFI_ASSIGN_OR_RETURN(const std::byte* near_from, Near(places, from));
          ONNXIFI_ASSIGN_OR_RETURN(std::byte * near_to, Near(places, to));
          std::memcpy(near_to, near_from, static_cast<size_t>(size_bytes));
          return base::Ok();
        },
        used);
  }
  Status Finish() override {
    ONNXIFI_RETURN_IF_ERROR(CheckOutside());
    if (std::exchange(has_work_, false)) ++submissions_;
    return line_.Finish();
  }
  void Keep(std::shared_ptr<const void> object) override {
    if (recording_ != nullptr) {
      recording_->kept.push_back(std::move(object));
    } else {
      line_.Add([object = std::move(object)] { return base::Ok(); });
    }
  }
  int64_t submission_count() const override { return submissions_; }

  Status BeginRecording() override {
    ONNXIFI_RETURN_IF_ERROR(watch_.Call());
    recording_ = std::make_shared<Recording>(watch_);
    return base::Ok();
  }
  Result<std::shared_ptr<const device::Recording>> EndRecording() override {
    std::shared_ptr<const device::Recording> recording = std::exchange(recording_, nullptr);
    ONNXIFI_RETURN_IF_ERROR(watch_.Call());
    return recording;
  }
  Status Replay(std::shared_ptr<const device::Recording> recording) override {
    ONNXIFI_RETURN_IF_ERROR(CheckOutside());
    ONNXIFI_RETURN_IF_ERROR(watch_.Call());
    has_work_ = true;
    line_.Add([recording = std::move(recording)]() -> Status {
      for (const auto& work : static_cast<const Recording&>(*recording).work) {
        ONNXIFI_RETURN_IF_ERROR(work());
      }
      return base::Ok();
    });
    return base::Ok();
  }

  Status Add(std::function<Status()> work, std::span<const std::byte* const> used = {}) {
    if (recording_ == nullptr) {
      has_work_ = true;
      line_.Add(std::move(work));
      return base::Ok();
    }
    ONNXIFI_RETURN_IF_ERROR(watch_.Call());
    recording_->work.push_back(std::move(work));
    recording_->addresses.insert(recording_->addresses.end(), used.begin(), used.end());
    return base::Ok();
  }
  void Enqueued() { watch_.Enqueued(); }

 private:
  Status CheckOutside() const {
    if (recording_ == nullptr) return base::Ok();
    return {Code::kInternalError, "What is put in here has no place in a recording."};
  }

  const Places& places_;
  Line& line_;
  Watch& watch_;
  std::shared_ptr<Recording> recording_;  // what is put in goes there
  bool has_work_ = false;
  int64_t submissions_ = 0;
};

class FarDevice::BoundKernel final : public device::BoundKernel {
 public:
  BoundKernel(const Places& places, const device::BoundStep& step,
              std::unique_ptr<device::BoundKernel> near)
      : places_(places), near_(std::move(near)) {
    for (const std::vector<device::BoundView>* views : {&step.reads, &step.writes}) {
      for (const device::BoundView& view : *views) {
        if (view.buffer != program::kNoBuffer) buffers_.push_back(view.buffer);
      }
    }
  }

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    std::vector<std::byte*> far(addresses.begin(), addresses.end());
    std::vector<const std::byte*> used;
    for (const program::BufferId buffer : buffers_) used.push_back(addresses[buffer]);
    auto& far_queue = static_cast<Queue&>(queue);
    far_queue.Enqueued();
    return far_queue.Add(
        [&places = places_, near = near_, far = std::move(far)]() -> Status {
          return near->Run(AllNear(places, far));
        },
        used);
  }
  bool ReadsAtRun(int read) const override { return near_->ReadsAtRun(read); }

 private:
  const Places& places_;
  std::vector<program::BufferId> buffers_;  // that it uses
  // Shared with work that is done after another thread gave the binding up.
  const std::shared_ptr<device::BoundKernel> near_;
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
        std::make_unique<BoundKernel>(places_, step, std::move(bound)));
  }

 private:
  const Places& places_;
  const std::unique_ptr<device::Kernel> near_;
};

Result<std::unique_ptr<device::Queue>> FarDevice::NewQueue() {
  return std::unique_ptr<device::Queue>(std::make_unique<Queue>(places_, line_, watch_));
}

Result<std::unique_ptr<device::Kernel>> FarDevice::Build(const device::Recipe& recipe) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> near, reference_.Build(recipe));
  return std::unique_ptr<device::Kernel>(std::make_unique<Kernel>(places_, std::move(near)));
}

}  // namespace onnxifi::execution
