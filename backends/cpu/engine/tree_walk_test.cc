// SPDX-License-Identifier: Apache-2.0
//
// Ways down trees, against a loop that goes down one after the other: comparisons of both kinds and
// types, NaN, leaves at any depth, tables that are constants and such that are not, rows of any
// layout and number, more levels than one walk finds.

#include "backends/cpu/engine/tree_walk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/verify.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/testing/engine_device.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using Kind = program::Buffer::Kind;

struct Forest {
  int64_t rows, trees, features = 7;
  int64_t levels = 6;
  ElementType type = ElementType::kFloat32;
  bool is_strict = false;
  bool has_nan = false;
  bool has_constants = true;
  bool is_transposed = false;  // the rows in memory
};

class ForestTest {
 public:
  explicit ForestTest(const Forest& forest) : forest_(forest) { MakeTables(); }

  void Check() {
    MakeStep();
    if (!forest_.has_constants) {  // whose elements are no part of the program here
      const base::Status verified = program::Verify(made_.program);
      ASSERT_TRUE(verified.ok()) << verified.Text();
    }
    const program::ExprId root = made_.program.steps[0].As<program::Map>()->roots[0];
    ASSERT_EQ(Code::Compile(made_.program.exprs, {&root, 1}, LoopSet::kReference).varying().size(),
              4U);  // row, entry, its cast, the walk
    for (const int64_t lanes : {37, 1024}) {
      device::Serial serial;
      EngineDevice device(serial, {.loops = LoopSet::kReference, .tile_lanes = lanes});
      const auto results = RunStep(device, made_);
      ASSERT_TRUE(results.ok()) << results.status().Text();
      const tensor::Tensor& entries = results->back();
      for (int64_t row = 0; row < forest_.rows; ++row) {
        for (int64_t tree = 0; tree < forest_.trees; ++tree) {
          ASSERT_EQ(entries.AsInt(row * forest_.trees + tree), GoDown(row, tree))
              << "row " << row << ", tree " << tree << ", " << lanes << " lanes";
        }
      }
    }
  }

 private:
  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }

  // Numbers that splits often equal, and at times none.
  double MakeFeature() {
    if (forest_.has_nan && Roll(0, 9) == 0) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(Roll(-8, 8)) / 4;
  }

  // A node's children are a leaf, or nodes with larger numbers.
  void MakeTables() {
    constexpr int32_t kNodes = 63;
    for (int64_t tree = 0; tree < forest_.trees; ++tree) {
      const auto root = static_cast<int32_t>(features_.size());
      roots_.push_back(root);
      for (int32_t node = 0; node < kNodes; ++node) {
        const int32_t own = root + node;
        const bool is_leaf = node >= kNodes / 2 || Roll(0, 5) == 0;
        features_.push_back(static_cast<int32_t>(Roll(0, forest_.features - 1)));
        splits_.push_back(MakeFeature());
        if (std::isnan(splits_.back())) splits_.back() = 0;
        nan_is_first_.push_back(static_cast<uint8_t>(Roll(0, 1)));
        children_.push_back(is_leaf ? own : root + 2 * node + 1);
        children_.push_back(is_leaf ? own : root + 2 * node + 2);
      }
    }
    for (int64_t k = 0; k < forest_.rows * forest_.features; ++k) rows_.push_back(MakeFeature());
  }

  int64_t GoDown(int64_t row, int64_t tree) const {
    auto entry = static_cast<size_t>(roots_[static_cast<size_t>(tree)]);
    for (int64_t level = 0; level < forest_.levels; ++level) {
      const double feature = rows_[static_cast<size_t>(row * forest_.features + features_[entry])];
      bool is_first = forest_.is_strict ? feature < splits_[entry] : feature <= splits_[entry];
      if (std::isnan(feature)) is_first = forest_.has_nan && nan_is_first_[entry] != 0;
      entry = static_cast<size_t>(children_[2 * entry + (is_first ? 1 : 0)]);
    }
    return static_cast<int64_t>(entry);
  }

  template <typename T>
  program::View Buffer(ElementType type, const tensor::Extents& extents,
                       const std::vector<T>& values, Kind kind) {
    const program::Shape shape(extents.begin(), extents.end());
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type, extents);
    for (size_t k = 0; k < values.size(); ++k) {
      const tensor::Scalar scalar = tensor::IsFloat(type)
                                        ? tensor::Scalar{.f = static_cast<double>(values[k])}
                                        : tensor::Scalar{.i = static_cast<int64_t>(values[k])};
      tensor::StoreScalar(type, tensor.mutable_data(), static_cast<int64_t>(k), scalar);
    }
    made_.buffers.push_back(std::move(tensor));
    const program::Buffer buffer{.kind = kind, .type = type, .shape = shape};
    return program::DenseView(made_.program.AddBuffer(buffer), type, shape);
  }

  void MakeStep() {
    const auto entries = static_cast<int64_t>(features_.size());
    const Kind kind = forest_.has_constants ? Kind::kConstant : Kind::kTemporary;
    std::vector<double> rows = rows_;
    if (forest_.is_transposed) {
      for (int64_t k = 0; k < forest_.rows * forest_.features; ++k) {
        rows[static_cast<size_t>(k % forest_.features * forest_.rows + k / forest_.features)] =
            rows_[static_cast<size_t>(k)];
      }
    }
    program::View row_view =
        Buffer(forest_.type, {forest_.rows, forest_.features}, rows, Kind::kTemporary);
    if (forest_.is_transposed) row_view.strides = {1, forest_.rows};
    program::View roots = Buffer(ElementType::kInt32, {1, forest_.trees}, roots_, kind);
    roots.strides = {0, 1};
    program::Step step;
    step.reads = {row_view,
                  Buffer(ElementType::kInt32, {entries}, features_, kind),
                  Buffer(forest_.type, {entries}, splits_, kind),
                  Buffer(ElementType::kInt32, {entries, 2}, children_, kind),
                  Buffer(ElementType::kBool, {entries}, nan_is_first_, kind),
                  roots};
    program::ExprPool& pool = made_.program.exprs;
    const auto at = [&](int read, ElementType type, std::initializer_list<Expr> place) {
      return LoadAt(pool, type, read, std::span(place.begin(), place.size()));
    };
    const Expr row = Coordinate(pool, 0);
    Expr entry = Cast(Load(pool, ElementType::kInt32, 5), ElementType::kInt64);
    for (int64_t level = 0; level < forest_.levels; ++level) {
      const Expr number = Cast(at(1, ElementType::kInt32, {entry}), ElementType::kInt64);
      const Expr feature = at(0, forest_.type, {row, number});
      const Expr split = at(2, forest_.type, {entry});
      Expr is_first = forest_.is_strict ? feature < split : feature <= split;
      if (forest_.has_nan) {
        is_first =
            is_first || (Unary(ExprOp::kIsNan, feature) && at(4, ElementType::kBool, {entry}));
      }
      const Expr child = Cast(is_first, ElementType::kInt64);
      entry = Cast(at(3, ElementType::kInt32, {entry, child}), ElementType::kInt64);
    }
    step.writes = {Buffer(ElementType::kInt64, {forest_.rows, forest_.trees},
                          std::vector<int64_t>(), Kind::kTemporary)};
    step.domain = {forest_.rows, forest_.trees};
    step.body = program::Map{{entry.id()}};
    made_.program.steps.push_back(std::move(step));
  }

  const Forest forest_;
  std::mt19937 random_{7};
  std::vector<int32_t> features_, children_, roots_;
  std::vector<uint8_t> nan_is_first_;
  std::vector<double> splits_, rows_;
  reference::RandomStep made_;
};

TEST(TreeWalkTest, GoesDownAsALoopDoes) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
    for (const bool is_strict : {false, true}) {
      for (const bool has_nan : {false, true}) {
        SCOPED_TRACE(testing::Message() << Name(type) << is_strict << has_nan);
        ForestTest(
            {.rows = 23, .trees = 19, .type = type, .is_strict = is_strict, .has_nan = has_nan})
            .Check();
      }
    }
  }
}

TEST(TreeWalkTest, TakesAnyNumberOfRowsAndTrees) {
  for (const int64_t rows : {1, 2, 5, 16, 33}) {
    for (const int64_t trees : {1, 3, 17, 100}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << trees << " trees");
      ForestTest({.rows = rows, .trees = trees}).Check();
    }
  }
}

TEST(TreeWalkTest, StopsWhereItIsTold) {
  for (const int64_t levels : {2, 3, 20})
    ForestTest({.rows = 9, .trees = 5, .levels = levels}).Check();
}

TEST(TreeWalkTest, TakesTablesAndRowsInAnyMemory) {
  for (const bool has_nan : {false, true}) {
    ForestTest({.rows = 40, .trees = 9, .has_nan = has_nan, .has_constants = false}).Check();
    ForestTest({.rows = 40, .trees = 9, .has_nan = has_nan, .is_transposed = true}).Check();
  }
}

}  // namespace
}  // namespace onnxifi::engine
