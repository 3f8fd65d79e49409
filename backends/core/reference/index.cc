// SPDX-License-Identifier: Apache-2.0
//
// Index: scatter, top-k, count and positions of non-zero elements, suppression. One thread, in
// ascending order, so that duplicates combine the same way every time.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/reference/column.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/scratch.h"

namespace onnxifi::reference {
namespace {

using device::BoundView;
using program::Index;
using tensor::ElementType;
using tensor::Extents;
using tensor::Scalar;

// A lane of a column as a scalar, and back.
Scalar LaneValue(ElementType type, const std::byte* column, int64_t lane) {
  return tensor::LoadScalar(type, column + lane * LaneBytes(type), 0);
}

// The sum, product, ... of two elements, rounded to their type. Through float64: for sums and
// products of narrower floats a second rounding changes nothing, as float64 has more than twice
// their precision.
Scalar CombineScalars(Index::Combine combine, ElementType type, Scalar a, Scalar b) {
  if (tensor::IsFloat(type)) {
    double value = b.f;
    switch (combine) {
      case Index::Combine::kNone:
        break;
      case Index::Combine::kAdd:
        value = a.f + b.f;
        break;
      case Index::Combine::kMul:
        value = a.f * b.f;
        break;
      case Index::Combine::kMin:
        value = a.f < b.f || std::isnan(a.f) ? a.f : b.f;
        break;
      case Index::Combine::kMax:
        value = a.f > b.f || std::isnan(a.f) ? a.f : b.f;
        break;
    }
    return tensor::CastScalar(ElementType::kFloat64, type, Scalar{.f = value});
  }
  if (tensor::IsSigned(type)) {
    int64_t value = b.i;
    switch (combine) {
      case Index::Combine::kNone:
        break;
      case Index::Combine::kAdd:
        value = program::WrapAdd(a.i, b.i);
        break;
      case Index::Combine::kMul:
        value = program::WrapMul(a.i, b.i);
        break;
      case Index::Combine::kMin:
        value = std::min(a.i, b.i);
        break;
      case Index::Combine::kMax:
        value = std::max(a.i, b.i);
        break;
    }
    return tensor::CastScalar(ElementType::kInt64, type, Scalar{.i = value});
  }
  uint64_t value = b.u;
  switch (combine) {
    case Index::Combine::kNone:
      break;
    case Index::Combine::kAdd:
      value = a.u + b.u;
      break;
    case Index::Combine::kMul:
      value = a.u * b.u;
      break;
    case Index::Combine::kMin:
      value = std::min(a.u, b.u);
      break;
    case Index::Combine::kMax:
      value = std::max(a.u, b.u);
      break;
  }
  return tensor::CastScalar(ElementType::kUint64, type, Scalar{.u = value});
}

// Whether `a` comes before `b` among the largest: NaN counts as the largest of all.
bool IsGreater(ElementType type, Scalar a, Scalar b) {
  if (tensor::IsFloat(type)) {
    if (std::isnan(a.f) || std::isnan(b.f)) return std::isnan(a.f) && !std::isnan(b.f);
    return a.f > b.f;
  }
  return tensor::IsSigned(type) ? a.i > b.i : a.u > b.u;
}

bool IsNonZero(ElementType type, const std::byte* column, int64_t lane) {
  if (type == ElementType::kComplex64) {
    const auto* parts = reinterpret_cast<const float*>(column) + 2 * lane;
    return parts[0] != 0 || parts[1] != 0;
  }
  if (type == ElementType::kComplex128) {
    const auto* parts = reinterpret_cast<const double*>(column) + 2 * lane;
    return parts[0] != 0 || parts[1] != 0;
  }
  const Scalar value = LaneValue(type, column, lane);
  return tensor::IsFloat(type) ? value.f != 0 : value.u != 0;
}

class BoundIndex final : public device::BoundKernel {
 public:
  explicit BoundIndex(const device::BoundStep& step)
      : index_(*step.step->As<Index>()),
        domain_(step.domain),
        reads_(step.reads),
        writes_(step.writes),
        count_(tensor::ElementCount(step.domain)),
        k_(step.Number(index_.k)) {
    for (const program::Dim& dim : index_.target) target_.push_back(step.Number(dim));
    if (index_.kind == Index::Kind::kNonZero) {
      // The write has an axis per axis of the domain and one for the elements found; the buffer
      // ends where it ends.
      int64_t elements = 1;
      for (const program::Dim& dim : step.program->buffers[writes_[0].buffer].shape) {
        elements = std::min(elements, INT64_MAX / std::max<int64_t>(1, step.Number(dim))) *
                   step.Number(dim);
      }
      capacity_ = domain_.empty() ? 0 : elements / static_cast<int64_t>(domain_.size());
    }
  }

  base::Status Run(device::Addresses addresses) const override {
    return Guarded([&] {
      switch (index_.kind) {
        case Index::Kind::kScatter:
          Scatter(addresses);
          break;
        case Index::Kind::kTopK:
          TopK(addresses);
          break;
        case Index::Kind::kCountNonZero:
          CountNonZero(addresses);
          break;
        case Index::Kind::kNonZero:
          NonZero(addresses);
          break;
        case Index::Kind::kSuppress:
          Suppress(addresses);
          break;
      }
      return base::Ok();
    });
  }

 private:
  // Calls visit(sweep) for consecutive blocks of the domain.
  template <typename Visit>
  void ForEachBlock(Visit&& visit) const {
    Sweep sweep(domain_);
    for (int64_t position = 0; position < count_; position += kBlock) {
      sweep.Move(position, std::min(kBlock, count_ - position));
      visit(sweep, position);
    }
  }

  void Scatter(device::Addresses addresses) const {
    const BoundView& target = writes_[0];
    const int64_t lane_bytes = LaneBytes(target.type);
    std::byte* base = addresses[target.buffer];
    Scratch updates(kBlock * lane_bytes);
    Scratch current(lane_bytes);
    const auto rank = static_cast<int64_t>(target_.size());
    Scratch coordinates(rank * kBlock * static_cast<int64_t>(sizeof(int64_t)));
    const auto* at = reinterpret_cast<const int64_t*>(coordinates.data());
    Sweep slot(target_);
    ForEachBlock([&](const Sweep& sweep, int64_t /*position*/) {
      LoadColumn(reads_[0], addresses[reads_[0].buffer], sweep, updates.data());
      for (int64_t axis = 0; axis < rank; ++axis) {
        const BoundView& view = reads_[static_cast<size_t>(axis) + 1];
        LoadColumn(view, addresses[view.buffer], sweep,
                   coordinates.data() + axis * kBlock * static_cast<int64_t>(sizeof(int64_t)));
      }
      for (int64_t lane = 0; lane < sweep.lanes(); ++lane) {
        int64_t position = 0;
        bool is_inside = true;
        for (int64_t axis = 0; axis < rank && is_inside; ++axis) {
          const int64_t coordinate = at[axis * kBlock + lane];
          const int64_t extent = target_[static_cast<size_t>(axis)];
          is_inside = coordinate >= 0 && coordinate < extent;
          if (is_inside) position = position * extent + coordinate;
        }
        if (!is_inside) continue;
        slot.Move(position, 1);
        std::byte* update = updates.data() + lane * lane_bytes;
        if (index_.combine != Index::Combine::kNone) {
          LoadColumn(target, base, slot, current.data());
          const Scalar combined =
              CombineScalars(index_.combine, target.type, LaneValue(target.type, current.data(), 0),
                             LaneValue(target.type, update, 0));
          tensor::StoreScalar(target.type, update, 0, combined);
        }
        StoreColumn(target, base, slot, update);
      }
    });
  }

  void TopK(device::Addresses addresses) const {
    const BoundView& source = reads_[0];
    const int64_t lane_bytes = LaneBytes(source.type);
    const int64_t length = domain_.back();
    const int64_t found = std::clamp<int64_t>(k_, 0, length);
    const int last = static_cast<int>(domain_.size()) - 1;
    const int64_t rows = tensor::ElementCount(std::span(domain_).first(last));
    Extents out_extents = domain_;
    out_extents[last] = std::max<int64_t>(1, k_);
    Scratch elements(length * lane_bytes);
    std::vector<Scalar> values(static_cast<size_t>(length));
    std::vector<int64_t> order(static_cast<size_t>(length));
    if (found == 0) return;
    for (int64_t row = 0; row < rows; ++row) {
      Sweep sweep(domain_);
      for (int64_t element = 0; element < length; element += kBlock) {
        sweep.Move(row * length + element, std::min(kBlock, length - element));
        LoadColumn(source, addresses[source.buffer], sweep, elements.data() + element * lane_bytes);
      }
      for (int64_t element = 0; element < length; ++element) {
        values[static_cast<size_t>(element)] = LaneValue(source.type, elements.data(), element);
      }
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(
          order.begin(), order.begin() + found, order.end(), [&](int64_t a, int64_t b) {
            const Scalar x = values[static_cast<size_t>(a)];
            const Scalar y = values[static_cast<size_t>(b)];
            const bool is_first =
                index_.largest ? IsGreater(source.type, x, y) : IsGreater(source.type, y, x);
            const bool is_last =
                index_.largest ? IsGreater(source.type, y, x) : IsGreater(source.type, x, y);
            return is_first || (!is_last && a < b);
          });
      Sweep slot(out_extents);
      for (int64_t rank = 0; rank < found; ++rank) {
        const int64_t position = order[static_cast<size_t>(rank)];
        slot.Move(row * out_extents[last] + rank, 1);
        if (HasWrite(0)) {
          StoreColumn(writes_[0], addresses[writes_[0].buffer], slot,
                      elements.data() + position * lane_bytes);
        }
        if (HasWrite(1)) {
          StoreColumn(writes_[1], addresses[writes_[1].buffer], slot,
                      reinterpret_cast<const std::byte*>(&position));
        }
      }
    }
  }

  bool HasWrite(size_t k) const {
    return k < writes_.size() && writes_[k].buffer != program::kNoBuffer;
  }

  // Calls found(lane, sweep) for the non-zero elements in row-major order.
  template <typename Found>
  void ForEachNonZero(device::Addresses addresses, Found&& found) const {
    const BoundView& source = reads_[0];
    Scratch column(kBlock * LaneBytes(source.type));
    ForEachBlock([&](const Sweep& sweep, int64_t position) {
      LoadColumn(source, addresses[source.buffer], sweep, column.data());
      for (int64_t lane = 0; lane < sweep.lanes(); ++lane) {
        if (IsNonZero(source.type, column.data(), lane)) found(position + lane);
      }
    });
  }

  void CountNonZero(device::Addresses addresses) const {
    int64_t found = 0;
    ForEachNonZero(addresses, [&](int64_t /*position*/) { ++found; });
    StoreInt(writes_[0], addresses, writes_[0].offset, found);
  }

  void NonZero(device::Addresses addresses) const {
    const BoundView& target = writes_[0];
    int64_t found = 0;
    ForEachNonZero(addresses, [&](int64_t position) {
      if (found == capacity_) return;
      for (size_t axis = domain_.size(); axis-- > 0;) {
        const int64_t element = target.offset + static_cast<int64_t>(axis) * target.strides[0] +
                                found * target.strides[1];
        StoreInt(target, addresses, element, position % domain_[axis]);
        position /= domain_[axis];
      }
      ++found;
    });
  }

  // One read over one row of the last axis.
  template <typename T>
  std::vector<T> LoadRow(device::Addresses addresses, size_t read, int64_t row) const {
    const BoundView& view = reads_[read];
    const int64_t length = domain_.back();
    std::vector<T> elements(static_cast<size_t>(length));
    Sweep sweep(domain_);
    for (int64_t element = 0; element < length; element += kBlock) {
      sweep.Move(row * length + element, std::min(kBlock, length - element));
      LoadColumn(view, addresses[view.buffer], sweep,
                 reinterpret_cast<std::byte*>(elements.data() + element));
    }
    return elements;
  }

  void Suppress(device::Addresses addresses) const {
    const int64_t length = domain_.back();
    if (count_ == 0) return;
    Sweep slot(domain_);
    for (int64_t row = 0; row < count_ / length; ++row) {
      const std::vector<uint8_t> is_candidate = LoadRow<uint8_t>(addresses, 0, row);
      std::vector<float> edges[4];
      for (size_t k = 0; k < 4; ++k) edges[k] = LoadRow<float>(addresses, k + 1, row);
      const float threshold = LoadRow<float>(addresses, 5, row).front();
      const int64_t limit = LoadRow<int64_t>(addresses, 6, row).front();
      auto overlaps = [&](size_t a, size_t b) {
        const float height =
            std::min(edges[2][a], edges[2][b]) - std::max(edges[0][a], edges[0][b]);
        const float width = std::min(edges[3][a], edges[3][b]) - std::max(edges[1][a], edges[1][b]);
        if (!(height > 0 && width > 0)) return false;
        auto area = [&](size_t k) {
          return (edges[2][k] - edges[0][k]) * (edges[3][k] - edges[1][k]);
        };
        const float shared = height * width;
        const float joined = area(a) + area(b) - shared;
        return joined > 0 && shared / joined > threshold;
      };
      std::vector<size_t> kept;
      for (int64_t element = 0; element < length; ++element) {
        const auto k = static_cast<size_t>(element);
        const bool is_kept = is_candidate[k] != 0 && static_cast<int64_t>(kept.size()) < limit &&
                             std::none_of(kept.begin(), kept.end(),
                                          [&](size_t before) { return overlaps(k, before); });
        if (is_kept) kept.push_back(k);
        slot.Move(row * length + element, 1);
        const std::byte stored{is_kept};
        StoreColumn(writes_[0], addresses[writes_[0].buffer], slot, &stored);
      }
    }
  }

  static void StoreInt(const BoundView& view, device::Addresses addresses, int64_t element,
                       int64_t value) {
    tensor::StoreScalar(ElementType::kInt64, addresses[view.buffer], element, Scalar{.i = value});
  }

  const Index& index_;
  Extents domain_;
  Extents target_;
  std::vector<BoundView> reads_;
  std::vector<BoundView> writes_;
  int64_t count_;
  int64_t k_;
  int64_t capacity_ = 0;
};

class IndexStep final : public CompiledStep {
 public:
  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& /*parallel*/) const override {
    return std::make_unique<BoundIndex>(step);
  }
};

}  // namespace

CompileResult CompileIndex(const program::Program& /*program*/, const program::Step& step) {
  const Index& index = *step.As<Index>();
  const ElementType type = step.reads[0].type;
  const bool only_moves =
      index.kind == Index::Kind::kNonZero || index.kind == Index::Kind::kCountNonZero ||
      (index.kind == Index::Kind::kScatter && index.combine == Index::Combine::kNone);
  if (type == ElementType::kString || type == ElementType::kUndefined ||
      (tensor::IsComplex(type) && !only_moves)) {
    return base::Status(
        base::Code::kUnsupportedDatatype,
        "Elements of type " + std::string(tensor::Name(type)) + " cannot be compared or combined.");
  }
  return std::shared_ptr<const CompiledStep>(std::make_shared<IndexStep>());
}

}  // namespace onnxifi::reference
