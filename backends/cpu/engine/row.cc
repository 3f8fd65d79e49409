// SPDX-License-Identifier: Apache-2.0
//
// Row: several folds over the same row, each reading the results of those before, then every
// element of the row once more, from the caches by then. Rows that lie closer together than their
// elements are done side by side.

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/fold.h"
#include "backends/cpu/engine/recipe.h"

namespace onnxifi::engine {
namespace {

// Elements of a row that is worth turning around, on its way in once per stage and on its way out.
constexpr int64_t kShortRow = 256;

// What is computed of each element, with or without what earlier stages held of it.
struct ElementCode {
  std::vector<FoldCode> folds;  // one per stage
  Code roots;
};

struct RowCode {
  struct Stage {
    Code results;
    std::vector<tensor::ElementType> types;  // of the results
  };
  std::vector<Stage> stages;
  ElementCode fresh;
  ElementCode holding;  // kAccumulator k is held[k]
  struct Held {
    int stage;
    int element;
  };
  std::vector<Held> held;
  Code row_roots;  // those that no element of the row enters
  std::vector<bool> is_per_row;
  int axes;
};

struct BoundStage {
  BoundFold fold;
  BoundCode results;
  std::vector<int64_t> columns;  // of the results, in a scratch of its own

  BoundStage(const FoldCode& fold_code, const Code& results_code, const device::BoundStep& step)
      : fold(fold_code, step), results(results_code, step) {}
};

class BoundRow final : public device::BoundKernel {
 public:
  BoundRow(std::shared_ptr<const RowCode> code, const device::BoundStep& step, Runtime& runtime)
      : code_(std::move(code)),
        is_holding_(FoldGrid::CanHold(
            tensor::ElementCount(std::span(step.domain).last(static_cast<size_t>(code_->axes))),
            runtime.settings().tile_lanes)),
        elements_(is_holding_ ? code_->holding : code_->fresh),
        roots_(elements_.roots, step),
        row_roots_(code_->row_roots, step),
        runtime_(runtime) {
    const int rank = static_cast<int>(step.domain.size());
    std::vector<bool> is_written_per_row, is_written_per_element;
    for (size_t k = 0; k < step.writes.size(); ++k) {
      const std::vector<int64_t>& strides = step.writes[k].strides;
      const bool is_fixed = std::all_of(strides.end() - code_->axes, strides.end(),
                                        [](int64_t stride) { return stride == 0; });
      is_written_per_row.push_back(is_fixed && code_->is_per_row[k]);
      is_written_per_element.push_back(!is_written_per_row.back());
    }
    writer_ = Writer(step.writes, rank, is_written_per_element);
    row_writer_ = Writer(step.writes, rank, is_written_per_row);
    stages_.reserve(code_->stages.size());
    for (size_t s = 0; s < code_->stages.size(); ++s) {
      stages_.emplace_back(elements_.folds[s], code_->stages[s].results, step);
    }
    LayOut(step);
  }

  base::Status Run(device::Addresses addresses) const override {
    if (grid_.has_no_results()) return base::Ok();
    int64_t cost_of_element = elements_.roots.cost() + 100;
    int64_t cost_of_row = code_->row_roots.cost() + 100;
    for (size_t s = 0; s < stages_.size(); ++s) {
      const FoldCode& fold = elements_.folds[s];
      cost_of_element += fold.elements.cost() + fold.update.cost();
      cost_of_row += grid_.parts() * fold.merge.cost() + code_->stages[s].results.cost() + 100;
    }
    return runtime_.For(grid_.result_tile_count(),
                        grid_.result_lanes() * (grid_.elements() * cost_of_element + cost_of_row),
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  // What one thread needs for one stage.
  struct StageFrame {
    FoldFrame fold;
    Frame results;
  };

  void LayOut(const device::BoundStep& step) {
    std::vector<LinearForm*> forms;
    const LinearForm* primary = nullptr;
    for (BoundStage& stage : stages_) {
      stage.fold.AppendForms(forms);
      stage.results.AppendForms(forms);
      if (primary == nullptr) primary = FindPrimary(stage.fold.accesses());
    }
    roots_.AppendForms(forms);
    row_roots_.AppendForms(forms);
    writer_.AppendForms(forms);
    row_writer_.AppendForms(forms);
    if (primary == nullptr) primary = FindPrimary(roots_.accesses());
    grid_ = FoldGrid(step.domain, code_->axes, primary, forms, runtime_.settings().tile_lanes,
                     kShortRow, is_holding_);
    if (grid_.has_no_results()) return;
    int64_t scratch_bytes = writer_.scratch_bytes() + row_writer_.scratch_bytes();
    for (size_t s = 0; s < stages_.size(); ++s) {
      BoundStage& stage = stages_[s];
      stage.fold.LayOut(grid_);
      stage.results.LayOut(grid_.results_grid(), grid_.result_lanes());
      scratch_bytes += stage.fold.scratch_bytes() + stage.results.scratch_bytes();
      for (tensor::ElementType type : code_->stages[s].types) {
        constexpr int64_t kLine = 64;
        stage.columns.push_back(columns_bytes_);
        const int64_t bytes = grid_.tile_lanes() * reference::LaneBytes(type);
        columns_bytes_ += (bytes + kLine - 1) / kLine * kLine + 2 * kLine;
      }
    }
    roots_.LayOut(grid_.elements_grid(), grid_.tile_lanes());
    row_roots_.LayOut(grid_.results_grid(), grid_.result_lanes());
    writer_.LayOut(grid_.elements_grid(), runtime_.settings().streamed_bytes);
    row_writer_.LayOut(grid_.results_grid(), Writer::kNeverStreamed);
    frames_bytes_ = static_cast<int64_t>(stages_.size() * sizeof(StageFrame));
    frames_bytes_ = (frames_bytes_ + 63) / 64 * 64;
    runtime_.scratch().Reserve(scratch_bytes + columns_bytes_ + frames_bytes_ +
                               roots_.scratch_bytes() + row_roots_.scratch_bytes());
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    auto take = [&scratch](int64_t size_bytes) {
      std::byte* taken = scratch;
      scratch += size_bytes;
      return taken;
    };
    std::byte* columns = take(columns_bytes_);
    auto row = [&](uint64_t payload) {
      return columns + stages_[payload / 256].columns[payload % 256];
    };
    // Frames own nothing, so they need no end.
    auto* stages = reinterpret_cast<StageFrame*>(take(frames_bytes_));
    for (size_t s = 0; s < stages_.size(); ++s) {
      const BoundStage& stage = stages_[s];
      std::byte* fold_scratch = take(stage.fold.scratch_bytes());
      std::byte* results_scratch = take(stage.results.scratch_bytes());
      StageFrame* frame = new (&stages[s])
          StageFrame{FoldFrame(stage.fold, grid_, addresses, fold_scratch),
                     Frame(stage.results, addresses, results_scratch, grid_.result_lanes())};
      frame->fold.AttachRows(row);
      frame->results.Attach(program::ExprOp::kRow, row);
      frame->results.Attach(program::ExprOp::kState,
                            [&](uint64_t k) { return frame->fold.state(static_cast<int>(k)); });
    }
    Frame roots(roots_, addresses, take(roots_.scratch_bytes()), grid_.tile_lanes());
    roots.Attach(program::ExprOp::kRow, row);
    auto held = [&](uint64_t k) {
      const RowCode::Held& at = code_->held[k];
      return const_cast<std::byte*>(stages[at.stage].fold.element(at.element));
    };
    Frame row_roots(row_roots_, addresses, take(row_roots_.scratch_bytes()), grid_.result_lanes());
    row_roots.Attach(program::ExprOp::kRow, row);
    std::byte* writer_scratch = take(writer_.scratch_bytes());
    std::byte* row_writer_scratch = take(row_writer_.scratch_bytes());

    Box result;
    for (int64_t tile = begin; tile < end; ++tile) {
      grid_.MoveToResult(tile, result);
      const int64_t lanes = grid_.LanesOf(result);
      for (size_t s = 0; s < stages_.size(); ++s) {
        // A load's register is where the load found it, so it moves with the tile.
        if (is_holding_) stages[s].fold.AttachHeld(held);
        stages[s].fold.Run(result);
        stages[s].results.Run(result);
        const std::vector<tensor::ElementType>& types = code_->stages[s].types;
        for (size_t k = 0; k < types.size(); ++k) {
          // Once for every element of a tile.
          const int64_t lane_bytes = reference::LaneBytes(types[k]);
          std::byte* column = row(s * 256 + k);
          std::memcpy(column, stages[s].results.root(static_cast<int>(k)),
                      static_cast<size_t>(lanes * lane_bytes));
          Repeat(column, lane_bytes, lanes, grid_.tile_lanes() / grid_.result_lanes() * lanes);
        }
      }
      if (!row_writer_.empty()) {
        row_writer_.Run(row_roots, result, addresses, row_writer_scratch);
      }
      if (writer_.empty() || grid_.has_no_elements()) continue;
      if (is_holding_) roots.Attach(program::ExprOp::kAccumulator, held);
      Box box = grid_.FirstElements(result);
      for (int64_t left = grid_.element_tile_count(); left-- > 0;) {
        writer_.Run(roots, box, addresses, writer_scratch);
        grid_.MoveOn(box);
      }
    }
    writer_.Finish();
    row_writer_.Finish();
  }

  const std::shared_ptr<const RowCode> code_;  // shared with the kernel
  const bool is_holding_;
  const ElementCode& elements_;
  std::vector<BoundStage> stages_;
  BoundCode roots_;
  BoundCode row_roots_;
  Writer writer_;
  Writer row_writer_;
  FoldGrid grid_;
  int64_t columns_bytes_ = 0;
  int64_t frames_bytes_ = 0;
  Runtime& runtime_;
};

class RowKernel final : public device::Kernel {
 public:
  RowKernel(std::shared_ptr<const RowCode> code, Runtime& runtime)
      : code_(std::move(code)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = std::make_unique<BoundRow>(code_, step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  const std::shared_ptr<const RowCode> code_;  // shared with what it bound
  Runtime& runtime_;
};

// Whether a root is the same for all elements of a row.
bool IsPerRow(const program::ExprPool& pool, program::ExprId root, uint64_t outer_rank) {
  const program::ExprId only[] = {root};
  const std::vector<program::ExprId> nodes = program::Reachable(pool, only);
  return std::none_of(nodes.begin(), nodes.end(), [&](program::ExprId id) {
    const program::ExprNode& node = pool[id];
    return node.op == program::ExprOp::kLoad ||
           (node.op == program::ExprOp::kIndex && node.payload >= outer_rank);
  });
}

}  // namespace

std::unique_ptr<device::Kernel> BuildRow(const device::Facts& facts, Runtime& runtime) {
  const program::Row& row = *facts.step.As<program::Row>();
  const program::ExprPool& pool = facts.program.exprs;
  const LoopSet loops = runtime.settings().loops;
  const uint64_t outer_rank = facts.step.domain.size() - static_cast<uint64_t>(row.axes);
  RowCode code{.axes = row.axes};
  std::vector<program::ExprId> row_roots;
  for (program::ExprId root : row.roots) {
    const bool is_per_row = IsPerRow(pool, root, outer_rank);
    code.is_per_row.push_back(is_per_row);
    row_roots.push_back(is_per_row ? root : program::kNoExpr);
  }
  code.row_roots = Code::Compile(pool, row_roots, loops);
  std::vector<program::ExprId> held;
  for (size_t s = 0; s < row.stages.size(); ++s) {
    const program::Row::Stage& stage = row.stages[s];
    code.stages.push_back({Code::Compile(pool, stage.results, loops), {}});
    for (program::ExprId result : stage.results) {
      code.stages.back().types.push_back(pool[result].type);
    }
    code.fresh.folds.push_back(FoldCode::Compile(pool, stage.fold, loops));
    code.holding.folds.push_back(FoldCode::Compile(pool, stage.fold, loops, held));
    const std::vector<program::ExprId>& nodes = code.holding.folds.back().element_nodes;
    for (size_t k = 0; k < nodes.size(); ++k) {
      if (std::find(held.begin(), held.end(), nodes[k]) != held.end()) continue;
      held.push_back(nodes[k]);
      code.held.push_back({static_cast<int>(s), static_cast<int>(k)});
    }
  }
  code.fresh.roots = Code::Compile(pool, row.roots, loops);
  code.holding.roots = Code::Compile(pool, row.roots, loops, held);
  return std::make_unique<RowKernel>(std::make_shared<const RowCode>(std::move(code)), runtime);
}

}  // namespace onnxifi::engine
