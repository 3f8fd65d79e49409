// SPDX-License-Identifier: Apache-2.0
//
// FarDevice: for tests: the reference behind memory that the host cannot touch. Addresses of its
// memory fault when the host uses them, memory is filled with rubbish when it is made, and what is
// put into a queue is done no earlier than when somebody waits for it. A transfer or a wait that is
// missing is therefore a wrong result or a crash, as on hardware. Its queues record, and memory
// that goes before a recording that names it is counted.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"
#include "backends/core/reference/device.h"

namespace onnxifi::execution {

class FarDevice final : public device::Device {
 public:
  FarDevice() : memory_(places_, line_, watch_) {}

  device::Memory& memory() override { return memory_; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() override;
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return reference_.Select(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override;

  // Kernels that were put into queues, recorded or not, but not replayed.
  int64_t enqueued_count() const { return watch_.enqueued_count(); }
  // Recordings that exist.
  int64_t recording_count() const { return watch_.recording_count(); }
  // How often memory went before a recording that names it.
  int64_t mistake_count() const { return watch_.mistake_count(); }
  // Call `call` from now on of those that begin, fill, end and replay recordings fails, counted
  // from 0; -1: none. Whether it has failed.
  void FailCall(int call) { watch_.FailCall(call); }
  bool has_failed() const { return watch_.has_failed(); }

 private:
  class Recording;

  // Sees what becomes of recordings.
  class Watch {
   public:
    void Add(const Recording& recording);
    void Remove(const Recording& recording);
    void MemoryGoes(const device::AddressRange& range);
    void Enqueued();
    // NO_DEVICE_RESOURCES if this call is to fail.
    base::Status Call();

    int64_t enqueued_count() const { return Read(enqueued_); }
    int64_t recording_count() const {
      const std::lock_guard lock(mutex_);
      return static_cast<int64_t>(recordings_.size());
    }
    int64_t mistake_count() const { return Read(mistakes_); }
    void FailCall(int call);
    bool has_failed() const { return Read(has_failed_); }

   private:
    template <typename Value>
    Value Read(const Value& value) const {
      const std::lock_guard lock(mutex_);
      return value;
    }

    mutable std::mutex mutex_;
    std::set<const Recording*> recordings_;
    int64_t enqueued_ = 0;
    int64_t mistakes_ = 0;
    int calls_until_fault_ = -1;
    bool has_failed_ = false;
  };

  using Places = device::AddressMap<std::byte*>;  // to where the bytes really are

  // The work of all queues in the order in which it was put in.
  class Line {
   public:
    void Add(std::function<base::Status()> work);
    void Do();
    // Does all of it; the first error since the last time.
    base::Status Finish();

   private:
    std::recursive_mutex mutex_;  // what goes with work that is done may be memory
    std::vector<std::function<base::Status()>> work_;
    base::Status first_;
  };

  class Memory final : public device::Memory {
   public:
    Memory(Places& places, Line& line, Watch& watch)
        : places_(places), line_(line), watch_(watch) {}
    base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
    base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

   private:
    Places& places_;
    Line& line_;
    Watch& watch_;
  };

  class Allocation;
  class Queue;
  class Kernel;
  class BoundKernel;

  Watch watch_;
  Places places_;
  Line line_;
  Memory memory_;
  reference::Device reference_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_
