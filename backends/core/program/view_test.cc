// SPDX-License-Identifier: Apache-2.0
//
// View: every operation against the same operation on an explicit list of elements, for random
// views, with extents as numbers and as symbols; and what the reshape of a view can and cannot say.

#include "backends/core/program/view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace onnxifi::program {
namespace {

using Numbers = std::vector<int64_t>;

// What an operand looks like: for each coordinate, row-major, the element of the buffer or nothing
// for the fill.
struct Picture {
  Numbers extents;
  std::vector<std::optional<int64_t>> elements;

  bool operator==(const Picture&) const = default;
};

int64_t Count(const Numbers& extents) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return count;
}

Numbers Coordinates(const Numbers& extents, int64_t position) {
  Numbers coordinates(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    coordinates[axis] = position % extents[axis];
    position /= extents[axis];
  }
  return coordinates;
}

int64_t Position(const Numbers& extents, const Numbers& coordinates) {
  int64_t position = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    position = position * extents[axis] + coordinates[axis];
  }
  return position;
}

// Builds a picture of new extents from where each of its coordinates comes from.
template <typename From>
Picture Redraw(const Picture& picture, Numbers extents, From&& from) {
  Picture result{std::move(extents), {}};
  for (int64_t p = 0; p < Count(result.extents); ++p) {
    const std::optional<Numbers> source = from(Coordinates(result.extents, p));
    result.elements.push_back(
        source ? picture.elements[static_cast<size_t>(Position(picture.extents, *source))]
               : std::nullopt);
  }
  return result;
}

// Extents as numbers, or as symbols bound to these numbers.
class Extents {
 public:
  explicit Extents(bool symbolic) : symbolic_(symbolic) {}

  Dim Make(int64_t number) {
    // 1 decides broadcasting and 0 emptiness, so those stay numbers.
    if (!symbolic_ || number < 2) return number;
    symbols_.push_back(number);
    return table_.NewSymbol("s" + std::to_string(symbols_.size()), false);
  }
  Numbers Bind() const {
    Numbers values(static_cast<size_t>(table_.node_count()));
    table_.Evaluate(symbols_, 0, table_.symbol_count(), values);
    return values;
  }

 private:
  bool symbolic_;
  tensor::DimTable table_;
  Numbers symbols_;
};

Picture Draw(const Operand& operand, const Numbers& values) {
  Picture picture;
  for (const Dim& extent : operand.shape) {
    picture.extents.push_back(tensor::ValueOf(extent, values));
  }
  for (int64_t p = 0; p < Count(picture.extents); ++p) {
    const Numbers at = Coordinates(picture.extents, p);
    auto linear = [&](const Dim& offset, const Dims& coefficients) {
      int64_t sum = tensor::ValueOf(offset, values);
      for (size_t axis = 0; axis < at.size(); ++axis) {
        sum += tensor::ValueOf(coefficients[axis], values) * at[axis];
      }
      return sum;
    };
    std::optional<int64_t> element = linear(operand.view.offset, operand.view.strides);
    for (const Guard& guard : operand.view.guards) {
      const int64_t value = linear(guard.offset, guard.coefficients);
      if (value < 0 || value >= tensor::ValueOf(guard.extent, values)) element.reset();
    }
    picture.elements.push_back(element);
  }
  return picture;
}

class ViewPropertyTest : public testing::TestWithParam<bool> {};

TEST_P(ViewPropertyTest, OperationsMoveElementsAsOnAList) {
  std::mt19937_64 random(7);
  int reshapes = 0;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    Extents extents(GetParam());
    Shape shape;
    Numbers numbers;
    const int rank = static_cast<int>(random() % 4);
    for (int axis = 0; axis < rank; ++axis) {
      numbers.push_back(static_cast<int64_t>(random() % 4) + (random() % 10 == 0 ? 0 : 1));
      shape.push_back(extents.Make(numbers.back()));
    }
    Operand operand{DenseView(0, ElementType::kFloat32, shape), shape};
    EXPECT_TRUE(IsDense(operand));
    Picture picture{numbers, {}};
    for (int64_t p = 0; p < Count(numbers); ++p) picture.elements.push_back(p);
    std::string story;
    for (int step = 0; step < 5; ++step) {
      const int axes = operand.rank();
      const int axis = axes == 0 ? 0 : static_cast<int>(random() % axes);
      switch (random() % 7) {
        case 0: {
          std::vector<int> order(axes);
          for (int k = 0; k < axes; ++k) order[k] = k;
          std::shuffle(order.begin(), order.end(), random);
          Numbers permuted(axes);
          for (int k = 0; k < axes; ++k) permuted[k] = picture.extents[order[k]];
          picture = Redraw(picture, permuted, [&](const Numbers& at) {
            Numbers from(at.size());
            for (int k = 0; k < axes; ++k) from[order[k]] = at[k];
            return std::optional<Numbers>(from);
          });
          operand = Permute(operand, order);
          story += " permute";
          break;
        }
        case 1: {
          if (axes == 0 || picture.extents[axis] == 0) break;
          // A flip of the whole axis, or a part of it.
          const bool is_flip = random() % 2 == 0;
          const int64_t extent = picture.extents[axis];
          const int64_t start = is_flip ? 0 : static_cast<int64_t>(random()) & 1;
          if (start >= extent) break;
          Numbers sliced = picture.extents;
          sliced[axis] = is_flip ? extent : (extent - start + 1) / 2;
          picture = Redraw(picture, sliced, [&](Numbers at) {
            at[axis] = is_flip ? extent - 1 - at[axis] : start + 2 * at[axis];
            return std::optional<Numbers>(at);
          });
          const Dim whole = operand.shape[axis];
          operand = is_flip ? Slice(operand, axis, whole - 1, -1, whole)
                            : Slice(operand, axis, start, 2, tensor::CeilDiv(whole - start, 2));
          story += is_flip ? " flip" : " slice";
          break;
        }
        case 2: {
          const int where = static_cast<int>(random() % (axes + 1));
          picture.extents.insert(picture.extents.begin() + where, 1);
          operand = InsertAxis(operand, where);
          story += " insert";
          break;
        }
        case 3: {
          if (axes == 0 || picture.extents[axis] == 0) break;
          Numbers fewer = picture.extents;
          fewer.erase(fewer.begin() + axis);
          picture = Redraw(picture, fewer, [&](Numbers at) {
            at.insert(at.begin() + axis, 0);
            return std::optional<Numbers>(at);
          });
          operand = RemoveAxis(operand, axis);
          story += " remove";
          break;
        }
        case 4: {
          Shape target = operand.shape;
          Numbers target_numbers = picture.extents;
          for (int k = 0; k < axes; ++k) {
            if (operand.shape[k] == Dim(1)) {
              target_numbers[k] = 3;
              target[k] = extents.Make(3);
            }
          }
          target.insert(target.begin(), extents.Make(2));
          target_numbers.insert(target_numbers.begin(), 2);
          const Numbers before = picture.extents;
          picture = Redraw(picture, target_numbers, [&](Numbers at) {
            at.erase(at.begin());
            for (size_t k = 0; k < at.size(); ++k) {
              if (before[k] == 1) at[k] = 0;
            }
            return std::optional<Numbers>(at);
          });
          operand = {BroadcastTo(operand, target), target};
          story += " broadcast";
          break;
        }
        case 5: {
          if (axes == 0) break;
          const int64_t before = static_cast<int64_t>(random() % 3) - 1;
          const int64_t after = static_cast<int64_t>(random() % 3);
          if (picture.extents[axis] + before + after < 0) break;
          Numbers padded = picture.extents;
          const int64_t inside = padded[axis];
          padded[axis] += before + after;
          picture = Redraw(picture, padded, [&](Numbers at) -> std::optional<Numbers> {
            at[axis] -= before;
            if (at[axis] < 0 || at[axis] >= inside) return std::nullopt;
            return at;
          });
          Dims befores(axes, 0), afters(axes, 0);
          befores[axis] = before;
          afters[axis] = after;
          operand = *Pad(operand, befores, afters, tensor::Scalar{.f = 5});
          story += " pad";
          break;
        }
        case 6: {
          // Merges two neighbours, or splits off a factor of the last axis.
          if (axes < 2) break;
          Shape target = operand.shape;
          Numbers target_numbers = picture.extents;
          const int k = static_cast<int>(random() % (axes - 1));
          target[k] = target[k] * target[k + 1];
          target_numbers[k] *= target_numbers[k + 1];
          target.erase(target.begin() + k + 1);
          target_numbers.erase(target_numbers.begin() + k + 1);
          if (random() % 2 == 0) {
            target.push_back(1);
            target_numbers.push_back(1);
          }
          const std::optional<Operand> reshaped = Reshape(operand, target);
          ++reshapes;
          if (!reshaped) {
            ++refused;
            break;
          }
          operand = *reshaped;
          picture.extents = target_numbers;
          story += " reshape";
          break;
        }
      }
      ASSERT_EQ(Draw(operand, extents.Bind()), picture) << "round " << round << ":" << story;
    }
  }
  EXPECT_GT(reshapes - refused, 200);
  EXPECT_GT(refused, 50);
}

INSTANTIATE_TEST_SUITE_P(Extents, ViewPropertyTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Symbolic" : "Numbers");
});

TEST(ViewTest, ReshapeOfDenseViewIsDense) {
  tensor::DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Dim s = table.NewSymbol("S", false);
  const Shape from = {n, s, 12, 64};
  const Operand operand{DenseView(0, ElementType::kFloat32, from), from};
  const Shape targets[] = {{n * s, 768},          {n, s, 768},          {n, s, 3, 4, 64},
                           {1, n, 1, s * 12, 64}, {n * s * 768},        {n, s * 12, 8, 8},
                           {n, s, 12, 64, 1, 1},  {n * s, 12, 2, 1, 32}};
  for (const Shape& target : targets) {
    const std::optional<Operand> reshaped = Reshape(operand, target);
    ASSERT_TRUE(reshaped.has_value()) << tensor::ToString(target);
    EXPECT_TRUE(IsDense(*reshaped)) << tensor::ToString(target);
    EXPECT_EQ(reshaped->view, DenseView(0, ElementType::kFloat32, target));
  }
}

TEST(ViewTest, ReshapeOfTransposedViewKeepsWhatItCan) {
  const Shape from = {4, 6, 8};
  const Operand operand{DenseView(0, ElementType::kFloat32, from), from};
  const Operand transposed = Permute(operand, {1, 0, 2});
  EXPECT_FALSE(Reshape(transposed, {24, 8}).has_value());
  const std::optional<Operand> split = Reshape(transposed, {6, 2, 2, 8});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->view.strides, (Dims{8, 96, 48, 1}));
}

TEST(ViewTest, ReshapeOfBroadcastViewRepeats) {
  const Operand scalar{DenseView(0, ElementType::kFloat32, {}), {}};
  const Operand wide{BroadcastTo(scalar, {4, 6}), {4, 6}};
  const std::optional<Operand> flat = Reshape(wide, {24});
  ASSERT_TRUE(flat.has_value());
  EXPECT_EQ(flat->view.strides, (Dims{0}));
}

TEST(ViewTest, ReshapeOfPaddedAxisIsRefused) {
  const Shape from = {4, 6};
  const Operand operand{DenseView(0, ElementType::kFloat32, from), from};
  const std::optional<Operand> padded = Pad(operand, {0, 1}, {0, 1}, tensor::Scalar{.f = 0});
  ASSERT_TRUE(padded.has_value());
  EXPECT_FALSE(Reshape(*padded, {32}).has_value());
  const std::optional<Operand> split = Reshape(*padded, {2, 2, 8});
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->view.guards[0].coefficients, (Dims{0, 0, 1}));
}

TEST(ViewTest, EmptyViewReshapesToAnyEmptyShape) {
  const Shape from = {0, 6};
  const Operand operand{DenseView(0, ElementType::kFloat32, from), from};
  EXPECT_TRUE(Reshape(Permute(operand, {1, 0}), {3, 0, 2}).has_value());
}

TEST(ViewTest, TwoFillsDoNotFitOneView) {
  const Shape from = {4};
  const Operand operand{DenseView(0, ElementType::kFloat32, from), from};
  const std::optional<Operand> zeros = Pad(operand, {1}, {1}, tensor::Scalar{.f = 0});
  ASSERT_TRUE(zeros.has_value());
  EXPECT_FALSE(Pad(*zeros, {1}, {1}, tensor::Scalar{.f = 1}).has_value());
  EXPECT_TRUE(Pad(*zeros, {-1}, {-1}, tensor::Scalar{.f = 1}).has_value());
}

TEST(ViewTest, PaddingsOfPaddingsHaveAGuardPerAxis) {
  tensor::DimTable table;
  const Dim n = table.NewSymbol("N", false);
  for (const Dim& extent : {Dim(4), n}) {
    const Shape from = {extent, 3};
    std::optional<Operand> padded = Operand{DenseView(0, ElementType::kFloat32, from), from};
    for (int k = 0; k < 20; ++k) {
      padded = Pad(*padded, {1, k % 3}, {2, 0}, tensor::Scalar{.f = 0});
      ASSERT_TRUE(padded.has_value());
    }
    ASSERT_EQ(padded->view.guards.size(), 2u);
    EXPECT_EQ(padded->view.guards[0].offset, Dim(-20));
    EXPECT_EQ(padded->view.guards[0].extent, extent);
    EXPECT_EQ(padded->shape[0], extent + Dim(60));
    // Rows 1 and 2, which a tensor of N rows may not have: padding them guards them, too.
    const std::optional<Operand> again =
        Pad(Slice(*padded, 0, 21, 1, 2), {1, 0}, {1, 0}, tensor::Scalar{.f = 0});
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->view.guards.size(), extent.is_constant() ? 2u : 3u);
  }
}

TEST(ViewTest, CroppingThePaddingDropsItsGuard) {
  tensor::DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Operand operand{DenseView(0, ElementType::kFloat32, {n}), {n}};
  const std::optional<Operand> padded = Pad(operand, {2}, {3}, tensor::Scalar{.f = 0});
  ASSERT_TRUE(padded.has_value());
  EXPECT_EQ(padded->view.guards.size(), 1u);
  const Operand cropped = Slice(*padded, 0, 2, 1, n);
  EXPECT_TRUE(cropped.view.guards.empty());
  EXPECT_TRUE(IsDense(cropped));
}

TEST(ViewTest, UnknownExtentDecidesBroadcastWhenBound) {
  tensor::DimTable table;
  const Dim n = table.NewSymbol("N", false);
  const Dim m = table.NewSymbol("M", false);
  const Operand operand{DenseView(0, ElementType::kFloat32, {n}), {n}};
  const View view = BroadcastTo(operand, {m});
  for (const int64_t extent : {int64_t{1}, int64_t{5}}) {
    Numbers values(static_cast<size_t>(table.node_count()));
    table.Evaluate(Numbers{extent, 5}, 0, 2, values);
    EXPECT_EQ(tensor::ValueOf(view.strides[0], values), extent == 1 ? 0 : 1);
  }
}

}  // namespace
}  // namespace onnxifi::program
