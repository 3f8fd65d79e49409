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
#include "backends/cpu/onednn/operand.h"
#include "backends/cpu/onednn/packed_constants.h"
#include "backends/cpu/onednn/runtime.h"

namespace onnxifi::onednn {

// A tensor during a run: in a buffer of the program, in a packed constant, or in the run's work
// memory (neither of the two).
struct StoredTensor {
  Desc desc;
  program::BufferId buffer = program::kNoBuffer;
  PackedConstant packed;
  int64_t offset_bytes = 0;  // 0 for packed constants
};

// The same before it has a layout: float32 elements as a view sees them. Without a buffer they are
// `packed`, or in the work memory.
struct Tensor {
  device::BoundView view;
  PackedConstant packed;
};

// DNNL_ARG_* and the tensor that goes there.
using Argument = std::pair<int, StoredTensor>;

// What a SequenceBuilder put together.
struct Work {
  struct Loops {
    BoundPrologue prologue;
    int64_t offset_bytes;  // in the work memory
  };
  struct Primitive {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
  };
  std::vector<Loops> prologues;  // run first
  std::vector<Primitive> primitives;
  int64_t size_bytes = 0;  // of the work memory
};

class Sequence final : public device::BoundKernel {
 public:
  // With an `epilogue`, whose expression `roots` keeps alive, the primitives leave dense sums at
  // the beginning of the work memory. `fallback` does the same work on memory of any alignment.
  // A `is_tiny` one is done before another thread would have woken up. `reads` says of each read of
  // the step whether work or fallback may look at it.
  Sequence(Runtime& runtime, Work work, bool is_tiny,
           std::shared_ptr<const reference::Expression> roots,
           std::optional<reference::Epilogue> epilogue,
           std::unique_ptr<device::BoundKernel> fallback, std::vector<bool> reads);

  base::Status Run(device::Addresses addresses) const override;
  bool ReadsAtRun(int read) const override { return reads_[static_cast<size_t>(read)]; }
  // oneDNN's names of the kernels, in order, and the loops around them.
  std::string Detail() const override;

 private:
  // The objects of oneDNN that a run changes. As many as there ever were runs at the same time.
  struct Context {
    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;  // of all primitives, one after the other
  };
  base::Result<std::unique_ptr<Context>> TakeContext() const;
  bool IsAligned(device::Addresses addresses) const;
  base::Status RunPrimitives(Context& context, device::Addresses addresses, std::byte* work) const;

  Runtime& runtime_;
  const Work work_;
  const bool is_tiny_;
  const std::shared_ptr<const reference::Expression> roots_;  // shared with the kernel
  const std::optional<reference::Epilogue> epilogue_;
  const std::unique_ptr<device::BoundKernel> fallback_;
  const std::vector<bool> reads_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Context>> idle_;
};

// Of each read of the step whether a run of `work` may look at it. All of them where loops of the
// reference may run in the primitives' place, on memory that is not aligned.
std::vector<bool> ReadsOf(const device::BoundStep& step, const Work& work, bool has_loops,
                          device::Addresses constants);

// For one binding. Its functions may throw dnnl::error; they are called under Call().
class SequenceBuilder {
 public:
  // `constants` as in device::Kernel::Bind.
  SequenceBuilder(Runtime& runtime, device::Addresses constants, PackedConstants& packed)
      : runtime_(runtime), constants_(constants), packed_(packed) {}

  Runtime& runtime() { return runtime_; }

  StoredTensor At(const Tensor& tensor, Desc desc) const;
  // Work memory for a tensor; valid until the sequence ends.
  StoredTensor NewPlace(const Desc& desc);
  // The same for a dense tensor of these extents.
  device::BoundView WorkView(const Extents& extents);
  // Loops that fill `target`, a view from WorkView, before the primitives run.
  void AddPrologue(BoundPrologue prologue, const device::BoundView& target);
  // `given` laid out as `wanted`: itself if it is; packed if it is a constant; else reordered into
  // work memory during each run.
  base::Result<StoredTensor> As(const StoredTensor& given, const Desc& wanted);
  base::Status Reorder(const StoredTensor& from, const StoredTensor& to);
  // Where a primitive that writes `wanted` puts its result: `result` itself if it is laid out so,
  // else work memory, from which Deliver then brings it there.
  StoredTensor Target(const StoredTensor& result, const Desc& wanted);
  base::Status Deliver(const StoredTensor& target, const StoredTensor& result);
  bool IsConstant(const StoredTensor& place) const {
    return place.packed != nullptr ||
           (place.buffer != program::kNoBuffer && constants_[place.buffer] != nullptr);
  }
  // Appends a primitive, with work memory for its scratchpad.
  void Append(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& desc,
              std::vector<Argument> arguments);
  // Forgets what was appended and taken, for another attempt.
  void Clear();

  Work TakeWork() { return std::move(work_); }

 private:
  Runtime& runtime_;
  device::Addresses constants_;
  PackedConstants& packed_;
  Work work_;
};

// Attributes that every primitive of this folder has: its scratchpad is the caller's, so that one
// primitive can run on several threads at the same time.
dnnl::primitive_attr Attributes();

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_SEQUENCE_H_
