// SPDX-License-Identifier: Apache-2.0
//
// Rows times quantized weights against sums in float64: every type of at most 8 bits, both orders
// of the matrix, scales and zero points for all, per column and per block, few rows and many, and
// rows that are known only once the step is bound.

#include "backends/cpu/matmul/quantized_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
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

enum class Per { kNothing, kTensor, kColumn, kBlock };

struct Case {
  int64_t rows, depth, columns;
  ElementType type = ElementType::kUint4;
  int64_t block = 32;
  Per scale = Per::kBlock;
  Per zero_point = Per::kBlock;
  bool is_transposed = true;  // the matrix: columns x depth
  bool is_symbolic = false;   // the number of rows
  int64_t most = 255;         // numbers differ by less
  int64_t batches = 1;        // of rows, with a gap behind each
  bool is_infinite = false;   // the third element of each row
  int threads = 2;
};

// max(X * W + bias, -1)
class Product {
 public:
  explicit Product(const Case& test) : test_(test), random_(11) {
    Dim rows(test.rows);
    if (test.is_symbolic) rows = program_.dims->NewSymbol("rows", /*is_data=*/false);
    AddFloats({test.batches, rows, test.depth}, test.batches * BatchStride(test.depth), -1, 1);
    for (int64_t row = 0; test.is_infinite && row < test.rows; ++row) {
      Floats(0)[row * test.depth + 2] = std::numeric_limits<float>::infinity();
    }
    AddNumbers(test.type, {test.is_transposed ? test.columns : test.depth,
                           test.is_transposed ? test.depth : test.columns});
    AddFloats({test.batches, rows, test.columns}, test.batches * BatchStride(test.columns), 0, 0);
    AddFloats({test.columns}, test.columns, -1, 1);
    step_.domain = {test.batches, rows, test.columns};
    step_.reads = {
        View(0, {BatchStride(test.depth), test.depth, 1}),
        View(1, {test.is_transposed ? 1 : test.columns, test.is_transposed ? test.depth : 1}),
        View(3, {0, 0, 1})};
    step_.reads[1].type = test.type;
    step_.writes = {View(2, {BatchStride(test.columns), test.columns, 1})};
    Contract contract;
    contract.m_axes = 2;
    contract.n_axes = 1;
    contract.inner = {test.depth};
    program::ExprPool& pool = program_.exprs;
    contract.a_prologue = Load(pool, ElementType::kFloat32, 0).id();
    Expr number = Load(pool, test.type, 1);
    const Expr scale = Granules(test.scale, ElementType::kFloat32);
    if (test.zero_point == Per::kNothing) {
      number = Cast(number, ElementType::kFloat32);
    } else {
      const Expr zero_point = Granules(test.zero_point, test.type);
      number = Cast(Cast(number, ElementType::kInt32) - Cast(zero_point, ElementType::kInt32),
                    ElementType::kFloat32);
    }
    contract.b_prologue = (number * scale).id();
    const Expr sum =
        Accumulator(pool, ElementType::kFloat32) + Load(pool, ElementType::kFloat32, 2);
    contract.roots = {Maximum(sum, Like(sum, -1)).id()};
    step_.body = std::move(contract);
  }

  base::Result<QuantizedProduct> Describe() const {
    return DescribeQuantizedWeights({program_, step_});
  }

  // Runs it, and compares. What the kernel tells of itself contains `detail`.
  void Check(const std::string& detail = "") {
    const auto weights = Describe();
    ASSERT_TRUE(weights.ok()) << weights.status().Text();
    ASSERT_TRUE(CheckConstant({program_, step_}, *weights).ok());
    threads::ThreadPool pool(test_.threads);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const Recipe recipe({MakeMethod(*weights)});
    const std::unique_ptr<device::Kernel> kernel = recipe.BuildKernel(runtime, nullptr);
    std::vector<std::byte*> addresses, constants;
    for (size_t k = 0; k < data_.size(); ++k) {
      addresses.push_back(data_[k].data());
      const bool is_constant = program_.buffers[k].kind == program::Buffer::Kind::kConstant;
      constants.push_back(is_constant ? data_[k].data() : nullptr);
    }
    std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), test_.rows);
    // Twice: the second binding finds the matrix that the first one has packed, and its constants
    // gone.
    std::unique_ptr<device::BoundKernel> first;
    for (int number = 0; number < 2; ++number) {
      auto bound = kernel->Bind(device::Bind(program_, step_, dims), constants);
      ASSERT_TRUE(bound.ok()) << bound.status().Text();
      EXPECT_NE((*bound)->Detail().find(detail), std::string::npos) << (*bound)->Detail();
      std::vector<std::byte*> at_run = addresses;
      for (size_t read = 0; read < step_.reads.size(); ++read) {
        const program::BufferId buffer = step_.reads[read].buffer;
        if (program_.buffers[buffer].kind != program::Buffer::Kind::kConstant) continue;
        EXPECT_FALSE((*bound)->ReadsAtRun(static_cast<int>(read)));
        at_run[static_cast<size_t>(buffer)] = nullptr;
        constants[static_cast<size_t>(buffer)] = nullptr;
      }
      std::fill_n(Floats(2), data_[2].size() / sizeof(float), kUntouched);
      ASSERT_TRUE((*bound)->Run(at_run).ok());
      Compare();
      if (first == nullptr) first = *std::move(bound);
    }
  }

 private:
  static constexpr float kUntouched = -777;
  static constexpr int64_t kGap = 5;

  int64_t BatchStride(int64_t row) const { return test_.rows * row + kGap; }
  float* Floats(size_t buffer) { return reinterpret_cast<float*>(data_[buffer].data()); }

  void AddFloats(program::Shape shape, int64_t count, float low, float high) {
    std::vector<std::byte>& bytes = data_.emplace_back(static_cast<size_t>(count) * sizeof(float));
    std::uniform_real_distribution<float> uniform(low, high);
    for (int64_t k = 0; k < count; ++k) {
      reinterpret_cast<float*>(bytes.data())[k] = uniform(random_);
    }
    program_.AddBuffer(
        {program::Buffer::Kind::kTemporary, ElementType::kFloat32, std::move(shape)});
  }
  // A constant.
  void AddNumbers(ElementType type, const tensor::Extents& extents) {
    const int64_t count = tensor::ElementCount(extents);
    std::vector<std::byte>& bytes =
        data_.emplace_back(static_cast<size_t>(tensor::SizeBytes(type, count)));
    const bool is_signed = tensor::IsSigned(type);
    for (int64_t k = 0; k < count; ++k) {
      const auto number = static_cast<int64_t>(random_() % static_cast<uint64_t>(test_.most + 1));
      tensor::Scalar scalar{};
      if (is_signed) {
        scalar.i = number - (test_.most + 1) / 2;
      } else {
        scalar.u = static_cast<uint64_t>(number);
      }
      tensor::StoreScalar(type, bytes.data(), k, scalar);
    }
    program_.AddBuffer({program::Buffer::Kind::kConstant, type, {extents.begin(), extents.end()}});
  }

  static program::View View(program::BufferId buffer, const tensor::Extents& strides) {
    program::View view;
    view.type = ElementType::kFloat32;
    view.buffer = buffer;
    view.strides = {strides.begin(), strides.end()};
    return view;
  }

  // A read over the matrix of numbers of `type` for each granule.
  Expr Granules(Per per, ElementType type) {
    const auto buffer = static_cast<program::BufferId>(data_.size());
    const int64_t blocks = per == Per::kBlock ? (test_.depth + test_.block - 1) / test_.block : 1;
    const int64_t columns = per == Per::kTensor ? 1 : test_.columns;
    const tensor::Extents extents =
        test_.is_transposed ? tensor::Extents{columns, blocks} : tensor::Extents{blocks, columns};
    if (type == ElementType::kFloat32) {
      AddFloats({extents.begin(), extents.end()}, columns * blocks, 0.01F, 0.5F);
      program_.buffers.back().kind = program::Buffer::Kind::kConstant;
    } else {
      AddNumbers(type, extents);
    }
    const auto read = static_cast<int>(step_.reads.size());
    program::ExprPool& pool = program_.exprs;
    if (per == Per::kBlock) {
      step_.reads.push_back(View(buffer, {extents[1], 1}));
      step_.reads.back().type = type;
      const Expr block = Coordinate(pool, 0) / IntConstant(pool, ElementType::kInt64, test_.block);
      const Expr at[] = {test_.is_transposed ? Coordinate(pool, 1) : block,
                         test_.is_transposed ? block : Coordinate(pool, 1)};
      return LoadAt(pool, type, read, at);
    }
    step_.reads.push_back(View(buffer, {0, per == Per::kColumn ? 1 : 0}));
    step_.reads.back().type = type;
    return Load(pool, type, read);
  }

  double GranuleAt(Per per, int read, int64_t k, int64_t n) {
    const program::View& view = step_.reads[static_cast<size_t>(read)];
    const int64_t blocks = per == Per::kBlock ? (test_.depth + test_.block - 1) / test_.block : 1;
    int64_t at = per == Per::kTensor ? 0 : n;
    if (per == Per::kBlock) {
      at = test_.is_transposed ? n * blocks + k / test_.block : k / test_.block * test_.columns + n;
    }
    const tensor::Scalar number =
        tensor::LoadScalar(view.type, data_[static_cast<size_t>(view.buffer)].data(), at);
    return tensor::IsFloat(view.type)    ? number.f
           : tensor::IsSigned(view.type) ? static_cast<double>(number.i)
                                         : static_cast<double>(number.u);
  }

  double WeightAt(int64_t k, int64_t n) {
    const tensor::Scalar scalar =
        tensor::LoadScalar(test_.type, data_[1].data(),
                           test_.is_transposed ? n * test_.depth + k : k * test_.columns + n);
    double number = tensor::IsSigned(test_.type) ? static_cast<double>(scalar.i)
                                                 : static_cast<double>(scalar.u);
    if (test_.zero_point != Per::kNothing) number -= GranuleAt(test_.zero_point, 4, k, n);
    return number * GranuleAt(test_.scale, 3, k, n);
  }

  void Compare() {
    std::vector<double> weights(static_cast<size_t>(test_.depth * test_.columns));
    for (int64_t k = 0; k < test_.depth; ++k) {
      for (int64_t n = 0; n < test_.columns; ++n) {
        weights[static_cast<size_t>(n * test_.depth + k)] = WeightAt(k, n);
      }
    }
    for (int64_t batch = 0; batch < test_.batches; ++batch) {
      for (int64_t row = 0; row < test_.rows; ++row) {
        const float* x = Floats(0) + batch * BatchStride(test_.depth) + row * test_.depth;
        const float* y = Floats(2) + batch * BatchStride(test_.columns) + row * test_.columns;
        for (int64_t n = 0; n < test_.columns; ++n) {
          double sum = static_cast<double>(Floats(3)[n]), sizes = 1;
          for (int64_t k = 0; k < test_.depth; ++k) {
            const double product =
                static_cast<double>(x[k]) * weights[static_cast<size_t>(n * test_.depth + k)];
            sum += product;
            sizes += std::abs(product);
          }
          if (std::isinf(sum) || std::isnan(sum)) {
            // As the program says it: max(NaN, -1) may be either.
            ASSERT_TRUE(std::isnan(sum) || y[n] == std::max(sum, -1.0)) << n << ": " << y[n];
            continue;
          }
          ASSERT_NEAR(y[n], std::max(sum, -1.0), 1e-6 * sizes) << batch << ", " << row << ", " << n;
        }
      }
      const float* gap = Floats(2) + (batch + 1) * BatchStride(test_.columns) - kGap;
      for (int64_t k = 0; k < kGap; ++k) ASSERT_EQ(gap[k], kUntouched);
    }
  }

  const Case test_;
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<std::byte>> data_;  // per buffer
  std::mt19937 random_;
};

int64_t MostOf(ElementType type) { return (int64_t{1} << tensor::BitWidth(type)) - 1; }

constexpr ElementType kTypes[] = {ElementType::kUint2, ElementType::kInt2,  ElementType::kUint4,
                                  ElementType::kInt4,  ElementType::kUint8, ElementType::kInt8};

TEST(QuantizedWeightsTest, TakesEveryTypeAndOrder) {
  for (const ElementType type : kTypes) {
    for (const bool is_transposed : {false, true}) {
      for (const int64_t rows : {1, 3, 8, 21}) {
        SCOPED_TRACE(testing::Message() << tensor::Name(type) << ", " << rows << " rows");
        Case test{rows, 200, 71, type};
        test.is_transposed = is_transposed;
        test.most = MostOf(type);
        Product(test).Check();
      }
    }
  }
}

TEST(QuantizedWeightsTest, TakesGranulesOfEveryKind) {
  for (const Per scale : {Per::kTensor, Per::kColumn, Per::kBlock}) {
    for (const Per zero_point : {Per::kNothing, Per::kTensor, Per::kColumn, Per::kBlock}) {
      for (const int64_t block : {16, 48, 128, 256}) {
        for (const ElementType type : {ElementType::kInt8, ElementType::kUint4}) {
          SCOPED_TRACE(testing::Message() << static_cast<int>(scale) << static_cast<int>(zero_point)
                                          << ", blocks of " << block << tensor::Name(type));
          for (const int64_t rows : {2, 11}) {
            Case test{rows, 300, 37, type, block, scale, zero_point};
            test.most = MostOf(type);
            Product(test).Check();
          }
        }
      }
    }
  }
}

// Bytes that have no more than 4 bits take half the memory.
TEST(QuantizedWeightsTest, PacksNarrowBytesInFourBits) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kUint8}) {
    for (const int64_t most : {15, 16}) {
      Case test{1, 96, 20, type};
      test.most = most;
      Product(test).Check(most == 15 ? "4 bits" : "8 bits");
    }
  }
}

TEST(QuantizedWeightsTest, TakesRowsAlongSeveralAxesAndOfAnyNumber) {
  for (const int64_t rows : {0, 1, 5, 40}) {
    Case test{rows, 130, 45};
    test.batches = 3;
    test.is_symbolic = true;
    test.most = 15;
    Product(test).Check();
  }
}

// Few rows are multiplied with the numbers, more with panels.
TEST(QuantizedWeightsTest, TakesRowsAroundThoseThatAreFew) {
  for (const ElementType type : {ElementType::kUint4, ElementType::kInt8}) {
    for (const int64_t block : {32, 128}) {
      for (const int64_t depth : {64, 128, 256, 512, 1024}) {
        for (int64_t rows = 1; rows <= 10; ++rows) {
          SCOPED_TRACE(testing::Message() << tensor::Name(type) << ", blocks of " << block << ", "
                                          << rows << " rows of " << depth);
          Case test{rows, depth, 35, type, block};
          test.most = MostOf(type);
          Product(test).Check();
        }
      }
    }
  }
}

TEST(QuantizedWeightsTest, GivesTheSameOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 5}) {
    for (const int64_t rows : {1, 33}) {
      Case test{rows, 1024, 515};
      test.threads = threads;
      test.most = 15;
      Product(test).Check();
    }
  }
}

// A weight that is not 0 makes an infinity of one, whatever its number is.
TEST(QuantizedWeightsTest, KeepsInfinities) {
  for (const ElementType type : {ElementType::kUint4, ElementType::kUint8, ElementType::kInt8}) {
    for (const int64_t rows : {1, 20}) {
      Case test{rows, 100, 40, type};
      test.most = MostOf(type);
      test.is_infinite = true;
      Product(test).Check();
    }
  }
}

TEST(QuantizedWeightsTest, RefusesOtherBlocks) {
  Case test{1, 96, 20, ElementType::kUint4, /*block=*/24};
  test.most = 15;
  const auto weights = Product(test).Describe();
  ASSERT_FALSE(weights.ok());
  EXPECT_NE(weights.status().Text().find("A scale has 24 elements, no multiple of 16."),
            std::string::npos)
      << weights.status().Text();
}

}  // namespace
}  // namespace onnxifi::matmul
