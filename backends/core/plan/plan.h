// SPDX-License-Identifier: Apache-2.0
//
// Plan: a program made ready for one device, once, with extents still symbolic: a kernel per step
// or group of fused steps, the lifetimes of buffers, and the segments between which execution
// learns numbers. Binding a plan to numbers is cheap and cached.

#ifndef ONNXIFI_BACKENDS_CORE_PLAN_PLAN_H_
#define ONNXIFI_BACKENDS_CORE_PLAN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/plan/counters.h"
#include "backends/core/plan/memory_plan.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/program.h"

namespace onnxifi::plan {

// Steps [first_step, end_step) run on the device without a look at any data. If end_step is a step
// of the program, it is a Cut, Control or Host, whose numbers the next segment needs.
struct Segment {
  int first_step = 0;
  int end_step = 0;
  std::vector<int> dim_nodes;     // computed at this segment, operands first
  std::vector<int> requirements;  // of the program, decidable from this segment on
  // Of the program, first written in this segment; without non-tensor values.
  std::vector<int> outputs;
  std::vector<BufferLifetime> temporaries;  // first written in this segment, in its arena
};

// A segment with numbers: immutable, shared by the runs that use it.
struct SegmentBinding {
  std::vector<int64_t> dims;  // value per node of the program's DimTable, as far as known
  std::vector<device::BoundStep> steps;  // of the segment
  // By step: that of fused steps stands at the first of them, nothing at the others.
  std::vector<std::unique_ptr<device::BoundKernel>> kernels;
  int64_t arena_bytes = 0;
  struct Placement {
    program::BufferId buffer;
    int64_t offset_bytes;
  };
  std::vector<Placement> placements;
  struct Output {
    int index;
    tensor::Extents extents;
  };
  std::vector<Output> outputs;  // as Segment::outputs
  device::BoundStep boundary;   // the Cut, Control or Host that ends the segment, if any
  // The segment is the whole program, but for maps that are made of its results, and has so little
  // to do that another thread would not have begun before it is done.
  bool is_tiny = false;
};

class Plan {
 public:
  // Selects and builds a kernel for every step or group of fused steps. `program`, `device` and
  // `counters` outlive the plan. UNSUPPORTED_* with the device's reason, or a resource code.
  static base::Result<std::unique_ptr<Plan>> Create(const program::Program& program,
                                                    device::Device& device, Counters& counters);

  // For a program all of whose extents are numbers: binds every segment, and gives each constant
  // back once no kernel is left that has to see it (BoundKernel::ReadsAtRun). Constants that the
  // program still holds stay in memory. Does nothing for any other program. To be called once,
  // before the plan is used; resource codes.
  base::Status Prepare();

  const program::Program& program() const { return program_; }
  device::Device& device() const { return device_; }
  Counters& counters() const { return counters_; }
  std::span<const Segment> segments() const { return segments_; }
  // Addresses of constant buffers by BufferId; null for the others and for those given back.
  device::Addresses constants() const { return constants_; }
  // Plans of the bodies of the control step `step`.
  std::span<const std::unique_ptr<Plan>> bodies(int step) const { return bodies_.at(step); }
  // How many steps the kernel of a step does: 1, or all fused steps that begin there; 0 where an
  // earlier one does it too.
  int step_count(int step) const { return kernels_[step].steps; }
  // Name of the recipe of a step; empty for steps that run on no device or are done with another.
  std::string_view implementation(int step) const;
  // To what it rounds the operands of its products.
  tensor::Precision precision(int step) const;
  // Why each implementation before it was passed over.
  std::span<const base::Status> rejected(int step) const {
    return kernels_[step].selection.rejected;
  }

  // Numbers for segment `segment`, given a value for every symbol known when it starts and 0 for
  // the rest. Statuses of the program's requirements; resource codes. Any thread.
  base::Result<std::shared_ptr<const SegmentBinding>> Bind(
      int segment, const std::vector<int64_t>& symbols) const;

  // Keeps no binding any longer that was made for these numbers; 0, which is what symbols known
  // later have, stands for any. A run keeps the one it uses. Any thread.
  void Forget(const std::vector<int64_t>& symbols) const;

  // The symbols' numbers that inputs of these extents give; 0 for symbols known only at run time.
  // MISMATCHING_SHAPE naming the input, the axis and both numbers.
  base::Result<std::vector<int64_t>> SymbolsFor(std::span<const tensor::Extents> inputs) const;

  // Whether the extents of the inputs are what the program requires, as far as it can be told
  // before a run. Statuses of its requirements.
  base::Status CheckExtents(const std::vector<int64_t>& symbols) const;

  // Extents of each output for these symbols; -1 where only a run can tell.
  std::vector<tensor::Extents> OutputExtents(const std::vector<int64_t>& symbols) const;

 private:
  Plan(const program::Program& program, device::Device& device, Counters& counters)
      : program_(program), device_(device), counters_(counters) {}

  base::Status BuildKernels();
  // Selects a recipe for `step`, or for the fused steps that begin there.
  base::Status SelectKernel(const program::BufferUses& uses, int step);
  base::Status HoldConstants();
  void CutIntoSegments();
  // Told of each kernel when it is bound, on any thread.
  using OnBound = std::function<void(int step, const device::BoundKernel& kernel)>;
  base::Result<std::shared_ptr<const SegmentBinding>> MakeBinding(
      int segment, const std::vector<int64_t>& symbols, const OnBound& on_bound) const;
  // `dims`: the values of the symbolic expressions that are known in the segment.
  base::Status CheckRequirements(const Segment& segment, std::span<const int64_t> dims) const;
  base::Status BindKernels(const Segment& segment, const OnBound& on_bound,
                           SegmentBinding& binding) const;
  // The constants that the kernel of a step reads, each once.
  std::vector<program::BufferId> ConstantsOf(int step) const;
  // Their bytes.
  int64_t ConstantBytes(int step) const;
  // Whether runs of the kernel of a step look at a constant.
  bool ReadsAtRun(int step, const device::BoundKernel& kernel, program::BufferId constant) const;
  bool IsTiny(const SegmentBinding& binding) const;
  // Takes a binding out of the cache, under mutex_.
  std::shared_ptr<const SegmentBinding> TakeOut(size_t position) const;
  // Lets the constants of a step rest that its kernel does not read when it runs.
  void RestConstants(int step, const device::BoundKernel& kernel) const;

  struct StepKernel {
    device::Selection selection;
    std::unique_ptr<device::Kernel> kernel;
    int steps = 1;
  };

  const program::Program& program_;
  device::Device& device_;
  Counters& counters_;
  std::vector<Segment> segments_;
  std::vector<int> node_levels_;     // by node of the DimTable: the segment that knows its number
  std::vector<StepKernel> kernels_;  // by step
  std::map<int, std::vector<std::unique_ptr<Plan>>> bodies_;
  std::vector<std::unique_ptr<device::Allocation>> held_;  // by BufferId
  std::vector<std::byte*> constants_;
  // By segment; empty unless the plan is prepared.
  std::vector<std::shared_ptr<const SegmentBinding>> prepared_;

  using Key = std::pair<int, std::vector<int64_t>>;
  struct Cached {
    Key key;
    std::shared_ptr<const SegmentBinding> binding;
  };
  mutable std::mutex mutex_;
  mutable std::vector<bool> was_bound_;  // by segment
  // In no order; a run keeps the binding it uses when it falls out.
  mutable std::vector<Cached> cached_;
  mutable std::map<Key, size_t> cache_;  // positions in cached_
  mutable size_t cached_steps_ = 0;      // of all that is in cached_
  mutable std::minstd_rand eviction_random_;
};

}  // namespace onnxifi::plan

#endif  // ONNXIFI_BACKENDS_CORE_PLAN_PLAN_H_
