// SPDX-License-Identifier: Apache-2.0
//
// FarDevice: for tests: the reference behind memory that the host cannot touch. Addresses of its
// memory fault when the host uses them, memory is filled with rubbish when it is made, and what is
// put into a queue is done no earlier than when somebody waits for it. A transfer or a wait that is
// missing is therefore a wrong result or a crash, as on hardware.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"
#include "backends/core/reference/device.h"

namespace onnxifi::execution {

class FarDevice final : public device::Device {
 public:
  FarDevice() : memory_(places_, line_) {}

  device::Memory& memory() override { return memory_; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() override;
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return reference_.Select(facts);
  }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override;

 private:
  using Places = device::AddressMap<std::byte*>;  // to where the bytes really are

  // The work of all queues in the order in which it was put in.
  class Line {
   public:
    void Add(std::function<base::Status()> work);
    void Do();
    // Does all of it; the first error since the last time.
    base::Status Finish();

   private:
    std::mutex mutex_;
    std::vector<std::function<base::Status()>> work_;
    base::Status first_;
  };

  class Memory final : public device::Memory {
   public:
    Memory(Places& places, Line& line) : places_(places), line_(line) {}
    base::Result<std::unique_ptr<device::Allocation>> Allocate(int64_t size_bytes) override;
    base::Result<std::unique_ptr<device::Allocation>> Hold(const tensor::Tensor& constant) override;

   private:
    Places& places_;
    Line& line_;
  };

  class Allocation;
  class Queue;
  class Kernel;
  class BoundKernel;

  Places places_;
  Line line_;
  Memory memory_;
  reference::Device reference_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_FAR_DEVICE_H_
