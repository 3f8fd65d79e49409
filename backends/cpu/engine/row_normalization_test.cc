// SPDX-License-Identifier: Apache-2.0
//
// Row normalisations as core/ops lowers them: that each is recognised, and rows of many lengths,
// with gaps between them, with NaN and infinities, against the reference's loops on every
// instruction set.

#include "backends/cpu/engine/row_normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/core/tensor/convert.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/engine/testing/lowered_node.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;
using tensor::Extents;
using Form = RowNormalization::Form;

constexpr ElementType kFloat32 = ElementType::kFloat32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Operator {
  std::string op_type;
  int version;
  Form form;
  int parameters;       // inputs besides x
  bool is_per_channel;  // parameters are; else they are per element
};
const Operator kOperators[] = {
    {"Softmax", 13, Form::kSoftmax, 0, false},
    {"LogSoftmax", 13, Form::kLogSoftmax, 0, false},
    {"Hardmax", 13, Form::kHardmax, 0, false},
    {"LayerNormalization", 17, Form::kMoments, 2, false},
    {"LayerNormalization", 17, Form::kMoments, 1, false},
    {"RMSNormalization", 23, Form::kMeanSquare, 1, false},
    {"InstanceNormalization", 6, Form::kMoments, 2, true},
};

// Rows of the last axis of [outer, channels, length].
std::unique_ptr<program::Program> Lower(const Operator& op, const Extents& extents,
                                        ElementType type = kFloat32) {
  std::vector<graph::Type> inputs = {TypeOf(type, extents)};
  const Extents of_parameters = {extents[op.is_per_channel ? 1 : 2]};
  for (int k = 0; k < op.parameters; ++k) inputs.push_back(TypeOf(type, of_parameters));
  return LowerNode(op.op_type, op.version, inputs);
}

std::shared_ptr<const RowNormalization> Find(const program::Program& program) {
  return FindRowNormalization(program.exprs, program.steps[0], LoopSet::kFast);
}

// A lowered operator with elements for its buffers.
struct Case {
  reference::RandomStep made;
  Extents extents;
  int64_t row_step = 0;  // from a row to the next, of x and of the result

  program::Step& step() { return made.program.steps[0]; }
  float* x() { return reinterpret_cast<float*>(made.buffers[0].mutable_data()); }
};

// `gap`: elements between two rows that belong to none. `is_computed`: a residual is added to x.
Case MakeCase(const Operator& op, const Extents& extents, int64_t gap, bool is_computed,
              std::mt19937& random) {
  Case made;
  made.extents = extents;
  made.row_step = extents[2] + gap;
  program::Program& program = made.made.program;
  program = std::move(*Lower(op, extents));
  program::Step& step = program.steps[0];
  if (is_computed) {
    program::Buffer residual = program.buffers[step.reads[0].buffer];
    residual.index = static_cast<int>(program.inputs.size());
    program::View view = step.reads[0];
    view.buffer = program.AddBuffer(residual);
    program.inputs.push_back({"residual", view.buffer, residual.shape});
    step.reads.push_back(view);
    std::unordered_map<program::ExprId, program::ExprId> done;
    program::ExprPool& pool = program.exprs;
    const program::Expr x = program::Load(pool, kFloat32, 0);
    const program::Expr sum =
        x + program::Load(pool, kFloat32, static_cast<int>(step.reads.size()) - 1);
    const auto rewrite = [&](program::ExprId& root) {
      root = program::Rewrite(
          pool, root,
          [&](program::ExprId id) { return id == x.id() ? sum.id() : program::kNoExpr; }, done);
    };
    auto& row = *step.As<program::Row>();
    for (program::Row::Pass& pass : row.passes) {
      for (program::Reduction::State& state : pass.reduction.states) rewrite(state.update);
    }
    for (program::ExprId& root : row.roots) rewrite(root);
  }
  const base::Status status = program::Verify(program);
  EXPECT_TRUE(status.ok()) << status.Text();
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    program::Buffer& buffer = program.buffers[b];
    Extents shape;
    for (const program::Dim& dim : buffer.shape) shape.push_back(dim.constant());
    const bool has_rows = shape.size() == 3;
    if (has_rows) {
      shape[2] = made.row_step;
      buffer.shape = {shape[0], shape[1], shape[2]};
    }
    tensor::Tensor tensor = *tensor::Tensor::Allocate(kFloat32, shape);
    auto* const data = reinterpret_cast<float*>(tensor.mutable_data());
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      data[k] = std::uniform_real_distribution<float>(-3, 3)(random);
    }
    made.made.buffers.push_back(std::move(tensor));
  }
  for (std::vector<program::View>* views : {&step.reads, &step.writes}) {
    for (program::View& view : *views) {
      const bool has_rows = program.buffers[view.buffer].shape.size() == 3;
      if (!has_rows) continue;
      view.strides = {extents[1] * made.row_step, made.row_step, 1};
    }
  }
  return made;
}

void PlaceSpecialNumbers(Case& made, std::mt19937& random) {
  const int64_t rows = made.extents[0] * made.extents[1];
  const int64_t length = made.extents[2];
  const float special[] = {kNan, kInfinity, -kInfinity, 0.0f, -0.0f, 200.0f, -200.0f, 1e-40f};
  for (int64_t row = 0; row < rows; ++row) {
    float* const elements = made.x() + row * made.row_step;
    const auto kind = static_cast<size_t>(random() % (std::size(special) + 4));
    if (kind >= std::size(special)) continue;
    if (random() % 4 == 0) std::fill_n(elements, length, special[random() % 2 == 0 ? 4 : kind]);
    elements[random() % static_cast<uint64_t>(length)] = special[kind];
  }
}

void ExpectSameBits(const tensor::Tensor& expected, const tensor::Tensor& actual) {
  const auto* const x = reinterpret_cast<const float*>(expected.data());
  const auto* const y = reinterpret_cast<const float*>(actual.data());
  for (int64_t k = 0; k < expected.element_count(); ++k) {
    const bool is_same =
        std::memcmp(x + k, y + k, sizeof(float)) == 0 || (std::isnan(x[k]) && std::isnan(y[k]));
    ASSERT_TRUE(is_same) << "element " << k << ": " << y[k] << " instead of " << x[k];
  }
}

size_t ResultOf(Case& made) { return static_cast<size_t>(made.step().writes[0].buffer); }

void CompareWithReference(const Extents& extents, std::mt19937& random) {
  Shredder shredder;
  EngineDevice device(shredder, {.loops = LoopSet::kReference, .worth_a_thread = 0});
  reference::Device reference;
  for (const Operator& op : kOperators) {
    for (const bool is_computed : {false, true}) {
      const auto gap = static_cast<int64_t>(random() % 4);
      SCOPED_TRACE(testing::Message()
                   << op.op_type << " of " << extents[0] << " x " << extents[1] << " x "
                   << extents[2] << ", gap " << gap << (is_computed ? ", computed" : ""));
      Case made = MakeCase(op, extents, gap, is_computed, random);
      PlaceSpecialNumbers(made, random);
      ASSERT_NE(Find(made.made.program), nullptr);
      const auto expected = RunStep(reference, made.made);
      const auto actual = RunStep(device, made.made);
      ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
      ExpectSameBits((*expected)[ResultOf(made)], (*actual)[ResultOf(made)]);
    }
  }
}

TEST(RowNormalizationTest, AgreesWithTheReference) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(5);
    for (const int64_t length : {1,  2,  3,  4,  5,  7,  8,   9,   12,  15,  16,  17,  24,  31,  32,
                                 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 143, 255, 300, 1000}) {
      CompareWithReference({2, 1 + length % 5, length}, random);
    }
    CompareWithReference({1, 1, 9001}, random);
  });
}

TEST(RowNormalizationTest, AgreesWithTheReferenceOverLongRows) {
  std::mt19937 random(6);
  CompareWithReference({1, 2, 40'000}, random);
  CompareWithReference({1, 1, 70'000}, random);
}

TEST(RowNormalizationTest, RecognisesWhatOperatorsLowerTo) {
  device::Serial serial;
  Runtime runtime(serial);
  const std::vector<int64_t> dims;
  for (const Operator& op : kOperators) {
    SCOPED_TRACE(op.op_type);
    const std::unique_ptr<program::Program> program = Lower(op, {2, 3, 40});
    ASSERT_EQ(program->steps.size(), 1u);
    const std::shared_ptr<const RowNormalization> found = Find(*program);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->form, op.form);
    EXPECT_EQ(found->read, 0);
    EXPECT_EQ(found->scale >= 0, op.parameters > 0);
    EXPECT_EQ(found->bias >= 0, op.parameters > 1);
    EXPECT_NE(BindRowNormalization(found, device::Bind(*program, program->steps[0], dims), runtime),
              nullptr);
  }
}

TEST(RowNormalizationTest, IsNoOtherRow) {
  for (const Operator& op : kOperators) {
    SCOPED_TRACE(op.op_type);
    const std::unique_ptr<program::Program> program = Lower(op, {2, 3, 40});
    program::Row& row = *program->steps[0].As<program::Row>();
    const auto other = [&](program::ExprId id) {
      const program::Expr root(&program->exprs, id);
      return (root + root).id();
    };
    const auto expect_none = [&](program::ExprId& id, program::ExprId instead) {
      const program::ExprId kept = std::exchange(id, instead);
      EXPECT_EQ(Find(*program), nullptr);
      id = kept;
    };
    expect_none(row.roots[0], other(row.roots[0]));
    for (program::Row::Pass& pass : row.passes) {
      if (op.form != Form::kHardmax) expect_none(pass.results[0], other(pass.results[0]));
      program::Reduction::State& state = pass.reduction.states[0];
      expect_none(state.update, other(state.update));
      expect_none(state.merge, other(state.merge));
      expect_none(state.init, program::Constant(program->exprs, kFloat32, 7).id());
    }
    EXPECT_NE(Find(*program), nullptr);
  }
}

// Rows of `type` with drawn elements. `is_widened`: the result is rounded to it and widened again.
reference::RandomStep MakeNarrowStep(const Operator& op, int64_t length, ElementType type,
                                     bool is_widened, std::mt19937& random) {
  reference::RandomStep made;
  made.program = std::move(*Lower(op, {2, 3, length}, type));
  if (is_widened) {
    program::Step& step = made.program.steps[0];
    program::ExprId& root = step.As<program::Row>()->roots[0];
    root = program::Cast({&made.program.exprs, root}, kFloat32).id();
    step.writes[0].type = kFloat32;
    made.program.buffers[static_cast<size_t>(step.writes[0].buffer)].type = kFloat32;
  }
  for (const program::Buffer& buffer : made.program.buffers) {
    Extents shape;
    for (const program::Dim& dim : buffer.shape) shape.push_back(dim.constant());
    tensor::Tensor tensor = *tensor::Tensor::Allocate(buffer.type, shape);
    std::uniform_real_distribution<double> draw(-3, 3);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      tensor::StoreScalar(buffer.type, tensor.mutable_data(), k, {.f = draw(random)});
    }
    made.buffers.push_back(std::move(tensor));
  }
  return made;
}

// Elements that are widened first, parameters too, and results that are rounded: to the same bits,
// whether a loop of its own takes the rows or, where each row has a parameter of its own, none
// does.
TEST(RowNormalizationTest, NarrowRowsAgreeWithTheReference) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    Shredder shredder;
    EngineDevice device(shredder, {.loops = LoopSet::kReference, .worth_a_thread = 0});
    reference::Device reference;
    Runtime runtime(shredder);
    const std::vector<int64_t> dims;
    std::mt19937 random(10);
    const auto compare = [&](const Operator& op, int64_t length, ElementType type,
                             bool is_widened) {
      SCOPED_TRACE(testing::Message() << op.op_type << " of " << Name(type) << ", " << length
                                      << (is_widened ? ", widened" : ""));
      const bool has_loops =
          FindCastLoop(kFloat32, type) != nullptr && FindCastLoop(type, kFloat32) != nullptr;
      const reference::RandomStep made = MakeNarrowStep(op, length, type, is_widened, random);
      const program::Step& step = made.program.steps[0];
      const std::shared_ptr<const RowNormalization> found = Find(made.program);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->form, op.form);
      EXPECT_EQ(found->rounding_of_result, is_widened ? type : kFloat32);
      const auto bound =
          BindRowNormalization(found, device::Bind(made.program, step, dims), runtime);
      if (length >= 33) {
        EXPECT_EQ(bound == nullptr, op.is_per_channel || !has_loops);
      }
      const auto expected = RunStep(reference, made);
      const auto actual = RunStep(device, made);
      ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
      const auto result = static_cast<size_t>(step.writes[0].buffer);
      const tensor::Tensor& x = (*expected)[result];
      const tensor::Tensor& y = (*actual)[result];
      const ElementType written = step.writes[0].type;
      const size_t size = is_widened ? 4 : 2;
      for (int64_t k = 0; k < x.element_count(); ++k) {
        const size_t at = size * static_cast<size_t>(k);
        ASSERT_EQ(std::memcmp(x.data() + at, y.data() + at, size), 0)
            << "element " << k << ": " << tensor::LoadScalar(written, y.data(), k).f
            << " instead of " << tensor::LoadScalar(written, x.data(), k).f;
      }
    };
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      for (const Operator& op : kOperators) {
        if (op.form == Form::kHardmax) continue;
        for (const int64_t length : {1, 7, 16, 33, 64, 100, 129, 300, 1000, 5000}) {
          for (const bool is_widened : {false, true}) compare(op, length, type, is_widened);
        }
      }
    }
  });
}

// A result that is rounded another way is no such row.
TEST(RowNormalizationTest, IsNoRowThatRoundsOtherwise) {
  const std::unique_ptr<program::Program> program =
      Lower(kOperators[3], {2, 3, 40}, ElementType::kBfloat16);
  ASSERT_NE(Find(*program), nullptr);
  program::Row& row = *program->steps[0].As<program::Row>();
  program::ExprNode node = program->exprs[row.roots[0]];
  ASSERT_EQ(node.op, program::ExprOp::kCast);
  node.payload = static_cast<uint64_t>(tensor::Rounding::kUp) << 1;
  row.roots[0] = program->exprs.Add(node);
  EXPECT_EQ(Find(*program), nullptr);
}

// A softmax of which one step is rounded to another type than the others is no such row.
TEST(RowNormalizationTest, IsNoSoftmaxThatRoundsToTwoTypes) {
  for (const Operator& op : {kOperators[0], kOperators[1]}) {
    SCOPED_TRACE(op.op_type);
    const std::unique_ptr<program::Program> program = Lower(op, {2, 3, 40}, ElementType::kBfloat16);
    ASSERT_NE(Find(*program), nullptr);
    EXPECT_EQ(Find(*program)->rounding, ElementType::kBfloat16);
    program::ExprId& sum = program->steps[0].As<program::Row>()->passes[1].results[0];
    program::ExprNode wide = program->exprs[sum];
    ASSERT_EQ(wide.op, program::ExprOp::kCast);
    program::ExprNode narrow = program->exprs[wide.operands[0]];
    ASSERT_EQ(narrow.op, program::ExprOp::kCast);
    narrow.type = ElementType::kFloat16;
    wide.operands = {program->exprs.Add(narrow)};
    sum = program->exprs.Add(wide);
    EXPECT_EQ(Find(*program), nullptr);
  }
}

TEST(RowNormalizationTest, WritesOverItsOperand) {
  for (const Operator& op : kOperators) {
    for (const int64_t length : {40, 1000}) {
      SCOPED_TRACE(testing::Message() << op.op_type << " of " << length);
      std::mt19937 random(8);
      Case made = MakeCase(op, {1, 20, length}, /*gap=*/0, /*is_computed=*/false, random);
      device::Serial serial;
      EngineDevice device(serial, {});
      const auto expected = RunStep(device, made.made);
      ASSERT_TRUE(expected.ok());
      device::Selection selection = *device.Select({made.made.program, made.step()});
      std::unique_ptr<device::Kernel> kernel = *device.Build(*selection.recipe);
      std::vector<std::byte*> addresses;
      for (tensor::Tensor& buffer : made.made.buffers) addresses.push_back(buffer.mutable_data());
      addresses[ResultOf(made)] = addresses[0];
      const std::vector<std::byte*> constants(addresses.size(), nullptr);
      const std::vector<int64_t> dims;
      std::unique_ptr<device::BoundKernel> bound =
          *kernel->Bind(device::Bind(made.made.program, made.step(), dims), constants);
      ASSERT_TRUE(bound->Run(addresses).ok());
      ExpectSameBits((*expected)[ResultOf(made)], made.made.buffers[0]);
    }
  }
}

// With the vector functions: close to float64, for elements far below the largest too.
TEST(RowNormalizationTest, SoftmaxIsCloseToFloat64) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    device::Serial serial;
    EngineDevice device(serial, {});
    std::mt19937 random(9);
    for (const Operator& op : {kOperators[0], kOperators[1]}) {
      for (const int64_t length : {1, 5, 16, 64, 100, 129, 1000}) {
        Case made = MakeCase(op, {1, 30, length}, /*gap=*/1, /*is_computed=*/false, random);
        for (int64_t row = 0; row < 30; ++row) {
          for (int64_t k = 0; k < length; ++k) {
            made.x()[row * made.row_step + k] *= static_cast<float>(row);
          }
        }
        const auto results = RunStep(device, made.made);
        ASSERT_TRUE(results.ok());
        const auto* const result =
            reinterpret_cast<const float*>((*results)[ResultOf(made)].data());
        for (int64_t row = 0; row < 30; ++row) {
          const float* const x = made.x() + row * made.row_step;
          const float* const y = result + row * made.row_step;
          const double greatest = *std::max_element(x, x + length);
          double sum = 0;
          for (int64_t k = 0; k < length; ++k) sum += std::exp(x[k] - greatest);
          for (int64_t k = 0; k < length; ++k) {
            const double logarithm = x[k] - greatest - std::log(sum);
            if (op.form == Form::kLogSoftmax) {
              ASSERT_NEAR(y[k], logarithm, 1e-6 * (1 - logarithm)) << length;
            } else {
              // The difference from the largest element is rounded before its exponential.
              const double expected = std::exp(logarithm);
              ASSERT_NEAR(y[k], expected, expected * 1e-6 * (1 - logarithm) + 1.5e-45) << length;
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::engine
