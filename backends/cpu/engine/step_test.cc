// SPDX-License-Identifier: Apache-2.0
//
// Steps that random ones seldom or never are: many tiles, transposition and shuffles of every lane
// size, operands that repeat, results written over their operand, bytes that are no plain bool, the
// vector functions in their place.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using program::ExprOp;
using program::Operand;
using program::Shape;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat32 = ElementType::kFloat32;

// A step made by hand, with random elements.
class Made {
 public:
  reference::RandomStep made;
  program::Step step;

  program::ExprPool& pool() { return made.program.exprs; }

  Operand Buffer(ElementType type, const Extents& extents, bool is_input) {
    program::Buffer buffer;
    buffer.type = type;
    for (int64_t extent : extents) buffer.shape.push_back(extent);
    auto& ports = is_input ? made.program.inputs : made.program.outputs;
    if (is_input) {
      buffer.kind = program::Buffer::Kind::kInput;
      buffer.index = static_cast<int>(ports.size());
    }
    const program::BufferId id = made.program.AddBuffer(buffer);
    ports.push_back({(is_input ? "in" : "out") + std::to_string(ports.size()), id, buffer.shape});
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type, extents);
    for (int64_t k = 0; k < tensor.size_bytes(); ++k) {
      tensor.mutable_data()[k] = static_cast<std::byte>(random_());
    }
    if (type == kFloat32) {
      for (int64_t k = 0; k < tensor.element_count(); ++k) {
        const float value = std::uniform_real_distribution<float>(-3, 3)(random_);
        std::memcpy(tensor.mutable_data() + k * 4, &value, 4);
      }
    }
    made.buffers.push_back(std::move(tensor));
    return {program::DenseView(id, type, buffer.shape), buffer.shape};
  }
  int Read(const Operand& operand) {
    step.reads.push_back(operand.view);
    return static_cast<int>(step.reads.size()) - 1;
  }
  void Write(const Operand& operand) { step.writes.push_back(operand.view); }

  void Finish(const Shape& domain, program::Body body) {
    step.domain = domain;
    step.body = std::move(body);
    made.program.steps.push_back(std::move(step));
    const base::Status status = program::Verify(made.program);
    ASSERT_TRUE(status.ok()) << status.Text();
  }

  std::vector<tensor::Tensor> OnReference() {
    reference::Device device;
    return *RunStep(device, made);
  }
  std::vector<tensor::Tensor> OnEngine(const Settings& settings) {
    device::Serial serial;
    EngineDevice device(serial, settings);
    return *RunStep(device, made);
  }
  // How the engine does it.
  std::string EngineDetail() {
    device::Serial serial;
    EngineDevice device(serial, {});
    const program::Step& own = made.program.steps[0];
    const auto kernel = *device.Build(*device.Select({made.program, own})->recipe);
    const std::vector<int64_t> dims(static_cast<size_t>(made.program.dims->node_count()), 0);
    return (*kernel->Bind(device::Bind(made.program, own, dims), {}))->Detail();
  }
  void ExpectAgreement() {
    for (const int64_t lanes : {37, 1024}) {
      for (const int64_t streamed_bytes : {int64_t{0}, Settings().streamed_bytes}) {
        const auto difference =
            FindDifference(made, OnReference(),
                           OnEngine({.loops = LoopSet::kReference,
                                     .tile_lanes = lanes,
                                     .streamed_bytes = streamed_bytes,
                                     .streamed_transposed_bytes = streamed_bytes}));
        EXPECT_FALSE(difference) << *difference;
      }
    }
  }

 private:
  std::mt19937 random_{11};
};

TEST(StepTest, TransposesLanesOfEverySize) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kInt16, kFloat32,
                                 ElementType::kInt64, ElementType::kFloat64}) {
    for (const std::vector<int>& order :
         {std::vector<int>{2, 1, 0}, {2, 0, 1}, {1, 2, 0}, {1, 0, 2}, {0, 2, 1}}) {
      Made made;
      const Operand in = Permute(made.Buffer(type, {45, 6, 131}, /*is_input=*/true), order);
      Extents extents;
      for (const program::Dim& extent : in.shape) extents.push_back(extent.constant());
      made.Write(made.Buffer(type, extents, /*is_input=*/false));
      made.Finish(in.shape, program::Map{{Load(made.pool(), type, made.Read(in)).id()}});
      made.ExpectAgreement();
    }
  }
}

// Groups of channels change places within a pixel, read so and written so.
TEST(StepTest, ShufflesShortAxesOfEverySize) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kBool, ElementType::kInt16,
                                 kFloat32, ElementType::kInt64, ElementType::kFloat64}) {
    for (const Extents& extents :
         {Extents{300, 20, 3}, Extents{300, 3, 20}, Extents{1100, 2, 2}, Extents{40, 17, 5}}) {
      const Extents turned = {extents[0], extents[2], extents[1]};
      Made made;
      const Operand in = made.Buffer(type, extents, /*is_input=*/true);
      const Operand shuffled = Permute(made.Buffer(type, turned, /*is_input=*/true), {0, 2, 1});
      const Expr plain = Load(made.pool(), type, made.Read(in));
      const Expr x = Load(made.pool(), type, made.Read(shuffled));
      made.Write(made.Buffer(type, extents, /*is_input=*/false));
      made.Write(Permute(made.Buffer(type, turned, /*is_input=*/false), {0, 2, 1}));
      made.Finish(in.shape, program::Map{{x.id(), plain.id()}});
      made.ExpectAgreement();
    }
  }
}

// Channels innermost: a scale per channel, the channel's number and a row that repeats in short
// pieces, each the same in every tile.
TEST(StepTest, RepeatsOperandsAlongTheInnermostAxis) {
  for (const Extents& extents : {Extents{2, 300, 24}, Extents{1, 77, 256}, Extents{3, 5, 1500}}) {
    Made made;
    program::ExprPool& pool = made.pool();
    const Operand in = made.Buffer(kFloat32, extents, /*is_input=*/true);
    auto per_channel = [&](ElementType type) {
      Operand operand =
          InsertAxis(InsertAxis(made.Buffer(type, {extents[2]}, /*is_input=*/true), 0), 0);
      operand.view = BroadcastTo(operand, in.shape);
      return Load(pool, type, made.Read(operand));
    };
    const Expr x = Load(pool, kFloat32, made.Read(in));
    const Expr scaled = x * per_channel(kFloat32) + program::Cast(Coordinate(pool, 2), kFloat32);
    const Expr shift = per_channel(kFloat32);
    made.Write(made.Buffer(kFloat32, extents, /*is_input=*/false));
    made.Write(made.Buffer(kFloat32, extents, /*is_input=*/false));
    const Expr chosen = Select(per_channel(ElementType::kBool), scaled, shift);
    made.Finish(in.shape, program::Map{{chosen.id(), shift.id()}});
    made.ExpectAgreement();
  }
}

// One number per row of x, on either side of an operation, behind operations of its own, and where
// all lanes of it are read.
TEST(StepTest, OperatesOnNumbersOfRows) {
  const std::vector<ExprOp> ops = {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv,
                                   ExprOp::kMin, ExprOp::kMax, ExprOp::kPow};
  for (const ExprOp op : ops) {
    SCOPED_TRACE(program::Name(op));
    for (int form = 0; form < 7; ++form) {
      SCOPED_TRACE(form);
      Made m;
      const Operand x = m.Buffer(kFloat32, {5, 100}, /*is_input=*/true);
      const Operand rows = m.Buffer(kFloat32, {5, 1}, /*is_input=*/true);
      const Operand others = m.Buffer(kFloat32, {5, 1}, /*is_input=*/true);
      const Operand result = m.Buffer(kFloat32, {5, 100}, /*is_input=*/false);
      const Shape domain = {5, 100};
      const Expr a = Load(m.pool(), kFloat32, m.Read(x));
      const Expr b = Load(m.pool(), kFloat32, m.Read({BroadcastTo(rows, domain), domain}));
      const Expr c = Load(m.pool(), kFloat32, m.Read({BroadcastTo(others, domain), domain}));
      const Expr of_numbers = Unary(ExprOp::kSqrt, Unary(ExprOp::kAbs, b) + Like(b, 1)) * c;
      const Expr all[] = {Binary(op, a, b),
                          Binary(op, b, a),
                          Binary(op, of_numbers, a),
                          Binary(op, a, of_numbers),
                          Binary(op, of_numbers, a) - of_numbers,
                          Select(b < a, Binary(op, b, c), a),
                          Binary(op, b, c)};
      m.Write(result);
      m.Finish(domain, program::Map{{all[form].id()}});
      m.ExpectAgreement();
    }
  }
}

// Cast(Cast(x) - Cast(zero point)) * scale, and differences that are no such thing.
TEST(StepTest, Dequantizes) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kInt8, ElementType::kUint16,
                                 ElementType::kInt16, ElementType::kInt32}) {
    SCOPED_TRACE(tensor::Name(type));
    for (int form = 0; form < 4; ++form) {
      SCOPED_TRACE(form);
      Made m;
      const bool is_per_row = form == 1;
      const Operand x = m.Buffer(type, {6, 300}, /*is_input=*/true);
      const Operand zero = m.Buffer(type, {is_per_row ? 6 : 1, 1}, /*is_input=*/true);
      const Operand scale = m.Buffer(kFloat32, {1, 1}, /*is_input=*/true);
      const Operand result = m.Buffer(kFloat32, {6, 300}, /*is_input=*/false);
      const Operand integers = m.Buffer(ElementType::kInt32, {6, 300}, /*is_input=*/false);
      const Shape domain = {6, 300};
      const Expr a = program::Cast(Load(m.pool(), type, m.Read(x)), ElementType::kInt32);
      Expr b = program::Cast(Load(m.pool(), type, m.Read({BroadcastTo(zero, domain), domain})),
                             ElementType::kInt32);
      if (form == 2) b = program::IntConstant(m.pool(), ElementType::kInt32, 7);
      const Expr factor = Load(m.pool(), kFloat32, m.Read({BroadcastTo(scale, domain), domain}));
      const Expr value = program::Cast(a - b, kFloat32) * factor;
      m.Write(result);
      program::ExprIds roots = {value.id()};
      if (form == 3) {
        m.Write(integers);
        roots.push_back((a - b).id());
      }
      m.Finish(domain, program::Map{roots});
      m.ExpectAgreement();
    }
  }
}

// What a quantized network does between two products: sums to bytes, and the bytes, moved and
// scaled by their channel, to bytes again. Some bytes have another use, or are not those of their
// bounds.
TEST(StepTest, QuantizesTwice) {
  for (int form = 0; form < 5; ++form) {
    SCOPED_TRACE(form);
    const bool is_used_twice = form == 1, wraps = form == 2, ends_in_floats = form == 3;
    const ElementType last_type = form == 4 ? ElementType::kUint8 : ElementType::kInt8;
    Made m;
    const Shape domain = {7, 300};
    const Operand x = m.Buffer(ElementType::kInt32, {7, 300}, /*is_input=*/true);
    const auto load = [&](const Extents& extents) {
      const Operand operand = m.Buffer(kFloat32, extents, /*is_input=*/true);
      return Load(m.pool(), kFloat32, m.Read({BroadcastTo(operand, domain), domain}));
    };
    // Numbers of 31 random bits become such of about 60.
    const Expr sums = program::Cast(Load(m.pool(), ElementType::kInt32, m.Read(x)), kFloat32);
    const Expr scaled = sums * Like(sums, 0x1p-25) * load({1, 300});
    const auto quantize = [&](Expr value, double divisor, double zero, ElementType type) {
      const bool is_signed = type == ElementType::kInt8;
      const Expr rounded = Unary(ExprOp::kRoundEven, value / Like(value, divisor));
      const Expr low = Like(value, is_signed ? -128 : 0), high = Like(value, is_signed ? 127 : 255);
      return Minimum(Maximum(rounded + Like(value, zero), low), high);
    };
    const ElementType bounds = wraps ? ElementType::kUint8 : ElementType::kInt8;
    const Expr bytes = program::Cast(quantize(scaled, 0.37, 3, bounds), ElementType::kInt8);
    const Expr integers = program::Cast(bytes, ElementType::kInt32);
    const Expr zero = program::IntConstant(m.pool(), ElementType::kInt32, 3);
    const Expr value =
        (program::Cast(integers - zero, kFloat32) * Like(sums, 0.37) - load({1, 300})) *
            load({7, 1}) +
        load({7, 300});
    const Expr bounded = Maximum(value, Like(value, 0));
    const Expr root = ends_in_floats
                          ? bounded
                          : program::Cast(quantize(bounded, 0.011, -5, last_type), last_type);
    m.Write(m.Buffer(ends_in_floats ? kFloat32 : last_type, {7, 300}, /*is_input=*/false));
    program::ExprIds roots = {root.id()};
    if (is_used_twice) {
      m.Write(m.Buffer(ElementType::kInt8, {7, 300}, /*is_input=*/false));
      roots.push_back(bytes.id());
    }
    m.Finish(domain, program::Map{roots});
    m.ExpectAgreement();
  }
}

TEST(StepTest, WritesTransposedBesideAnotherResult) {
  Made made;
  const Operand in = made.Buffer(kFloat32, {70, 133}, /*is_input=*/true);
  const Expr x = Load(made.pool(), kFloat32, made.Read(in));
  made.Write(made.Buffer(kFloat32, {70, 133}, /*is_input=*/false));
  made.Write(Permute(made.Buffer(kFloat32, {133, 70}, /*is_input=*/false), {1, 0}));
  made.Finish(in.shape, program::Map{{(x + x).id(), x.id()}});
  made.ExpectAgreement();
}

TEST(StepTest, ReadsAnyByteButZeroAsTrue) {
  Made made;
  const Operand in = made.Buffer(ElementType::kBool, {3000}, /*is_input=*/true);
  const Expr x = Load(made.pool(), ElementType::kBool, made.Read(in));
  made.Write(made.Buffer(ElementType::kInt32, {3000}, /*is_input=*/false));
  made.Write(made.Buffer(ElementType::kBool, {3000}, /*is_input=*/false));
  made.Finish(in.shape, program::Map{{Cast(x, ElementType::kInt32).id(), (!x).id()}});
  made.ExpectAgreement();
}

TEST(StepTest, WritesOverItsOperand) {
  Made made;
  const Operand in = made.Buffer(kFloat32, {2, 3001}, /*is_input=*/true);
  const Expr x = Load(made.pool(), kFloat32, made.Read(in));
  made.Write(made.Buffer(kFloat32, {2, 3001}, /*is_input=*/false));
  made.Finish(in.shape, program::Map{{((x * x + x) * Like(x, 0.5)).id()}});
  const std::vector<tensor::Tensor> expected = made.OnReference();

  device::Serial serial;
  EngineDevice device(serial, {});
  const program::Step& step = made.made.program.steps[0];
  device::Selection selection = *device.Select({made.made.program, step});
  std::unique_ptr<device::Kernel> kernel = *device.Build(*selection.recipe);
  std::vector<float> data(6002);
  std::memcpy(data.data(), made.made.buffers[0].data(), data.size() * 4);
  auto* address = reinterpret_cast<std::byte*>(data.data());
  std::byte* const addresses[] = {address, address};
  std::byte* const constants[] = {nullptr, nullptr};
  const std::vector<int64_t> dims;
  std::unique_ptr<device::BoundKernel> bound =
      *kernel->Bind(device::Bind(made.made.program, step, dims), constants);
  ASSERT_TRUE(bound->Run(addresses).ok());
  EXPECT_EQ(std::memcmp(data.data(), expected[1].data(), data.size() * 4), 0);
}

// Sums along every axis of a tensor that needs many tiles each way.
TEST(StepTest, ReducesAlongEveryAxis) {
  for (int axis = 0; axis < 3; ++axis) {
    for (const Extents& extents :
         {Extents{70, 129, 33}, Extents{300, 7, 65}, Extents{20, 10, 2000}, Extents{3, 600, 10}}) {
      Made made;
      std::vector<int> order = {0, 1, 2};
      order.erase(order.begin() + axis);
      order.push_back(axis);
      const Operand in = Permute(made.Buffer(kFloat32, extents, /*is_input=*/true), order);
      const Expr x = Load(made.pool(), kFloat32, made.Read(in));
      const Expr sum = State(made.pool(), kFloat32, 0);
      program::Reduce reduce;
      reduce.axes = 1;
      reduce.reduction.states.push_back({kFloat32, Like(x, 0).id(), (sum + x * x).id(),
                                         (sum + Other(made.pool(), kFloat32, 0)).id()});
      reduce.roots = {sum.id()};
      made.Write(made.Buffer(kFloat32, {in.shape[0].constant(), in.shape[1].constant()},
                             /*is_input=*/false));
      made.Finish(in.shape, std::move(reduce));
      made.ExpectAgreement();
    }
  }
}

double At(const tensor::Tensor& tensor, int64_t k) { return tensor.AsDouble(k); }

TEST(StepTest, GeluIsCloseToFloat64) {
  Made made;
  const Operand in = made.Buffer(kFloat32, {5000}, /*is_input=*/true);
  const Expr x = Load(made.pool(), kFloat32, made.Read(in));
  made.Write(made.Buffer(kFloat32, {5000}, /*is_input=*/false));
  const Expr erf = Unary(ExprOp::kErf, x * Like(x, 0.70710678118654752));
  made.Finish(in.shape, program::Map{{(x * Like(x, 0.5) * (erf + Like(x, 1))).id()}});
  const std::vector<tensor::Tensor> out = made.OnEngine({});
  for (int64_t k = 0; k < 5000; ++k) {
    const double v = At(made.made.buffers[0], k);
    EXPECT_NEAR(At(out[1], k), 0.5 * v * (1 + std::erf(v * std::sqrt(0.5))), 1e-6) << v;
  }
}

// Numbers that some operations treat unlike others, in some rows.
void PlaceSpecialNumbers(tensor::Tensor& tensor) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity,
                                0.0f, -0.0f};
  for (int64_t k = 0; k < 5 && k * 41 < tensor.element_count(); ++k) {
    std::memcpy(tensor.mutable_data() + k * 41 * 4, &kSpecial[k], 4);
  }
}

void ExpectSameBits(const tensor::Tensor& expected, const tensor::Tensor& actual) {
  for (int64_t k = 0; k < expected.element_count(); ++k) {
    const double wanted = expected.AsDouble(k);
    const double found = actual.AsDouble(k);
    ASSERT_TRUE(std::bit_cast<uint64_t>(wanted) == std::bit_cast<uint64_t>(found) ||
                (std::isnan(wanted) && std::isnan(found)))
        << "element " << k << ": " << found << " instead of " << wanted;
  }
}

// A residual added, mean and variance, what is computed of them once per row, scale and shift per
// element, a mask that repeats over rows; the mean is a result too.
void NormalizeRows(Made& made, const Operand& x, const Operand& residual, const Operand& result,
                   const Operand& means) {
  program::ExprPool& pool = made.pool();
  const Expr element =
      Load(pool, kFloat32, made.Read(x)) + Load(pool, kFloat32, made.Read(residual));
  const int64_t length = x.shape[1].constant();
  auto read_per_element = [&] {
    Operand operand = InsertAxis(made.Buffer(kFloat32, {length}, /*is_input=*/true), 0);
    operand.view = BroadcastTo(operand, x.shape);
    return Load(pool, kFloat32, made.Read(operand));
  };
  const Expr held = State(pool, kFloat32, 0);
  const Expr other = Other(pool, kFloat32, 0);
  const Expr count = Like(element, static_cast<double>(length));
  program::Row row;
  row.axes = 1;
  auto add_stage = [&](Expr init, Expr update, Expr merge, Expr value) {
    const int pass = static_cast<int>(row.passes.size());
    row.passes.push_back({{{{kFloat32, init.id(), update.id(), merge.id()}}}, {value.id()}});
    return RowResult(pool, kFloat32, pass, 0);
  };
  const Expr zero = Like(element, 0);
  const Expr mean = add_stage(zero, held + element, held + other, held / count);
  const Expr distance = element - mean;
  const Expr squares =
      add_stage(zero, held + distance * distance, held + other, held / count + Like(held, 1e-5));
  const Expr largest = add_stage(Like(element, -1e30), Maximum(held, distance / (mean * mean)),
                                 Maximum(held, other), held);
  const Expr inverse = Like(element, 1) / Unary(ExprOp::kSqrt, squares);
  row.roots = {(distance * inverse * read_per_element() + read_per_element() + largest).id(),
               (mean * inverse).id()};
  made.Write(result);
  Operand spread = InsertAxis(means, 1);
  spread.view = BroadcastTo(spread, x.shape);
  made.Write(spread);
  made.Finish(x.shape, std::move(row));
}

TEST(StepTest, RowsOfEveryLengthAreTheReferences) {
  for (const int64_t length :
       {1, 2, 3, 4, 5, 15, 16, 17, 40, 63, 64, 127, 129, 255, 1000, 5000, 9001}) {
    for (const int64_t rows : {1, 3, 70}) {
      if (length * rows > 400'000) continue;
      for (const bool is_turned : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << length << (is_turned ? " turned" : ""));
        Made made;
        auto buffer = [&](bool is_input) {
          if (!is_turned) return made.Buffer(kFloat32, {rows, length}, is_input);
          return Permute(made.Buffer(kFloat32, {length, rows}, is_input), {1, 0});
        };
        const Operand x = buffer(/*is_input=*/true);
        const Operand residual = made.Buffer(kFloat32, {rows, length}, /*is_input=*/true);
        const Operand result = buffer(/*is_input=*/false);
        const Operand means = made.Buffer(kFloat32, {rows}, /*is_input=*/false);
        NormalizeRows(made, x, residual, result, means);
        if (rows == 70) PlaceSpecialNumbers(made.made.buffers[0]);
        const std::vector<tensor::Tensor> expected = made.OnReference();
        for (const int64_t lanes : {37, 1024}) {
          const std::vector<tensor::Tensor> actual =
              made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes});
          ExpectSameBits(expected[2], actual[2]);
          ExpectSameBits(expected[3], actual[3]);
        }
      }
    }
  }
}

// Rows of a table, some beyond its ends and from the back, by numbers per row; in the table's order
// and in the other one, with the position in the row read by arithmetic too, with a number per
// element, and with one per column.
enum class Taken : uint8_t { kRows, kColumns, kWithPosition, kPerElement, kOneElement, kPerColumn };

void TakeFromTable(Made& made, Taken taken, int64_t rows, int64_t length) {
  program::ExprPool& pool = made.pool();
  const Operand table = made.Buffer(
      kFloat32, taken == Taken::kColumns ? Extents{length + 2, 9} : Extents{9, length + 2},
      /*is_input=*/true);
  Operand numbers =
      taken == Taken::kPerElement
          ? made.Buffer(ElementType::kInt64, {rows, length}, /*is_input=*/true)
          : made.Buffer(ElementType::kInt64, {taken == Taken::kPerColumn ? length : rows},
                        /*is_input=*/true);
  const Shape domain = {rows, length};
  if (taken == Taken::kPerColumn) {
    numbers = InsertAxis(numbers, 0);
    numbers.view = BroadcastTo(numbers, domain);
  } else if (taken != Taken::kPerElement) {
    numbers = InsertAxis(numbers, 1);
    numbers.view = BroadcastTo(numbers, domain);
  }
  program::View guarded = table.view;
  guarded.guards.push_back({{program::Dim(1), program::Dim(0)}, program::Dim(0), program::Dim(9)});
  guarded.guards.push_back(
      {{program::Dim(0), program::Dim(1)}, program::Dim(-1), program::Dim(length - 3)});
  if (taken == Taken::kColumns) {
    for (program::Guard& guard : guarded.guards) {
      std::swap(guard.coefficients[0], guard.coefficients[1]);
    }
  }
  guarded.fill = tensor::Scalar{.f = 5.5};
  const Expr number = Load(pool, ElementType::kInt64, made.Read(numbers));
  const Expr nine = program::IntConstant(pool, ElementType::kInt64, 9);
  const Expr zero = program::IntConstant(pool, ElementType::kInt64, 0);
  const Expr row = Select(number < zero, number + nine, number);
  Expr column = taken == Taken::kOneElement ? zero + nine : Coordinate(pool, 1);
  if (taken == Taken::kPerColumn) column = Coordinate(pool, 0);
  made.step.reads.push_back(guarded);
  const int read = static_cast<int>(made.step.reads.size()) - 1;
  Expr element = taken == Taken::kColumns ? LoadAt(pool, kFloat32, read, {{column, row}})
                                          : LoadAt(pool, kFloat32, read, {{row, column}});
  if (taken == Taken::kWithPosition) element = element + Cast(column, kFloat32);
  made.Write(made.Buffer(kFloat32, {rows, length}, /*is_input=*/false));
  made.Finish(domain, program::Map{{(element + element).id()}});
  auto* data = reinterpret_cast<int64_t*>(made.made.buffers[1].mutable_data());
  for (int64_t k = 0; k < made.made.buffers[1].element_count(); ++k) data[k] = k * 7 % 23 - 11;
}

TEST(StepTest, TakesRowsOfATable) {
  for (const Taken taken : {Taken::kRows, Taken::kColumns, Taken::kWithPosition, Taken::kPerElement,
                            Taken::kOneElement, Taken::kPerColumn}) {
    for (const int64_t length : {1, 7, 8, 17, 300, 2500}) {
      for (const int64_t rows : {1, 3, 40}) {
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(taken) << ", " << rows << " x " << length);
        Made made;
        TakeFromTable(made, taken, rows, length);
        const std::vector<tensor::Tensor> expected = made.OnReference();
        for (const int64_t lanes : {37, 1024}) {
          ExpectSameBits(expected.back(),
                         made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes}).back());
        }
      }
    }
  }
}

// Sums of rows of a table times weights, some rows beyond its ends and some weights no numbers.
void AddWeightedRows(Made& made, bool is_reduce, bool is_weighted, int64_t rows, int64_t taps,
                     int64_t length) {
  program::ExprPool& pool = made.pool();
  const Operand table = made.Buffer(kFloat32, {9, length}, /*is_input=*/true);
  const Operand places = made.Buffer(ElementType::kInt64, {rows, taps}, /*is_input=*/true);
  const Operand weights = made.Buffer(kFloat32, {rows, taps}, /*is_input=*/true);
  program::View guarded = table.view;
  guarded.guards.push_back({{program::Dim(1), program::Dim(0)}, program::Dim(0), program::Dim(9)});
  auto product = [&](const Operand& place, const Operand& weight, const Shape& domain) {
    auto over_domain = [&](const Operand& of) {
      program::View view = BroadcastTo(InsertAxis(of, 1), domain);
      made.step.reads.push_back(view);
      return static_cast<int>(made.step.reads.size()) - 1;
    };
    const Expr row = Load(pool, ElementType::kInt64, over_domain(place));
    const Expr factor = Load(pool, kFloat32, over_domain(weight));
    made.step.reads.push_back(guarded);
    const int read = static_cast<int>(made.step.reads.size()) - 1;
    const Expr element = LoadAt(pool, kFloat32, read, {{row, Coordinate(pool, 1)}});
    return is_weighted ? factor * element : element;
  };
  const Expr zero = Constant(pool, kFloat32, 0);
  if (is_reduce) {
    const Shape domain = {rows, length, taps};
    const Expr state = State(pool, kFloat32, 0);
    const Expr element = product(places, weights, domain);
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states = {
        {kFloat32, zero.id(), (state + element).id(), (state + Other(pool, kFloat32, 0)).id()}};
    reduce.roots = {state.id()};
    made.Write(made.Buffer(kFloat32, {rows, length}, /*is_input=*/false));
    made.Finish(domain, std::move(reduce));
  } else {
    Expr sum = zero;
    for (int64_t tap = 0; tap < taps; ++tap) {
      auto column = [&](const Operand& of) { return RemoveAxis(Slice(of, 1, tap, 1, 1), 1); };
      const Expr term = product(column(places), column(weights), {rows, length});
      // A sum may begin with zero or with its first term.
      sum = tap == 0 && rows % 2 == 1 ? term : sum + term;
    }
    made.Write(made.Buffer(kFloat32, {rows, length}, /*is_input=*/false));
    made.Finish({rows, length}, program::Map{{sum.id()}});
  }
  auto* data = reinterpret_cast<int64_t*>(made.made.buffers[1].mutable_data());
  auto* factors = reinterpret_cast<float*>(made.made.buffers[2].mutable_data());
  for (int64_t k = 0; k < rows * taps; ++k) {
    data[k] = k * 7 % 12 - 1;
    if (k % 19 == 18) factors[k] = std::numeric_limits<float>::infinity();
  }
}

TEST(StepTest, AddsWeightedRows) {
  for (const bool is_reduce : {false, true}) {
    for (const int64_t taps : {1, 2, 4, 37, 64, 70, 100, 128, 129, 300}) {
      for (const int64_t length : {2, 3, 4, 7, 8, 16, 17, 64, 131, 2500}) {
        for (const int64_t rows : {1, 5, 40}) {
          if (!is_reduce && taps > 4) continue;
          const bool is_weighted = taps != 37;
          SCOPED_TRACE(testing::Message()
                       << is_reduce << ", " << rows << " x " << taps << " x " << length);
          Made made;
          AddWeightedRows(made, is_reduce, is_weighted, rows, taps, length);
          const std::vector<tensor::Tensor> expected = made.OnReference();
          for (const int64_t lanes : {37, 1024}) {
            ExpectSameBits(
                expected.back(),
                made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes}).back());
          }
        }
      }
    }
  }
}

// A result of planes, rows and columns, whose places in a source follow from a table per axis.
Made CopiedByTables(ElementType type, const Extents& domain, const Extents& source,
                    const std::function<int64_t(int axis, int64_t at)>& place) {
  Made made;
  program::ExprPool& pool = made.pool();
  const Operand from = made.Buffer(type, source, /*is_input=*/true);
  const int rank = static_cast<int>(domain.size());
  Shape shape;
  for (const int64_t extent : domain) shape.push_back(extent);
  std::vector<Expr> at;
  program::View guarded = from.view;
  for (int axis = 0; axis < rank; ++axis) {
    const auto k = static_cast<size_t>(axis);
    if (place(axis, -1) < 0) {  // as it stands
      at.push_back(Coordinate(pool, axis));
      continue;
    }
    Operand table = made.Buffer(ElementType::kInt64, {domain[k]}, /*is_input=*/true);
    auto* numbers = reinterpret_cast<int64_t*>(made.made.buffers.back().mutable_data());
    for (int64_t n = 0; n < domain[k]; ++n) numbers[n] = place(axis, n);
    for (int before = 0; before < axis; ++before) table = InsertAxis(table, 0);
    while (table.rank() < rank) table = InsertAxis(table, table.rank());
    at.push_back(Load(pool, ElementType::kInt64, made.Read({BroadcastTo(table, shape), shape})));
    program::Guard guard{program::Dims(domain.size(), program::Dim(0)), 0, source[k]};
    guard.coefficients[k] = 1;
    guarded.guards.push_back(guard);
  }
  made.step.reads.push_back(guarded);
  const Expr value = LoadAt(pool, type, static_cast<int>(made.step.reads.size()) - 1, at);
  made.Write(made.Buffer(type, domain, /*is_input=*/false));
  made.Finish(shape, program::Map{{value.id()}});
  return made;
}

TEST(StepTest, CopiesByTablesOfAxes) {
  const std::function<int64_t(int64_t)> kPlaces[] = {
      [](int64_t k) { return k / 2; },       [](int64_t k) { return k; },
      [](int64_t k) { return k / 3; },       [](int64_t k) { return k * 2 / 3; },
      [](int64_t k) { return k * 37 % 60; }, [](int64_t k) { return 60 - k % 60; }};
  constexpr ElementType kTypes[] = {ElementType::kUint8, ElementType::kInt16, kFloat32,
                                    ElementType::kFloat64};
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    size_t count = 0;
    for (const auto& row : kPlaces) {
      for (const auto& column : kPlaces) {
        for (const int64_t columns : {71, 142, 300}) {
          const ElementType type = kTypes[count++ % 4];
          Made made = CopiedByTables(type, {8, 12, columns}, {8, 61, columns},
                                     [&](int axis, int64_t at) -> int64_t {
                                       if (axis == 0) return at < 0 ? -1 : at;
                                       if (at < 0) return 0;
                                       return axis == 1 ? row(at) : column(at) % columns;
                                     });
          EXPECT_TRUE(made.EngineDetail().starts_with("tables of axes")) << made.EngineDetail();
          ExpectSameBits(made.OnReference().back(), made.OnEngine({}).back());
        }
      }
    }
  });
}

// Pixels of few channels are parts of a row; places outside of the source are filled; and rows
// that are too short, or too few, go another way.
TEST(StepTest, CopiesByTablesOfAxesAtTheEdges) {
  const auto half = [](int axis, int64_t at) -> int64_t {
    return axis == 2 ? (at < 0 ? -1 : at) : std::max<int64_t>(at, 0) / 2;
  };
  Made pixels = CopiedByTables(ElementType::kUint8, {40, 62, 3}, {20, 31, 3}, half);
  EXPECT_TRUE(pixels.EngineDetail().starts_with("tables of axes"));
  pixels.ExpectAgreement();
  for (const int64_t outside : {int64_t{-5}, int64_t{9}, int64_t{1} << 40}) {
    for (const int where : {0, 1}) {
      CopiedByTables(kFloat32, {8, 40, 5}, {9, 9, 5}, [&](int axis, int64_t at) -> int64_t {
        if (axis == 2) return at < 0 ? -1 : at;
        return axis == where && at == 3 ? outside : std::max<int64_t>(at, 0) % 9;
      }).ExpectAgreement();
    }
  }
  // What stands as it is is one row, and what is read in between is not.
  for (const Extents& source : {Extents{9, 5, 80}, {9, 5, 81}, {9, 6, 80}}) {
    Made planes = CopiedByTables(kFloat32, {9, 5, 80}, source, [](int axis, int64_t at) -> int64_t {
      return axis > 0 ? -1 : 8 - std::max<int64_t>(at, 0);
    });
    EXPECT_TRUE(planes.EngineDetail().starts_with("tables of axes"));
    planes.ExpectAgreement();
  }
  Made few =
      CopiedByTables(kFloat32, {1, 2, 500}, {1, 61, 500}, [](int axis, int64_t at) -> int64_t {
        return axis == 0 && at < 0 ? -1 : std::max<int64_t>(at, 0) / 2;
      });
  EXPECT_FALSE(few.EngineDetail().starts_with("tables of axes"));
  few.ExpectAgreement();
}

// Choices by the sign of one side, alone and behind arithmetic, and some that only look like them;
// either side may be one number for a row, or for all.
TEST(StepTest, ChoosesBySign) {
  const auto zero = [](Expr x) { return program::Like(x, 0); };
  const std::function<Expr(Expr, Expr)> kChoices[] = {
      [&](Expr x, Expr y) { return Select(x < zero(x), y * x, x); },
      [&](Expr x, Expr y) { return Select(x > zero(x), x, y * x); },
      [&](Expr x, Expr y) { return Select(x < zero(x), y, x); },
      [&](Expr x, Expr y) { return Select(x > zero(x), x, y); },
      [&](Expr x, Expr y) { return Select(x < zero(x), y, x) + Select(y < zero(x), y, x); },
      [&](Expr x, Expr y) { return Select(x < zero(x), x, y); },
      [&](Expr x, Expr y) { return Select(zero(x) < y, x, y) * x; },
      [&](Expr x, Expr y) { return Select(x < program::Like(x, 1), y, x); },
  };
  constexpr float kSpecials[] = {0.0F, -0.0F, std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()};
  const Shape domain = {5, 700};
  for (const auto& choose : kChoices) {
    for (const Extents& of_x : {Extents{5, 700}, {5, 1}, {1, 1}}) {
      for (const Extents& of_y : {Extents{5, 700}, {5, 1}, {1, 1}}) {
        Made made;
        const Operand x = made.Buffer(kFloat32, of_x, /*is_input=*/true);
        const Operand y = made.Buffer(kFloat32, of_y, /*is_input=*/true);
        for (tensor::Tensor& tensor : made.made.buffers) {
          for (int64_t k = 0; k < tensor.element_count(); k += 3) {
            std::memcpy(tensor.mutable_data() + k * 4, &kSpecials[k / 3 % 5], 4);
          }
        }
        const int first = made.Read({BroadcastTo(x, domain), domain});
        const int second = made.Read({BroadcastTo(y, domain), domain});
        made.Write(made.Buffer(kFloat32, {5, 700}, /*is_input=*/false));
        const Expr result =
            choose(Load(made.pool(), kFloat32, first), Load(made.pool(), kFloat32, second));
        made.Finish(domain, program::Map{{result.id()}});
        made.ExpectAgreement();
      }
    }
  }
}

// Sums of two rows of an image times weights, some beyond its edges, for every column and channel;
// perhaps of every second column, or into a wider result.
void AddWeightedImageRows(Made& made, int64_t rows, int64_t columns, int64_t channels,
                          int64_t column_step, int64_t beside) {
  program::ExprPool& pool = made.pool();
  const int64_t height = 7;
  const Operand image =
      made.Buffer(kFloat32, {height, columns * column_step, channels}, /*is_input=*/true);
  const Operand places = made.Buffer(ElementType::kInt64, {rows, 2}, /*is_input=*/true);
  const Operand weights = made.Buffer(kFloat32, {rows, 2}, /*is_input=*/true);
  const Shape domain = {rows, columns, channels};
  program::View guarded = Slice(image, 1, 0, column_step, columns).view;
  guarded.guards.push_back(
      {{program::Dim(1), program::Dim(0), program::Dim(0)}, program::Dim(0), program::Dim(height)});
  Expr sum = Constant(pool, kFloat32, 0);
  for (int64_t tap = 0; tap < 2; ++tap) {
    const auto read = [&](const Operand& of, ElementType type) {
      const Operand column = RemoveAxis(Slice(of, 1, tap, 1, 1), 1);
      made.step.reads.push_back(BroadcastTo(InsertAxis(InsertAxis(column, 1), 2), domain));
      return Load(pool, type, static_cast<int>(made.step.reads.size()) - 1);
    };
    const Expr row = read(places, ElementType::kInt64);
    const Expr weight = read(weights, kFloat32);
    made.step.reads.push_back(guarded);
    const Expr element = LoadAt(pool, kFloat32, static_cast<int>(made.step.reads.size()) - 1,
                                {{row, Coordinate(pool, 1), Coordinate(pool, 2)}});
    sum = sum + weight * element;
  }
  const Operand wide =
      made.Buffer(kFloat32, {rows, columns + beside, channels}, /*is_input=*/false);
  made.Write(Slice(wide, 1, 0, 1, columns));
  made.Finish(domain, program::Map{{sum.id()}});
  auto* data = reinterpret_cast<int64_t*>(made.made.buffers[1].mutable_data());
  for (int64_t k = 0; k < rows * 2; ++k) data[k] = k * 5 % (height + 2) - 1;
}

TEST(StepTest, JoinsWeightedRowsOfAnImage) {
  for (const int64_t rows : {2, 9, 40}) {
    for (const int64_t columns : {2, 5, 33}) {
      for (const int64_t channels : {3, 16, 40}) {
        for (const int64_t column_step : {1, 2}) {
          for (const int64_t beside : {0, 3}) {
            SCOPED_TRACE(testing::Message() << rows << " x " << columns << " x " << channels << ", "
                                            << column_step << ", " << beside);
            Made made;
            AddWeightedImageRows(made, rows, columns, channels, column_step, beside);
            // Enough rows have to be left.
            const bool is_joined = rows >= 32 && column_step == 1;
            const int64_t length = is_joined ? columns * channels : channels;
            const std::string detail = made.EngineDetail();
            EXPECT_TRUE(detail.starts_with("weighted rows of " + std::to_string(length) + ","))
                << detail;
            const std::vector<tensor::Tensor> expected = made.OnReference();
            for (const int64_t lanes : {37, 1024}) {
              ExpectSameBits(
                  expected.back(),
                  made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes}).back());
            }
          }
        }
      }
    }
  }
}

// What rows of a table, some beyond its ends, perhaps times weights, reduce to, and something that
// follows from it alone.
void ReduceRowsOfTable(Made& made, ExprOp operation, bool is_finished, bool is_weighted,
                       int64_t rows, int64_t taps, int64_t length) {
  program::ExprPool& pool = made.pool();
  const Operand table = made.Buffer(kFloat32, {9, length}, /*is_input=*/true);
  const Operand places = made.Buffer(ElementType::kInt64, {rows, taps}, /*is_input=*/true);
  const Operand weights = made.Buffer(kFloat32, {rows, taps}, /*is_input=*/true);
  const Shape domain = {rows, length, taps};
  made.step.reads.push_back(BroadcastTo(InsertAxis(places, 1), domain));
  const Expr row = Load(pool, ElementType::kInt64, 0);
  program::View guarded = table.view;
  guarded.guards.push_back({{program::Dim(1), program::Dim(0)}, program::Dim(0), program::Dim(9)});
  made.step.reads.push_back(guarded);
  Expr element = LoadAt(pool, kFloat32, 1, {{row, Coordinate(pool, 1)}});
  if (is_weighted) {
    made.step.reads.push_back(BroadcastTo(InsertAxis(weights, 1), domain));
    element = Load(pool, kFloat32, 2) * element;
  }
  const Expr state = State(pool, kFloat32, 0);
  const Expr first = Constant(pool, kFloat32,
                              operation == ExprOp::kAdd   ? 0
                              : operation == ExprOp::kMax ? -0.5
                                                          : 0.25);
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{kFloat32, first.id(), Binary(operation, state, element).id(),
                              Binary(operation, state, Other(pool, kFloat32, 0)).id()}};
  const Expr count = Constant(pool, kFloat32, static_cast<double>(taps));
  reduce.roots = {is_finished ? state.id() : (state / count - Like(state, 0.125)).id()};
  made.Write(made.Buffer(kFloat32, {rows, length}, /*is_input=*/false));
  made.Finish(domain, std::move(reduce));
  auto* numbers = reinterpret_cast<float*>(made.made.buffers[0].mutable_data());
  for (int64_t k = 0; k < 9 * length; ++k) {
    if (k % 31 == 3) numbers[k] = std::numeric_limits<float>::quiet_NaN();
    if (k % 13 == 2) numbers[k] = -0.0f;
    if (k % 17 == 4) numbers[k] = -std::numeric_limits<float>::infinity();
  }
  auto* data = reinterpret_cast<int64_t*>(made.made.buffers[1].mutable_data());
  auto* factors = reinterpret_cast<float*>(made.made.buffers[2].mutable_data());
  for (int64_t k = 0; k < rows * taps; ++k) {
    data[k] = k * 7 % 12 - 1;
    if (k % 19 == 18) factors[k] = std::numeric_limits<float>::infinity();
    if (k % 11 == 5) factors[k] = -0.0f;
  }
}

TEST(StepTest, ReducesRowsOfATable) {
  processor::ForEachTarget([](const char* target) {
    for (const ExprOp operation : {ExprOp::kAdd, ExprOp::kMax, ExprOp::kMin}) {
      for (const int64_t taps : {1, 12, 63, 70, 300}) {
        for (const int64_t length : {2, 7, 64, 131, 1100}) {
          for (const int64_t rows : {1, 70}) {
            if (rows * length > 10'000) continue;
            SCOPED_TRACE(testing::Message() << target << ": " << static_cast<int>(operation) << ", "
                                            << rows << " x " << taps << " x " << length);
            Made made;
            ReduceRowsOfTable(made, operation, /*is_finished=*/length % 2 == 1,
                              /*is_weighted=*/taps % 2 == 0, rows, taps, length);
            ASSERT_TRUE(made.EngineDetail().starts_with("weighted rows")) << made.EngineDetail();
            const std::vector<tensor::Tensor> expected = made.OnReference();
            for (const int64_t lanes : {100, 1024}) {
              ExpectSameBits(
                  expected.back(),
                  made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes}).back());
            }
          }
        }
      }
    }
  });
}

// Says into how many parts a kernel lets threads divide its work.
class CountingParallel final : public device::Parallel {
 public:
  void For(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) override {
    parts += (count + grain - 1) / grain;
    body(0, count);
  }
  int64_t parts = 0;
};

// Of channels that lie side by side, as the mean of each over a large image.
TEST(StepTest, FewResultsOfManyElementsAreDivided) {
  for (const int64_t channels : {64, 300}) {
    Made made;
    program::ExprPool& pool = made.pool();
    const Operand in = made.Buffer(ElementType::kInt8, {4000, channels}, /*is_input=*/true);
    const Operand turned = program::Permute(in, {1, 0});
    const Expr element = Cast(Load(pool, ElementType::kInt8, made.Read(turned)), kFloat32) *
                         Constant(pool, kFloat32, 0.3);
    const Expr state = State(pool, kFloat32, 0);
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states = {{kFloat32, Constant(pool, kFloat32, 0).id(), (state + element).id(),
                                (state + Other(pool, kFloat32, 0)).id()}};
    reduce.roots = {state.id()};
    made.Write(made.Buffer(kFloat32, {channels}, /*is_input=*/false));
    made.Finish(turned.shape, std::move(reduce));
    CountingParallel parallel;
    EngineDevice device(parallel, {});
    const std::vector<tensor::Tensor> results = *reference::RunStep(device, made.made);
    EXPECT_GE(parallel.parts, 2) << channels;
    ExpectSameBits(made.OnReference().back(), results.back());
  }
}

// Sums of points of an image of planes times weights, some of them beyond its edges on one side or
// both, and some weights no numbers. Channels of the result are planes, too, or lie side by side.
// Points follow a row of the image `step` after the other, or are anywhere where it is 0.
void AddWeightedPoints(Made& made, int64_t points, int64_t channels, int64_t taps, bool is_planar,
                       double step) {
  program::ExprPool& pool = made.pool();
  const int64_t height = 5, width = step > 0 ? 64 : 7;
  const Operand image = made.Buffer(kFloat32, {channels, height, width}, /*is_input=*/true);
  const Operand rows = made.Buffer(ElementType::kInt64, {points, taps}, /*is_input=*/true);
  const Operand columns = made.Buffer(ElementType::kInt64, {points, taps}, /*is_input=*/true);
  const Operand weights = made.Buffer(kFloat32, {points, taps}, /*is_input=*/true);
  program::View guarded = image.view;
  guarded.guards.push_back(
      {{program::Dim(0), program::Dim(1), program::Dim(0)}, program::Dim(0), program::Dim(height)});
  guarded.guards.push_back(
      {{program::Dim(0), program::Dim(0), program::Dim(1)}, program::Dim(0), program::Dim(width)});
  const Shape domain = {points, channels};
  Expr sum = Constant(pool, kFloat32, 0);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const auto read = [&](const Operand& of, ElementType type) {
      const Operand column = RemoveAxis(Slice(of, 1, tap, 1, 1), 1);
      made.step.reads.push_back(BroadcastTo(InsertAxis(column, 1), domain));
      return Load(pool, type, static_cast<int>(made.step.reads.size()) - 1);
    };
    const Expr row = read(rows, ElementType::kInt64);
    const Expr column = read(columns, ElementType::kInt64);
    const Expr weight = read(weights, kFloat32);
    made.step.reads.push_back(guarded);
    const Expr element = LoadAt(pool, kFloat32, static_cast<int>(made.step.reads.size()) - 1,
                                {{Coordinate(pool, 1), row, column}});
    const Expr term = weight * element;
    sum = tap == 0 && points % 2 == 1 ? term : sum + term;
  }
  if (is_planar) {
    const Operand out = made.Buffer(kFloat32, {channels, points}, /*is_input=*/false);
    made.Write(program::Permute(out, {1, 0}));
  } else {
    made.Write(made.Buffer(kFloat32, {points, channels}, /*is_input=*/false));
  }
  made.Finish(domain, program::Map{{sum.id()}});
  auto* y = reinterpret_cast<int64_t*>(made.made.buffers[1].mutable_data());
  auto* x = reinterpret_cast<int64_t*>(made.made.buffers[2].mutable_data());
  auto* factors = reinterpret_cast<float*>(made.made.buffers[3].mutable_data());
  for (int64_t k = 0; k < points * taps; ++k) {
    y[k] = k * 3 % (height + 2) - 1;
    x[k] = k * 5 % (width + 2) - 1;
    if (step > 0) {
      const auto along = static_cast<int64_t>(static_cast<double>(k / taps) * step);
      y[k] = along / (width + 2) % (height + 2) - 1;
      x[k] = (along + k % taps) % (width + 2) - 1;
    }
    // Beyond 32 bits, of which the lower ones would be inside.
    if (k % 23 == 5) y[k] += int64_t{1} << 32;
    if (k % 29 == 7) x[k] -= int64_t{3} << 40;
    if (k % 19 == 18) factors[k] = std::numeric_limits<float>::infinity();
  }
}

TEST(StepTest, AddsWeightedPoints) {
  processor::ForEachTarget([](const char* target) {
    for (const int64_t taps : {2, 3, 16}) {
      for (const int64_t channels : {1, 2, 3, 4, 7, 9}) {
        for (const int64_t points : {1, 6, 15, 16, 17, 100, 1500}) {
          for (const double step : {0.0, 0.5, 1.7}) {
            const bool is_planar = (points + channels) % 2 == 0;
            SCOPED_TRACE(testing::Message()
                         << target << ": " << points << " points, " << channels << " channels, "
                         << taps << " taps, " << is_planar << ", step " << step);
            Made made;
            AddWeightedPoints(made, points, channels, taps, is_planar, step);
            ASSERT_TRUE(made.EngineDetail().starts_with("weighted points")) << made.EngineDetail();
            const std::vector<tensor::Tensor> expected = made.OnReference();
            for (const int64_t lanes : {37, 1024}) {
              ExpectSameBits(
                  expected.back(),
                  made.OnEngine({.loops = LoopSet::kReference, .tile_lanes = lanes}).back());
            }
          }
        }
      }
    }
  });
}

TEST(StepTest, SoftmaxIsCloseToFloat64) {
  for (const int64_t length : {1, 2, 3, 10, 15, 16, 17, 63, 64, 255, 1000, 5000}) {
    Made made;
    const int64_t rows = 70;
    const Operand in = made.Buffer(kFloat32, {rows, length}, /*is_input=*/true);
    program::ExprPool& pool = made.pool();
    const Expr x = Load(pool, kFloat32, made.Read(in));
    const Expr held = State(pool, kFloat32, 0);
    const Expr other = Other(pool, kFloat32, 0);
    program::Row row;
    row.axes = 1;
    row.passes.push_back({{{{kFloat32, Constant(pool, kFloat32, -1e30).id(), Maximum(held, x).id(),
                             Maximum(held, other).id()}}},
                          {held.id()}});
    const Expr power = Unary(ExprOp::kExp, x - RowResult(pool, kFloat32, 0, 0));
    row.passes.push_back(
        {{{{kFloat32, Like(x, 0).id(), (held + power).id(), (held + other).id()}}}, {held.id()}});
    row.roots = {(power / RowResult(pool, kFloat32, 1, 0)).id()};
    made.Write(made.Buffer(kFloat32, {rows, length}, /*is_input=*/false));
    made.Finish(in.shape, std::move(row));
    const std::vector<tensor::Tensor> out = made.OnEngine({});
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < length; ++k) {
        sum += std::exp(At(made.made.buffers[0], r * length + k));
      }
      for (int64_t k = 0; k < length; ++k) {
        const double expected = std::exp(At(made.made.buffers[0], r * length + k)) / sum;
        EXPECT_NEAR(At(out[1], r * length + k), expected, expected * 2e-6) << length;
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::engine
