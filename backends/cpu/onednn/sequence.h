// SPDX-License-Identifier: Apache-2.0
//
// Sequence: what a oneDNN recipe becomes once extents are known: primitives called one after the
// other, mostly reorders around one that does the work. SequenceBuilder: how the implementations of
// the families put one together.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_SEQUENCE_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/reference/epilogue.h"
#include "backends/cpu/onednn/layout.h"
#include "backends/cpu/onednn/packed_constants.h"
#include "backends/cpu/onednn/runtime.h"

namespace onnxifi::onednn {

// A tensor during a run: in a buffer of the program, in a packed constant, or in the run's work
// memory (neither of the two).
struct Place {
  Desc desc;
  program::BufferId buffer = program::kNoBuffer;
  PackedConstant packed;
  int64_t offset_bytes = 0;  // 0 for packed constants
};

// DNNL_ARG_* and the tensor that goes there.
using Argument = std::pair<int, Place>;

class Sequence final : public device::BoundKernel {
 public:
  struct Step {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  // The epilogue as loops, over dense sums at `offset_bytes` of the work memory.
  struct Apart {
    std::shared_ptr<const reference::Expression> roots;  // shared with the kernel
    reference::Epilogue epilogue;
    int64_t sums_offset_bytes;
  };

  // `fallback` does the same work on memory of any alignment.
  Sequence(Runtime& runtime, std::vector<Step> steps, int64_t work_bytes,
           std::optional<Apart> apart, std::unique_ptr<device::BoundKernel> fallback);

  base::Status Run(device::Addresses addresses) const override;

 private:
  // The objects of oneDNN that a run changes. As many as there ever were runs at the same time.
  struct Context {
    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;  // of all steps, one after the other
  };
  base::Result<std::unique_ptr<Context>> TakeContext() const;
  bool IsAligned(device::Addresses addresses) const;
  base::Status RunSteps(Context& context, device::Addresses addresses, std::byte* work) const;

  Runtime& runtime_;
  const std::vector<Step> steps_;
  const int64_t work_bytes_;
  const std::optional<Apart> apart_;
  const std::unique_ptr<device::BoundKernel> fallback_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> idle_;
};

// For one binding. Its functions may throw dnnl::error; they are called under Call().
class SequenceBuilder {
 public:
  // `constants` as in device::Kernel::Bind.
  SequenceBuilder(Runtime& runtime, device::Addresses constants, PackedConstants& packed)
      : runtime_(runtime), constants_(constants), packed_(packed) {}

  Runtime& runtime() { return runtime_; }

  // The tensor that `view` sees as `desc`. A view of no buffer is one of the work memory.
  Place At(const device::BoundView& view, Desc desc) const;
  // Work memory for a tensor; valid until the sequence ends.
  Place Work(const Desc& desc);
  // `given` laid out as `wanted`: itself if it is; packed if it is a constant; else reordered into
  // work memory during each run.
  base::Result<Place> As(const Place& given, const Desc& wanted);
  base::Status Reorder(const Place& from, const Place& to);
  // Where a primitive that writes `wanted` puts its result: `result` itself if it is laid out so,
  // else work memory, from which Deliver then brings it there.
  Place Target(const Place& result, const Desc& wanted);
  base::Status Deliver(const Place& target, const Place& result);
  bool IsConstant(const Place& place) const {
    return place.buffer != program::kNoBuffer && constants_[place.buffer] != nullptr;
  }
  // Appends a primitive, with work memory for its scratchpad.
  void Append(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& desc,
              std::vector<Argument> arguments);
  // Forgets what was appended and taken, for another attempt.
  void Clear();

  std::vector<Sequence::Step> TakeSteps() { return std::move(steps_); }
  int64_t work_bytes() const { return work_bytes_; }

 private:
  Runtime& runtime_;
  device::Addresses constants_;
  PackedConstants& packed_;
  std::vector<Sequence::Step> steps_;
  int64_t work_bytes_ = 0;
};

// Attributes that every primitive of this folder has: its scratchpad is the caller's, so that one
// primitive can run on several threads at the same time.
dnnl::primitive_attr Attributes();

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_SEQUENCE_H_
