// SPDX-License-Identifier: Apache-2.0
//
// Rows times matrices that positions select, against sums in float64: floats in both orders and
// numbers of few bits, one row and many, positions of several types, negative ones and such that
// select nothing.

#include "backends/cpu/matmul/gathered_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"

namespace onnxifi::matmul {
namespace {

using program::Contract;
using program::Dim;
using program::Expr;
using tensor::ElementType;

struct Case {
  int64_t tokens, slots, depth, columns, entries = 5;
  ElementType type = ElementType::kFloat32;  // of the matrices
  int64_t block = 0;                         // elements that a scale is for; 0: a whole column
  bool has_zero_points = false;
  bool is_transposed = true;  // the matrices: columns x depth
  bool has_own_rows = false;  // one for each slot of a token
  ElementType positions = ElementType::kInt64;
  bool is_symbolic = false;  // the number of tokens
  bool is_beyond = false;    // some positions
  int threads = 2;
};

// max(X[token, slot] * W[positions[token, slot]] + bias, -1)
class Product {
 public:
  explicit Product(const Case& test) : test_(test) {
    Dim tokens(test.tokens);
    if (test.is_symbolic) tokens = program_.dims->NewSymbol("tokens", /*is_data=*/false);
    const int64_t x_slots = test.has_own_rows ? test.slots : 1;
    const int64_t x = AddFloats(test.tokens * x_slots * test.depth, -1, 1, false);
    const int64_t y = AddFloats(rows() * test.columns, 0, 0, false);
    const int64_t positions = AddPositions();
    const int64_t bias = AddFloats(test.columns, -1, 1, false);
    const int64_t matrices = AddMatrices();
    step_.domain = {tokens, test.slots, 1, test.columns};
    step_.reads = {View(x, ElementType::kFloat32,
                        {x_slots * test.depth, test.has_own_rows ? test.depth : 0, 0, 1}),
                   View(positions, test.positions, {test.slots, 1, 0, 0}),
                   View(bias, ElementType::kFloat32, {0, 0, 0, 1}),
                   View(matrices, test.type, Strides(test.depth), /*has_entries=*/true)};
    step_.writes = {
        View(y, ElementType::kFloat32, {test.slots * test.columns, test.columns, 0, 1})};
    program::ExprPool& pool = program_.exprs;
    Expr position = Cast(Load(pool, test.positions, 1), ElementType::kInt64);
    if (tensor::IsSigned(test.positions)) {
      position =
          Select(position < Like(position, 0), position + Like(position, test.entries), position);
    }
    const Expr k = Coordinate(pool, 2), n = Coordinate(pool, 3);
    const auto at = [&](Expr inner) {
      return test.is_transposed ? std::vector<Expr>{position, n, inner}
                                : std::vector<Expr>{position, inner, n};
    };
    Expr weight = LoadAt(pool, test.type, 3, at(k));
    if (test.type != ElementType::kFloat32) {
      const int64_t blocks = Blocks();
      const Expr block = test.block == 0 ? IntConstant(pool, ElementType::kInt64, 0)
                                         : k / IntConstant(pool, ElementType::kInt64, test.block);
      scales_ = AddFloats(test.entries * test.columns * blocks, 0.01F, 0.5F, true);
      step_.reads.push_back(
          View(scales_, ElementType::kFloat32, Strides(blocks), /*has_entries=*/true));
      Expr number = Cast(weight, ElementType::kFloat32);
      if (test.has_zero_points) {
        zero_points_ = AddNumbers(test.entries * test.columns * blocks);
        step_.reads.push_back(View(zero_points_, test.type, Strides(blocks), /*has_entries=*/true));
        number = Cast(Cast(weight, ElementType::kInt32) -
                          Cast(LoadAt(pool, test.type, 5, at(block)), ElementType::kInt32),
                      ElementType::kFloat32);
      }
      weight = number * LoadAt(pool, ElementType::kFloat32, 4, at(block));
    }
    Contract contract;
    contract.batch_axes = 2;
    contract.m_axes = 1;
    contract.n_axes = 1;
    contract.inner = {test.depth};
    contract.a_prologue = Load(pool, ElementType::kFloat32, 0).id();
    contract.b_prologue = weight.id();
    const Expr sum =
        Accumulator(pool, ElementType::kFloat32) + Load(pool, ElementType::kFloat32, 2);
    contract.roots = {Maximum(sum, Like(sum, -1)).id()};
    step_.body = std::move(contract);
  }

  base::Result<GatheredMatrices> Describe() const {
    return DescribeGatheredProduct({program_, step_});
  }

  // Runs it, and compares.
  void Check() {
    const auto product = Describe();
    ASSERT_TRUE(product.ok()) << product.status().Text();
    ASSERT_TRUE(CheckConstant({program_, step_}, *product).ok());
    threads::ThreadPool pool(test_.threads);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const Recipe recipe({MakeMethod(*product)}, nullptr, product->numbers);
    const std::unique_ptr<device::Kernel> kernel = recipe.BuildKernel(runtime, nullptr);
    std::vector<std::byte*> addresses, constants;
    for (size_t k = 0; k < data_.size(); ++k) {
      addresses.push_back(data_[k].data());
      const bool is_constant = program_.buffers[k].kind == program::Buffer::Kind::kConstant;
      constants.push_back(is_constant ? data_[k].data() : nullptr);
    }
    std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), test_.tokens);
    const auto bound = kernel->Bind(device::Bind(program_, step_, dims), constants);
    ASSERT_TRUE(bound.ok()) << bound.status().Text();
    for (const int read : product->Constants()) {
      EXPECT_FALSE((*bound)->ReadsAtRun(read));
      addresses[static_cast<size_t>(step_.reads[static_cast<size_t>(read)].buffer)] = nullptr;
    }
    EXPECT_TRUE((*bound)->ReadsAtRun(1));
    std::fill_n(Floats(1), rows() * test_.columns, -777.0F);
    ASSERT_TRUE((*bound)->Run(addresses).ok());
    Compare();
  }

 private:
  int64_t rows() const { return test_.tokens * test_.slots; }
  int64_t Blocks() const {
    return test_.block == 0 ? 1 : (test_.depth + test_.block - 1) / test_.block;
  }
  float* Floats(int64_t buffer) {
    return reinterpret_cast<float*>(data_[static_cast<size_t>(buffer)].data());
  }
  // Of [entries, columns, inner] or [entries, inner, columns].
  tensor::Extents Strides(int64_t inner) const {
    return {test_.columns * inner, test_.is_transposed ? inner : test_.columns, 1};
  }

  int64_t Add(ElementType type, int64_t count, bool is_constant) {
    data_.emplace_back(static_cast<size_t>(tensor::SizeBytes(type, count)));
    const auto kind =
        is_constant ? program::Buffer::Kind::kConstant : program::Buffer::Kind::kTemporary;
    return program_.AddBuffer({kind, type, {count}});
  }
  int64_t AddFloats(int64_t count, float low, float high, bool is_constant) {
    const int64_t buffer = Add(ElementType::kFloat32, count, is_constant);
    std::uniform_real_distribution<float> uniform(low, high);
    for (int64_t k = 0; k < count; ++k) Floats(buffer)[k] = uniform(random_);
    return buffer;
  }
  int64_t AddNumbers(int64_t count) {
    const int64_t buffer = Add(test_.type, count, true);
    const int64_t all = int64_t{1} << tensor::BitWidth(test_.type);
    for (int64_t k = 0; k < count; ++k) {
      const auto number = static_cast<int64_t>(random_() % static_cast<uint64_t>(all));
      tensor::Scalar scalar{};
      if (tensor::IsSigned(test_.type)) {
        scalar.i = number - all / 2;
      } else {
        scalar.u = static_cast<uint64_t>(number);
      }
      tensor::StoreScalar(test_.type, data_[static_cast<size_t>(buffer)].data(), k, scalar);
    }
    return buffer;
  }
  int64_t AddMatrices() {
    const int64_t count = test_.entries * test_.columns * test_.depth;
    return test_.type == ElementType::kFloat32 ? AddFloats(count, -1, 1, true) : AddNumbers(count);
  }
  // Entry 1 is nobody's.
  int64_t AddPositions() {
    const int64_t buffer = Add(test_.positions, rows(), false);
    for (int64_t row = 0; row < rows(); ++row) {
      auto entry = static_cast<int64_t>(random_() % static_cast<uint64_t>(test_.entries));
      if (entry == 1) entry = 0;
      const bool is_beyond = test_.is_beyond && row % 3 == 1;
      entries_.push_back(is_beyond ? std::nullopt : std::optional(entry));
      tensor::Scalar scalar{};
      if (tensor::IsSigned(test_.positions)) {
        const int64_t outside = row % 2 == 0 ? test_.entries : -test_.entries - 1;
        scalar.i = is_beyond ? outside : row % 2 == 0 ? entry : entry - test_.entries;
      } else {
        scalar.u = static_cast<uint64_t>(is_beyond ? test_.entries : entry);
      }
      tensor::StoreScalar(test_.positions, data_[static_cast<size_t>(buffer)].data(), row, scalar);
    }
    return buffer;
  }

  program::View View(int64_t buffer, ElementType type, const tensor::Extents& strides,
                     bool has_entries = false) const {
    program::View view;
    view.type = type;
    view.buffer = static_cast<program::BufferId>(buffer);
    view.strides = {strides.begin(), strides.end()};
    if (has_entries) view.guards.push_back({{1, 0, 0}, 0, test_.entries});
    return view;
  }

  double NumberAt(int64_t buffer, int64_t at) {
    const auto index = static_cast<size_t>(buffer);
    const ElementType type = program_.buffers[index].type;
    const tensor::Scalar number = tensor::LoadScalar(type, data_[index].data(), at);
    return tensor::IsFloat(type)    ? number.f
           : tensor::IsSigned(type) ? static_cast<double>(number.i)
                                    : static_cast<double>(number.u);
  }
  double WeightAt(int64_t entry, int64_t k, int64_t n) {
    const auto at = [&](int64_t inner, int64_t of) {
      const int64_t first = entry * test_.columns * inner;
      return first + (test_.is_transposed ? n * inner + of : of * test_.columns + n);
    };
    double number = NumberAt(4, at(test_.depth, k));
    if (test_.type == ElementType::kFloat32) return number;
    const int64_t block = at(Blocks(), test_.block == 0 ? 0 : k / test_.block);
    if (test_.has_zero_points) number -= NumberAt(zero_points_, block);
    return number * NumberAt(scales_, block);
  }

  void Compare() {
    for (int64_t row = 0; row < rows(); ++row) {
      const float* x = Floats(0) + (test_.has_own_rows ? row : row / test_.slots) * test_.depth;
      const std::optional<int64_t> entry = entries_[static_cast<size_t>(row)];
      for (int64_t n = 0; n < test_.columns; ++n) {
        double sum = static_cast<double>(Floats(3)[n]), sizes = 1;
        for (int64_t k = 0; entry && k < test_.depth; ++k) {
          const double product = static_cast<double>(x[k]) * WeightAt(*entry, k, n);
          sum += product;
          sizes += std::abs(product);
        }
        ASSERT_NEAR(Floats(1)[row * test_.columns + n], std::max(sum, -1.0), 1e-6 * sizes)
            << row << ", " << n;
      }
    }
  }

  const Case test_;
  std::mt19937 random_{11};
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::optional<int64_t>> entries_;  // by row
  int64_t scales_ = -1, zero_points_ = -1;
};

TEST(GatheredProductTest, MultipliesFloats) {
  for (const bool is_transposed : {false, true}) {
    for (const int64_t tokens : {1, 2, 9, 130}) {
      SCOPED_TRACE(tokens);
      Product({.tokens = tokens,
               .slots = 2,
               .depth = 70,
               .columns = 101,
               .is_transposed = is_transposed})
          .Check();
    }
  }
}

// More columns than are done at a time, and more rows.
TEST(GatheredProductTest, MultipliesLargeMatrices) {
  Product({.tokens = 250,
           .slots = 3,
           .depth = 130,
           .columns = 1100,
           .entries = 2,
           .has_own_rows = true})
      .Check();
  Product({.tokens = 250,
           .slots = 3,
           .depth = 130,
           .columns = 1100,
           .entries = 2,
           .type = ElementType::kUint4,
           .block = 32,
           .has_own_rows = true})
      .Check();
}

TEST(GatheredProductTest, MultipliesNumbersOfFewBits) {
  for (const ElementType type :
       {ElementType::kUint4, ElementType::kInt4, ElementType::kUint8, ElementType::kInt8}) {
    for (const int64_t block : {0, 16, 32}) {
      for (const bool has_zero_points : {false, true}) {
        for (const int64_t tokens : {1, 11, 100}) {
          SCOPED_TRACE(std::string(tensor::Name(type)) + " " + std::to_string(block) + " " +
                       std::to_string(tokens));
          Product({.tokens = tokens,
                   .slots = 2,
                   .depth = 64,
                   .columns = 77,
                   .type = type,
                   .block = block,
                   .has_zero_points = has_zero_points})
              .Check();
        }
      }
    }
  }
}

TEST(GatheredProductTest, TakesPositionsOfAnyType) {
  for (const ElementType positions :
       {ElementType::kInt32, ElementType::kInt8, ElementType::kUint8, ElementType::kUint64}) {
    SCOPED_TRACE(tensor::Name(positions));
    Product({.tokens = 13,
             .slots = 2,
             .depth = 8,
             .columns = 9,
             .positions = positions,
             .is_beyond = true})
        .Check();
  }
}

TEST(GatheredProductTest, GivesZeroWherePositionsAreBeyond) {
  Product({.tokens = 40, .slots = 2, .depth = 64, .columns = 77, .is_beyond = true}).Check();
  Product({.tokens = 40,
           .slots = 2,
           .depth = 64,
           .columns = 77,
           .type = ElementType::kUint8,
           .is_beyond = true})
      .Check();
}

TEST(GatheredProductTest, TakesAnyNumberOfRows) {
  for (const int64_t tokens : {0, 1, 50}) {
    for (const int threads : {1, 3}) {
      Product({.tokens = tokens,
               .slots = 2,
               .depth = 33,
               .columns = 65,
               .has_own_rows = true,
               .is_symbolic = true,
               .threads = threads})
          .Check();
    }
  }
}

// Columns of the next matrix do not follow those of the one before.
TEST(GatheredProductTest, RefusesNumbersInRows) {
  const auto product = Product({.tokens = 2,
                                .slots = 2,
                                .depth = 64,
                                .columns = 32,
                                .type = ElementType::kUint8,
                                .is_transposed = false})
                           .Describe();
  ASSERT_FALSE(product.ok());
  EXPECT_NE(product.status().Text().find("column behind column"), std::string::npos)
      << product.status().Text();
}

}  // namespace
}  // namespace onnxifi::matmul
