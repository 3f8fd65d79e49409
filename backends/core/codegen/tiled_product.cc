// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct: which steps are cut into tiles, and which operand is whose.

#include "backends/core/codegen/tiled_product.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/codegen/tiled_numbers.h"

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;
using program::Contract;
using program::ExprId;
using program::ExprNode;

// A product with fewer columns than this leaves most lanes idle, if it has more rows.
constexpr int64_t kFewColumns = 16;

// The product of constant extents; nothing if one is a symbol.
std::optional<int64_t> KnownCount(std::span<const program::Dim> extents) {
  int64_t count = 1;
  for (const program::Dim& extent : extents) {
    if (!extent.is_constant()) return std::nullopt;
    count *= extent.constant();
  }
  return count;
}

}  // namespace

std::vector<program::ExprId> Leaves(const program::ExprPool& pool, program::ExprId root) {
  std::vector<program::ExprId> leaves;
  const program::ExprId roots[] = {root};
  for (const program::ExprId id : program::Reachable(pool, roots)) {
    const program::ExprOp op = pool[id].op;
    if (op == program::ExprOp::kLoad || op == program::ExprOp::kIndex) leaves.push_back(id);
  }
  return leaves;
}

std::vector<bool> ReadsOf(const program::Program& program, const program::Step& step,
                          std::span<const program::ExprId> roots) {
  std::vector<bool> is_read(step.reads.size(), false);
  for (const program::ExprId root : roots) {
    for (const program::ExprId leaf : Leaves(program.exprs, root)) {
      const ExprNode& node = program.exprs[leaf];
      if (node.op == program::ExprOp::kLoad) is_read[node.payload] = true;
    }
  }
  return is_read;
}

Status CheckTiles(const program::Program& program, const program::Step& step) {
  const auto* contract = step.As<Contract>();
  if (contract == nullptr) {
    return Status(Code::kUnsupportedOperator, "Only contractions are cut into tiles.");
  }
  if (contract->form != Contract::Form::kMatMul) {
    if (contract->strides.empty()) {
      return Status(Code::kUnsupportedOperator, "A convolution without spatial axes has no tiles.");
    }
    std::optional<int64_t> pixels = KnownCount(std::span(step.domain).subspan(2));
    if (pixels && contract->form == Contract::Form::kConvTranspose) {
      // Of one phase.
      pixels = 1;
      for (size_t axis = 0; axis < contract->strides.size(); ++axis) {
        *pixels *= CeilDiv(step.domain[axis + 2].constant(), contract->strides[axis]);
      }
    }
    if (pixels && *pixels < 4) {
      return Status(Code::kUnsupportedOperator, "A convolution of " + std::to_string(*pixels) +
                                                    " pixels leaves most of a tile empty.");
    }
  }
  const ExprId prologues[] = {contract->a_prologue, contract->b_prologue};
  const std::vector<bool> before = ReadsOf(program, step, prologues);
  const std::vector<bool> after = ReadsOf(program, step, contract->roots);
  for (size_t read = 0; read < before.size(); ++read) {
    if (before[read] && after[read]) {
      return Status(Code::kUnsupportedOperator,
                    "A tensor is read both before and after the products.");
    }
  }
  for (const ExprId root : contract->roots) {
    for (const ExprId leaf : Leaves(program.exprs, root)) {
      if (!program.exprs[leaf].operands.empty()) {
        return Status(Code::kUnsupportedOperator,
                      "A tensor is read at computed coordinates after the products.");
      }
    }
  }
  return base::Ok();
}

TiledProduct::TiledProduct(const program::Program& program, const program::Step& step)
    : program_(program),
      step_(step),
      contract_(*step.As<Contract>()),
      facts_(FindLoopFacts(program, step)) {
  if (is_window()) {
    columns_are_a_ = true;
  } else {
    const auto domain = std::span(step.domain);
    const auto batch = static_cast<size_t>(contract_.batch_axes);
    const auto m_axes = static_cast<size_t>(contract_.m_axes);
    const std::optional<int64_t> m = KnownCount(domain.subspan(batch, m_axes));
    const std::optional<int64_t> n = KnownCount(domain.subspan(batch + m_axes));
    columns_are_a_ = n && *n < kFewColumns && (!m || *m > *n);
  }
}

int64_t TiledProduct::least_rows() const {
  const auto domain = std::span(step_.domain);
  int64_t rows = 1;
  if (is_window()) return domain[1].LowerBound() / contract_.group;
  const auto first = static_cast<size_t>(first_row_axis());
  for (const program::Dim& dim : domain.subspan(first, static_cast<size_t>(row_axes()))) {
    // A symbol may be anything; it is taken to be many.
    rows *= dim.is_constant() ? dim.constant() : 1024;
  }
  return rows;
}

bool TiledProduct::has_symbolic_rows() const {
  if (is_window()) return false;
  const auto first = static_cast<size_t>(first_row_axis());
  const auto rows = std::span(step_.domain).subspan(first, static_cast<size_t>(row_axes()));
  return !KnownCount(rows).has_value();
}

int64_t TiledProduct::RowsOf(const device::BoundStep& step) const {
  const auto first = static_cast<size_t>(first_row_axis());
  return tensor::ElementCount(
      std::span<const int64_t>(step.domain).subspan(first, static_cast<size_t>(row_axes())));
}

int TiledProduct::first_row_axis() const {
  return columns_are_a_ ? contract_.batch_axes + contract_.m_axes : contract_.batch_axes;
}

std::optional<int64_t> TiledProduct::known_columns() const {
  const auto domain = std::span(step_.domain);
  if (is_window()) return KnownCount(domain.subspan(2));
  const int before =
      columns_are_a_ ? contract_.batch_axes : contract_.batch_axes + contract_.m_axes;
  return KnownCount(
      domain.subspan(static_cast<size_t>(before), static_cast<size_t>(column_axes())));
}

int64_t TiledProduct::known_depth() const { return KnownCount(contract_.inner).value_or(1); }

int64_t TiledProduct::known_count() const {
  const auto batch = std::span(step_.domain).first(static_cast<size_t>(batch_axes()));
  return KnownCount(batch).value_or(1) * (is_window() ? contract_.group : 1);
}

int64_t TiledProduct::most_depth() const {
  return is_window() ? 1 : KnownCount(contract_.inner).value_or(INT64_MAX);
}

void TiledProduct::SetTile(const TileShape& tile, const MatrixUnits& units) {
  tile_ = tile;
  matrix_units_ = units;
  if (!is_window()) {
    // Words of eight columns.
    const bool is_narrow = tensor::BitWidth(stored_type(Part::kColumns)) == 16;
    if (reads_rows_anywhere() && is_narrow && tile_.columns() == 4 && tile_.item_columns % 2 == 0 &&
        tile_.rows <= 4) {
      tile_.vectors *= 2;
      tile_.item_columns /= 2;
      tile_.group_size = tile_.item_rows * tile_.item_columns * tile_.parts;
    }
    return;
  }
  tile_.item_columns *= std::exchange(tile_.parts, 1);
  if (!reads_tensor() || tile_.block_rows() > 1 || tile_.vectors == 1) return;
  // A small image has no more columns than a group has items, and runs end where lines do.
  if (known_columns().value_or(INT64_MAX) <= tile_.item_columns) tile_.vectors = 1;
  const program::Dim& line = step_.domain.back();
  while (sums_runs() && line.is_constant() && line.constant() % tile_.vectors != 0) {
    tile_.vectors /= 2;
  }
}

bool TiledProduct::sums_runs() const {
  const program::Dim& channels = contract_.inner[0];
  return reads_tensor() && !is_transposed() && tile_.block_rows() == 1 && tile_.columns() > 1 &&
         channels.is_constant() && channels.constant() == 1 && contract_.strides.back() == 1 &&
         contract_.dilations.back() == 1;
}

bool TiledProduct::SplitsFloats() const {
  if (matrix_units_.split_depth == 0 || !program_.has_fast_algorithms) return false;
  // Of the taps of a transposed convolution an output has any number.
  const auto dims = std::span(contract_.inner);
  const std::optional<int64_t> depth = KnownCount(is_transposed() ? dims.first(1) : dims);
  return depth && *depth >= matrix_units_.split_depth;
}

int64_t TiledProduct::item_depth() const {
  if (!tile_.is_of_group() || tile_.depth > 0) return 0;
  return KnownCount(contract_.inner).value_or(0) / tile_.parts;
}

int TiledProduct::sum_bits() const { return tensor::BitWidth(contract_.accumulator); }

int TiledProduct::row_axes() const {
  return is_window() ? 1 : columns_are_a_ ? contract_.n_axes : contract_.m_axes;
}
int TiledProduct::column_axes() const {
  return is_window() ? static_cast<int>(contract_.strides.size())
                     : (columns_are_a_ ? contract_.m_axes : contract_.n_axes);
}

bool TiledProduct::MeetsPadding() const {
  if (!is_window() || !tensor::IsFloat(contract_.accumulator)) return false;
  for (size_t axis = 0; axis < contract_.strides.size(); ++axis) {
    const program::Dim& out = step_.domain[axis + 2];
    const program::Dim& taps = contract_.inner[axis + 1];
    const program::Dim& extent = contract_.a_spatial[axis];
    const program::Dim& pad = contract_.pads_begin[axis];
    if (!out.is_constant() || !taps.is_constant() || !extent.is_constant() || !pad.is_constant()) {
      return true;
    }
    if (is_transposed()) {
      const int64_t stride = contract_.strides[axis];
      const Span span = SpanOf(out.constant(), pad.constant(), stride);
      const int64_t shift = MaxShift(taps.constant(), contract_.dilations[axis], stride);
      if (span.first < shift || span.first + span.count > extent.constant()) return true;
      continue;
    }
    const int64_t last = (out.constant() - 1) * contract_.strides[axis] +
                         (taps.constant() - 1) * contract_.dilations[axis] - pad.constant();
    if (pad.constant() > 0 || last >= extent.constant()) return true;
  }
  return false;
}

bool TiledProduct::IsConstant(Part part) const {
  const ExprId roots[] = {prologue(part == Part::kColumns ? columns_are_a_ : !columns_are_a_)};
  const std::vector<bool> is_read = ReadsOf(program_, step_, roots);
  for (size_t read = 0; read < is_read.size(); ++read) {
    const program::BufferId buffer = step_.reads[read].buffer;
    if (is_read[read] && program_.buffers[buffer].kind != program::Buffer::Kind::kConstant) {
      return false;
    }
  }
  return true;
}

bool TiledProduct::IsReadBy(Part part, int read) const {
  const ExprId roots[] = {prologue(part == Part::kColumns ? columns_are_a_ : !columns_are_a_)};
  return part == Part::kSums ? ReadsOf(program_, step_, contract_.roots)[static_cast<size_t>(read)]
                             : ReadsOf(program_, step_, roots)[static_cast<size_t>(read)];
}

}  // namespace onnxifi::codegen
