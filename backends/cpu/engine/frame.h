// SPDX-License-Identifier: Apache-2.0
//
// BoundCode: a Code with numbers: the accesses of its loads and the values of its Dims. Frame: the
// tile registers in which one thread runs it, tile by tile.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_FRAME_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/access.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/geometry.h"
#include "backends/cpu/engine/stream.h"

namespace onnxifi::engine {

// Immutable once laid out. `code` outlives it.
class BoundCode {
 public:
  BoundCode(const Code& code, const device::BoundStep& step);

  const Code& code() const { return *code_; }
  void AppendForms(std::vector<LinearForm*>& forms);
  std::span<const Access> accesses() const { return accesses_; }
  // Or all that enters are coordinates.
  bool ReadsMemory() const;
  // Once the forms are those of `grid`: which accesses need no copy, and how large registers of
  // `lanes` lanes are.
  void LayOut(const Grid& grid, int64_t lanes);
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  friend class Frame;

  // Operations on a value.
  struct Chain {
    int first = -1;                          // value
    std::vector<FusedOperation> operations;  // none: the value itself
    std::vector<int> operands;               // values, of the operations that have one
    FusedLanes first_lanes = FusedLanes::kFloat32;
    FusedLanes result_lanes = FusedLanes::kFloat32;
  };
  // How an instruction is run, given what is uniform in the tiles.
  struct Plan {
    // All lanes of a tile are one number: one is computed, in a register that keeps it for the
    // tiles that have the same.
    bool is_uniform = false;
    int64_t offset = 0;  // of that register
    // Of kFused and of a kLoop that is run as such. An operand of -1 is what `number`, where it has
    // a value, gives.
    Chain chain;
    Chain number;
  };
  void PlanInstructions();
  void FindReadLanes();
  void PlanOperations(const Code::Instruction& instruction, Plan& plan) const;

  const Code* code_;
  std::vector<int64_t> dims_;                // of kDim in the order of code.uniform()
  std::vector<Access> accesses_;             // of loads and coordinates
  std::vector<device::BoundView> at_views_;  // of loads at computed coordinates
  std::vector<std::shared_ptr<const BoundTreeWalk>> walks_;
  std::vector<int> access_of_;    // per varying instruction: in accesses_, at_views_, walks_; or -1
  std::vector<int> direct_root_;  // per value: the first root that it is, or -1
  std::vector<Plan> plans_;       // per varying instruction
  std::vector<bool> is_uniform_;  // per value: all lanes of a tile are one number
  std::vector<bool> is_read_;     // per value: all lanes of it are read
  std::vector<int> uniform_loads_;  // in accesses_
  std::vector<int64_t> slot_offsets_;
  std::vector<int64_t> repeated_offsets_;  // per access: of a register of its own, or -1
  bool has_repeated_ = false;
  Box whole_tile_;
  int64_t lanes_ = 0;
  int64_t scratch_bytes_ = 0;
};

// For one thread. All that it is given outlives it.
class Frame {
 public:
  // `scratch` holds bound.scratch_bytes() on a cache line boundary. No tile has more than `lanes`
  // lanes.
  Frame(const BoundCode& bound, device::Addresses addresses, std::byte* scratch, int64_t lanes);

  // Makes each leaf of kind `op` read from at(its payload).
  template <typename At>
  void Attach(program::ExprOp op, At&& at) {
    for (const Code::Outside& outside : bound_.code().outside()) {
      if (outside.op == op) values_[outside.value] = at(outside.payload);
    }
  }

  // Computes the roots for a tile. Root k is left at targets[k] where that is not null and can be
  // done without a copy; root(k) says where it is.
  // With no targets all roots stay in registers.
  void Run(const Box& box, std::byte* const* targets = nullptr);
  // For code without loads and coordinates.
  void RunLanes(int64_t lanes);
  size_t root_count() const { return bound_.code().roots().size(); }
  const std::byte* root(int k) const { return values_[bound_.code().roots()[k]]; }

 private:
  void RunUniform(int64_t lanes);
  void LoadRepeated();
  void RunLoop(const Code::Instruction& instruction, std::byte* result, int64_t lanes);
  void RunOperations(const BoundCode::Plan& plan, std::byte* result, int64_t lanes);
  void RunChain(const BoundCode::Chain& chain, const std::byte* number, std::byte* result,
                int64_t lanes);
  void LoadLanes(const Access& access, const Box& box, std::byte* result);
  void LoadNumber(const Access& access, const Box& box, std::byte* result);
  void SpreadLanes(tensor::ElementType type, std::byte* result);
  // Whether uniform values are those of `box`; afterwards they are meant to be.
  bool MoveUniform(const Box& box);

  const BoundCode& bound_;
  device::Addresses addresses_;
  std::byte** values_;  // where each value is now
  std::byte** slots_;
  std::byte* scratch_;
  int64_t* uniform_at_;  // per uniform load, where it is now
  bool has_uniform_ = false;
  bool needs_repeated_;  // and has not loaded them yet
};

// Stores roots where their writes want them.
class Writer {
 public:
  static constexpr int64_t kNeverStreamed = int64_t{1} << 62;

  Writer() = default;
  // Of the views, those that `takes` says; root k belongs to views[k].
  Writer(std::span<const device::BoundView> views, int rank, const std::vector<bool>& takes);
  Writer(std::span<const device::BoundView> views, int rank)
      : Writer(views, rank, std::vector<bool>(views.size(), true)) {}

  bool empty() const { return writes_.empty(); }
  void AppendForms(std::vector<LinearForm*>& forms);
  // Results of `streamed_bytes` or more go past the caches.
  void LayOut(const Grid& grid, int64_t streamed_bytes);
  const LinearForm& first_form() const { return writes_[0].access.form; }
  int64_t scratch_bytes() const { return root_count_ * static_cast<int64_t>(sizeof(std::byte*)); }

  // Computes the roots for a tile and stores them. `scratch` holds scratch_bytes().
  void Run(Frame& frame, const Box& box, device::Addresses addresses, std::byte* scratch) const;
  // After the last tile of a range.
  void Finish() const {
    if (has_streams_) FinishStreams();
  }

 private:
  struct Write {
    Access access;
    int root;
    bool is_streamed = false;
  };
  std::vector<Write> writes_;
  int64_t root_count_ = 0;
  bool has_streams_ = false;
};

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_FRAME_H_
