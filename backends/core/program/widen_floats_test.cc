// SPDX-License-Identifier: Apache-2.0
//
// WidenFloats: products and windows read float32 and write float32, and compute what they did, on
// the reference; a tensor with several readers is widened once, one that is overwritten again. With
// fast algorithms nothing is rounded between them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/body_exprs.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

bool PreferAll(const Program&, const Step&) { return true; }

Program Widened(const std::function<void(ProgramMaker&)>& make,
                const PrefersWideFloats& prefers = PreferAll) {
  ProgramMaker plain, widened;
  make(plain);
  make(widened);
  widened.program.has_fast_algorithms = false;
  WidenFloats(widened.program, prefers);
  EXPECT_TRUE(Verify(widened.program).ok()) << ToString(widened.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(widened.program), expected) << ToString(widened.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return std::move(widened.program);
}

ProgramMaker::Formula To(ElementType type) {
  return [type](ExprPool&, const std::vector<Expr>& loads) { return Cast(loads[0], type); };
}

Operand Narrow(ProgramMaker& maker, const Shape& shape, ElementType type) {
  return maker.Map(shape, {maker.Input(shape)}, To(type));
}

// a x b, plus a number for each column where there is a bias, in the type of a.
Operand Product(ProgramMaker& maker, const Operand& a, const Operand& b,
                const Operand* bias = nullptr) {
  ExprPool& pool = maker.program.exprs;
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {a.shape[1]};
  contract.a_prologue = Cast(Load(pool, a.type(), 0), kFloat32).id();
  contract.b_prologue = Cast(Load(pool, b.type(), 1), kFloat32).id();
  Expr sum = Accumulator(pool, kFloat32);
  const Shape shape = {a.shape[0], b.shape[1]};
  Step step;
  step.domain = shape;
  step.reads = {a.view, b.view};
  if (bias != nullptr) {
    sum = sum + Cast(Load(pool, bias->type(), 2), kFloat32);
    step.reads.push_back(BroadcastTo(*bias, shape));
  }
  contract.roots = {Cast(sum, a.type()).id()};
  const Operand product = maker.Temporary(shape, a.type());
  step.writes = {product.view};
  step.body = std::move(contract);
  maker.AddStep(std::move(step));
  return product;
}

int64_t CountOf(const Program& program, bool (*is_counted)(const Step&)) {
  return std::ranges::count_if(program.steps, is_counted);
}
bool IsMap(const Step& step) { return step.As<Map>() != nullptr; }

// Every product reads float32 and writes it.
void ExpectWideProducts(const Program& program) {
  for (const Step& step : program.steps) {
    if (IsMap(step)) continue;
    for (const View& read : step.reads) EXPECT_EQ(read.type, kFloat32) << ToString(program);
    for (const View& write : step.writes) EXPECT_EQ(write.type, kFloat32) << ToString(program);
  }
}

TEST(WidenFloatsTest, WidensOperandsAndBiasAndRoundsTheResult) {
  for (const ElementType type : {kFloat16, kBfloat16}) {
    const Program program = Widened([type](ProgramMaker& maker) {
      const Operand bias = Narrow(maker, {3}, type);
      const Operand product =
          Product(maker, Narrow(maker, {5, 7}, type), Narrow(maker, {7, 3}, type), &bias);
      maker.Output(maker.Map({5, 3}, {product}, To(kFloat32)));
    });
    ExpectWideProducts(program);
    // Three that make the inputs narrow, three that widen them, one that rounds, and the last.
    EXPECT_EQ(CountOf(program, IsMap), 8) << ToString(program);
  }
}

TEST(WidenFloatsTest, WidensATensorOnceForAllItsReaders) {
  const Program program = Widened([](ProgramMaker& maker) {
    const Operand x = Narrow(maker, {6, 6}, kFloat16);
    Operand transposed = x;
    transposed.view.strides = {1, 6};
    const Operand product = Product(maker, x, transposed);
    maker.Output(maker.Map({6, 6}, {Product(maker, product, x)}, To(kFloat32)));
  });
  ExpectWideProducts(program);
  // One for the input, one that widens it, two that round, one that widens a result, and the last.
  EXPECT_EQ(CountOf(program, IsMap), 6) << ToString(program);
}

TEST(WidenFloatsTest, WidensAgainWhatWasOverwritten) {
  const Program program = Widened([](ProgramMaker& maker) {
    const Operand x = Narrow(maker, {4, 4}, kFloat16);
    const Operand first = Product(maker, x, x);
    maker.MapTo(x, {maker.Input({4, 4})}, To(kFloat16));
    maker.Output(maker.Map({4, 4}, {Product(maker, first, x)}, To(kFloat32)));
  });
  ExpectWideProducts(program);
}

TEST(WidenFloatsTest, KeepsPaddedViews) {
  const Program program = Widened([](ProgramMaker& maker) {
    Operand x = Narrow(maker, {5, 7}, kFloat16);
    x.view.guards.push_back({{1, 0}, 0, 4});
    x.view.fill = tensor::Scalar{.f = 0.5};
    const Operand product = Product(maker, x, Narrow(maker, {7, 3}, kFloat16));
    maker.Output(maker.Map({5, 3}, {product}, To(kFloat32)));
  });
  ExpectWideProducts(program);
}

TEST(WidenFloatsTest, LeavesWhatTheDeviceDoesNotPrefer) {
  const Program program = Widened(
      [](ProgramMaker& maker) {
        const Operand x = Narrow(maker, {6, 6}, kFloat16);
        maker.Output(maker.Map({6, 6}, {Product(maker, x, x)}, To(kFloat32)));
      },
      [](const Program&, const Step&) { return false; });
  EXPECT_EQ(program.steps.size(), 3u) << ToString(program);
}

int CountRoundings(const Program& program, ElementType type) {
  int count = 0;
  for (const Step& step : program.steps) {
    for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
      const ExprNode& node = program.exprs[id];
      count += node.op == ExprOp::kCast && node.type == type ? 1 : 0;
    }
  }
  return count;
}

// A function of float32, as a node of `type` computes it.
ProgramMaker::Formula Node(ElementType type, const std::function<Expr(Expr)>& function) {
  return [type, function](ExprPool&, const std::vector<Expr>& loads) {
    return Cast(function(Cast(loads[0], kFloat32)), type);
  };
}
Expr Third(Expr x) { return x / Like(x, 3); }

// Two products with `between` them, the whole in `type` but for its inputs and output.
std::function<void(ProgramMaker&)> Chain(
    ElementType type, const std::function<Operand(ProgramMaker&, const Operand&)>& between) {
  return [type, between](ProgramMaker& maker) {
    const Operand x = maker.Map({6, 6}, {maker.Input({6, 6})}, To(type));
    const Operand first = Product(maker, x, x);
    const Operand last = Product(maker, between(maker, first), x);
    maker.Output(maker.Map({6, 6}, {last}, To(kFloat32)));
  };
}

Program WidenedFast(const std::function<void(ProgramMaker&)>& make,
                    const PrefersWideFloats& prefers = PreferAll) {
  ProgramMaker maker;
  make(maker);
  WidenFloats(maker.program, prefers);
  RemoveDeadSteps(maker.program);
  EXPECT_TRUE(Verify(maker.program).ok()) << ToString(maker.program);
  return std::move(maker.program);
}

std::vector<std::vector<float>> ResultsOf(const std::function<void(ProgramMaker&)>& make) {
  ProgramMaker maker;
  make(maker);
  return RunOnNumbers(maker.program);
}

// What rounds is the cast of the input, which the model has, and the last result.
TEST(WidenFloatsTest, NothingIsRoundedBetweenProducts) {
  const std::function<Operand(ProgramMaker&, const Operand&)> betweens[] = {
      [](ProgramMaker&, const Operand& x) { return x; },
      [](ProgramMaker& maker, const Operand& x) {
        return maker.Map({6, 6}, {x}, Node(x.type(), Third));
      },
      [](ProgramMaker& maker, const Operand& x) {  // a copy in another order
        const auto copy = [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; };
        return maker.Map({6, 6}, {Permute(x, {1, 0})}, copy);
      },
  };
  for (const ElementType type : {kBfloat16}) {
    for (const auto& between : betweens) {
      const Program program = WidenedFast(Chain(type, between));
      ExpectWideProducts(program);
      EXPECT_EQ(CountRoundings(program, type), 2) << ToString(program);
      // As in float32 from the same inputs, and rounded once.
      const auto wide = [&](ProgramMaker& maker) {
        const Operand x = maker.Map({6, 6}, {maker.Input({6, 6})}, To(type));
        const Operand given = maker.Map({6, 6}, {x}, To(kFloat32));
        const Operand last = Product(maker, between(maker, Product(maker, given, given)), given);
        const Operand rounded = maker.Map({6, 6}, {last}, To(type));
        maker.Output(maker.Map({6, 6}, {rounded}, To(kFloat32)));
      };
      EXPECT_EQ(RunOnNumbers(program), ResultsOf(wide)) << ToString(program);
    }
  }
}

TEST(WidenFloatsTest, WhatTheModelRoundsOrWidensStaysSo) {
  const auto floor = [](Expr x) { return Unary(ExprOp::kFloor, x); };
  const std::function<Operand(ProgramMaker&, const Operand&)> betweens[] = {
      [](ProgramMaker& maker, const Operand& x) {  // there and back, in nodes of their own
        const Operand wide = maker.Map({6, 6}, {x}, To(kFloat32));
        return maker.Map({6, 6}, {wide}, To(x.type()));
      },
      [floor](ProgramMaker& maker, const Operand& x) {
        return maker.Map({6, 6}, {x}, Node(x.type(), floor));
      },
  };
  for (const ElementType type : {kBfloat16}) {
    for (const auto& between : betweens) {
      const auto make = Chain(type, between);
      EXPECT_EQ(RunOnNumbers(WidenedFast(make)), ResultsOf(make));
    }
  }
}

// Readers of one tensor see the same, and so does the caller.
TEST(WidenFloatsTest, WhatOneReaderNeedsRoundedAllReadersSeeSo) {
  const std::function<Operand(ProgramMaker&, const Operand&)> betweens[] = {
      [](ProgramMaker& maker, const Operand& x) {
        const auto floor = [](Expr value) { return Unary(ExprOp::kFloor, value); };
        const Operand floored = maker.Map({6, 6}, {x}, Node(x.type(), floor));
        return maker.Map({6, 6}, {x, floored}, [](ExprPool&, const std::vector<Expr>& loads) {
          const Expr rest = Cast(loads[0], kFloat32) - Cast(loads[1], kFloat32);
          return Cast(rest, kBfloat16);
        });
      },
      [](ProgramMaker& maker, const Operand& x) {
        maker.Output(maker.Map({6, 6}, {x}, To(kFloat32)));
        return x;
      },
  };
  for (const auto& between : betweens) {
    const auto make = [&](ProgramMaker& maker) {
      const Operand x = Narrow(maker, {6, 6}, kBfloat16);
      const Operand first = Product(maker, x, x);
      const Operand read = between(maker, first);
      maker.Output(maker.Map({6, 6}, {read}, To(kFloat32)));
    };
    EXPECT_EQ(RunOnNumbers(WidenedFast(make)), ResultsOf(make));
  }
}

TEST(WidenFloatsTest, SumsOfRowsStayWide) {
  const auto make = [](ElementType type, ElementType between) {
    return [type, between](ProgramMaker& maker) {
      const Operand x = maker.Map({6, 6}, {maker.Input({6, 6})}, To(type));
      const Operand given = between == type ? x : maker.Map({6, 6}, {x}, To(between));
      const Operand thirds =
          maker.Map({6, 6}, {Product(maker, given, given)}, Node(between, Third));
      ExprPool& pool = maker.program.exprs;
      const Expr state = State(pool, kFloat32, 0);
      const Expr element = Cast(Load(pool, between, 0), kFloat32);
      Reduce reduce;
      reduce.axes = 1;
      reduce.reduction.states.push_back({kFloat32, Constant(pool, kFloat32, 0).id(),
                                         (state + element).id(),
                                         (state + Other(pool, kFloat32, 0)).id()});
      reduce.roots = {Cast(Third(state), between).id()};
      const Operand sums = maker.Temporary({6, 1}, between);
      Step step{thirds.shape, {thirds.view}, {sums.view}, std::move(reduce)};
      step.writes[0].strides.resize(1);
      maker.AddStep(std::move(step));
      const Operand wide = maker.Map({6, 6}, {sums}, Node(between, Third));
      const Operand last = maker.Map({6, 6}, {Product(maker, wide, given)}, To(type));
      maker.Output(maker.Map({6, 6}, {last}, To(kFloat32)));
    };
  };
  for (const ElementType type : {kBfloat16}) {
    const Program program = WidenedFast(make(type, type));
    EXPECT_EQ(CountRoundings(program, type), 2) << ToString(program);
    EXPECT_EQ(RunOnNumbers(program), ResultsOf(make(type, kFloat32)));
  }
}

// A constant of numbers that differ, in `type`.
Operand Weights(ProgramMaker& maker, int64_t rows, int64_t columns, ElementType type) {
  std::vector<float> numbers;
  for (int64_t k = 0; k < rows * columns; ++k) {
    numbers.push_back(static_cast<float>(k % 7) / 9 - 0.3F);
  }
  const Operand constant =
      maker.Constant(tensor::Tensor::FromValues<float>(kFloat32, {rows, columns}, numbers));
  return maker.Map({rows, columns}, {constant}, To(type));
}

// x times weights, `between` them and a second product, and the output in float32.
std::function<void(ProgramMaker&)> Network(
    ElementType type, ElementType kept,
    const std::function<Operand(ProgramMaker&, const Operand&)>& between) {
  return [type, kept, between](ProgramMaker& maker) {
    const auto in_kept = [&](const Operand& x) {
      return kept == type ? x : maker.Map(x.shape, {x}, To(kept));
    };
    const Operand x = maker.Map({6, 6}, {maker.Input({6, 6})}, To(type));
    const Operand first = Product(maker, in_kept(x), in_kept(Weights(maker, 6, 6, type)));
    const Operand read = between(maker, first);
    const Operand weights = Weights(maker, 6, 6, type);
    const Operand last = Product(maker, read, in_kept(weights));
    maker.Output(maker.Map({6, 6}, {maker.Map({6, 6}, {last}, To(type))}, To(kFloat32)));
  };
}

Operand Concatenated(ProgramMaker& maker, const std::vector<Operand>& parts, int64_t rows,
                     int64_t columns) {
  const Operand whole = maker.Temporary({rows, columns}, parts[0].type());
  int64_t column = 0;
  for (const Operand& part : parts) {
    Operand target = whole;
    target.shape = part.shape;
    target.view.offset = column;
    maker.MapTo(target, {part}, [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; });
    column += part.shape[1].constant();
  }
  return whole;
}

// What copies, chooses and looks up does so before anything is rounded.
TEST(WidenFloatsTest, InANetworkNothingIsRoundedOfFloat16Either) {
  const std::function<Operand(ProgramMaker&, const Operand&)> betweens[] = {
      [](ProgramMaker& maker, const Operand& x) {
        return maker.Map({6, 6}, {x}, Node(x.type(), Third));
      },
      [](ProgramMaker& maker, const Operand& x) {  // two tensors in one
        Operand left = x;
        left.shape = {6, 2};
        Operand right = maker.Map({6, 6}, {x}, Node(x.type(), Third));
        right.shape = {6, 4};
        return Concatenated(maker, {left, right}, 6, 6);
      },
      [](ProgramMaker& maker, const Operand& x) {  // a triangle of it
        return maker.Map({6, 6}, {x}, [&x](ExprPool& pool, const std::vector<Expr>& loads) {
          return Select(Coordinate(pool, 0) < Coordinate(pool, 1), loads[0],
                        program::Constant(pool, x.type(), -0.5));
        });
      },
      [](ProgramMaker& maker, const Operand& x) {  // rows from below
        return maker.Map({6, 6}, {x}, [](ExprPool& pool, const std::vector<Expr>& loads) {
          const Expr row = IntConstant(pool, kInt64, 5) - Coordinate(pool, 0);
          return LoadAt(pool, loads[0].type(), 0, {{row, Coordinate(pool, 1)}});
        });
      },
  };
  for (const ElementType type : {kFloat16, kBfloat16}) {
    for (const auto& between : betweens) {
      const Program program = WidenedFast(Network(type, type, between));
      EXPECT_EQ(RunOnNumbers(program), ResultsOf(Network(type, kFloat32, between)))
          << ToString(program);
      EXPECT_NE(RunOnNumbers(program), ResultsOf(Network(type, type, between)))
          << "the numbers tell nothing";
    }
  }
}

// Both types have the same numbers for sqrt(2) and its inverse.
TEST(WidenFloatsTest, RootsAreThoseOfFloat32) {
  for (const auto& [narrow, exact] : {std::pair{1.4140625, std::numbers::sqrt2},
                                      std::pair{0.70703125, std::numbers::sqrt2 / 2}}) {
    const auto between = [narrow, exact](ProgramMaker& maker, const Operand& x) {
      const bool is_wide = x.type() == kFloat32;
      return maker.Map({6, 6}, {x}, Node(x.type(), [&](Expr value) {
                         return value * Like(value, is_wide ? exact : narrow);
                       }));
    };
    for (const ElementType type : {kFloat16, kBfloat16}) {
      const Program program = WidenedFast(Network(type, type, between));
      EXPECT_EQ(RunOnNumbers(program), ResultsOf(Network(type, kFloat32, between)));
    }
  }
}

TEST(WidenFloatsTest, WhatANetworkRoundsOrDecidesStaysSo) {
  const auto floor = [](Expr x) { return Unary(ExprOp::kFloor, x * Like(x, 3)); };
  const std::function<Operand(ProgramMaker&, const Operand&)> betweens[] = {
      [floor](ProgramMaker& maker, const Operand& x) {
        return maker.Map({6, 6}, {x}, Node(x.type(), floor));
      },
      [](ProgramMaker& maker, const Operand& x) {  // that of the larger element of two
        const Operand turned = Permute(x, {1, 0});
        return maker.Map({6, 6}, {x, turned}, [](ExprPool&, const std::vector<Expr>& loads) {
          return Select(Cast(loads[0], kFloat32) < Cast(loads[1], kFloat32), loads[0],
                        Cast(Like(Cast(loads[0], kFloat32), 1), loads[0].type()));
        });
      },
      [](ProgramMaker& maker, const Operand& x) {  // the row that an element says
        return maker.Map({6, 6}, {x}, [](ExprPool& pool, const std::vector<Expr>& loads) {
          const Expr size = Cast(loads[0], kFloat32);
          const Expr row = Select(size < Like(size, 0), IntConstant(pool, kInt64, 1),
                                  IntConstant(pool, kInt64, 4));
          return LoadAt(pool, loads[0].type(), 0, {{row, Coordinate(pool, 1)}});
        });
      },
  };
  for (const ElementType type : {kFloat16, kBfloat16}) {
    for (const auto& between : betweens) {
      const auto make = Network(type, type, between);
      EXPECT_EQ(RunOnNumbers(WidenedFast(make)), ResultsOf(make));
    }
  }
}

// A table that is looked up stays as small as it is.
TEST(WidenFloatsTest, TablesAreNotWidened) {
  ProgramMaker maker;
  const Operand table = maker.Constant(tensor::Tensor::FromValues<uint16_t>(
      kFloat16, {50, 6}, std::vector<uint16_t>(50 * 6, 0x3555)));
  const Operand numbers = maker.Input({6}, kInt64);
  const Operand rows =
      maker.Map({6, 6}, {table, numbers}, [](ExprPool& pool, const std::vector<Expr>&) {
        const Expr at[] = {Load(pool, kInt64, 1), Coordinate(pool, 1)};
        return Cast(Third(Cast(LoadAt(pool, kFloat16, 0, at), kFloat32)), kFloat16);
      });
  maker.Output(
      maker.Map({6, 6}, {Product(maker, rows, Weights(maker, 6, 6, kFloat16))}, To(kFloat32)));
  WidenFloats(maker.program, PreferAll);
  for (const Step& step : maker.program.steps) {
    EXPECT_TRUE(step.domain != Shape({50, 6})) << ToString(maker.program);
  }
}

// To types of 8 bits numbers are quantized, and a function of float16 without weights is what ONNX
// expects only so.
TEST(WidenFloatsTest, OtherTypesAreRoundedBetweenProducts) {
  for (const ElementType type : {kFloat8E4M3Fn, kFloat16}) {
    const auto make = Chain(type, [](ProgramMaker& maker, const Operand& x) {
      return maker.Map({6, 6}, {x}, Node(x.type(), Third));
    });
    EXPECT_EQ(RunOnNumbers(WidenedFast(make)), ResultsOf(make));
  }
}

// A product that takes bfloat16 as it is would have to have it made first.
TEST(WidenFloatsTest, AProductOfTheTypeKeepsWhatIsBetweenNarrow) {
  const auto make = Chain(kBfloat16, [](ProgramMaker& maker, const Operand& x) {
    return maker.Map({6, 6}, {x}, Node(x.type(), Third));
  });
  int asked = 0;
  const Program program =
      WidenedFast(make, [&asked](const Program&, const Step&) { return asked++ == 0; });
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(RunOnNumbers(program), ResultsOf(make)) << ToString(program);
}

}  // namespace
}  // namespace onnxifi::program
