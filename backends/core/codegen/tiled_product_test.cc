// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct where items are the lanes of a device: who lays out what, and which way items come
// to a barrier. That sums are right is tested by the devices that run them (tiled_test.cc).

#include "backends/core/codegen/tiled_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/tuning.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::codegen {
namespace {

using program::Contract;
using program::Operand;
using program::ProgramMaker;
using tensor::ElementType;
using testing::HasSubstr;
using testing::Not;
using Part = TiledProduct::Part;

constexpr Capabilities kAll{.has_float64 = true};
constexpr auto kFloat = ElementType::kFloat32;

// A product of that many rows, columns and terms; or a convolution of 3 x 3 over an image of
// columns x columns, padded by 1, with that many outputs and channels.
ProgramMaker MakeProduct(int64_t rows, int64_t columns, int64_t depth, bool is_window) {
  ProgramMaker maker;
  Contract contract;
  program::Step step;
  program::Shape a{rows, depth}, b{depth, columns}, domain{rows, columns};
  if (is_window) {
    contract.form = Contract::Form::kConv;
    contract.inner = {depth, 3, 3};
    contract.a_spatial = {columns, columns};
    contract.strides = {1, 1};
    contract.dilations = {1, 1};
    contract.pads_begin = {1, 1};
    a = {1, depth, columns, columns};
    b = {rows, depth, 3, 3};
    domain = {1, rows, columns, columns};
  } else {
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {depth};
  }
  const auto read = [&](const program::Shape& shape) {
    step.reads.push_back(maker.Input(shape).view);
    return Load(maker.program.exprs, kFloat, static_cast<int>(step.reads.size()) - 1).id();
  };
  contract.a_prologue = read(a);
  contract.b_prologue = read(b);
  contract.roots = {Accumulator(maker.program.exprs, kFloat).id()};
  program::Buffer out{.kind = program::Buffer::Kind::kTemporary, .type = kFloat, .shape = domain};
  step.writes = {program::DenseView(maker.program.AddBuffer(out), kFloat, domain)};
  step.domain = domain;
  step.body = std::move(contract);
  maker.program.steps.push_back(std::move(step));
  return maker;
}

struct Made {
  TiledProduct::Bound bound;
  std::vector<KernelText> texts;  // by part
};

Made Make(const ProgramMaker& maker, const Dialect& dialect) {
  const program::Step& step = maker.program.steps.back();
  EXPECT_TRUE(CheckTiles(maker.program, step).ok());
  TiledProduct product(maker.program, step);
  product.SetTile(DeriveTuning({.most_group_items = 256})
                      .TileFor(product.least_rows(), product.most_depth(), product.sum_bits()));
  Made made{product.Bind(device::Bind(maker.program, step, {})), {}};
  for (const Part part : {Part::kRows, Part::kColumns, Part::kSums}) {
    made.texts.push_back(
        product.Generate(part, made.bound.loops(part).form, kAll, dialect, PlainProduct()));
  }
  return made;
}

int64_t ItemsOf(const Made& made, Part part) {
  return ItemCount(made.texts[static_cast<size_t>(part)].launch, made.bound.loops(part));
}

TEST(TiledProductTest, EveryElementThatIsLaidOutHasAnItem) {
  const Made product = Make(MakeProduct(33, 65, 20, /*is_window=*/false), OpenClDialect());
  EXPECT_EQ(ItemsOf(product, Part::kRows), 64 * 20) << "Panels are whole blocks.";
  EXPECT_EQ(product.bound.row_bytes, 64 * 20 * 4);
  const Made window = Make(MakeProduct(33, 7, 20, /*is_window=*/true), OpenClDialect());
  EXPECT_EQ(ItemsOf(window, Part::kRows), 64 * 20 * 9);
  EXPECT_EQ(ItemsOf(window, Part::kColumns), 20 * 9 * 9) << "Images have their padding.";
  // The item's own number is where it writes.
  for (const Made* made : {&product, &window}) {
    EXPECT_THAT(made->texts[0].source, HasSubstr("const idx v0 = AS(idx, ITEM);"));
    EXPECT_THAT(made->texts[0].source, HasSubstr("STORE(scratch0, v0, "));
  }
}

TEST(TiledProductTest, AGroupSumsABlock) {
  const Made made = Make(MakeProduct(33, 65, 20, /*is_window=*/false), OpenClDialect());
  EXPECT_TRUE(made.texts[2].launch.has_group_per_item);
  EXPECT_EQ(made.texts[2].launch.group_size, 64);
  EXPECT_EQ(ItemsOf(made, Part::kSums), 2);
  // Few rows have narrower blocks, and nothing is laid out of what they are multiplied with.
  const Made few = Make(MakeProduct(3, 65, 1000, /*is_window=*/false), OpenClDialect());
  EXPECT_EQ(few.texts[2].launch.group_size, 256);
  EXPECT_TRUE(few.bound.has_columns_in_place);
  const Made window = Make(MakeProduct(3, 65, 5, /*is_window=*/true), OpenClDialect());
  EXPECT_TRUE(window.bound.has_columns_in_place);
  EXPECT_THAT(window.texts[2].source, Not(HasSubstr("BARRIER;")));
}

// The lines that open the blocks around each line that says `what`.
std::vector<std::string> BlocksAround(const std::string& source, std::string_view what) {
  std::vector<std::string> open, around;
  for (size_t at = source.find(" run("); at < source.size();) {
    const size_t end = source.find('\n', at);
    const std::string line = source.substr(at, end - at);
    if (line.find(what) != std::string::npos) {
      around.insert(around.end(), open.begin() + 1, open.end());
    }
    if (line.ends_with("{")) open.push_back(line);
    if (line.ends_with("}")) open.pop_back();
    at = end + 1;
  }
  return around;
}

TEST(TiledProductTest, EveryItemOfAGroupComesToEveryBarrier) {
  int loops = 0;
  for (const bool is_window : {false, true}) {
    for (const int64_t rows : {3, 9, 17, 33}) {
      const Made made = Make(MakeProduct(rows, 20, 100, is_window), OpenClDialect());
      for (const std::string& block : BlocksAround(made.texts[2].source, "BARRIER;")) {
        EXPECT_THAT(block, Not(HasSubstr("if"))) << made.texts[2].source;
        EXPECT_THAT(block, Not(HasSubstr("LANE")));
        ++loops;
      }
    }
  }
  EXPECT_EQ(loops, 6) << "Sums from shared memory have one barrier a round.";
}

TEST(TiledProductTest, SharedMemoryIsThatOfEveryLanguage) {
  const ProgramMaker maker = MakeProduct(33, 65, 20, /*is_window=*/false);
  EXPECT_THAT(Make(maker, OpenClDialect()).texts[2].source, HasSubstr("__local f32 g"));
  EXPECT_THAT(Make(maker, GlslDialect()).texts[2].source, HasSubstr("shared f32 g"));
  EXPECT_THAT(Make(maker, CudaDialect()).texts[2].source, HasSubstr("__shared__ f32 g"));
}

}  // namespace
}  // namespace onnxifi::codegen
