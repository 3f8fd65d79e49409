// SPDX-License-Identifier: Apache-2.0
//
// Products and convolutions by cuBLASLt wherever it can, compared with the reference: on the
// emulated device and library, or on a GPU.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"
#include "backends/core/device/recording_queue.h"
#include "backends/core/device/transfer.h"
#include "backends/core/reference/testing/step_comparison.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::codegen {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kByLibrary[] = "results by the library";
constexpr char kWithKernel[] = "results by a kernel of ours";
constexpr ElementType kHalf = ElementType::kFloat16;

class LibraryProductTest : public StepTest {
 protected:
  void SetUp() override {
    setenv(kUse, "cublaslt", /*replace=*/1);
    setenv("ONNXIFI_EMULATED_TWICE", "1", /*replace=*/1);
    StepTest::SetUp();
    unsetenv(kUse);
    if (device_ == nullptr || tested_->name() == "Emulated GPU") return;
    const RandomStep step = MakeConvolution(1, 1, 5, 6, {{9, 1}}, kFloat, 1);
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    if (selection->recipe->implementation() != "cuBLASLt") {
      GTEST_SKIP() << selection->rejected[0].sentence();
    }
  }

  void ExpectBy(const RandomStep& step, const std::string& detail) {
    ExpectRight(step, "cuBLASLt");
    std::vector<bool> reads_at_run;
    EXPECT_EQ(DetailOf(step, reads_at_run), detail);
  }
  // By the kernel that would have been without the library.
  void ExpectPassedOver(const RandomStep& step, const std::string& reason) {
    ExpectRight(step, "cuBLASLt");
    std::vector<bool> reads_at_run;
    EXPECT_THAT(DetailOf(step, reads_at_run),
                AllOf(StartsWith("tiled "), HasSubstr("cuBLASLt passed over: " + reason)));
  }
  void ExpectNotAsked(const RandomStep& step, const std::string& reason) {
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    ASSERT_TRUE(selection.ok());
    EXPECT_NE(selection->recipe->implementation(), "cuBLASLt");
    EXPECT_TRUE(std::ranges::any_of(selection->rejected, [&](const base::Status& rejected) {
      return rejected.sentence().find(reason) != std::string_view::npos;
    })) << reason;
  }

  static constexpr char kUse[] = "ONNXIFI_CUDA_LIBRARIES";
};

// A product of one axis each. An order is that of axes in memory: {0, 2, 1} is transposed.
struct Product {
  int64_t batch = 1, rows = 1, columns = 1, depth = 1;
  std::vector<int> a_order = {0, 1, 2}, b_order = {0, 1, 2}, out_order = {0, 1, 2};
  ElementType type = kFloat, out_type = kFloat;
  double scale = 1;
  // -1: none; else along which axis of the output, or 3: along all.
  int first_term = -1, second_term = -1;
  bool is_rectified = false;
  bool is_a_shared = false, is_b_shared = false;
};

View Ordered(StepMaker& make, const Extents& extents, const std::vector<int>& order,
             ElementType type) {
  Extents in_memory;
  for (const int axis : order) in_memory.push_back(extents[static_cast<size_t>(axis)]);
  View view = make.Buffer(in_memory, type);
  const program::Dims strides = view.strides;
  for (size_t place = 0; place < order.size(); ++place) {
    view.strides[static_cast<size_t>(order[place])] = strides[place];
  }
  return view;
}

RandomStep Make(const Product& product, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  const bool is_integer = product.type == ElementType::kInt8;
  contract.accumulator = is_integer ? ElementType::kInt32 : kFloat;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {product.depth};
  View a =
      Ordered(make, {product.batch, product.rows, product.depth}, product.a_order, product.type);
  View b =
      Ordered(make, {product.batch, product.depth, product.columns}, product.b_order, product.type);
  if (product.is_a_shared) a.strides[0] = 0;
  if (product.is_b_shared) b.strides[0] = 0;
  contract.a_prologue = Cast(make.Read(a), contract.accumulator).id();
  contract.b_prologue = Cast(make.Read(b), contract.accumulator).id();
  const Extents domain = {product.batch, product.rows, product.columns};
  make.step.domain = program::Shape(domain.begin(), domain.end());
  program::Expr value = Accumulator(make.pool(), contract.accumulator);
  if (product.scale != 1) value = value * Like(value, product.scale);
  for (const int term : {product.first_term, product.second_term}) {
    if (term < 0) continue;
    View view;
    if (term == 3) {
      view = Ordered(make, domain, product.out_order, product.out_type);
    } else {
      view = make.Buffer({domain[static_cast<size_t>(term)]}, product.out_type);
      view.strides.assign(3, 0);
      view.strides[static_cast<size_t>(term)] = 1;
    }
    value = value + Cast(make.Read(view), contract.accumulator);
  }
  if (product.is_rectified) value = Maximum(value, Like(value, 0));
  contract.roots = {Cast(value, product.out_type).id()};
  make.step.writes = {Ordered(make, domain, product.out_order, product.out_type)};
  make.step.body = std::move(contract);
  make.FinishStep(1e-3);
  make.made.roundings = 2;
  return std::move(make.made);
}

TEST_F(LibraryProductTest, OperandsAndOutputsInEitherOrder) {
  uint32_t seed = 0;
  const std::vector<int> plain = {0, 1, 2}, transposed = {0, 2, 1};
  for (const auto& a_order : {plain, transposed}) {
    for (const auto& b_order : {plain, transposed}) {
      for (const auto& out_order : {plain, transposed}) {
        for (const int64_t batch : {1, 3}) {
          SCOPED_TRACE(++seed);
          ExpectBy(Make({.batch = batch,
                         .rows = 5,
                         .columns = 7,
                         .depth = 9,
                         .a_order = a_order,
                         .b_order = b_order,
                         .out_order = out_order},
                        seed),
                   kByLibrary);
        }
      }
    }
  }
}

TEST_F(LibraryProductTest, MatricesOfOneLineOrElement) {
  uint32_t seed = 0;
  for (const int64_t rows : {1, 4}) {
    for (const int64_t columns : {1, 6}) {
      for (const int64_t depth : {1, 5}) {
        for (const int64_t batch : {1, 2}) {
          for (const bool is_transposed : {false, true}) {
            SCOPED_TRACE(++seed);
            Product product{.batch = batch, .rows = rows, .columns = columns, .depth = depth};
            if (is_transposed) product.a_order = product.b_order = product.out_order = {0, 2, 1};
            ExpectBy(Make(product, seed), kByLibrary);
          }
        }
      }
    }
  }
}

TEST_F(LibraryProductTest, BatchesThatShareAnOperandOrLieInside) {
  Product product{.batch = 4, .rows = 3, .columns = 8, .depth = 5};
  product.is_b_shared = true;
  ExpectBy(Make(product, 1), kByLibrary);
  product.is_a_shared = true;
  ExpectBy(Make(product, 2), kByLibrary);
  product.is_b_shared = false;
  ExpectBy(Make(product, 3), kByLibrary);
  // As heads lie between the rows.
  product = {.batch = 4, .rows = 3, .columns = 8, .depth = 5};
  product.a_order = {1, 0, 2};
  product.b_order = {2, 0, 1};
  product.out_order = {1, 0, 2};
  ExpectBy(Make(product, 4), kByLibrary);
}

// Heads of several images, whose two axes lie like none.
TEST_F(LibraryProductTest, BatchesOfTwoAxes) {
  for (const int64_t images : {2, 16, 17}) {
    StepMaker make(5);
    constexpr int64_t kHeads = 17, kRows = 3, kColumns = 5, kDepth = 4;
    Contract contract;
    contract.batch_axes = 2;
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {kDepth};
    const View a = Ordered(make, {images, kHeads, kRows, kDepth}, {0, 2, 1, 3}, kFloat);
    const View b = Ordered(make, {images, kHeads, kDepth, kColumns}, {0, 3, 1, 2}, kFloat);
    contract.a_prologue = make.Read(a).id();
    contract.b_prologue = make.Read(b).id();
    make.step.domain = {images, kHeads, kRows, kColumns};
    contract.roots = {Accumulator(make.pool(), kFloat).id()};
    make.step.writes = {Ordered(make, {images, kHeads, kRows, kColumns}, {0, 1, 2, 3}, kFloat)};
    make.step.body = std::move(contract);
    make.FinishStep(1e-3);
    if (images <= 16) {
      ExpectBy(make.made, kByLibrary);
    } else {
      ExpectPassedOver(make.made, "The batches would take more than 16 calls.");
    }
  }
}

TEST_F(LibraryProductTest, ScalesBiasesAndAddendsAreTheLibrarys) {
  uint32_t seed = 0;
  for (const ElementType type : {kFloat, kHalf, ElementType::kBfloat16}) {
    Product product{.batch = 2, .rows = 6, .columns = 10, .depth = 8, .type = type};
    for (const ElementType out_type : {kFloat, type}) {
      SCOPED_TRACE(testing::Message() << ++seed);
      product.out_type = out_type;
      product.scale = 1;
      product.first_term = product.second_term = -1;
      ExpectBy(Make(product, seed), kByLibrary);
      product.scale = 0.25;
      ExpectBy(Make(product, seed), kByLibrary);
      // A narrower output is rounded once, by a kernel of ours.
      const auto by_which = out_type == kFloat ? kByLibrary : kWithKernel;
      product.first_term = 2;
      ExpectBy(Make(product, seed), by_which);
      product.first_term = 3;
      ExpectBy(Make(product, seed), by_which);
      product.second_term = 2;
      ExpectBy(Make(product, seed), by_which);
      std::swap(product.first_term, product.second_term);
      ExpectBy(Make(product, seed), by_which);
      product.is_rectified = true;
      ExpectBy(Make(product, seed), by_which);
      product.is_rectified = false;
      // Columns are neighbours now.
      product.out_order = {0, 2, 1};
      product.first_term = 1;
      product.second_term = -1;
      product.is_rectified = true;
      ExpectBy(Make(product, seed), by_which);
      product.is_rectified = false;
      product.out_order = {0, 1, 2};
    }
  }
}

TEST_F(LibraryProductTest, OtherResultsAreMadeByAKernelBehind) {
  uint32_t seed = 0;
  for (const ElementType type : {kFloat, kHalf}) {
    SCOPED_TRACE(testing::Message() << ++seed);
    Product product{.batch = 2, .rows = 6, .columns = 10, .depth = 8, .type = type};
    product.out_type = type;
    product.first_term = 1;
    product.second_term = 3;
    product.is_rectified = true;
    ExpectBy(Make(product, seed), kWithKernel);
    // A bias of the other axis, and one of batches.
    product.is_rectified = false;
    product.second_term = -1;
    ExpectBy(Make(product, seed), kWithKernel);
    product.first_term = 0;
    ExpectBy(Make(product, seed), kWithKernel);
  }
}

// The product is one node of a graph and the kernel behind it another, which must not come first.
// The emulated device carries a graph out in the order that is farthest from the recorded one.
TEST_F(LibraryProductTest, ARecordedProductComesBeforeTheKernelBehindIt) {
  const RandomStep step = MakeConvolution(2, 2, 5, 6, {{4, 1}, {7, 1}}, kFloat, 3);
  const program::Step& body = step.program.steps[0];
  const auto queue = *device_->NewQueue();
  std::vector<std::unique_ptr<device::Allocation>> held;
  std::vector<std::byte*> addresses;
  for (const tensor::Tensor& buffer : step.buffers) {
    held.push_back(*device_->memory().Hold(buffer));
    addresses.push_back(held.back()->data());
  }
  const auto selection = device_->Select({step.program, body});
  const auto kernel = device_->Build(*selection->recipe);
  const auto bound = (*kernel)->Bind(device::Bind(step.program, body, step.dims), addresses);
  ASSERT_TRUE(bound.ok()) << bound.status().Text();
  ASSERT_EQ((*bound)->Detail(), kWithKernel);
  auto& recorder = dynamic_cast<device::RecordingQueue&>(*queue);
  ASSERT_TRUE(recorder.BeginRecording().ok());
  ASSERT_TRUE((*bound)->Enqueue(*queue, addresses).ok());
  const auto recording = recorder.EndRecording();
  ASSERT_TRUE(recording.ok()) << recording.status().Text();
  ASSERT_TRUE(recorder.Replay(*recording).ok());
  const base::Status status = queue->Finish();
  ASSERT_TRUE(status.ok()) << status.Text();
  std::vector<tensor::Tensor> actual;
  for (size_t k = 0; k < addresses.size(); ++k) {
    const tensor::Tensor& buffer = step.buffers[k];
    actual.push_back(*tensor::Tensor::Allocate(buffer.type(), buffer.extents()));
    ASSERT_TRUE(
        device::Read(queue.get(), addresses[k], actual.back().mutable_data(), buffer.size_bytes())
            .ok());
  }
  reference::Device reference;
  const auto expected = RunStep(reference, step);
  const std::optional<std::string> difference = FindDifference(step, *expected, actual);
  EXPECT_FALSE(difference) << *difference;
}

// One product, 2 * k + 1 in one place, less 2 * k: what is lost of it if it is rounded before
// anything is added.
TEST_F(LibraryProductTest, ResultsAreRoundedOnceAndKeepNaN) {
  const auto expect_right = [&](Product product) {
    const ElementType type = product.type;
    const double large = type == kHalf ? 2048 : type == kFloat ? 4194304 : 256;
    RandomStep step = Make(product, 1);
    const auto set = [&](size_t buffer, int64_t element, double value) {
      tensor::StoreScalar(type, step.buffers[buffer].mutable_data(), element, {.f = value});
    };
    const auto fill = [&](size_t buffer, double value) {
      for (int64_t k = 0; k < step.buffers[buffer].element_count(); ++k) set(buffer, k, value);
    };
    fill(0, 0);
    fill(1, 1);
    for (int64_t row = 0; row < product.rows; ++row) {
      set(0, row * product.depth, large);
      set(0, row * product.depth + 1, row % 2 == 0 ? 1 : -1);
    }
    set(0, product.depth + 1, std::nan(""));
    if (product.first_term >= 0) fill(2, -large);
    if (product.second_term >= 0) fill(3, 0.5);
    step.roundings = 0;
    step.tolerance = 0;
    ExpectRight(step, "cuBLASLt");
  };
  for (const ElementType type : {kHalf, ElementType::kBfloat16, kFloat}) {
    for (const cuda::ProductExtents& extents :
         {cuda::ProductExtents{64, 64, 64}, {6, 10, 8}, {7, 9, 5}, {1, 64, 512}, {300, 24, 40}}) {
      for (const auto& terms : {std::pair{-1, -1}, {2, -1}, {3, -1}, {3, 2}, {2, 3}}) {
        for (const bool is_rectified : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << Name(type) << " " << extents.rows << " terms " << terms.first << " "
                       << terms.second << " " << is_rectified);
          expect_right({.rows = extents.rows,
                        .columns = extents.columns,
                        .depth = extents.depth,
                        .type = type,
                        .out_type = type,
                        .first_term = terms.first,
                        .second_term = terms.second,
                        .is_rectified = is_rectified});
        }
      }
    }
  }
}

TEST_F(LibraryProductTest, BytesWhereTheirLinesAreMultiplesOfFour) {
  Product product{.rows = 8, .columns = 12, .depth = 16};
  product.type = ElementType::kInt8;
  product.out_type = ElementType::kInt32;
  product.b_order = {0, 2, 1};
  ExpectBy(Make(product, 1), kByLibrary);
  product.is_rectified = true;
  ExpectBy(Make(product, 2), kWithKernel);
  product.is_rectified = false;
  product.depth = 15;
  ExpectPassedOver(Make(product, 3),
                   "cuBLASLt cannot choose an algorithm: it has no such product.");
}

// Numbers of the tests are such that every precision has them.
TEST_F(LibraryProductTest, PrecisionIsTheCallers) {
  using enum tensor::Precision;
  for (const tensor::Precision precision : {kTf32, kBfloat16, kFloat16}) {
    RandomStep step = Make({.rows = 6, .columns = 10, .depth = 8}, 1);
    step.program.precision = precision;
    ExpectBy(step, kByLibrary);
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    EXPECT_EQ(selection->recipe->precision(), kTf32);
  }
}

TEST_F(LibraryProductTest, ConvolutionsOfOneTap) {
  // Finish adds a bias of the other axis.
  for (const ElementType type : {kFloat, kHalf}) {
    for (const int64_t images : {1, 3}) {
      for (const int64_t group : {1, 2}) {
        SCOPED_TRACE(testing::Message() << images << " " << group);
        ExpectBy(MakeConvolution(images, group, 5, 6, {{4, 1}, {7, 1}}, type, 3), kWithKernel);
        ExpectBy(MakeConvolution(images, group, 5, 6, {{9, 1}}, type, 4), kWithKernel);
      }
    }
  }
}

TEST_F(LibraryProductTest, WhatIsNoProductIsNotAsked) {
  ExpectNotAsked(MakeConvolution(1, 1, 5, 6, {{9, 3}}, kFloat, 1), "of 1 tap, stride 1");
  ExpectNotAsked(MakeConvolution(1, 1, 5, 6, {{9, 1, 2}}, kFloat, 1), "of 1 tap, stride 1");
  ExpectNotAsked(MakeConvolution(1, 1, 5, 6, {{9, 1, 1, 1, 1}}, kFloat, 1), "of 1 tap, stride 1");
  ExpectNotAsked(MakeTransposed(1, 1, 5, 6, {{9, 1}}, kFloat, 1), "of 1 tap, stride 1");
  RandomStep padded = Make({.rows = 4, .columns = 5, .depth = 6}, 1);
  padded.program.steps[0].reads[0].guards = {{{0, 1, 0}, 0, 3}};
  ExpectNotAsked(padded, "An operand is not multiplied as it lies in memory.");
}

TEST_F(LibraryProductTest, WhatLiesOtherwiseIsPassedOver) {
  RandomStep every_other = Make({.rows = 4, .columns = 5, .depth = 6}, 1);
  for (program::Dim& stride : every_other.program.steps[0].reads[0].strides) stride = 1;
  ExpectPassedOver(every_other,
                   "The lines of the operand with the rows are 1 elements apart and 4");
  RandomStep shared = Make({.rows = 4, .columns = 5, .depth = 6}, 1);
  shared.program.steps[0].reads[1].strides = {0, 0, 1};
  ExpectPassedOver(shared, "The lines of the operand with the columns are 0 elements apart");
}

TEST_F(LibraryProductTest, RandomContractions) {
  int64_t compared = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    const auto comparison = reference::CompareVariations(*device_, reference::Family::kContract,
                                                         seed, /*first_variation=*/1, /*count=*/8);
    EXPECT_EQ(comparison.different, 0) << comparison.first_difference;
    EXPECT_EQ(comparison.refused, 0) << seed;
    compared += comparison.compared;
  }
  EXPECT_GT(compared, 150);
}

}  // namespace
}  // namespace onnxifi::codegen
