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
#include <tuple>
#include <vector>

#include "backends/core/codegen/plain_product.h"
#include "backends/core/codegen/tiled.h"
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
// columns x columns, padded by 1, with that many outputs and channels, as many groups, and that
// stride. Of a batch there are so many products. With a bias it is added to the sums.
struct Options {
  bool has_bias = false;
  int64_t group = 1;
  int64_t batch = 1;  // of products
  int64_t stride = 1;
  ElementType type = kFloat;  // of the operands
  ElementType sum_type = kFloat;
};
ProgramMaker MakeProduct(int64_t rows, int64_t columns, int64_t depth, bool is_window,
                         const Options& options = {}) {
  ProgramMaker maker;
  Contract contract;
  program::Step step;
  program::Shape a{rows, depth}, b{depth, columns}, domain{rows, columns};
  if (is_window) {
    contract.form = Contract::Form::kConv;
    contract.inner = {depth, 3, 3};
    contract.a_spatial = {columns, columns};
    contract.strides = {options.stride, options.stride};
    contract.group = options.group;
    contract.dilations = {1, 1};
    contract.pads_begin = {1, 1};
    a = {1, depth * options.group, columns, columns};
    b = {rows, depth, 3, 3};
    const int64_t outputs = (columns - 1) / options.stride + 1;
    domain = {1, rows, outputs, outputs};
  } else {
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {depth};
    if (options.batch > 1) {
      contract.batch_axes = 1;
      for (program::Shape* shape : {&a, &b, &domain}) shape->insert(shape->begin(), options.batch);
    }
  }
  const auto read = [&](const program::Shape& shape) {
    step.reads.push_back(maker.Input(shape, options.type).view);
    const auto number = static_cast<int>(step.reads.size()) - 1;
    return Cast(Load(maker.program.exprs, options.type, number), options.sum_type).id();
  };
  contract.a_prologue = read(a);
  contract.b_prologue = read(b);
  contract.accumulator = options.sum_type;
  program::Expr sum = Accumulator(maker.program.exprs, options.sum_type);
  if (options.has_bias) {
    step.reads.push_back(InsertAxis(maker.Input({rows}), 1).view);
    sum = sum + Load(maker.program.exprs, kFloat, 2);
  }
  contract.roots = {sum.id()};
  program::Buffer out{
      .kind = program::Buffer::Kind::kTemporary, .type = options.sum_type, .shape = domain};
  step.writes = {program::DenseView(maker.program.AddBuffer(out), options.sum_type, domain)};
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
  product.SetTile(TileOf(DeriveTuning({.most_group_items = 256}), product, product.least_rows()));
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

TEST(TiledProductTest, NarrowOperandsTakeHalfTheMemory) {
  for (const bool is_window : {false, true}) {
    const Made wide = Make(MakeProduct(33, 20, 20, is_window), OpenClDialect());
    for (const KernelText& text : wide.texts) EXPECT_THAT(text.source, Not(HasSubstr("u16* ")));
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      const Made narrow = Make(MakeProduct(33, 20, 20, is_window, {.type = type}), OpenClDialect());
      EXPECT_EQ(2 * narrow.bound.row_bytes, wide.bound.row_bytes);
      EXPECT_THAT(narrow.texts[0].source, HasSubstr("u16* "));
      EXPECT_THAT(narrow.texts[0].source, Not(HasSubstr("encode"))) << "It is what it is.";
      EXPECT_THAT(narrow.texts[2].source, HasSubstr("u16* "));
      // Of a product the columns are read where they lie.
      EXPECT_EQ(narrow.bound.has_columns_in_place, !is_window);
      if (is_window) {
        EXPECT_LT(narrow.bound.column_bytes, 0.6 * static_cast<double>(wide.bound.column_bytes));
      }
    }
  }
}

TEST(TiledProductTest, BytesTakeAQuarterOrAHalfOfTheMemory) {
  ProgramMaker maker = MakeProduct(33, 20, 20, /*is_window=*/true,
                                   {.type = ElementType::kUint8, .sum_type = ElementType::kInt32});
  const Made bytes = Make(maker, OpenClDialect());
  const Made wide =
      Make(MakeProduct(33, 20, 20, /*is_window=*/true,
                       {.type = ElementType::kInt32, .sum_type = ElementType::kInt32}),
           OpenClDialect());
  EXPECT_EQ(4 * bytes.bound.row_bytes, wide.bound.row_bytes);
  EXPECT_THAT(bytes.texts[0].source, HasSubstr("u8* "));
  // Less a zero point that varies by channel.
  program::Step& step = maker.program.steps.back();
  step.reads.push_back(maker.Input({33, 1, 1, 1}, ElementType::kUint8).view);
  step.reads.back().strides = {1, 0, 0, 0};
  program::ExprPool& pool = maker.program.exprs;
  step.As<Contract>()->b_prologue = (Cast(Load(pool, ElementType::kUint8, 1), ElementType::kInt32) -
                                     Cast(Load(pool, ElementType::kUint8, 2), ElementType::kInt32))
                                        .id();
  const Made less = Make(maker, OpenClDialect());
  EXPECT_EQ(2 * less.bound.row_bytes, wide.bound.row_bytes);
  EXPECT_EQ(less.bound.column_bytes, bytes.bound.column_bytes);
  EXPECT_THAT(less.texts[2].source, HasSubstr("i16* "));
}

// As 36 frequencies of Winograd's algorithm, and 36 groups of a convolution.
TEST(TiledProductTest, ProductsSideBySideKeepAGpuBusy) {
  const Tuning tuning = DeriveTuning({.most_group_items = 256, .multiprocessors = 16});
  const auto rows_of_items = [&](const ProgramMaker& maker) {
    const TiledProduct product(maker.program, maker.program.steps.back());
    return TileOf(tuning, product, product.least_rows()).rows;
  };
  EXPECT_EQ(rows_of_items(MakeProduct(64, 64, 64, /*is_window=*/false)), 4);
  EXPECT_EQ(rows_of_items(MakeProduct(64, 64, 64, /*is_window=*/false, {.batch = 36})), 8);
  EXPECT_EQ(rows_of_items(MakeProduct(64, 8, 7, /*is_window=*/true)), 4);
  EXPECT_EQ(rows_of_items(MakeProduct(64 * 36, 8, 7, /*is_window=*/true, {.group = 36})), 8);
}

TEST(TiledProductTest, OperandsAreLaidOutAsPermitted) {
  ProgramMaker maker = MakeProduct(33, 7, 20, /*is_window=*/true);
  const program::Step& step = maker.program.steps.back();
  using enum tensor::Precision;
  for (const auto& [permitted, used, type] :
       {std::tuple{kFloat32, kFloat32, kFloat}, std::tuple{kTf32, kFloat32, kFloat},
        std::tuple{kFloat16, kFloat16, ElementType::kFloat16},
        std::tuple{kBfloat16, kBfloat16, ElementType::kBfloat16}}) {
    maker.program.precision = permitted;
    TiledProduct product(maker.program, step);
    EXPECT_EQ(product.precision(), kFloat32) << "An item sums its own block.";
    product.SetTile(TileOf(DeriveTuning({.most_group_items = 256}), product, product.least_rows()));
    EXPECT_EQ(product.precision(), used);
    EXPECT_EQ(product.stored_type(Part::kRows), type);
    EXPECT_EQ(product.stored_type(Part::kColumns), type);
    product.SetTile({.rows = 4, .vectors = 4});
    EXPECT_EQ(product.precision(), kFloat32);
  }
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
  EXPECT_THAT(Make(maker, OpenClDialect()).texts[2].source, HasSubstr("__local f32x4 g"));
  EXPECT_THAT(Make(maker, GlslDialect()).texts[2].source, HasSubstr("shared f32x4 g"));
  EXPECT_THAT(Make(maker, CudaDialect()).texts[2].source, HasSubstr("__shared__ f32x4 g"));
}

// What all columns of a row have in common is loaded outside of the loop over columns.
TEST(TiledProductTest, ABiasIsLoadedOnceForAllColumns) {
  const ProgramMaker maker = MakeProduct(33, 65, 20, /*is_window=*/false, {.has_bias = true});
  const std::string source = Make(maker, OpenClDialect()).texts[2].source;
  const size_t bias = source.find("LOAD(in2");
  ASSERT_NE(bias, std::string::npos) << source;
  EXPECT_EQ(source.find("LOAD(in2", bias + 1), std::string::npos);
  EXPECT_LT(bias, source.find("STORE(out0"));
  EXPECT_LT(source.rfind("UNROLL for", bias), bias);
  // Between the two the loop over columns opens.
  EXPECT_NE(source.find("  for (int j", bias), std::string::npos);
  EXPECT_LT(source.find("  for (int j", bias), source.find("STORE(out0"));
}

TEST(TiledProductTest, NeighbouringOutputsOfADepthwiseConvolutionAreAnItems) {
  const auto groups = [](int64_t size, int64_t stride) {
    return ItemsOf(Make(MakeProduct(3, size, 1, /*is_window=*/true, {.group = 3, .stride = stride}),
                        OpenClDialect()),
                   Part::kSums);
  };
  // Groups of 64 items, for each of three channels.
  EXPECT_EQ(groups(56, 1), 3 * 13) << "Runs of 4: 56 * 56 outputs / 256.";
  EXPECT_EQ(groups(22, 1), 3 * 4) << "Runs of 2, since lines of 22 have no whole runs of 4.";
  EXPECT_EQ(groups(21, 1), 3 * 7) << "No runs.";
  EXPECT_EQ(groups(8, 1), 3) << "No more outputs than items.";
  EXPECT_EQ(groups(32, 2), 3) << "Outputs of a stride share little, and are the items'.";
}

}  // namespace
}  // namespace onnxifi::codegen
