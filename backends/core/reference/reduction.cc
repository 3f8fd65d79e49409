// SPDX-License-Identifier: Apache-2.0
//
// Reduction: states in columns; every new state is computed before any is replaced.

#include "backends/core/reference/reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onnxifi::reference {
namespace {

int64_t TotalBytes(std::span<const tensor::ElementType> types) {
  int64_t total = 0;
  for (tensor::ElementType type : types) total += kBlock * LaneBytes(type);
  return total;
}

}  // namespace

Columns::Columns(std::span<const tensor::ElementType> types) : memory_(TotalBytes(types)) {
  std::byte* column = memory_.data();
  for (tensor::ElementType type : types) {
    lane_bytes_.push_back(LaneBytes(type));
    columns_.push_back(column);
    column += kBlock * LaneBytes(type);
  }
}

void Columns::Set(int k, const std::byte* source, int64_t lanes) {
  std::memcpy(columns_[k], source, static_cast<size_t>(lanes * lane_bytes_[k]));
}

void Columns::Repeat(int k, const std::byte* source, int64_t lanes) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::memcpy(columns_[k] + lane * lane_bytes_[k], source, static_cast<size_t>(lane_bytes_[k]));
  }
}

base::Result<CompiledReduction> CompiledReduction::Compile(const program::ExprPool& pool,
                                                           const program::Reduction& reduction) {
  program::ExprIds init, update, merge;
  std::vector<tensor::ElementType> types;
  for (const program::Reduction::State& state : reduction.states) {
    init.push_back(state.init);
    update.push_back(state.update);
    merge.push_back(state.merge);
    types.push_back(state.type);
  }
  ONNXIFI_ASSIGN_OR_RETURN(Expression compiled_init, Expression::Compile(pool, std::move(init)));
  ONNXIFI_ASSIGN_OR_RETURN(Expression compiled_update,
                           Expression::Compile(pool, std::move(update)));
  ONNXIFI_ASSIGN_OR_RETURN(Expression compiled_merge, Expression::Compile(pool, std::move(merge)));
  return CompiledReduction{std::move(compiled_init), std::move(compiled_update),
                           std::move(compiled_merge), std::move(types)};
}

BoundReduction::BoundReduction(const CompiledReduction& compiled, std::span<const int64_t> dims)
    : reduction(&compiled),
      init_dims(compiled.init.BindDims(dims)),
      update_dims(compiled.update.BindDims(dims)),
      merge_dims(compiled.merge.BindDims(dims)) {}

ReductionFrame::ReductionFrame(const BoundReduction& bound,
                               std::span<const device::BoundView> reads,
                               device::Addresses addresses)
    : reduction_(*bound.reduction),
      state_(reduction_.types),
      other_(reduction_.types.size()),
      init_(reduction_.init, bound.init_dims, reads, addresses),
      update_(reduction_.update, bound.update_dims, reads, addresses),
      merge_(reduction_.merge, bound.merge_dims, reads, addresses) {
  update_.Attach(program::ExprOp::kState, state_.all());
  merge_.Attach(program::ExprOp::kState, state_.all());
}

void ReductionFrame::AttachRows(std::span<const std::vector<std::byte*>> rows) {
  init_.AttachRows(rows);
  update_.AttachRows(rows);
}

void ReductionFrame::Begin(const Sweep& sweep) {
  init_.Run(sweep);
  for (size_t k = 0; k < reduction_.types.size(); ++k) {
    state_.Set(static_cast<int>(k), init_.root(static_cast<int>(k)), sweep.lanes());
  }
}

void ReductionFrame::BeginParts(const Sweep& sweep, int64_t lanes) {
  init_.Run(sweep);
  for (size_t k = 0; k < reduction_.types.size(); ++k) {
    state_.Repeat(static_cast<int>(k), init_.root(static_cast<int>(k)), lanes);
  }
}

void ReductionFrame::Update(const Sweep& sweep) {
  update_.Run(sweep);
  for (size_t k = 0; k < reduction_.types.size(); ++k) {
    state_.Set(static_cast<int>(k), update_.root(static_cast<int>(k)), sweep.lanes());
  }
}

void ReductionFrame::MergeParts(int64_t lanes) {
  static constexpr int64_t kExtents[] = {kBlock};
  for (int64_t kept = kBlock / 2; kept > 0; kept /= 2) {
    // What lies beyond a power of two joins what lies before it, which vectors of any width can do.
    if (lanes <= kept) continue;
    for (size_t k = 0; k < reduction_.types.size(); ++k) {
      other_[k] = state_.all()[k] + kept * LaneBytes(reduction_.types[k]);
    }
    merge_.Attach(program::ExprOp::kOther, other_);
    Sweep sweep(kExtents);
    sweep.Move(0, lanes - kept);
    merge_.Run(sweep);
    for (size_t k = 0; k < reduction_.types.size(); ++k) {
      state_.Set(static_cast<int>(k), merge_.root(static_cast<int>(k)), lanes - kept);
    }
    lanes = kept;
  }
}

}  // namespace onnxifi::reference
