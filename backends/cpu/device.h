// SPDX-License-Identifier: Apache-2.0
//
// Device: the CPU as a device::Device: oneDNN and the tile engine where they are fastest, the
// reference's loops on the thread pool for everything else.

#ifndef ONNXIFI_BACKENDS_CPU_DEVICE_H_
#define ONNXIFI_BACKENDS_CPU_DEVICE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "backends/core/base/log.h"
#include "backends/core/device/device.h"
#include "backends/core/reference/device.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/onednn/runtime.h"
#include "backends/cpu/runtime/runtime.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::cpu {

// Starts nothing and calls nothing of oneDNN.
class Selector final : public device::Selector {
 public:
  base::Result<device::Selection> Select(const device::Facts& facts) const override;
  device::FusedSelection SelectFused(device::FusableSteps fusable) const override;
  bool PrefersChannelsLast(const device::Facts& facts) const override;
  bool PrefersNarrowOperands(const device::Facts& facts) const override;
  bool PrefersQuantizedWeights(const device::Facts& facts) const override;
  bool PrefersGatheredMatrices(const device::Facts& facts) const override;
  bool PrefersAttention(const device::Facts& facts) const override;
  bool PrefersWideFloats(const device::Facts& facts) const override;
  // Whatever the kernel does not take, such as float64, the reference does on all threads.
  bool PrefersRecurrent(const device::Facts& /*facts*/) const override { return true; }
  bool DependsOnNumbers() const override { return true; }
  // What runtime::LeaveOut knows.
  static std::vector<std::string_view> ListKernels();

 private:
  const reference::Device reference_;
};

class Device final : public device::Device {
 public:
  // `pool` is shared by all devices of a process, so that together they have no more threads than
  // one. A resource code.
  static base::Result<std::unique_ptr<Device>> Create(std::shared_ptr<threads::ThreadPool> pool,
                                                      const base::Log& log);

  device::Memory& memory() override { return reference_.memory(); }
  base::Result<device::Selection> Select(const device::Facts& facts) const override {
    return selector_.Select(facts);
  }
  device::FusedSelection SelectFused(device::FusableSteps fusable) const override {
    return selector_.SelectFused(fusable);
  }
  bool PrefersChannelsLast(const device::Facts& facts) const override {
    return selector_.PrefersChannelsLast(facts);
  }
  bool PrefersNarrowOperands(const device::Facts& facts) const override {
    return selector_.PrefersNarrowOperands(facts);
  }
  bool PrefersQuantizedWeights(const device::Facts& facts) const override {
    return selector_.PrefersQuantizedWeights(facts);
  }
  bool PrefersGatheredMatrices(const device::Facts& facts) const override {
    return selector_.PrefersGatheredMatrices(facts);
  }
  bool PrefersAttention(const device::Facts& facts) const override {
    return selector_.PrefersAttention(facts);
  }
  bool PrefersWideFloats(const device::Facts& facts) const override {
    return selector_.PrefersWideFloats(facts);
  }
  bool PrefersRecurrent(const device::Facts& facts) const override {
    return selector_.PrefersRecurrent(facts);
  }
  bool DependsOnNumbers() const override { return true; }
  base::Result<std::unique_ptr<device::Kernel>> Build(const device::Recipe& recipe) override;
  device::Device* constant_device() override { return this; }
  device::Parallel* parallel() override { return pool_.get(); }

  const onednn::BindingCounts& binding_counts() const { return onednn_->counts(); }

 private:
  explicit Device(std::shared_ptr<threads::ThreadPool> pool)
      : pool_(std::move(pool)),
        reference_(*pool_),
        runtime_(reference_.memory(), *pool_),
        engine_(*pool_) {}

  const std::shared_ptr<threads::ThreadPool> pool_;
  const cpu::Selector selector_;
  reference::Device reference_;
  runtime::Runtime runtime_;
  engine::Runtime engine_;
  std::unique_ptr<onednn::Runtime> onednn_;
};

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_DEVICE_H_
