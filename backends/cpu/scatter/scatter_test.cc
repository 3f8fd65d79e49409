// SPDX-License-Identifier: Apache-2.0
//
// Scatter, against the reference: random steps, and steps as operators make them, whole, cut
// into as many parts as there can be, and on threads.

#include "backends/cpu/scatter/scatter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/cpu/testing/divided_steps.h"

namespace onnxifi::scatter {
namespace {

using program::Index;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

class ScatterStep {
 public:
  explicit ScatterStep(uint32_t seed) : random_(seed) {}

  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  // As ScatterND has it: updates over [n, trailing], a coordinate for each of the `depth` first
  // axes of the target, some of them out of range, and the trailing coordinates as they are.
  RandomStep MakeRows(ElementType type, Index::Combine combine, const Extents& target, size_t depth,
                      int64_t count) {
    Extents domain = {count};
    domain.insert(domain.end(), target.begin() + static_cast<std::ptrdiff_t>(depth), target.end());
    const size_t rank = domain.size();
    Begin(type, combine, domain, target);
    for (size_t axis = 0; axis < target.size(); ++axis) {
      if (axis < depth) {
        std::vector<int64_t> at(static_cast<size_t>(count));
        for (int64_t& coordinate : at) coordinate = Roll(-1, target[axis]);
        ReadAlong(at, 0, rank);
      } else {
        ReadLine(target[axis], axis - depth + 1, rank);
      }
    }
    return Finish();
  }

  // As ScatterElements has it: coordinates along `axis` for each update.
  RandomStep MakeElements(ElementType type, Index::Combine combine, const Extents& target,
                          size_t axis, int64_t count) {
    Extents domain = target;
    domain[axis] = count;
    Begin(type, combine, domain, target);
    for (size_t k = 0; k < target.size(); ++k) {
      if (k == axis) {
        std::vector<int64_t> at(static_cast<size_t>(tensor::ElementCount(domain)));
        for (int64_t& coordinate : at) coordinate = Roll(-1, target[axis]);
        step_.reads.push_back(
            program::DenseView(AddInts(domain, at), ElementType::kInt64, ShapeOf(domain)));
      } else {
        ReadLine(domain[k], k, target.size());
      }
    }
    return Finish();
  }

  // Swaps two coordinates of every line, so that it no longer ascends.
  void DisturbLines() { is_disturbed_ = true; }

 private:
  static program::Shape ShapeOf(const Extents& extents) {
    return program::Shape(extents.begin(), extents.end());
  }

  void Begin(ElementType type, Index::Combine combine, const Extents& domain,
             const Extents& target) {
    made_ = RandomStep();
    step_ = program::Step();
    step_.domain = ShapeOf(domain);
    step_.reads.push_back(program::DenseView(AddBytes(type, domain), type, ShapeOf(domain)));
    if (tensor::IsBool(type)) {
      // A true bool in memory is any byte but 0.
      tensor::Tensor& updates = made_.buffers.back();
      for (int64_t k = 0; k < updates.element_count(); ++k) {
        std::byte& update = updates.mutable_data()[k];
        if (update != std::byte{0}) update = static_cast<std::byte>(Roll(1, 255));
      }
    }
    target_ = target;
    type_ = type;
    Index index;
    index.combine = combine;
    index.target = ShapeOf(target);
    step_.body = index;
  }

  RandomStep Finish() {
    step_.writes.push_back(program::DenseView(AddBytes(type_, target_), type_, ShapeOf(target_)));
    made_.program.steps.push_back(std::move(step_));
    return std::move(made_);
  }

  program::BufferId Add(tensor::Tensor tensor) {
    program::Buffer buffer;
    buffer.type = tensor.type();
    buffer.shape = ShapeOf(tensor.extents());
    made_.buffers.push_back(std::move(tensor));
    return made_.program.AddBuffer(buffer);
  }
  program::BufferId AddInts(const Extents& extents, const std::vector<int64_t>& values) {
    return Add(tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, extents, values));
  }
  // Small numbers, whose sums are exact.
  program::BufferId AddBytes(ElementType type, const Extents& extents) {
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type, extents);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      const tensor::Scalar value =
          tensor::CastScalar(ElementType::kInt64, type, tensor::Scalar{.i = Roll(0, 3)});
      tensor::StoreScalar(type, tensor.mutable_data(), k, value);
    }
    return Add(std::move(tensor));
  }

  void ReadAlong(const std::vector<int64_t>& values, size_t axis, size_t rank) {
    program::View view;
    view.buffer = AddInts({static_cast<int64_t>(values.size())}, values);
    view.type = ElementType::kInt64;
    view.strides.assign(rank, 0);
    view.strides[axis] = 1;
    step_.reads.push_back(view);
  }
  void ReadLine(int64_t extent, size_t axis, size_t rank) {
    std::vector<int64_t> line(static_cast<size_t>(extent));
    for (int64_t k = 0; k < extent; ++k) line[static_cast<size_t>(k)] = k;
    if (is_disturbed_ && extent > 1) std::swap(line.front(), line.back());
    ReadAlong(line, axis, rank);
  }

  std::mt19937 random_;
  RandomStep made_;
  program::Step step_;
  Extents target_;
  ElementType type_ = ElementType::kUndefined;
  bool is_disturbed_ = false;
};

void Compare(const RandomStep& step) { cpu::CompareDividedStep(SelectScatter, step); }

constexpr Index::Combine kCombines[] = {Index::Combine::kNone, Index::Combine::kAdd,
                                        Index::Combine::kMul, Index::Combine::kMin,
                                        Index::Combine::kMax};

TEST(ScatterTest, RandomStepsAgreeWithTheReference) {
  // Two of seven kinds, a quarter of whose elements are packed.
  cpu::CompareDividedRandomSteps(SelectScatter, reference::Family::kIndex, 0.15);
}

TEST(ScatterTest, RowsAgreeWithTheReference) {
  ScatterStep make(1);
  for (const Index::Combine combine : kCombines) {
    for (const ElementType type :
         {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16, ElementType::kInt64,
          ElementType::kUint8}) {
      Compare(make.MakeRows(type, combine, {17, 64}, 1, 300));
      Compare(make.MakeRows(type, combine, {3, 4, 5, 6}, 2, 700));
      Compare(make.MakeRows(type, combine, {5, 3}, 1, 40));
      Compare(make.MakeRows(type, combine, {2, 1500}, 1, 9));
      Compare(make.MakeRows(type, combine, {1, 8}, 1, 1));
      Compare(make.MakeRows(type, combine, {4, 8}, 1, 0));
      Compare(make.MakeRows(type, combine, {0, 8}, 1, 5));
    }
  }
}

TEST(ScatterTest, ElementsAgreeWithTheReference) {
  ScatterStep make(2);
  for (const Index::Combine combine : kCombines) {
    for (const ElementType type :
         {ElementType::kFloat32, ElementType::kFloat16, ElementType::kFloat8E4M3Fn,
          ElementType::kInt16, ElementType::kUint64}) {
      Compare(make.MakeElements(type, combine, {7, 65}, 0, 100));
      Compare(make.MakeElements(type, combine, {65, 7}, 1, 33));
      Compare(make.MakeElements(type, combine, {6, 5, 9}, 1, 50));
      Compare(make.MakeElements(type, combine, {1200}, 0, 3000));
      Compare(make.MakeElements(type, combine, {3, 700}, 0, 5));
      Compare(make.MakeElements(type, combine, {3, 0}, 0, 5));
    }
  }
}

TEST(ScatterTest, CoordinatesThatDoNotAscendAgreeWithTheReference) {
  ScatterStep make(3);
  make.DisturbLines();
  for (const Index::Combine combine : kCombines) {
    Compare(make.MakeRows(ElementType::kFloat32, combine, {17, 64}, 1, 300));
    Compare(make.MakeElements(ElementType::kFloat32, combine, {7, 65}, 0, 100));
    Compare(make.MakeElements(ElementType::kFloat32, combine, {65, 7}, 1, 33));
  }
}

TEST(ScatterTest, BoolsAreMoved) {
  ScatterStep make(4);
  Compare(make.MakeRows(ElementType::kBool, Index::Combine::kNone, {9, 20}, 1, 30));
  Compare(make.MakeElements(ElementType::kBool, Index::Combine::kNone, {9, 20}, 0, 30));
}

}  // namespace
}  // namespace onnxifi::scatter
