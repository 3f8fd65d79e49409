// SPDX-License-Identifier: Apache-2.0
//
// SelectNonZero: the predicate, and the two kernels over the same parts.

#include "backends/cpu/non_zero/non_zero.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/access.h"
#include "backends/cpu/non_zero/coordinates.h"
#include "backends/cpu/non_zero/lanes.h"

namespace onnxifi::non_zero {
namespace {

using base::Code;
using base::Status;
using device::BoundStep;
using device::BoundView;
using engine::Box;
using program::Index;
using tensor::ElementType;

constexpr int64_t kTileLanes = 1024;
constexpr int64_t kMaxParts = 64;
// Picoseconds.
constexpr int64_t kCostOfElement = 100;
constexpr int64_t kCostOfPosition = 1'000;

// The elements of a step in row-major order, in tiles, and these in parts for threads.
class Source {
 public:
  Source(const BoundStep& step, const engine::Settings& settings)
      : access_(engine::MakeAccess(step.reads[0], static_cast<int>(step.domain.size()))),
        deciding_bits_(*FindDecidingBits(step.reads[0].type)),
        count_(tensor::ElementCount(step.domain)) {
    // Whether a byte is true does not depend on which it is.
    if (access_.type == ElementType::kBool) access_.type = ElementType::kUint8;
    if (count_ == 0) return;
    grid_ = engine::Grid(step.domain);
    std::vector<engine::LinearForm*> forms;
    engine::AppendForms(access_, forms);
    grid_.Join({}, forms);
    grid_.Tile(0, grid_.rank(), kTileLanes);
    engine::LayOut(access_, grid_);
    tiles_ = grid_.TileCount(0, grid_.rank());
    // A part has work for a thread, so that few are counted in vain.
    const int64_t worth =
        std::max<int64_t>(1, settings.worth_a_thread / (kTileLanes * kCostOfPosition));
    parts_ = std::clamp<int64_t>(tiles_ / worth, 1, kMaxParts);
  }

  int64_t part_count() const { return parts_; }
  int64_t cost_of_part(int64_t cost_of_element) const {
    return parts_ == 0 ? 0 : count_ / parts_ * cost_of_element;
  }
  static constexpr int64_t scratch_bytes() { return kTileLanes * 8; }

  // Calls visit(lanes, position of the first) for the tiles of a part, until it returns false.
  template <typename Visit>
  void ForEachTile(int64_t part, device::Addresses addresses, std::byte* scratch,
                   Visit&& visit) const {
    const int64_t begin = tiles_ * part / parts_;
    const int64_t end = tiles_ * (part + 1) / parts_;
    const std::byte* base = addresses[access_.buffer];
    Box box;
    grid_.MoveTo(0, grid_.rank(), begin, box);
    int64_t position = 0;
    for (int axis = 0; axis < grid_.rank(); ++axis) {
      position = position * grid_.extent(axis) + box.begin[axis];
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      if (!visit(Load(base, box, scratch), position)) return;
      position += box.lanes;
      grid_.MoveOn(0, grid_.rank(), box);
    }
  }

 private:
  Lanes Load(const std::byte* base, const Box& box, std::byte* scratch) const {
    const bool is_in_place =
        access_.is_dense &&
        (access_.guards.empty() || engine::FindInside(access_, box) == engine::Inside::kAll);
    const std::byte* lanes = scratch;
    if (is_in_place) {
      lanes = base + ValueAtBegin(access_.form, box) * access_.lane_bytes;
    } else {
      engine::LoadBox(access_, base, box, scratch);
    }
    return {lanes, box.lanes, access_.lane_bytes, deciding_bits_};
  }

  engine::Access access_;
  const uint64_t deciding_bits_;
  const int64_t count_;
  engine::Grid grid_;
  int64_t tiles_ = 0;
  int64_t parts_ = 0;
};

int64_t* AddressOf(const BoundView& target, device::Addresses addresses) {
  return reinterpret_cast<int64_t*>(addresses[target.buffer]) + target.offset;
}

class BoundCount final : public device::BoundKernel {
 public:
  BoundCount(const BoundStep& step, engine::Runtime& runtime)
      : source_(step, runtime.settings()), target_(step.writes[0]), runtime_(runtime) {
    runtime.scratch().Reserve(Source::scratch_bytes());
  }

  Status Run(device::Addresses addresses) const override {
    std::atomic<int64_t> total = 0;
    ONNXIFI_RETURN_IF_ERROR(runtime_.For(source_.part_count(), source_.cost_of_part(kCostOfElement),
                                         [&](int64_t begin, int64_t end, std::byte* scratch) {
                                           int64_t count = 0;
                                           for (int64_t part = begin; part < end; ++part) {
                                             source_.ForEachTile(part, addresses, scratch,
                                                                 [&](const Lanes& lanes, int64_t) {
                                                                   count += CountNonZero(lanes);
                                                                   return true;
                                                                 });
                                           }
                                           total += count;
                                         }));
    *AddressOf(target_, addresses) = total;
    return base::Ok();
  }

 private:
  const Source source_;
  const BoundView target_;
  engine::Runtime& runtime_;
};

// How many elements the written buffer has room for.
int64_t CountRoom(const BoundStep& step) {
  if (step.domain.empty()) return 0;
  int64_t elements = 1;
  for (const program::Dim& dim : step.program->buffers[step.writes[0].buffer].shape) {
    const int64_t extent = step.Number(dim);
    elements = std::min(elements, INT64_MAX / std::max<int64_t>(1, extent)) * extent;
  }
  return elements / static_cast<int64_t>(step.domain.size());
}

class BoundList final : public device::BoundKernel {
 public:
  BoundList(const BoundStep& step, engine::Runtime& runtime)
      : source_(step, runtime.settings()),
        domain_(step.domain),
        target_(step.writes[0]),
        room_(CountRoom(step)),
        runtime_(runtime) {
    runtime.scratch().Reserve(Source::scratch_bytes() + kTileLanes * 8);
  }

  Status Run(device::Addresses addresses) const override {
    const int64_t parts = source_.part_count();
    if (room_ == 0 || parts == 0) return base::Ok();
    // How many were found before each part.
    std::array<int64_t, kMaxParts + 1> before{};
    if (parts > 1) ONNXIFI_RETURN_IF_ERROR(CountParts(addresses, before));
    return runtime_.For(parts, source_.cost_of_part(kCostOfPosition),
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          for (int64_t part = begin; part < end; ++part) {
                            List(part, addresses, before[static_cast<size_t>(part)], scratch);
                          }
                        });
  }

 private:
  Status CountParts(device::Addresses addresses, std::array<int64_t, kMaxParts + 1>& before) const {
    const int64_t parts = source_.part_count();
    ONNXIFI_RETURN_IF_ERROR(runtime_.For(parts, source_.cost_of_part(kCostOfElement),
                                         [&](int64_t begin, int64_t end, std::byte* scratch) {
                                           for (int64_t part = begin; part < end; ++part) {
                                             int64_t count = 0;
                                             source_.ForEachTile(part, addresses, scratch,
                                                                 [&](const Lanes& lanes, int64_t) {
                                                                   count += CountNonZero(lanes);
                                                                   return true;
                                                                 });
                                             before[static_cast<size_t>(part + 1)] = count;
                                           }
                                         }));
    for (size_t part = 1; part < before.size(); ++part) before[part] += before[part - 1];
    return base::Ok();
  }

  void List(int64_t part, device::Addresses addresses, int64_t found, std::byte* scratch) const {
    auto* positions = reinterpret_cast<int64_t*>(scratch + Source::scratch_bytes());
    int64_t* target = AddressOf(target_, addresses);
    Coordinates coordinates(domain_);
    source_.ForEachTile(part, addresses, scratch, [&](const Lanes& lanes, int64_t first) {
      const int64_t count = std::min(FindNonZero(lanes, first, positions), room_ - found);
      for (int64_t begin = 0; begin < count;) {
        coordinates.MoveTo(positions[begin]);
        int64_t end = begin + 1;
        while (end < count && positions[end] < coordinates.row_end()) ++end;
        WriteRow(coordinates, std::span(positions + begin, positions + end),
                 target + (found + begin) * target_.strides[1]);
        begin = end;
      }
      found += std::max<int64_t>(0, count);
      return found < room_;
    });
  }

  // Positions of one row; `element` is the first axis of the first.
  void WriteRow(const Coordinates& row, std::span<const int64_t> positions,
                int64_t* element) const {
    const auto count = static_cast<int64_t>(positions.size());
    const int64_t step = target_.strides[1];
    for (size_t axis = 0; axis + 1 < domain_.size(); ++axis) {
      const int64_t coordinate = row[axis];
      for (int64_t k = 0; k < count; ++k) element[k * step] = coordinate;
      element += target_.strides[0];
    }
    const int64_t row_begin = row.row_begin();
    for (int64_t k = 0; k < count; ++k) {
      element[k * step] = positions[static_cast<size_t>(k)] - row_begin;
    }
  }

  const Source source_;
  const tensor::Extents domain_;
  const BoundView target_;
  const int64_t room_;
  engine::Runtime& runtime_;
};

template <typename Bound>
class Kernel final : public device::Kernel {
 public:
  explicit Kernel(engine::Runtime& runtime) : runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = std::make_unique<Bound>(step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  engine::Runtime& runtime_;
};

template <typename Bound>
std::unique_ptr<device::Kernel> Build(const device::Facts& /*facts*/, engine::Runtime& runtime) {
  return std::make_unique<Kernel<Bound>>(runtime);
}

}  // namespace

runtime::RecipeResult SelectNonZero(const device::Facts& facts) {
  const program::Step& step = facts.step;
  const Index* index = step.As<Index>();
  const bool counts = index != nullptr && index->kind == Index::Kind::kCountNonZero;
  const bool lists = index != nullptr && index->kind == Index::Kind::kNonZero;
  if (!counts && !lists) {
    return Status(Code::kUnsupportedOperator, "The step looks for no elements that are not zero.");
  }
  if (step.domain.size() > engine::kMaxAxes) {
    return Status(Code::kUnsupportedShape,
                  "The step has " + std::to_string(step.domain.size()) +
                      " axes; the search for non-zero elements walks up to " +
                      std::to_string(engine::kMaxAxes) + ".");
  }
  if (const ElementType type = step.reads[0].type; !FindDecidingBits(type)) {
    return Status(Code::kUnsupportedDatatype, "The bits of an element of type " +
                                                  std::string(tensor::Name(type)) +
                                                  " do not tell whether it is zero.");
  }
  return std::unique_ptr<const device::Recipe>(std::make_unique<engine::Recipe>(
      counts ? "count of non-zero elements" : "list of non-zero elements", facts,
      counts ? Build<BoundCount> : Build<BoundList>));
}

}  // namespace onnxifi::non_zero
