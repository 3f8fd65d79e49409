// SPDX-License-Identifier: Apache-2.0
//
// Tests of the CPU device: which implementation a step gets and why not another, and that fused
// kernels compute what plain loops in float64 do. Random steps against the reference are in
// random_step_test.cc.

#include "backends/cpu/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/cpu/runtime/left_out.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;
using program::ExprOp;
using program::Program;
using program::Window;
using tensor::ElementType;
using tensor::Extents;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;

constexpr ElementType kFloat = ElementType::kFloat32;

std::vector<float> RandomFloats(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

program::Shape Dims(const Extents& extents) { return {extents.begin(), extents.end()}; }

// A program of one step, its buffers in float32 or `type`, and how to run it on a device.
class OneStep {
 public:
  // A read of the step; random data.
  int AddRead(const Extents& extents, ElementType type = kFloat, bool is_constant = false) {
    program::Buffer buffer;
    buffer.kind = is_constant ? program::Buffer::Kind::kConstant : program::Buffer::Kind::kInput;
    buffer.type = type;
    buffer.shape = Dims(extents);
    buffer.index = buffer_count_++;
    if (is_constant) buffer.index = static_cast<int>(program.constants.size());
    data.push_back(RandomFloats(tensor::ElementCount(extents), static_cast<uint32_t>(data.size())));
    if (is_constant) {
      program.constants.push_back(tensor::Tensor::FromValues<float>(type, extents, data.back()));
    }
    step.reads.push_back(program::DenseView(program.AddBuffer(buffer), type, buffer.shape));
    return static_cast<int>(step.reads.size()) - 1;
  }
  void SetResult(const Extents& extents, ElementType type = kFloat) {
    program::Buffer buffer;
    buffer.type = type;
    buffer.shape = Dims(extents);
    step.domain = buffer.shape;
    step.writes = {program::DenseView(program.AddBuffer(buffer), type, buffer.shape)};
    result.assign(static_cast<size_t>(tensor::ElementCount(extents)), -99.0f);
  }
  Expr LoadOf(int read) {
    return Load(program.exprs, step.reads[static_cast<size_t>(read)].type, read);
  }
  Expr Accumulated() { return program::Accumulator(program.exprs, kFloat); }

  base::Result<device::Selection> Select() const { return Selector().Select({program, step}); }
  std::string Implementation() const {
    const base::Result<device::Selection> selection = Select();
    return selection.ok() ? std::string(selection->recipe->implementation())
                          : selection.status().Text();
  }

  // Runs it with these numbers for the program's symbols; buffers are reads in order, then the
  // result. Leaves in `detail` what the binding has to say.
  base::Status Run(Device& device, const std::vector<int64_t>& symbols = {},
                   std::string* detail = nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(const device::Selection selection, device.Select({program, step}));
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::Kernel> kernel,
                             device.Build(*selection.recipe));
    std::vector<std::byte*> addresses, constants;
    for (size_t k = 0; k < data.size(); ++k) {
      addresses.push_back(reinterpret_cast<std::byte*>(data[k].data()));
      const bool is_constant = program.buffers[k].kind == program::Buffer::Kind::kConstant;
      constants.push_back(is_constant ? addresses.back() : nullptr);
    }
    addresses.push_back(reinterpret_cast<std::byte*>(result.data()) + result_shift_bytes);
    constants.push_back(nullptr);
    std::vector<int64_t> dims(static_cast<size_t>(program.dims->node_count()), 0);
    program.dims->Evaluate(symbols, 0, static_cast<int>(symbols.size()), dims);
    const device::BoundStep bound = device::Bind(program, step, dims);
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::BoundKernel> ready,
                             kernel->Bind(bound, constants));
    if (detail != nullptr) *detail = ready->Detail();
    ONNXIFI_RETURN_IF_ERROR(ready->Run(addresses));
    return ready->Run(addresses);  // packed constants and pooled arguments serve the second run too
  }

  Program program;
  program::Step step;
  std::vector<std::vector<float>> data;
  std::vector<float> result;
  int64_t result_shift_bytes = 0;

 private:
  int buffer_count_ = 0;
};

// A[m, k] x B[k, n]
OneStep MatMul(int64_t m, int64_t k, int64_t n, ElementType type = kFloat,
               bool is_constant = true) {
  OneStep one;
  one.AddRead({m, k}, type);
  one.AddRead({k, n}, type, is_constant);
  Contract contract;
  contract.m_axes = 1;
  contract.n_axes = 1;
  contract.inner = {k};
  contract.accumulator = type;
  contract.a_prologue = one.LoadOf(0).id();
  contract.b_prologue = one.LoadOf(1).id();
  contract.roots = {program::Accumulator(one.program.exprs, type).id()};
  one.step.body = contract;
  one.SetResult({m, n}, type);
  return one;
}

// X[1, c, h, w] over W[m, c / group, k, k] with padding k / 2.
OneStep Conv(int64_t c, int64_t h, int64_t w, int64_t m, int64_t k, int64_t stride, int64_t group) {
  OneStep one;
  one.AddRead({1, c, h, w});
  one.AddRead({m, c / group, k, k}, kFloat, /*is_constant=*/true);
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.inner = {c / group, k, k};
  contract.a_prologue = one.LoadOf(0).id();
  contract.b_prologue = one.LoadOf(1).id();
  contract.roots = {one.Accumulated().id()};
  contract.a_spatial = {h, w};
  contract.strides = {stride, stride};
  contract.dilations = {1, 1};
  contract.pads_begin = {k / 2, k / 2};
  contract.group = group;
  one.step.body = contract;
  const int64_t pad = 2 * (k / 2);
  one.SetResult({1, m, (h + pad - k) / stride + 1, (w + pad - k) / stride + 1});
  return one;
}

OneStep Pool(Window::Kind kind) {
  OneStep one;
  one.AddRead({1, 3, 9, 9});
  Window window;
  window.kind = kind;
  window.in_spatial = {9, 9};
  window.kernel = {3, 3};
  window.strides = {2, 2};
  window.dilations = {1, 1};
  window.pads_begin = {1, 1};
  window.pads_end = {1, 1};
  window.roots = {one.Accumulated().id()};
  one.step.body = window;
  one.SetResult({1, 3, 5, 5});
  return one;
}

std::vector<double> MatMulSums(const OneStep& one, int64_t m, int64_t k, int64_t n) {
  std::vector<double> sums(static_cast<size_t>(m * n), 0.0);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t depth = 0; depth < k; ++depth) {
        sums[row * n + column] += static_cast<double>(one.data[0][row * k + depth]) *
                                  static_cast<double>(one.data[1][depth * n + column]);
      }
    }
  }
  return sums;
}

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    base::Result<std::unique_ptr<Device>> device = Device::Create(
        std::make_shared<threads::ThreadPool>(2), base::Log(base::LogLevel::kWarning));
    ASSERT_TRUE(device.ok()) << device.status().Text();
    device_ = *std::move(device);
  }

  std::unique_ptr<Device> device_;
};

TEST(SelectorTest, GivesFloatContractionsToOneDnnAndWindowsToPooling) {
  EXPECT_EQ(MatMul(5, 5, 6, kFloat, /*is_constant=*/false).Implementation(), "onednn matmul");
  EXPECT_EQ(Conv(12, 8, 8, 6, 3, 1, 1).Implementation(), "onednn convolution");
  EXPECT_EQ(Conv(4, 8, 8, 6, 3, 1, 1).Implementation(), "few channels");
  EXPECT_EQ(Pool(Window::Kind::kMax).Implementation(), "pooling");
  EXPECT_EQ(Pool(Window::Kind::kAverage).Implementation(), "pooling");
}

// Restored for the tests behind.
struct WithoutKernels {
  explicit WithoutKernels(std::vector<std::string> names) { runtime::LeaveOut(std::move(names)); }
  ~WithoutKernels() { runtime::LeaveOut({}); }
};

TEST(SelectorTest, StepsGetNoKernelThatIsLeftOut) {
  const OneStep filter = Conv(4, 8, 8, 6, 3, 1, 1);
  const OneStep matrix = MatMul(2, 64, 64);
  const std::string before{matrix.Implementation()};
  EXPECT_THAT(before, HasSubstr("matrix times vector"));
  {
    const WithoutKernels without({"few channels", "matrix times vector"});
    EXPECT_EQ(filter.Implementation(), "onednn convolution");
    EXPECT_EQ(matrix.Implementation(), "rows times packed matrix");
    const base::Result<device::Selection> selection = filter.Select();
    ASSERT_TRUE(selection.ok()) << selection.status().Text();
    EXPECT_THAT(selection->rejected,
                Contains(Property(&base::Status::Text, AllOf(HasSubstr("for few channels"),
                                                             HasSubstr("leaves it out")))));
  }
  EXPECT_EQ(filter.Implementation(), "few channels");
  EXPECT_EQ(matrix.Implementation(), before);
}

TEST(SelectorTest, ListsEachKernelOnce) {
  std::vector<std::string_view> names = Selector::ListKernels();
  EXPECT_THAT(names, Contains("few channels"));
  EXPECT_THAT(names, Contains("gathered planes"));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(SelectorTest, GivesElementsToTheTileEngine) {
  OneStep one = MatMul(4, 5, 6);
  one.step.reads = {one.step.writes[0]};
  const Expr x = one.LoadOf(0);
  const Expr held = program::State(one.program.exprs, kFloat, 0);
  const Expr other = program::Other(one.program.exprs, kFloat, 0);
  const program::Reduction sum{{{kFloat, Like(x, 0).id(), (held + x).id(), (held + other).id()}}};
  one.step.body = program::Map{{(x + x).id()}};
  EXPECT_EQ(one.Implementation(), "engine map");
  one.step.body = program::Reduce{0, sum, {held.id()}};
  EXPECT_EQ(one.Implementation(), "engine reduce");
  one.step.body = program::Row{1, {{sum, {held.id()}}}, {x.id()}};
  EXPECT_EQ(one.Implementation(), "engine row");

  one.step.reads[0].type = one.step.writes[0].type = ElementType::kInt4;
  one.step.body = program::Map{{one.LoadOf(0).id()}};
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "reference");
  ASSERT_EQ(selection->rejected.size(), 1u);
  EXPECT_THAT(selection->rejected[0].Text(), HasSubstr("int4"));
}

TEST(SelectorTest, SaysOfEveryImplementationWhyItDoesNotTakeTheStep) {
  const OneStep one = MatMul(4, 5, 6, ElementType::kInt32);
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "reference");
  auto says = [](std::string_view implementation, std::string_view reason) {
    return Property(&base::Status::Text,
                    AllOf(HasSubstr(std::string(implementation)), HasSubstr(std::string(reason))));
  };
  EXPECT_THAT(selection->rejected,
              ElementsAre(says("for rows times packed matrix", "something else than one float32"),
                          says("for quantized weights", "something else than one float32"),
                          says("for rows times gathered matrices", "else than one float32"),
                          says("for byte product", "Operand A is int32, not a byte"),
                          says("for float64 product", "something else than one float64"),
                          says("for summed products", "Operand 0 has the type int32"),
                          says("for onednn matmul", "accumulates in int32"),
                          says("for onednn convolution", "no convolution"),
                          says("for onednn matmul between loops", "accumulates in int32"),
                          says("for onednn convolution between loops", "no convolution"),
                          says("for onednn deconvolution between loops", "no transposed")));
}

TEST(SelectorTest, NamesTheOperationThatNoPrimitiveAppends) {
  OneStep one = MatMul(4, 5, 6);
  one.step.As<Contract>()->roots = {Unary(ExprOp::kErf, one.Accumulated()).id()};
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "onednn matmul between loops");
  EXPECT_THAT(
      selection->rejected,
      Contains(AllOf(
          Property(&base::Status::Text,
                   HasSubstr("operation " + std::string(program::Name(ExprOp::kErf)) + " is none")),
          Property(&base::Status::code, base::Code::kUnsupportedAttribute))));
}

TEST(SelectorTest, HasLoopsWriteOutPaddedViews) {
  OneStep one = MatMul(4, 5, 6);
  one.step.reads[0].guards.push_back({{1, 0}, 0, 3});
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "onednn matmul between loops");
  EXPECT_THAT(
      selection->rejected,
      Contains(Property(&base::Status::Text, HasSubstr("Operand A is padded by its view"))));
}

TEST(SelectorTest, LeavesPositionsOfMaximaToTheLoops) {
  OneStep one = Pool(Window::Kind::kMax);
  one.step.writes.push_back(one.step.writes[0]);
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_EQ(selection->recipe->implementation(), "reference");
  EXPECT_THAT(selection->rejected[0].Text(), HasSubstr("positions of the maxima"));
}

TEST(SelectorTest, LeavesFourSpatialAxesToTheLoops) {
  OneStep one = Pool(Window::Kind::kMax);
  one.step.As<Window>()->in_spatial = {9, 9, 9, 9};
  const base::Result<device::Selection> selection = one.Select();
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  EXPECT_THAT(selection->rejected[0].Text(), HasSubstr("spatial axes (4)"));
}

TEST_F(DeviceTest, FusesBiasResidualAndRelu) {
  constexpr int64_t kM = 11, kK = 33, kN = 20;
  OneStep fused;
  fused.AddRead({kM, kK});
  fused.AddRead({kK, kN}, kFloat, /*is_constant=*/true);
  const int bias = fused.AddRead({kN}, kFloat, /*is_constant=*/true);
  const int residual = fused.AddRead({kM, kN});
  fused.step.reads[static_cast<size_t>(bias)].strides = {0, 1};
  Contract contract;
  contract.m_axes = 1;
  contract.n_axes = 1;
  contract.inner = {kK};
  contract.a_prologue = fused.LoadOf(0).id();
  contract.b_prologue = fused.LoadOf(1).id();
  Expr value = fused.Accumulated() + fused.LoadOf(bias) + fused.LoadOf(residual);
  contract.roots = {Maximum(value, Like(value, 0)).id()};
  fused.step.body = contract;
  fused.SetResult({kM, kN});
  ASSERT_EQ(fused.Implementation(), "rows times packed matrix");
  const base::Status status = fused.Run(*device_);
  ASSERT_TRUE(status.ok()) << status.Text();
  const std::vector<double> sums = MatMulSums(fused, kM, kK, kN);
  for (int64_t row = 0; row < kM; ++row) {
    for (int64_t column = 0; column < kN; ++column) {
      const int64_t at = row * kN + column;
      const double expected =
          std::max(0.0, sums[at] + fused.data[bias][column] + fused.data[residual][at]);
      ASSERT_NEAR(fused.result[at], expected, 1e-5) << row << ", " << column;
    }
  }
}

// Every activation that is fused, against float64, over the sums of a matrix product. The sums
// themselves differ by rounding, so the function is also evaluated at the sums that the device
// computes without it.
TEST_F(DeviceTest, FusedActivationsAreWithinAFewUlp) {
  struct Activation {
    std::string name;
    std::function<Expr(Expr)> expression;
    std::function<double(double)> function;
  };
  const auto sigmoid = [](Expr x) { return Like(x, 1) / (Like(x, 1) + Unary(ExprOp::kExp, -x)); };
  const Activation activations[] = {
      {"Relu", [](Expr x) { return Maximum(x, Like(x, 0)); },
       [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](Expr x) { return Select(x < Like(x, 0), Like(x, 0.25) * x, x); },
       [](double x) { return x < 0 ? 0.25 * x : x; }},
      {"Clip", [](Expr x) { return Minimum(Maximum(x, Like(x, -0.5)), Like(x, 0.75)); },
       [](double x) { return std::min(std::max(x, -0.5), 0.75); }},
      {"Sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Swish", [&](Expr x) { return x * sigmoid(x); },
       [](double x) { return x / (1 + std::exp(-x)); }},
      {"HardSwish",
       [](Expr x) {
         return x * Maximum(Like(x, 0), Minimum(Like(x, 1), Like(x, 0.25) * x + Like(x, 0.5)));
       },
       [](double x) { return x * std::max(0.0, std::min(1.0, 0.25 * x + 0.5)); }},
      {"Abs", [](Expr x) { return Unary(ExprOp::kAbs, x); }, [](double x) { return std::fabs(x); }},
      {"Square", [](Expr x) { return x * x; }, [](double x) { return x * x; }},
  };
  constexpr int64_t kM = 64, kK = 40, kN = 64;
  OneStep plain = MatMul(kM, kK, kN, kFloat, /*is_constant=*/false);
  ASSERT_TRUE(plain.Run(*device_).ok());
  for (const Activation& activation : activations) {
    OneStep one = MatMul(kM, kK, kN, kFloat, /*is_constant=*/false);
    one.step.As<Contract>()->roots = {activation.expression(one.Accumulated()).id()};
    ASSERT_EQ(one.Implementation(), "onednn matmul") << activation.name;
    const base::Status status = one.Run(*device_);
    ASSERT_TRUE(status.ok()) << activation.name << ": " << status.Text();
    double worst = 0;
    for (size_t k = 0; k < one.result.size(); ++k) {
      const double expected = activation.function(plain.result[k]);
      const float rounded = static_cast<float>(expected);
      const double ulp =
          std::max(1e-38, static_cast<double>(std::nextafter(std::fabs(rounded), INFINITY)) -
                              std::fabs(static_cast<double>(rounded)));
      worst = std::max(worst, std::fabs(one.result[k] - expected) / ulp);
    }
    RecordProperty(activation.name + "_ulp", std::to_string(worst));
    EXPECT_LE(worst, 4.0) << activation.name;
  }
  EXPECT_EQ(device_->binding_counts().between_loops, 0);
  EXPECT_EQ(device_->binding_counts().reference, 0);
}

TEST_F(DeviceTest, RunsAnEpilogueOfItsOwnAsLoops) {
  OneStep one = MatMul(5, 6, 7);
  one.step.As<Contract>()->roots = {Unary(ExprOp::kErf, one.Accumulated()).id()};
  const base::Status status = one.Run(*device_);
  ASSERT_TRUE(status.ok()) << status.Text();
  EXPECT_EQ(device_->binding_counts().between_loops, 1);
  const std::vector<double> sums = MatMulSums(one, 5, 6, 7);
  for (size_t k = 0; k < sums.size(); ++k) EXPECT_NEAR(one.result[k], std::erf(sums[k]), 1e-5);
}

TEST_F(DeviceTest, ConvolvesInGroupsAndStrides) {
  for (int64_t group : {1, 2, 8}) {
    for (int64_t stride : {1, 2, 3}) {
      OneStep one = Conv(8, 11, 10, 16, 3, stride, group);
      const base::Status status = one.Run(*device_);
      ASSERT_TRUE(status.ok()) << status.Text();
      const int64_t out_h = one.step.domain[2].constant(), out_w = one.step.domain[3].constant();
      for (int64_t m = 0; m < 16; ++m) {
        for (int64_t y = 0; y < out_h; ++y) {
          for (int64_t x = 0; x < out_w; ++x) {
            double sum = 0;
            for (int64_t c = 0; c < 8 / group; ++c) {
              for (int64_t tap = 0; tap < 9; ++tap) {
                const int64_t in_y = y * stride + tap / 3 - 1, in_x = x * stride + tap % 3 - 1;
                if (in_y < 0 || in_y >= 11 || in_x < 0 || in_x >= 10) continue;
                const int64_t channel = m / (16 / group) * (8 / group) + c;
                sum += static_cast<double>(one.data[0][(channel * 11 + in_y) * 10 + in_x]) *
                       static_cast<double>(one.data[1][(m * (8 / group) + c) * 9 + tap]);
              }
            }
            ASSERT_NEAR(one.result[(m * out_h + y) * out_w + x], sum, 1e-5)
                << "group " << group << ", stride " << stride;
          }
        }
      }
    }
  }
  EXPECT_EQ(device_->binding_counts().reference, 0);
}

// A window that sees padding alone has no maximum in oneDNN; ONNX's is the lowest number there is.
TEST_F(DeviceTest, AveragesNothingToZero) {
  OneStep one = Pool(Window::Kind::kAverage);
  Window& window = *one.step.As<Window>();
  window.pads_begin = {3, 3};
  window.pads_end = {0, 0};
  const base::Status status = one.Run(*device_);
  ASSERT_TRUE(status.ok()) << status.Text();
  EXPECT_EQ(device_->binding_counts().reference, 0);
  EXPECT_EQ(one.result[0], 0.0f);
}

TEST_F(DeviceTest, TakesMemoryOfAnyAlignment) {
  // Few rows, and more than that.
  for (const int64_t rows : {4, 5}) {
    OneStep one = MatMul(rows, 5, 6);
    one.result.resize(one.result.size() + 1);
    one.result_shift_bytes = 1;
    const base::Status status = one.Run(*device_);
    ASSERT_TRUE(status.ok()) << status.Text();
    const std::vector<double> sums = MatMulSums(one, rows, 5, 6);
    for (size_t k = 0; k < sums.size(); ++k) {
      float value = 0;
      std::memcpy(&value, reinterpret_cast<const char*>(one.result.data()) + 1 + 4 * k, 4);
      EXPECT_NEAR(value, sums[k], 1e-5);
    }
  }
}

// Up to four rows; the matrix lies row by row behind its transposed view.
TEST_F(DeviceTest, MultipliesFewRowsWithAMatrixWhereItLies) {
  constexpr int64_t kDepth = 301, kColumns = 403;
  for (const int64_t rows : {1, 3, 4, 5}) {
    OneStep one = MatMul(rows, kDepth, kColumns);
    one.step.reads[1].strides = {1, kDepth};
    EXPECT_EQ(one.Implementation(), rows <= 4 ? "matrix times vector" : "rows times packed matrix");
    const base::Status status = one.Run(*device_);
    ASSERT_TRUE(status.ok()) << status.Text();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += static_cast<double>(one.data[0][static_cast<size_t>(row * kDepth + k)]) *
                 static_cast<double>(one.data[1][static_cast<size_t>(column * kDepth + k)]);
        }
        ASSERT_NEAR(one.result[static_cast<size_t>(row * kColumns + column)], sum, 1e-4);
      }
    }
  }
}

// The same where the number of rows is known late: few of them leave the matrix where it lies, more
// and none have it packed, all from one recipe.
TEST_F(DeviceTest, DecidesAboutRowsOnceTheirNumberIsKnown) {
  constexpr int64_t kDepth = 301, kColumns = 403, kMaxRows = 10;
  for (const int64_t rows : {1, 3, 4, 5, 10, 0}) {
    OneStep one = MatMul(kMaxRows, kDepth, kColumns);
    one.step.reads[1].strides = {1, kDepth};
    one.step.domain[0] = one.program.dims->NewSymbol("rows", /*is_data=*/false);
    ASSERT_EQ(one.Implementation(), "matrix times vector or rows times packed matrix");
    std::string detail;
    const base::Status status = one.Run(*device_, {rows}, &detail);
    ASSERT_TRUE(status.ok()) << status.Text();
    EXPECT_EQ(detail.find("where the matrix lies") != std::string::npos, rows >= 1 && rows <= 4)
        << detail;
    for (int64_t row = 0; row < kMaxRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        double sum = row < rows ? 0 : -99;  // beyond the rows nothing is written
        for (int64_t k = 0; row < rows && k < kDepth; ++k) {
          sum += static_cast<double>(one.data[0][static_cast<size_t>(row * kDepth + k)]) *
                 static_cast<double>(one.data[1][static_cast<size_t>(column * kDepth + k)]);
        }
        ASSERT_NEAR(one.result[static_cast<size_t>(row * kColumns + column)], sum, 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::cpu
