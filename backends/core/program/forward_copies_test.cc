// SPDX-License-Identifier: Apache-2.0
//
// ForwardCopies: what moves into a part of another buffer computes the same as before, on the
// reference; where it may not, the copy stays.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;

bool AcceptAll(const Program&, const Step&, const Step&) { return true; }

Expr Same(ExprPool&, const std::vector<Expr>& loads) { return loads[0]; }
Expr Double(ExprPool&, const std::vector<Expr>& loads) { return loads[0] * Like(loads[0], 2); }
Expr Negate(ExprPool&, const std::vector<Expr>& loads) { return Unary(ExprOp::kNeg, loads[0]); }

// A copy of each part into its place along `axis` of `target`.
void ConcatenateInto(ProgramMaker& maker, const Operand& target, const std::vector<Operand>& parts,
                     int axis) {
  Dim start = 0;
  for (const Operand& part : parts) {
    const Dim& extent = part.shape[static_cast<size_t>(axis)];
    maker.MapTo(Slice(target, axis, start, 1, extent), {part}, Same);
    start = start + extent;
  }
}

Operand Concatenate(ProgramMaker& maker, const std::vector<Operand>& parts, int axis) {
  Shape shape = parts[0].shape;
  for (size_t k = 1; k < parts.size(); ++k) {
    shape[static_cast<size_t>(axis)] =
        shape[static_cast<size_t>(axis)] + parts[k].shape[static_cast<size_t>(axis)];
  }
  Operand target = maker.Temporary(shape);
  ConcatenateInto(maker, target, parts, axis);
  return target;
}

int CountCopies(const Program& program) {
  return static_cast<int>(
      std::count_if(program.steps.begin(), program.steps.end(), [&](const Step& step) {
        const Map* map = step.As<Map>();
        if (map == nullptr) return false;
        const ExprNode& root = program.exprs[map->roots[0]];
        return root.op == ExprOp::kLoad && root.operands.empty();
      }));
}

// Forwards the copies of what `make` makes; it still computes the same.
Program Forwarded(const std::function<void(ProgramMaker&)>& make,
                  const Accepts& accepts = AcceptAll) {
  ProgramMaker plain, forwarded;
  make(plain);
  make(forwarded);
  ForwardCopies(forwarded.program, accepts);
  const base::Status verified = Verify(forwarded.program);
  EXPECT_TRUE(verified.ok()) << verified.Text();
  EXPECT_EQ(RunOnNumbers(forwarded.program), RunOnNumbers(plain.program))
      << ToString(forwarded.program);
  return std::move(forwarded.program);
}

TEST(ForwardCopiesTest, MovesWhatEveryStepLooksAt) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3, 4});
    const Operand a = maker.Map({2, 3, 4}, {x}, Double);
    const Operand b = maker.Map({2, 2, 4}, {Slice(x, 1, 0, 1, 2)}, Negate);
    const Operand ab = Concatenate(maker, {a, b}, 1);
    maker.Output(maker.Map({2, 5, 4}, {ab}, Double));
    // Readers of the parts, before and after the copies, of a part of a part and of its axes in
    // another order.
    maker.Output(maker.SumRows(a));
    maker.Output(
        maker.Map({4, 2}, {Permute(*Reshape(Slice(a, 1, 2, 1, 1), {2, 4}), {1, 0})}, Same));
    maker.Output(maker.MatMul(*Reshape(Slice(b, 0, 1, 1, 1), {2, 4}), maker.Input({4, 3})));
    maker.Output(maker.Map({2, 6, 2}, {*Reshape(a, {2, 6, 2})}, Double));
  });
  EXPECT_EQ(CountCopies(program), 1) << "that of the permuted part alone" << ToString(program);
  EXPECT_EQ(program.steps.size(), 7u);
}

TEST(ForwardCopiesTest, CollapsesAChain) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    Operand all = maker.Map({2, 3, 4}, {maker.Input({2, 3, 4})}, Double);
    for (int link = 0; link < 5; ++link) {
      const Operand grown = maker.Map({2, 1, 4}, {Slice(all, 1, link, 1, 1)}, Negate);
      all = Concatenate(maker, {all, grown}, 1);
    }
    maker.Output(maker.Map(all.shape, {all}, Double));
  });
  EXPECT_EQ(CountCopies(program), 0) << ToString(program);
  std::set<BufferId> written;
  for (const Step& step : program.steps) written.insert(step.writes[0].buffer);
  EXPECT_EQ(written.size(), 2u) << "one that grows, and the output";
}

TEST(ForwardCopiesTest, MovesIntoAnOutput) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3});
    const Operand a = maker.Map({2, 3}, {x}, Double);
    maker.Output(Concatenate(maker, {a, x}, 1));
    maker.Output(maker.Map({2, 3}, {a}, Negate));
  });
  EXPECT_EQ(CountCopies(program), 1) << "of the input";
}

TEST(ForwardCopiesTest, MovesOneOfTwoCopiesOfTheSame) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3});
    const Operand a = maker.Map({2, 3}, {x}, Double);
    maker.Output(Concatenate(maker, {a, a}, 1));
    maker.Output(Concatenate(maker, {x, a}, 0));
  });
  EXPECT_EQ(CountCopies(program), 3);
}

TEST(ForwardCopiesTest, MovesWhatSeveralStepsWrite) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3});
    const Operand a = maker.Temporary({2, 6});
    maker.MapTo(Slice(a, 1, 1, 2, 3), {x}, Double);
    maker.MapTo(Slice(a, 1, 0, 2, 3), {x}, Negate);
    maker.Output(Concatenate(maker, {x, a}, 1));
  });
  EXPECT_EQ(CountCopies(program), 1) << "of the input";
}

TEST(ForwardCopiesTest, MovesColumnsBetweenOthers) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({4, 1});
    const Operand a = maker.Map({4, 1}, {x}, Double);
    const Operand b = maker.Map({4, 1}, {x}, Negate);
    maker.Output(Concatenate(maker, {a, x, b}, 1));
    maker.Output(maker.SumRows(*Reshape(a, {2, 2})));
  });
  EXPECT_EQ(CountCopies(program), 1) << "of the input";
}

TEST(ForwardCopiesTest, RowsOfOneBlockAreLookedAtInAnyWay) {
  // The part lies in one piece, so what crosses from a row into the next crosses there too.
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({1, 3, 4});
    const Operand a = maker.Map({1, 3, 4}, {x}, Double);
    maker.Output(Concatenate(maker, {x, a}, 1));
    maker.Output(maker.Map({2, 6}, {*Reshape(a, {2, 6})}, Double));
  });
  EXPECT_EQ(CountCopies(program), 1) << "of the input";
}

TEST(ForwardCopiesTest, KeepsTheOrderInMemory) {
  // [N, H, W, C] in both buffers, or in the target alone.
  for (const bool is_source_channels_last : {true, false}) {
    const Program program = Forwarded([&](ProgramMaker& maker) {
      const Operand x = maker.Input({2, 3, 4});
      const Operand a = is_source_channels_last ? Permute(maker.Temporary({2, 4, 3}), {0, 2, 1})
                                                : maker.Temporary({2, 3, 4});
      maker.MapTo(a, {x}, Double);
      const Operand target = Permute(maker.Temporary({2, 4, 6}), {0, 2, 1});
      ConcatenateInto(maker, target, {x, a}, 1);
      maker.Output(maker.Map({2, 6, 4}, {target}, Negate));
      maker.Output(maker.SumRows(a));
    });
    EXPECT_EQ(CountCopies(program), is_source_channels_last ? 1 : 2);
  }
}

TEST(ForwardCopiesTest, RoomMayBeOverwrittenOnceNobodyReadsWhatWasCopied) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3});
    const Operand a = maker.Map({2, 3}, {x}, Double);
    const Operand all = Concatenate(maker, {x, a}, 1);
    maker.Output(maker.SumRows(a));
    maker.Output(maker.SumRows(all));
    maker.MapTo(all, {maker.Input({2, 6})}, Negate);
    maker.Output(maker.Map({2, 6}, {all}, Double));
  });
  EXPECT_EQ(CountCopies(program), 1) << "of the input";
}

TEST(ForwardCopiesTest, ExtentsMayBeUnknown) {
  // A cache that grows along axis 1, of a batch that is not known either.
  ProgramMaker maker;
  const Dim batch = maker.program.dims->NewSymbol("batch", /*is_data=*/false);
  const Dim past = maker.program.dims->NewSymbol("past", /*is_data=*/false);
  const Operand x = maker.Input({batch, past, 4});
  const Operand y = maker.Input({batch, 1, 4});
  const Operand old = maker.Map(x.shape, {x}, Double);
  const Operand added = maker.Map(y.shape, {y}, Negate);
  const Operand all = Concatenate(maker, {old, added}, 1);
  maker.Output(maker.Map(all.shape, {all}, Double));
  maker.Output(maker.SumRows(old));
  ForwardCopies(maker.program, AcceptAll);
  EXPECT_EQ(CountCopies(maker.program), 0) << ToString(maker.program);
  const auto numbers = [](const tensor::Extents& extents, float first) {
    std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
    for (float& value : values) value = first++;
    return tensor::Tensor::FromValues<float>(ElementType::kFloat32, extents, values);
  };
  const auto outputs =
      execution::RunProgram(maker.program, {numbers({2, 2, 4}, 1), numbers({2, 1, 4}, 100)});
  ASSERT_TRUE(outputs.ok()) << outputs.status().Text();
  const std::vector<float> all_expected = {4,  8,  12, 16, 20, 24, 28, 32, -200, -202, -204, -206,
                                           36, 40, 44, 48, 52, 56, 60, 64, -208, -210, -212, -214};
  const std::vector<float> sums_expected = {20, 52, 84, 116};
  EXPECT_EQ(std::vector<float>((*outputs)[0].values<float>().begin(),
                               (*outputs)[0].values<float>().end()),
            all_expected);
  EXPECT_EQ(std::vector<float>((*outputs)[1].values<float>().begin(),
                               (*outputs)[1].values<float>().end()),
            sums_expected);
}

TEST(ForwardCopiesTest, AsksTheDeviceAboutEveryStepThatMoves) {
  // a is written by step 0 and read by step 3.
  for (const int refused : {0, 3}) {
    int asked = 0;
    const Program program = Forwarded(
        [](ProgramMaker& maker) {
          const Operand x = maker.Input({2, 3});
          const Operand a = maker.Map({2, 3}, {x}, Double);
          maker.Output(Concatenate(maker, {a, x}, 1));
          maker.Output(maker.Map({2, 3}, {a}, Negate));
        },
        [&](const Program&, const Step& before, const Step& after) {
          EXPECT_EQ(before.node, after.node);
          asked += before.node == refused ? 1 : 0;
          return before.node != refused;
        });
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(CountCopies(program), 2);
  }
}

// What keeps `a`, whose copy is in `all`, where it is. `add` may look at either before the copy
// (and change what is copied), `then` after it.
struct Obstacle {
  const char* name;
  std::function<void(ProgramMaker&, const Operand& a, const Operand& all)> add;
  std::function<void(ProgramMaker&, const Operand& a, const Operand& all)> then;
};

void Nothing(ProgramMaker&, const Operand&, const Operand&) {}

class ForwardCopiesObstacleTest : public testing::TestWithParam<Obstacle> {};

TEST_P(ForwardCopiesObstacleTest, LeavesTheCopy) {
  const Program program = Forwarded([](ProgramMaker& maker) {
    const Operand x = maker.Input({2, 3, 4});
    const Operand a = maker.Map({2, 3, 4}, {x}, Double);
    const Operand all = maker.Temporary({2, 6, 4});
    GetParam().add(maker, a, all);
    ConcatenateInto(maker, all, {a, x}, 1);
    maker.Output(maker.SumRows(all));
    GetParam().then(maker, a, all);
  });
  EXPECT_EQ(CountCopies(program), 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, ForwardCopiesObstacleTest,
    testing::Values(
        Obstacle{"AnOutput",
                 [](ProgramMaker& maker, const Operand& a, const Operand&) { maker.Output(a); },
                 Nothing},
        Obstacle{"RowsAcrossTheJoint", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand&) {
                   maker.Output(maker.Map({4, 6}, {*Reshape(a, {4, 6})}, Double));
                 }},
        Obstacle{"Padded", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand&) {
                   const Operand padded = *Pad(a, {0, 1, 0}, {0, 1, 0}, tensor::Scalar{});
                   maker.Output(maker.Map(padded.shape, {padded}, Double));
                 }},
        Obstacle{"Backwards", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand&) {
                   maker.Output(maker.Map(a.shape, {Slice(a, 2, 3, -1, 4)}, Double));
                 }},
        Obstacle{"LoadedAtComputedCoordinates", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand&) {
                   maker.Output(maker.Map(a.shape, {a}, [](ExprPool& pool, const auto&) {
                     const Expr last = IntConstant(pool, ElementType::kInt64, 1);
                     const Expr at[] = {last - Coordinate(pool, 0), Coordinate(pool, 1),
                                        Coordinate(pool, 2)};
                     return LoadAt(pool, ElementType::kFloat32, 0, at);
                   }));
                 }},
        Obstacle{"WrittenAgain", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand&) {
                   maker.MapTo(a, {maker.Input({2, 3, 4})}, Negate);
                   maker.Output(maker.SumRows(a));
                 }},
        Obstacle{"RoomIsReadBefore",
                 [](ProgramMaker& maker, const Operand&, const Operand& all) {
                   maker.MapTo(all, {maker.Input({2, 6, 4})}, Negate);
                   maker.Output(maker.SumRows(all));
                 },
                 Nothing},
        Obstacle{"RoomIsOverwrittenBefore",
                 [](ProgramMaker& maker, const Operand&, const Operand& all) {
                   maker.MapTo(Slice(all, 1, 2, 1, 2), {maker.Input({2, 2, 4})}, Negate);
                 },
                 Nothing},
        Obstacle{"RoomIsReachedFromTheRowBefore",
                 [](ProgramMaker& maker, const Operand&, const Operand& all) {
                   Operand across{all.view, {24}};
                   across.view.offset = 12;
                   across.view.strides = {1};
                   maker.MapTo(across, {maker.Input({24})}, Negate);
                 },
                 Nothing},
        Obstacle{"RoomIsOverwrittenWhileItIsRead", Nothing,
                 [](ProgramMaker& maker, const Operand& a, const Operand& all) {
                   maker.MapTo(Slice(all, 1, 2, 1, 2), {maker.Input({2, 2, 4})}, Negate);
                   maker.Output(maker.SumRows(all));
                   maker.Output(maker.SumRows(a));
                 }}),
    [](const testing::TestParamInfo<Obstacle>& info) { return info.param.name; });

// The copy itself is of another kind.
struct OtherCopy {
  const char* name;
  std::function<void(ProgramMaker&)> make;
};

class ForwardCopiesOtherCopyTest : public testing::TestWithParam<OtherCopy> {};

TEST_P(ForwardCopiesOtherCopyTest, Stays) {
  ProgramMaker unchanged;
  GetParam().make(unchanged);
  const size_t steps = unchanged.program.steps.size();
  EXPECT_EQ(Forwarded(GetParam().make).steps.size(), steps);
}

INSTANTIATE_TEST_SUITE_P(
    All, ForwardCopiesOtherCopyTest,
    testing::Values(
        OtherCopy{"OfAnInput",
                  [](ProgramMaker& maker) {
                    const Operand x = maker.Input({2, 3});
                    maker.Output(Concatenate(maker, {x, x}, 1));
                  }},
        OtherCopy{"OfAConstant",
                  [](ProgramMaker& maker) {
                    const Operand x = maker.Constant(tensor::Tensor::FromValues<float>(
                        ElementType::kFloat32, {3}, std::vector<float>{1, 2, 3}));
                    maker.Output(Concatenate(maker, {x, x}, 0));
                  }},
        OtherCopy{"OfAPart",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({2, 3}, {maker.Input({2, 3})}, Double);
                    maker.Output(maker.Map({2, 2}, {Slice(a, 1, 0, 1, 2)}, Same));
                  }},
        OtherCopy{"OfTheFirstPart",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({3}, {maker.Input({3})}, Double);
                    maker.Output(maker.Map({2}, {Slice(a, 0, 0, 1, 2)}, Same));
                  }},
        OtherCopy{"Padded",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({3}, {maker.Input({3})}, Double);
                    maker.Output(maker.Map({4}, {*Pad(a, {0}, {1}, tensor::Scalar{})}, Same));
                  }},
        OtherCopy{"SeenAsAnotherType",
                  [](ProgramMaker& maker) {
                    const Operand x = maker.Input({3});
                    const Operand a = maker.Temporary({3}, ElementType::kInt32);
                    maker.MapTo(a, {x}, [](ExprPool&, const auto& loads) {
                      return Bitcast(loads[0] * Like(loads[0], 2), ElementType::kInt32);
                    });
                    Operand floats = a;
                    floats.view.type = ElementType::kFloat32;
                    maker.Output(maker.Map({3}, {floats}, Same));
                  }},
        OtherCopy{"Repeated",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({3}, {maker.Input({3})}, Double);
                    maker.Output(maker.Map({2, 3}, {a}, Same));
                  }},
        OtherCopy{"Transposed",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({2, 3}, {maker.Input({2, 3})}, Double);
                    maker.Output(maker.Map({3, 2}, {Permute(a, {1, 0})}, Same));
                  }},
        OtherCopy{"Converted",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({2, 3}, {maker.Input({2, 3})}, Double);
                    const Operand b = maker.Map({2, 3}, {a}, [](ExprPool&, const auto& loads) {
                      return Cast(loads[0], ElementType::kInt32);
                    });
                    maker.Output(maker.Map({2, 3}, {b}, [](ExprPool&, const auto& loads) {
                      return Cast(loads[0], ElementType::kFloat32);
                    }));
                  }},
        OtherCopy{"Computed",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({2, 3}, {maker.Input({2, 3})}, Double);
                    maker.Output(maker.Map({2, 3}, {a}, Negate));
                  }},
        OtherCopy{"OfTheBufferItself",
                  [](ProgramMaker& maker) {
                    const Operand a = maker.Map({2, 3}, {maker.Input({2, 3})}, Double);
                    maker.MapTo(a, {a}, Same);
                    maker.Output(maker.SumRows(a));
                  }}),
    [](const testing::TestParamInfo<OtherCopy>& info) { return info.param.name; });

// Steps that execution runs look at dense buffers; and a target is allocated where it is first
// written, when later numbers are not known yet.
TEST(ForwardCopiesTest, KeepsWithinAStage) {
  for (const bool is_cut_between : {false, true}) {
    ProgramMaker maker;
    const Operand counts = maker.Input({1}, ElementType::kInt64);
    const Operand x = maker.Input({2, 3});
    const int symbol = maker.program.dims->symbol_count();
    maker.program.dims->NewSymbol("count", /*is_data=*/true);
    const auto cut = [&] { maker.AddStep({{1}, {counts.view}, {}, Cut{symbol, 1}}); };
    if (!is_cut_between) cut();
    const Operand a = maker.Map({2, 3}, {x}, Double);
    if (is_cut_between) cut();
    maker.Output(Concatenate(maker, {x, a}, 1));
    ForwardCopies(maker.program, AcceptAll);
    EXPECT_EQ(CountCopies(maker.program), is_cut_between ? 2 : 1);
  }
}

TEST(ForwardCopiesTest, KeepsWhatExecutionReads) {
  ProgramMaker maker;
  const Operand x = maker.Input({1}, ElementType::kInt64);
  const Operand a = maker.Map({1}, {x}, Double);
  const int symbol = maker.program.dims->symbol_count();
  maker.program.dims->NewSymbol("count", /*is_data=*/true);
  const Operand all = maker.Temporary({2}, ElementType::kInt64);
  ConcatenateInto(maker, all, {x, a}, 0);
  maker.AddStep({{1}, {a.view}, {}, Cut{symbol, 1}});
  maker.Output(all);
  ForwardCopies(maker.program, AcceptAll);
  EXPECT_EQ(CountCopies(maker.program), 2);
}

TEST(ForwardCopiesTest, KeepsPackedElementsApart) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kInt4}) {
    ProgramMaker maker;
    const Operand x = maker.Input({3}, type);
    const Operand a = maker.Temporary({3}, type);
    maker.MapTo(a, {}, [type](ExprPool& pool, const auto&) { return Constant(pool, type, 1); });
    const Operand all = maker.Temporary({6}, type);
    ConcatenateInto(maker, all, {x, a}, 0);
    maker.Output(all);
    ForwardCopies(maker.program, AcceptAll);
    EXPECT_EQ(CountCopies(maker.program), type == ElementType::kInt4 ? 2 : 1);
  }
}

}  // namespace
}  // namespace onnxifi::program
