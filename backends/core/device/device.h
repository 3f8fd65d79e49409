// SPDX-License-Identifier: Apache-2.0
//
// Device: what hardware must offer to run tensor programs: memory, and for each step a recipe and
// the kernel built from it. A backend is an implementation of this; everything else it inherits
// from the kit.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/parallel.h"
#include "backends/core/program/program.h"

namespace onnxifi::device {

// What Select may look at: the step, and of its operands type, rank, extents (number or symbol) and
// constness. Never the values of constants.
struct Facts {
  const program::Program& program;
  const program::Step& step;

  bool IsConstant(const program::View& view) const {
    return program.buffers[view.buffer].kind == program::Buffer::Kind::kConstant;
  }
};

// How a device will do one step: which implementation, with everything it decided. Refers to the
// program and step it was selected for, which outlive it.
class Recipe {
 public:
  virtual ~Recipe() = default;
  // For reports, e.g. "reference" or "onednn matmul".
  virtual std::string_view implementation() const = 0;
  // Whether operand `read`, where it is a constant, may lie at any address, and not only at one of
  // its elements' type; such a constant may be part of a model's bytes. Else it is copied. Reads of
  // fused steps are numbered as for BoundKernel::ReadsAtRun.
  virtual bool TakesAnyAddress(int /*read*/) const { return false; }
  // To what it rounds the float32 operands of its products: nothing that Program::precision does
  // not permit.
  virtual tensor::Precision precision() const { return tensor::Precision::kFloat32; }
};

struct Selection {
  std::unique_ptr<const Recipe> recipe;
  // Faster implementations that were passed over, with the reason.
  std::vector<base::Status> rejected;
  // The device has no kernel of its own for the step: the reference computes it. A node with such a
  // step is claimed with FALLBACK. A device that takes the reference's loops for its own kernels,
  // as the CPU does on all of its threads, leaves this false.
  bool is_emulated = false;
};

// Consecutive steps of a program. Each but the first is the sole consumer of the step before it,
// and reads its result with read 0 alone.
using FusableSteps = std::span<const Facts>;

// The recipe of one kernel for the first `steps` of some fusable steps. The results between them
// have no place in the arena. With 0 there is no recipe and the steps are selected one by one;
// `rejected` may hold the reasons.
struct FusedSelection {
  int steps = 0;
  Selection selection;
};

// A view with numbers in place of expressions.
struct BoundGuard {
  std::vector<int64_t> coefficients;
  int64_t offset;
  int64_t extent;
};
struct BoundView {
  program::BufferId buffer;
  tensor::ElementType type;
  int64_t offset;
  std::vector<int64_t> strides;
  std::vector<BoundGuard> guards;
  tensor::Scalar fill;
  // Of all of the buffer; -1 where that is known only when it is written.
  int64_t buffer_bytes = -1;
};

// A step with numbers: what a kernel is prepared for. `dims` gives the number of any other Dim of
// the step (tensor::ValueOf(dim, dims)).
struct BoundStep {
  const program::Program* program;
  const program::Step* step;
  tensor::Extents domain;
  std::vector<BoundView> reads;
  std::vector<BoundView> writes;
  std::span<const int64_t> dims;

  int64_t Number(const program::Dim& dim) const { return tensor::ValueOf(dim, dims); }
};
BoundStep Bind(const program::Program& program, const program::Step& step,
               std::span<const int64_t> dims);

// Memory of the device. `data` is a host address where the device's memory is the host's. Elsewhere
// it is an address that only the device understands: address_space.h gives out such, and a device
// whose driver has addresses of its own gives those. Either way `data` plus an offset within the
// allocation is the address of what lies there.
class Allocation {
 public:
  virtual ~Allocation() = default;
  virtual std::byte* data() = 0;
  virtual int64_t size_bytes() const = 0;
  // Nobody is going to read it soon: what can be had again is given back until then. Any thread,
  // also while others read.
  virtual void Rest() {}
};

class Memory {
 public:
  virtual ~Memory() = default;
  // 64-byte aligned or better, not cleared. NO_DEVICE_MEMORY or NO_SYSTEM_MEMORY with size and
  // limit. Any thread.
  virtual base::Result<std::unique_ptr<Allocation>> Allocate(int64_t size_bytes) = 0;
  // A constant in the device's memory, there when this returns. The default borrows the tensor's
  // own memory, for devices whose memory is the host's.
  virtual base::Result<std::unique_ptr<Allocation>> Hold(const tensor::Tensor& constant);
};

// Where each buffer of a program lies during a run: addresses[BufferId]. Null for buffers that this
// step does not touch.
using Addresses = std::span<std::byte* const>;

// Where one run of a device with memory of its own puts its work: everything is done in the order
// in which it was put in, and after what was put into the device's other queues before. Host memory
// that is named has to stay until Finish returns. One thread at a time.
class Queue {
 public:
  // Waits for what is still under way.
  virtual ~Queue() = default;
  virtual base::Status Upload(const std::byte* from_host, std::byte* to, int64_t size_bytes) = 0;
  // A few bytes, a power of two and at most 128, that the caller may change when this returns.
  virtual base::Status UploadCopy(std::span<const std::byte> from_host, std::byte* to);
  virtual base::Status Download(const std::byte* from, std::byte* to_host, int64_t size_bytes) = 0;
  // Within the device; `from` and `to` do not overlap.
  virtual base::Status Copy(const std::byte* from, std::byte* to, int64_t size_bytes) = 0;
  // Returns when all of it is in the device's order: before what anybody puts in later.
  virtual base::Status Submit() { return base::Ok(); }
  // Returns when all of it is done, with the first error of what was put in.
  virtual base::Status Finish() = 0;
  // Keeps an object until all that is in the queue is done, or, while the queue records
  // (recording_queue.h), as long as the recording. The default is for queues that record nothing,
  // of drivers that keep what commands name.
  virtual void Keep(std::shared_ptr<const void> /*object*/) {}
  // Asks whether the run that begins now becomes part of what the caller captures from a queue of
  // his, to start it later, as often as he wants: it must not wait, and what Keep is given stays as
  // long as that can be started. Before anything of the run is put in.
  virtual bool FindCapture() { return false; }
  // What FindCapture said last.
  virtual bool is_captured() const { return false; }
  // How often work was handed to the driver so far; -1 if the queue does not tell.
  virtual int64_t submission_count() const { return -1; }
};

// A step ready to run on given extents. Immutable; several runs may launch it at the same time.
// A kernel of a device with queues has Enqueue, one of any other device Run.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // Does the work, on the calling thread and the device's own workers, and returns when it is done.
  virtual base::Status Run(Addresses addresses) const;
  // Puts the work into a queue of the device that built the kernel and returns without waiting.
  virtual base::Status Enqueue(Queue& queue, Addresses addresses) const;
  // Whether runs look at the address of the step's read number `read`. False promises that Bind
  // took all that it needs of a constant, which may then be gone. The reads of fused steps are
  // numbered step after step. Any thread.
  virtual bool ReadsAtRun(int /*read*/) const { return true; }
  // For reports: what was chosen for these extents beyond the recipe's name, such as a library's
  // kernels; empty if there is nothing more to say.
  virtual std::string Detail() const { return {}; }
};

// What Build made from a recipe, before extents are known.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `constants[BufferId]`: addresses of constant buffers (null for others), valid during the call;
  // a run gives them again where ReadsAtRun says so. A step that a claim promised is refused here
  // only for lack of resources. Any thread.
  virtual base::Result<std::unique_ptr<BoundKernel>> Bind(const BoundStep& step,
                                                          Addresses constants) = 0;
  // The same for the recipe of fused steps.
  virtual base::Result<std::unique_ptr<BoundKernel>> BindFused(std::span<const BoundStep> steps,
                                                               Addresses constants);
};

// Answers whether and how a step can be done, without the hardware being opened.
class Selector {
 public:
  virtual ~Selector() = default;
  // Pure: no allocation on the device, no driver call, no weights. The status of a refusal is an
  // UNSUPPORTED_* code with a sentence. Any thread.
  virtual base::Result<Selection> Select(const Facts& facts) const = 0;
  // Whether and how one kernel computes the first of some fusable steps. Called before Select, with
  // two or more of them. Pure, like Select. Any thread.
  virtual FusedSelection SelectFused(FusableSteps /*fusable*/) const { return {}; }
  // Whether the step runs faster when the channels of the tensors [N, C, spatial] that it reads and
  // writes are innermost in memory. Pure, like Select. Any thread.
  virtual bool PrefersChannelsLast(const Facts& /*facts*/) const { return false; }
  // Whether a convolution that program::ExpandWinograd takes runs faster as the steps which that
  // makes, and the device runs these. Pure, like Select. Any thread.
  virtual bool PrefersWinograd(const Facts& /*facts*/) const { return false; }
  // Whether a step of the family Attention, which program::FuseAttention would put in the place of
  // products and a softmax, runs faster than these, by a kernel of the device's own. Pure, like
  // Select. Any thread.
  virtual bool PrefersAttention(const Facts& /*facts*/) const { return false; }
  // Whether the device does a step of the family Recurrent by a kernel of its own. Where it does
  // not, program::ExpandRecurrent puts a scan over time in its place. Pure, like Select. Any
  // thread.
  virtual bool PrefersRecurrent(const Facts& /*facts*/) const { return false; }
  // Whether steps with numbers for extents run by other kernels, or in other orders in memory, than
  // with symbols, so that a graph is best compiled again for a shape that comes often. Any thread.
  virtual bool DependsOnNumbers() const { return false; }
  // Whether a Contract or Window that reads narrow floats runs faster as program::WidenFloats
  // leaves it, between Maps that widen and round. Pure, like Select. Any thread.
  virtual bool PrefersWideFloats(const Facts& /*facts*/) const { return false; }
  // Whether a Contract with operands of narrow types (program::FindProductOperand) runs at least as
  // fast as one whose operands other steps have widened in memory. Pure, like Select. Any thread.
  virtual bool PrefersNarrowOperands(const Facts& /*facts*/) const { return false; }
  // Whether a Contract whose prologue dequantizes constant weights (program::MakeWeightProducts)
  // runs at least as fast as one with the weights in float32. Pure, like Select. Any thread.
  virtual bool PrefersQuantizedWeights(const Facts& /*facts*/) const { return false; }
  // Whether a Contract whose prologue selects a constant matrix for each row
  // (program::MakeGatheredProducts) is computed without a copy of the matrices. Pure, like Select.
  // Any thread.
  virtual bool PrefersGatheredMatrices(const Facts& /*facts*/) const { return false; }
};

class Device : public Selector {
 public:
  virtual Memory& memory() = 0;
  // A queue for one run at a time; null where the device's memory is the host's and kernels run on
  // the thread that asks. Lives no longer than the device. Any thread.
  virtual base::Result<std::unique_ptr<Queue>> NewQueue() { return std::unique_ptr<Queue>(); }

  // Fails only for lack of resources. Any thread.
  virtual base::Result<std::unique_ptr<Kernel>> Build(const Recipe& recipe) = 0;

  // A device on which large constants are computed while a graph is made ready: its memory is the
  // host's, and what it computes is what a run would. Null: the reference computes them.
  virtual Device* constant_device() { return nullptr; }

  // Threads on which kernels are bound at the same time. Null: one after the other.
  virtual Parallel* parallel() { return nullptr; }
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_DEVICE_H_
