// SPDX-License-Identifier: Apache-2.0
//
// Row: several reductions over the same row, each reading the results of those before, then every
// element of the row once more, from the caches by then. Rows that lie closer together than their
// elements are done side by side.

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/engine/reduction.h"
#include "backends/cpu/engine/row_normalization.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::engine {
namespace {

// Elements of a row that is worth turning around, on its way in once per pass and on its way out,
// where it cannot be reduced by row.
constexpr int64_t kShortRow = 256;

// A tile is larger than elsewhere by this: a row goes through a dozen loops, each of which costs
// its call, and few registers are alive at once.
constexpr int64_t kTilesOfRows = 3;
// Results of a tile where they lie closer together than their elements: fewer would read a few
// floats of each cache line.
constexpr int64_t kMinResultLanes = 32;
// Elements of a tile's results that keep a thread busy for long enough.
constexpr int64_t kElementsForAThread = 1 << 16;

// Whether neighbours in the memory of the first tensor that is read along rows belong to different
// rows.
bool AreRowsInterleaved(const device::BoundStep& step, int axes) {
  const auto outer = static_cast<std::ptrdiff_t>(step.domain.size()) - axes;
  // The smallest step along some axes of more than one coordinate.
  const auto nearest = [&](const std::vector<int64_t>& strides, std::ptrdiff_t first,
                           std::ptrdiff_t end) {
    int64_t step_size = INT64_MAX;
    for (std::ptrdiff_t axis = first; axis < end; ++axis) {
      const int64_t stride = strides[static_cast<size_t>(axis)];
      if (step.domain[static_cast<size_t>(axis)] > 1 && stride > 0) {
        step_size = std::min(step_size, stride);
      }
    }
    return step_size;
  };
  for (const device::BoundView& read : step.reads) {
    const auto rank = static_cast<std::ptrdiff_t>(read.strides.size());
    if (rank != static_cast<std::ptrdiff_t>(step.domain.size())) continue;
    const int64_t along = nearest(read.strides, outer, rank);
    if (along == INT64_MAX) continue;
    return nearest(read.strides, 0, outer) < along;
  }
  return false;
}

// Whether a tile has all elements of its rows, so that passes after the first need not read them.
bool IsHolding(const device::BoundStep& step, int axes, int64_t tile_lanes) {
  const int64_t elements =
      tensor::ElementCount(std::span(step.domain).last(static_cast<size_t>(axes)));
  if (!ReductionGrid::CanHold(elements, tile_lanes)) return false;
  return ReductionGrid::HeldLanes(elements, tile_lanes) >= kMinResultLanes ||
         !AreRowsInterleaved(step, axes);
}

// What is computed of each element, with or without what earlier passes held of it.
struct ElementCode {
  std::vector<ReductionCode> reductions;  // one per pass
  Code roots;
  // Where kAccumulator k is: element `index` of the pass's reduction, or its column `index`.
  struct Provided {
    int pass;
    int index;
    bool is_column;
  };
  std::vector<Provided> provided;
};

struct RowCode {
  struct Pass {
    Code results;
    Code hoisted;  // what elements would compute of this pass's results alone
    // Of the columns: the results, then what is hoisted.
    std::vector<tensor::ElementType> types;
  };
  std::vector<Pass> passes;
  ElementCode fresh;
  ElementCode holding;
  Code row_roots;  // those that no element of the row enters
  std::vector<bool> is_per_row;
  int axes;
  std::shared_ptr<const RowNormalization> normalization;  // null where it is none
};

struct BoundPass {
  BoundReduction reduction;
  BoundCode results;
  BoundCode hoisted;
  // Of the results and of what is hoisted, in a scratch of its own: a lane for each result of a
  // tile, and one for each element. Both are the same where reductions are not by row.
  std::vector<int64_t> columns;
  std::vector<int64_t> element_columns;

  BoundPass(const ReductionCode& reduction_code, const RowCode::Pass& pass,
            const device::BoundStep& step)
      : reduction(reduction_code, step), results(pass.results, step), hoisted(pass.hoisted, step) {}
};

class BoundRow final : public device::BoundKernel {
 public:
  BoundRow(std::shared_ptr<const RowCode> code, const device::BoundStep& step, Runtime& runtime)
      : code_(std::move(code)),
        is_holding_(IsHolding(step, code_->axes, runtime.settings().tile_lanes)),
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
    passes_.reserve(code_->passes.size());
    for (size_t s = 0; s < code_->passes.size(); ++s) {
      passes_.emplace_back(elements_.reductions[s], code_->passes[s], step);
    }
    LayOut(step);
  }

  std::string Detail() const override { return processor::VectorName(); }

  base::Status Run(device::Addresses addresses) const override {
    if (grid_.has_no_results()) return base::Ok();
    int64_t cost_of_element = elements_.roots.cost() + 100;
    int64_t cost_of_row = code_->row_roots.cost() + 100;
    for (size_t s = 0; s < passes_.size(); ++s) {
      const ReductionCode& reduction = elements_.reductions[s];
      cost_of_element += reduction.elements.cost() + reduction.update.cost();
      cost_of_row += grid_.parts() * reduction.merge.cost() + code_->passes[s].results.cost() +
                     code_->passes[s].hoisted.cost() + 100;
    }
    return runtime_.For(grid_.result_tile_count(),
                        grid_.result_lanes() * (grid_.elements() * cost_of_element + cost_of_row),
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  // What one thread needs for one pass.
  struct PassFrame {
    ReductionFrame reduction;
    Frame results;
    Frame hoisted;
  };

  void LayOut(const device::BoundStep& step) {
    std::vector<LinearForm*> forms;
    const LinearForm* primary = nullptr;
    for (BoundPass& pass : passes_) {
      pass.reduction.AppendForms(forms);
      pass.results.AppendForms(forms);
      if (primary == nullptr) primary = FindPrimary(pass.reduction.accesses());
    }
    roots_.AppendForms(forms);
    row_roots_.AppendForms(forms);
    writer_.AppendForms(forms);
    row_writer_.AppendForms(forms);
    if (primary == nullptr) primary = FindPrimary(roots_.accesses());
    const bool allows_rows =
        is_holding_ && std::all_of(passes_.begin(), passes_.end(), [](const BoundPass& pass) {
          return pass.reduction.CanReduceRows();
        });
    grid_ = ReductionGrid(step.domain, code_->axes, primary, forms,
                          {.tile_lanes = kTilesOfRows * runtime_.settings().tile_lanes,
                           .is_row = true,
                           .allows_rows = allows_rows,
                           .short_reduction = kShortRow,
                           .max_result_lanes = MaxResultLanes(step),
                           .holds_reduction = is_holding_});
    if (grid_.has_no_results()) return;
    int64_t scratch_bytes = writer_.scratch_bytes() + row_writer_.scratch_bytes();
    for (size_t s = 0; s < passes_.size(); ++s) {
      BoundPass& pass = passes_[s];
      pass.reduction.LayOut(grid_);
      pass.results.LayOut(grid_.results_grid(), grid_.result_lanes());
      pass.hoisted.LayOut(grid_.results_grid(), grid_.result_lanes());
      scratch_bytes += pass.reduction.scratch_bytes() + pass.results.scratch_bytes() +
                       pass.hoisted.scratch_bytes();
      for (tensor::ElementType type : code_->passes[s].types) {
        auto take = [&](int64_t lanes) {
          constexpr int64_t kLine = 64;
          const int64_t column = columns_bytes_;
          const int64_t bytes = lanes * reference::LaneBytes(type);
          columns_bytes_ += (bytes + kLine - 1) / kLine * kLine + 2 * kLine;
          return column;
        };
        pass.element_columns.push_back(take(grid_.tile_lanes()));
        pass.columns.push_back(grid_.is_by_row() ? take(grid_.result_lanes())
                                                 : pass.element_columns.back());
      }
    }
    roots_.LayOut(grid_.elements_grid(), grid_.tile_lanes());
    row_roots_.LayOut(grid_.results_grid(), grid_.result_lanes());
    writer_.LayOut(grid_.elements_grid(), runtime_.settings().streamed_bytes);
    row_writer_.LayOut(grid_.results_grid(), Writer::kNeverStreamed);
    frames_bytes_ = static_cast<int64_t>(passes_.size() * sizeof(PassFrame));
    frames_bytes_ = (frames_bytes_ + 63) / 64 * 64;
    runtime_.scratch().Reserve(scratch_bytes + columns_bytes_ + frames_bytes_ +
                               roots_.scratch_bytes() + row_roots_.scratch_bytes());
  }

  // Few enough for other threads to have some, too.
  int64_t MaxResultLanes(const device::BoundStep& step) const {
    const int64_t elements =
        tensor::ElementCount(std::span(step.domain).last(static_cast<size_t>(code_->axes)));
    const int64_t enough = kElementsForAThread / std::max<int64_t>(1, elements);
    return std::max(enough, kMinResultLanes);
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    auto take = [&scratch](int64_t size_bytes) {
      std::byte* taken = scratch;
      scratch += size_bytes;
      return taken;
    };
    std::byte* columns = take(columns_bytes_);
    auto row = [&](uint64_t payload) {
      return columns + passes_[payload / 256].columns[payload % 256];
    };
    auto row_of_elements = [&](uint64_t payload) {
      return columns + passes_[payload / 256].element_columns[payload % 256];
    };
    // Frames own nothing, so they need no end.
    auto* passes = reinterpret_cast<PassFrame*>(take(frames_bytes_));
    for (size_t s = 0; s < passes_.size(); ++s) {
      const BoundPass& pass = passes_[s];
      std::byte* reduction_scratch = take(pass.reduction.scratch_bytes());
      std::byte* results_scratch = take(pass.results.scratch_bytes());
      std::byte* hoisted_scratch = take(pass.hoisted.scratch_bytes());
      PassFrame* frame = new (&passes[s])
          PassFrame{ReductionFrame(pass.reduction, grid_, addresses, reduction_scratch),
                    Frame(pass.results, addresses, results_scratch, grid_.result_lanes()),
                    Frame(pass.hoisted, addresses, hoisted_scratch, grid_.result_lanes())};
      frame->reduction.AttachRows(row, row_of_elements);
      frame->results.Attach(program::ExprOp::kRow, row);
      frame->hoisted.Attach(program::ExprOp::kRow, row);
      frame->results.Attach(program::ExprOp::kState, [&](uint64_t k) {
        return frame->reduction.state(static_cast<int>(k));
      });
    }
    Frame roots(roots_, addresses, take(roots_.scratch_bytes()), grid_.tile_lanes());
    roots.Attach(program::ExprOp::kRow, row_of_elements);
    auto provided = [&](uint64_t k) {
      const ElementCode::Provided& at = elements_.provided[k];
      return at.is_column ? columns + passes_[at.pass].element_columns[at.index]
                          : const_cast<std::byte*>(passes[at.pass].reduction.element(at.index));
    };
    Frame row_roots(row_roots_, addresses, take(row_roots_.scratch_bytes()), grid_.result_lanes());
    row_roots.Attach(program::ExprOp::kRow, row);
    std::byte* writer_scratch = take(writer_.scratch_bytes());
    std::byte* row_writer_scratch = take(row_writer_.scratch_bytes());

    Box result;
    for (int64_t tile = begin; tile < end; ++tile) {
      grid_.MoveToResult(tile, result);
      const int64_t lanes = grid_.LanesOf(result);
      for (size_t s = 0; s < passes_.size(); ++s) {
        // A load's register is where the load found it, so it moves with the tile.
        passes[s].reduction.AttachProvided(provided);
        passes[s].reduction.Run(result);
        passes[s].results.Run(result);
        TakeColumns(s, /*first=*/0, passes[s].results, lanes, columns);
        passes[s].hoisted.Run(result);
        TakeColumns(s, passes_[s].results.code().roots().size(), passes[s].hoisted, lanes, columns);
      }
      if (!row_writer_.empty()) {
        row_writer_.Run(row_roots, result, addresses, row_writer_scratch);
      }
      if (writer_.empty() || grid_.has_no_elements()) continue;
      roots.Attach(program::ExprOp::kAccumulator, provided);
      Box box = grid_.FirstElements(result);
      for (int64_t left = grid_.element_tile_count(); left-- > 0;) {
        writer_.Run(roots, box, addresses, writer_scratch);
        grid_.MoveOn(box);
      }
    }
    writer_.Finish();
    row_writer_.Finish();
  }

  // Copies the roots of `frame` to the columns of a pass from `first` on, for results and for
  // elements.
  void TakeColumns(size_t pass, size_t first, const Frame& frame, int64_t lanes,
                   std::byte* columns) const {
    const BoundPass& bound = passes_[pass];
    for (size_t k = first; k < first + frame.root_count(); ++k) {
      const int64_t lane_bytes = reference::LaneBytes(code_->passes[pass].types[k]);
      std::byte* column = columns + bound.columns[k];
      std::memcpy(column, frame.root(static_cast<int>(k - first)),
                  static_cast<size_t>(lanes * lane_bytes));
      if (grid_.is_by_row()) {
        SpreadOverRows(column, lane_bytes, lanes, grid_.elements(),
                       columns + bound.element_columns[k]);
      } else {
        Repeat(column, lane_bytes, lanes, grid_.tile_lanes() / grid_.result_lanes() * lanes);
      }
    }
  }

  const std::shared_ptr<const RowCode> code_;  // shared with the kernel
  const bool is_holding_;
  const ElementCode& elements_;
  std::vector<BoundPass> passes_;
  BoundCode roots_;
  BoundCode row_roots_;
  Writer writer_;
  Writer row_writer_;
  ReductionGrid grid_;
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
      if (code_->normalization) {
        bound = BindRowNormalization(code_->normalization, step, runtime_);
      }
      if (bound == nullptr) bound = std::make_unique<BoundRow>(code_, step, runtime_);
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

// What is made of results of passes alone, below `root`: the largest such expressions, and the last
// pass whose results they read.
struct Hoisted {
  program::ExprId node;
  int pass;
};
void FindHoisted(const program::ExprPool& pool, std::span<const program::ExprId> roots,
                 std::vector<Hoisted>& hoisted) {
  constexpr int kUniform = -1;
  constexpr int kElement = INT_MAX;  // something else enters
  std::unordered_map<program::ExprId, int> stage_of;
  auto take = [&](program::ExprId id) {
    const int pass = stage_of.at(id);
    if (pass == kUniform || pass == kElement || pool[id].op == program::ExprOp::kRow) return;
    const bool is_known = std::any_of(hoisted.begin(), hoisted.end(),
                                      [&](const Hoisted& known) { return known.node == id; });
    if (!is_known) hoisted.push_back({id, pass});
  };
  for (program::ExprId id : program::Reachable(pool, roots)) {
    const program::ExprNode& node = pool[id];
    int pass = kUniform;
    if (node.op == program::ExprOp::kRow) {
      pass = static_cast<int>(node.payload / 256);
    } else if (node.op == program::ExprOp::kLoad ||
               (node.op != program::ExprOp::kConstant && node.op != program::ExprOp::kDim &&
                node.operands.empty())) {
      pass = kElement;
    }
    for (program::ExprId operand : node.operands) pass = std::max(pass, stage_of.at(operand));
    stage_of[id] = pass;
    if (pass != kElement) continue;
    for (program::ExprId operand : node.operands) take(operand);
  }
  for (program::ExprId root : roots) take(root);
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
  // What is hoisted comes from outside to every element; what a pass held, to those after it.
  std::vector<Hoisted> hoisted;
  for (const program::Row::Pass& pass : row.passes) {
    std::vector<program::ExprId> updates;
    for (const program::Reduction::State& state : pass.reduction.states)
      updates.push_back(state.update);
    FindHoisted(pool, updates, hoisted);
  }
  FindHoisted(pool, row.roots, hoisted);
  std::vector<program::ExprId> provided;
  for (size_t s = 0; s < row.passes.size(); ++s) {
    const program::Row::Pass& pass = row.passes[s];
    std::vector<program::ExprId> columns(pass.results.begin(), pass.results.end());
    for (const Hoisted& found : hoisted) {
      if (found.pass != static_cast<int>(s)) continue;
      code.fresh.provided.push_back({found.pass, static_cast<int>(columns.size()), true});
      provided.push_back(found.node);
      columns.push_back(found.node);
    }
    const auto results = std::span(columns).first(pass.results.size());
    code.passes.push_back({Code::Compile(pool, results, loops),
                           Code::Compile(pool, std::span(columns).subspan(results.size()), loops),
                           {}});
    for (program::ExprId column : columns) code.passes.back().types.push_back(pool[column].type);
  }
  code.holding.provided = code.fresh.provided;
  std::vector<program::ExprId> held = provided;
  for (size_t s = 0; s < row.passes.size(); ++s) {
    const program::Reduction& reduction = row.passes[s].reduction;
    code.fresh.reductions.push_back(ReductionCode::Compile(pool, reduction, loops, provided));
    code.holding.reductions.push_back(ReductionCode::Compile(pool, reduction, loops, held));
    const std::vector<program::ExprId>& nodes = code.holding.reductions.back().element_nodes;
    for (size_t k = 0; k < nodes.size(); ++k) {
      if (std::find(held.begin(), held.end(), nodes[k]) != held.end()) continue;
      held.push_back(nodes[k]);
      code.holding.provided.push_back({static_cast<int>(s), static_cast<int>(k), false});
    }
  }
  code.fresh.roots = Code::Compile(pool, row.roots, loops, provided);
  code.holding.roots = Code::Compile(pool, row.roots, loops, held);
  code.normalization = FindRowNormalization(pool, facts.step, loops);
  return std::make_unique<RowKernel>(std::make_shared<const RowCode>(std::move(code)), runtime);
}

}  // namespace onnxifi::engine
