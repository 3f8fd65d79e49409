// SPDX-License-Identifier: Apache-2.0
//
// Scan, against the reference: random steps, and running sums along every axis, in either
// direction, whole, cut into as many parts as there can be, and on threads.

#include "backends/cpu/scan/scan.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/scan/grid.h"
#include "backends/cpu/testing/recipe_device.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::scan {
namespace {

using program::Expr;
using program::ExprOp;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

// Small tiles, threads for everything, in the wrong order.
constexpr engine::Settings kWhole = {.loops = engine::LoopSet::kReference};
constexpr engine::Settings kCut = {
    .loops = engine::LoopSet::kReference, .tile_lanes = 48, .worth_a_thread = 0};

struct Options {
  ElementType type = ElementType::kFloat32;
  ExprOp op = ExprOp::kAdd;
  Extents extents;
  size_t axis = 0;
  bool is_exclusive = false;
  bool is_reversed = false;
  // What is summed is the square.
  bool is_computed = false;
};

// As CumSum has it: the axis that is scanned becomes the domain's last.
RandomStep MakeStep(const Options& options) {
  RandomStep made;
  auto add = [&] {
    program::Buffer buffer;
    buffer.type = options.type;
    buffer.shape = program::Shape(options.extents.begin(), options.extents.end());
    tensor::Tensor tensor = *tensor::Tensor::Allocate(options.type, options.extents);
    std::mt19937 random(3);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      const double number = static_cast<double>(random() % 1000) / 500 - 0.5;
      tensor::StoreScalar(
          options.type, tensor.mutable_data(), k,
          tensor::CastScalar(ElementType::kFloat64, options.type, tensor::Scalar{.f = number}));
    }
    made.buffers.push_back(std::move(tensor));
    const program::BufferId id = made.program.AddBuffer(buffer);
    program::Operand operand{program::DenseView(id, options.type, buffer.shape), buffer.shape};
    std::vector<int> axes;
    for (int axis = 0; axis < operand.rank(); ++axis) {
      if (axis != static_cast<int>(options.axis)) axes.push_back(axis);
    }
    axes.push_back(static_cast<int>(options.axis));
    operand = program::Permute(operand, axes);
    if (!options.is_reversed) return operand;
    const int last = operand.rank() - 1;
    const program::Dim extent = operand.shape.back();
    return program::Slice(operand, last, extent - 1, -1, extent);
  };
  const program::Operand source = add();
  const program::Operand target = add();
  program::Step step;
  step.domain = source.shape;
  step.reads = {source.view};
  step.writes = {target.view};
  program::ExprPool& pool = made.program.exprs;
  const ElementType type = tensor::ArithmeticType(options.type);
  Expr element = Cast(Load(pool, options.type, 0), type);
  if (options.is_computed) element = element * element;
  const Expr state = State(pool, type, 0);
  program::Scan scan;
  scan.exclusive = options.is_exclusive;
  scan.reduction.states = {{type, program::IntConstant(pool, type, 1).id(),
                            Binary(options.op, state, element).id(), program::kNoExpr}};
  scan.roots = {Cast(state, options.type).id()};
  step.body = std::move(scan);
  made.program.steps.push_back(std::move(step));
  return made;
}

// To the last bit.
void Compare(const Options& options) {
  const RandomStep step = MakeStep(options);
  reference::Device reference;
  const auto expected = RunStep(reference, step);
  ASSERT_TRUE(expected.ok()) << expected.status().Text();
  device::Serial serial;
  engine::Shredder shredder;
  cpu::RecipeDevice whole(SelectScan, serial, kWhole);
  cpu::RecipeDevice cut(SelectScan, shredder, kCut);
  threads::ThreadPool pool(3);
  cpu::RecipeDevice threaded(SelectScan, pool, kCut);
  for (cpu::RecipeDevice* device : {&whole, &cut, &threaded}) {
    const auto actual = RunStep(*device, step);
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const std::span<const std::byte> wanted = (*expected)[1].bytes();
    const std::span<const std::byte> found = (*actual)[1].bytes();
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), found.begin()))
        << tensor::Name(options.type) << " axis " << options.axis << " of "
        << options.extents.size() << (device == &whole ? "" : ", in parts") << "\n"
        << ToString(step.program);
  }
}

TEST(ScanTest, RandomStepsAgreeWithTheReference) {
  device::Serial serial;
  cpu::RecipeDevice whole(SelectScan, serial, kWhole);
  CompareRandomSteps(whole, reference::Family::kScan, /*seed=*/1, /*count=*/6000, 0.5);
  engine::Shredder shredder;
  cpu::RecipeDevice cut(SelectScan, shredder, kCut);
  CompareRandomSteps(cut, reference::Family::kScan, /*seed=*/50'000, /*count=*/6000, 0.5);
}

TEST(ScanTest, RunningSumsAlongEveryAxisAreTheReferences) {
  for (const Extents& extents : std::vector<Extents>{{1},
                                                     {1000},
                                                     {5, 300},
                                                     {300, 5},
                                                     {40, 70},
                                                     {3, 50, 37},
                                                     {2, 1, 9, 130},
                                                     {1, 3, 5, 7},
                                                     {9, 40, 1},
                                                     {7, 0, 3},
                                                     {0, 4},
                                                     {4, 2000},
                                                     {1500, 3}}) {
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      for (const bool is_exclusive : {false, true}) {
        for (const bool is_reversed : {false, true}) {
          for (const bool is_computed : {false, true}) {
            for (const ElementType type :
                 {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16,
                  ElementType::kInt64, ElementType::kUint8}) {
              Compare({.type = type,
                       .extents = extents,
                       .axis = axis,
                       .is_exclusive = is_exclusive,
                       .is_reversed = is_reversed,
                       .is_computed = is_computed});
            }
          }
        }
      }
    }
  }
}

TEST(ScanTest, RunningProductsAndExtremesAreTheReferences) {
  for (const ExprOp op : {ExprOp::kMul, ExprOp::kMin, ExprOp::kMax}) {
    for (const ElementType type :
         {ElementType::kFloat32, ElementType::kBfloat16, ElementType::kInt32}) {
      for (const size_t axis : {0, 1}) {
        Compare({.type = type, .op = op, .extents = {60, 45}, .axis = axis});
      }
    }
  }
}

TEST(ScanTest, VectorsGoOverAllThatIsNotScannedWhereThatHasOneElement) {
  engine::LinearForm form;
  form.steps[0] = 30;
  form.steps[1] = 1;
  form.steps[2] = 210;
  engine::LinearForm* const forms[] = {&form};
  const ScanGrid grid(std::vector<int64_t>{7, 30, 1}, &form, forms, /*tile_lanes=*/4096);
  EXPECT_TRUE(grid.lanes_are_inner());
  EXPECT_TRUE(grid.HasEvenLanes());
  EXPECT_EQ(grid.StepsOf(form).lane, 1);
  EXPECT_GE(grid.state_lanes(), 32);
}

}  // namespace
}  // namespace onnxifi::scan
