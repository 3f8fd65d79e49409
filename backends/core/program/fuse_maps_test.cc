// SPDX-License-Identifier: Apache-2.0
//
// FuseMaps: what is inlined computes the same as before, on the reference; what may not be stays.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;

bool AcceptAll(const Program&, const Step&, const Step&) { return true; }

// Fuses what `make` makes; it still computes the same, and that is not constant.
Program Fused(const std::function<void(ProgramMaker&)>& make, const Accepts& accepts = AcceptAll) {
  ProgramMaker plain, fused;
  make(plain);
  make(fused);
  FuseMaps(fused.program, accepts);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(fused.program), expected) << ToString(fused.program);
  const auto [least, largest] = std::minmax_element(expected.at(0).begin(), expected.at(0).end());
  EXPECT_LT(*least, *largest);
  return std::move(fused.program);
}

Expr Double(ExprPool&, const std::vector<Expr>& loads) { return loads[0] * Like(loads[0], 2); }
Expr Exp(ExprPool&, const std::vector<Expr>& loads) { return Unary(ExprOp::kExp, loads[0]); }
Expr Sum(ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; }
Expr Difference(ExprPool&, const std::vector<Expr>& loads) { return loads[0] - loads[1]; }

TEST(FuseMapsTest, CollapsesAChainIntoItsLastStep) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand a = maker.Map({3, 5}, {x}, Exp);
    const Operand b = maker.Map({3, 5}, {a, x}, Difference);
    maker.Output(maker.Map({3, 5}, {b}, Double));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  for (const View& read : program.steps[0].reads) EXPECT_EQ(read.buffer, 0) << "x alone is read";
  EXPECT_EQ(program.steps[0].node, 0) << "the first node";
}

// What a producer's inlining is tried with stays in the pool of expressions, so that its size tells
// the work.
TEST(FuseMapsTest, TriesNoProducerOfAReaderOfTooManyTensors) {
  for (const int count : {16, 64}) {
    ProgramMaker maker;
    const Operand x = maker.Input({8});
    std::vector<Operand> made;
    for (int k = 0; k < count; ++k) made.push_back(maker.Map({8}, {x}, Exp));
    maker.Output(maker.Map({8}, made, [](ExprPool&, const std::vector<Expr>& loads) {
      Expr sum = loads[0];
      for (size_t k = 1; k < loads.size(); ++k) sum = sum + loads[k];
      return sum;
    }));
    const int expressions = maker.program.exprs.size();
    FuseMaps(maker.program, AcceptAll);
    const bool is_fused = maker.program.steps.size() == 1;
    EXPECT_EQ(is_fused, count == 16) << count;
    if (!is_fused) {
      EXPECT_EQ(maker.program.exprs.size(), expressions);
    }
  }
}

// Half of x, times 1 and a function of x and its cube, as Gelu's approximation is exported.
TEST(FuseFunctionsTest, MakesOneFunctionOfAllThatIsMadeOfATensor) {
  const auto make = [](ProgramMaker& maker) {
    const Operand x = maker.Input({1, 3, 5});
    const Operand y = maker.Input({1, 3, 5});
    const auto product = [](ExprPool&, const std::vector<Expr>& loads) {
      return loads[0] * loads[1];
    };
    const Operand square = maker.Map({1, 3, 5}, {x, x}, product);
    const Operand cube = maker.Map({1, 3, 5}, {square, x}, product);
    const Operand inner = maker.Map({1, 3, 5}, {x, cube}, Sum);
    const Operand outer = maker.Map({1, 3, 5}, {inner}, Exp);
    const Operand gated = maker.Map({1, 3, 5}, {x, outer}, product);
    const Operand half = maker.Map({1, 3, 5}, {gated}, Double);
    maker.Output(maker.Map({1, 3, 5}, {half, y}, Sum));
  };
  ProgramMaker plain, fused;
  make(plain);
  make(fused);
  FuseFunctions(fused.program, AcceptAll);
  EXPECT_EQ(RunOnNumbers(fused.program), RunOnNumbers(plain.program));
  ASSERT_EQ(fused.program.steps.size(), 2u) << ToString(fused.program);
  EXPECT_EQ(fused.program.steps[0].reads.size(), 1u);
  EXPECT_EQ(fused.program.steps[1].reads.size(), 2u) << "y is another tensor";
}

// (bytes - 3) / 4, or with a scale per column.
Operand Dequantized(ProgramMaker& maker, const Operand& bytes, bool has_scale_per_column = false) {
  const Operand scale = has_scale_per_column ? maker.Input({5}) : maker.Input({1});
  return maker.Map(bytes.shape, {bytes, scale}, [](ExprPool& pool, const std::vector<Expr>& loads) {
    const Expr difference =
        Cast(loads[0], ElementType::kInt32) - IntConstant(pool, ElementType::kInt32, 3);
    return Cast(difference, ElementType::kFloat32) * loads[1];
  });
}
Operand Bytes(ProgramMaker& maker, const Shape& shape) {
  return maker.Map(shape, {maker.Input(shape)}, [](ExprPool&, const std::vector<Expr>& loads) {
    return Cast(loads[0] * Like(loads[0], 8), ElementType::kInt8);
  });
}

// Inlines what dequantizes in what `make` makes, which still computes the same, and returns how
// many steps read bytes.
int ReadersOfBytes(const std::function<void(ProgramMaker&)>& make,
                   const Accepts& accepts = AcceptAll) {
  ProgramMaker plain, inlined;
  make(plain);
  make(inlined);
  InlineDequantizations(inlined.program, accepts);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(inlined.program), expected) << ToString(inlined.program);
  const auto [least, largest] = std::minmax_element(expected.at(0).begin(), expected.at(0).end());
  EXPECT_LT(*least, *largest);
  int readers = 0;
  for (const Step& step : inlined.program.steps) {
    readers += std::any_of(step.reads.begin(), step.reads.end(),
                           [](const View& read) { return read.type == ElementType::kInt8; });
  }
  return readers;
}

TEST(InlineDequantizationsTest, HasSumsReadBytes) {
  const auto make = [](ProgramMaker& maker) {
    const Operand a = Dequantized(maker, Bytes(maker, {3, 5}));
    const Operand b = Dequantized(maker, Bytes(maker, {3, 5}));
    maker.Output(maker.Map({3, 5}, {a, b}, Sum));
  };
  EXPECT_EQ(ReadersOfBytes(make), 1) << "the sum alone";
  const auto refuses = [](const Program&, const Step&, const Step&) { return false; };
  EXPECT_EQ(ReadersOfBytes(make, refuses), 2) << "both dequantizations stay";
}

TEST(InlineDequantizationsTest, LeavesTheResultToOtherReaders) {
  const auto make = [](ProgramMaker& maker) {
    const Operand a = Dequantized(maker, Bytes(maker, {3, 5}));
    const Operand other = maker.Map({3, 5}, {maker.Input({3, 5})}, Exp);
    maker.Output(maker.Map({3, 5}, {other, a}, Difference));
    maker.Output(maker.SumRows(a));
  };
  EXPECT_EQ(ReadersOfBytes(make), 2) << "the difference, and what dequantizes for the rows";
}

// A kernel that knows the function finds it by its one argument.
TEST(InlineDequantizationsTest, LeavesFunctionsOfOneTensor) {
  EXPECT_EQ(ReadersOfBytes([](ProgramMaker& maker) {
              const Operand a = Dequantized(maker, Bytes(maker, {3, 5}));
              const Operand raised = maker.Map({3, 5}, {a}, Exp);
              maker.Output(maker.Map({3, 5}, {a, maker.Map({3, 5}, {raised}, Double)}, Sum));
            }),
            1)
      << "what dequantizes";
}

TEST(InlineDequantizationsTest, LeavesScalesPerColumn) {
  EXPECT_EQ(ReadersOfBytes([](ProgramMaker& maker) {
              const Operand a = Dequantized(maker, Bytes(maker, {3, 5}), true);
              const Operand other = maker.Map({3, 5}, {maker.Input({3, 5})}, Exp);
              maker.Output(maker.Map({3, 5}, {a, other}, Sum));
            }),
            1)
      << "what dequantizes";
}

// So that a function of it is known as one; how views step along an axis of one element says
// nothing.
TEST(FuseMapsTest, ReadsOnceWhatBothRead) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({1, 3, 5});
    const Operand y = maker.Input({1, 3, 5});
    const Operand a = maker.Map({1, 3, 5}, {x, y}, Sum);
    const Operand b = maker.Map({1, 3, 5}, {a}, Exp);
    maker.Output(maker.Map({1, 3, 5}, {x, b, y}, [](ExprPool&, const std::vector<Expr>& loads) {
      return loads[0] * loads[1] - loads[2];
    }));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.steps[0].reads.size(), 2u);
}

// The same elements in another order are something else.
TEST(FuseMapsTest, ReadsTwiceWhatIsReadInTwoOrders) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({5, 5});
    Operand transposed = x;
    std::swap(transposed.view.strides[0], transposed.view.strides[1]);
    const Operand a = maker.Map({5, 5}, {transposed}, Exp);
    maker.Output(maker.Map({5, 5}, {x, a}, Difference));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.steps[0].reads.size(), 2u);
}

TEST(FuseMapsTest, FollowsAxesThatTheReaderPermutes) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3, 5});
    const Operand bias = maker.Input({3, 1});
    const Operand a =
        maker.Map({2, 3, 5}, {x, bias}, [](ExprPool& pool, const std::vector<Expr>& loads) {
          // Coordinates of the producer have to follow too.
          const Expr place = Coordinate(pool, 0) * IntConstant(pool, ElementType::kInt64, 100) +
                             Coordinate(pool, 2);
          return loads[0] * loads[1] + Cast(place, ElementType::kFloat32);
        });
    maker.Output(maker.Map({5, 2, 3}, {Permute(a, {2, 0, 1})}, Double));
  });
  EXPECT_EQ(program.steps.size(), 1u);
}

TEST(FuseMapsTest, InlinesAProducerSeenInTwoOrders) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({4, 4});
    const Operand a = maker.Map({4, 4}, {x}, Double);
    maker.Output(maker.Map({4, 4}, {a, Permute(a, {1, 0})}, Difference));
  });
  EXPECT_EQ(program.steps.size(), 1u);
}

TEST(FuseMapsTest, KeepsGuardsOfWhatTheProducerReads) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 4});
    // One more row before and two columns behind, of 7.
    const Operand padded = *Pad(x, {1, 0}, {0, 2}, tensor::Scalar{.f = 7});
    const Operand a = maker.Map({4, 6}, {padded}, Double);
    maker.Output(maker.Map({6, 4}, {Permute(a, {1, 0})}, Double));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_EQ(program.steps[0].reads[0].guards.size(), 2u);
}

TEST(FuseMapsTest, RepeatsOnlyWhatIsCheap) {
  for (const bool is_cheap : {true, false}) {
    const Program program = Fused([is_cheap](ProgramMaker& maker) {
      const Operand x = maker.Input({1, 5});
      const Operand y = maker.Input({4, 5});
      const Operand a = maker.Map({1, 5}, {x}, is_cheap ? Double : Exp);
      maker.Output(maker.Map({4, 5}, {a, y}, Difference));
    });
    EXPECT_EQ(program.steps.size(), is_cheap ? 1u : 2u);
  }
}

TEST(FuseMapsTest, InlinesIntoAReduction) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 7});
    maker.Output(maker.SumRows(maker.Map({3, 7}, {x}, Exp)));
  });
  ASSERT_EQ(program.steps.size(), 1u);
  EXPECT_NE(program.steps[0].As<Reduce>(), nullptr);
}

TEST(FuseMapsTest, KeepsWhatTwoStepsRead) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand a = maker.Map({3, 5}, {x}, Double);
    maker.Output(maker.Map({3, 5}, {a, x}, Sum));
    maker.Output(maker.Map({3, 5}, {a, x}, Difference));
  });
  EXPECT_EQ(program.steps.size(), 3u);
}

TEST(FuseMapsTest, KeepsOutputs) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand a = maker.Map({3, 5}, {x}, Double);
    maker.Output(a);
    maker.Output(maker.Map({3, 5}, {a, x}, Sum));
  });
  EXPECT_EQ(program.steps.size(), 2u);
}

TEST(FuseMapsTest, KeepsWhatIsReadInPartsOrAtComputedPlaces) {
  const std::function<Operand(ProgramMaker&, const Operand&)> readers[] = {
      [](ProgramMaker& maker, const Operand& a) {  // from the second column on
        return maker.Map({3, 4}, {Slice(a, 1, 1, 1, 4)}, Double);
      },
      [](ProgramMaker& maker, const Operand& a) {  // backwards
        return maker.Map({3, 5}, {Slice(a, 1, 4, -1, 5)}, Double);
      },
      [](ProgramMaker& maker, const Operand& a) {  // surrounded by zeros
        return maker.Map({5, 5}, {*Pad(a, {1, 0}, {1, 0}, {})}, Double);
      },
      [](ProgramMaker& maker, const Operand& a) {  // the diagonal
        Operand diagonal{a.view, {3}};
        diagonal.view.strides = {a.view.strides[0] + a.view.strides[1]};
        return maker.Map({3}, {diagonal}, Double);
      },
      [](ProgramMaker& maker, const Operand& a) {  // as a vector
        return maker.Map({15}, {*Reshape(a, {15})}, Double);
      },
      [](ProgramMaker& maker, const Operand& a) {  // (row, (2 * column) % 5)
        return maker.Map({3, 5}, {a}, [](ExprPool& pool, const std::vector<Expr>&) {
          const Expr column = Coordinate(pool, 1) * IntConstant(pool, ElementType::kInt64, 2);
          const Expr at[] = {
              Coordinate(pool, 0),
              Binary(ExprOp::kMod, column, IntConstant(pool, ElementType::kInt64, 5))};
          return LoadAt(pool, ElementType::kFloat32, 0, at);
        });
      },
  };
  for (const auto& reader : readers) {
    const Program program = Fused([&reader](ProgramMaker& maker) {
      const Operand a = maker.Map({3, 5}, {maker.Input({3, 5})}, Double);
      maker.Output(reader(maker, a));
    });
    EXPECT_EQ(program.steps.size(), 2u) << ToString(program);
  }
}

// Rows that a table selects are read along their elements; whoever wants them in another order gets
// them by a step of its own.
TEST(FuseMapsTest, KeepsRunsOfWhatDataSelects) {
  for (const bool is_turned : {false, true}) {
    const Program program = Fused([is_turned](ProgramMaker& maker) {
      const Operand table = maker.Input({5, 1});
      const Operand rows = maker.Input({5, 3});
      const Operand selected =
          maker.Map({5, 3}, {table, rows}, [](ExprPool& pool, const std::vector<Expr>&) {
            const Expr in[] = {Coordinate(pool, 0), Coordinate(pool, 1)};
            const Expr number =
                Cast(LoadAt(pool, ElementType::kFloat32, 0, in), ElementType::kInt64);
            const Expr at[] = {
                Binary(ExprOp::kMod, number, IntConstant(pool, ElementType::kInt64, 5)),
                Coordinate(pool, 1)};
            return LoadAt(pool, ElementType::kFloat32, 1, at);
          });
      maker.Output(is_turned ? maker.Map({3, 5}, {Permute(selected, {1, 0})}, Double)
                             : maker.Map({5, 3}, {selected}, Double));
    });
    EXPECT_EQ(program.steps.size(), is_turned ? 2u : 1u) << ToString(program);
  }
}

TEST(FuseMapsTest, LeavesAStepWhereWhatItReadsIsStillThere) {
  const Program program = Fused([](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand a = maker.Temporary({3, 5});
    maker.MapTo(a, {x}, Exp);
    const Operand b = maker.Map({3, 5}, {a}, Double);
    maker.MapTo(a, {x}, Double);  // a second time
    maker.Output(maker.Map({3, 5}, {b, a}, Difference));
  });
  EXPECT_EQ(program.steps.size(), 4u);
}

TEST(FuseMapsTest, AsksWhetherTheDeviceTakesTheStep) {
  int asked = 0;
  const auto make = [](ProgramMaker& maker) {
    const Operand x = maker.Input({3, 5});
    const Operand a = maker.Map({3, 5}, {x}, Double);
    maker.Output(maker.SumRows(a));
  };
  const Program program =
      Fused(make, [&asked](const Program&, const Step& before, const Step& after) {
        ++asked;
        EXPECT_NE(before.As<Reduce>(), nullptr);
        EXPECT_EQ(before.reads[0].buffer, 1);
        EXPECT_NE(after.As<Reduce>(), nullptr);
        EXPECT_EQ(after.reads[0].buffer, 0);
        return false;
      });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(program.steps.size(), 2u);
}

TEST(FuseMapsTest, BoundsTheSizeOfAStep) {
  const Program program = Fused([](ProgramMaker& maker) {
    Operand value = maker.Input({2, 3});
    for (int k = 0; k < 300; ++k) {
      value = maker.Map({2, 3}, {value}, [k](ExprPool&, const std::vector<Expr>& loads) {
        return Unary(ExprOp::kTanh, loads[0] * Like(loads[0], 1.5 + 0.01 * k));
      });
    }
    maker.Output(value);
  });
  EXPECT_GT(program.steps.size(), 5u);
  EXPECT_LT(program.steps.size(), 15u);
}

// Chains of twenty steps beside one another, each an output, all reading one buffer: how often the
// device is asked grows as the program does, and so does the time, or this would not end.
TEST(FuseMapsTest, WorkGrowsWithTheProgram) {
  const auto count_questions = [](int chains) {
    ProgramMaker maker;
    const Operand x = maker.Input({2, 3});
    for (int chain = 0; chain < chains; ++chain) {
      Operand value = x;
      for (int k = 0; k < 20; ++k) value = maker.Map({2, 3}, {value, x}, Difference);
      maker.Output(value);
    }
    int asked = 0;
    FuseMaps(maker.program, [&asked](const Program&, const Step&, const Step&) {
      ++asked;
      return true;
    });
    EXPECT_GE(maker.program.steps.size(), static_cast<size_t>(chains));
    return asked;
  };
  const int asked = count_questions(10);
  EXPECT_GT(asked, 100);
  EXPECT_EQ(count_questions(1000), 100 * asked);
}

}  // namespace
}  // namespace onnxifi::program
