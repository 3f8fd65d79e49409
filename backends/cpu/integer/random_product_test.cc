// SPDX-License-Identifier: Apache-2.0
//
// Random products of bytes on the whole device against plain sums in 64-bit integers: both kinds of
// bytes, zero points of every granularity and at the edges, matrices and images in any order of
// memory, constant or not, with and without an epilogue, on every instruction set. Chains of
// quantizations are compared with the same operations on one number after the other, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/integer/testing/imitated_tiles.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;
using program::ExprOp;
using tensor::ElementType;
using tensor::Extents;

constexpr int64_t kUntouched = 99;

class RandomProduct {
 public:
  // kWalked: convolutions with a kernel per channel, 3 to 7 pixels wide, or one that reaches far
  // along rows. kGrouped: those with groups of few channels.
  enum class Kind : uint8_t { kAny, kWalked, kGrouped };
  explicit RandomProduct(uint32_t seed, Kind kind = Kind::kAny)
      : random_(seed), is_walked_(kind == Kind::kWalked), is_grouped_(kind == Kind::kGrouped) {
    is_convolution_ = kind != Kind::kAny || Chance(50);
    is_convolution_ ? MakeConvolution() : MakeMatMul();
    const ElementType type_a = AnyByte();
    const ElementType type_b = kind != Kind::kAny && Chance(90) ? ElementType::kInt8 : AnyByte();
    AddOperand(a_extents_, type_a, /*is_constant=*/false);
    AddOperand(b_extents_, type_b, /*is_constant=*/Chance(60));
    contract_.accumulator = ElementType::kInt32;
    contract_.a_prologue = MakePrologue(0, type_a);
    contract_.b_prologue = MakePrologue(1, type_b);
    MakeEpilogue();
    step_.body = contract_;
  }

  // Of few enough products for plain sums.
  bool IsSmall() const {
    return tensor::ElementCount(domain_) * tensor::ElementCount(inner_) < 60'000;
  }

  // Whether sums became bytes without the tile engine.
  bool is_requantized() const { return is_requantized_; }
  bool has_byte_function() const { return has_byte_function_; }
  bool Did(std::string_view what) const { return detail_.find(what) != std::string::npos; }
  bool HasLargeKernelPerChannel() const {
    return is_convolution_ && contract_.group > 1 && inner_[0] == 1 &&
           tensor::ElementCount(inner_) > 64;
  }

  void Check() {
    base::Result<std::unique_ptr<Device>> device =
        Device::Create(std::make_shared<threads::ThreadPool>(static_cast<int>(Roll(1, 3))),
                       base::Log(base::LogLevel::kWarning));
    ASSERT_TRUE(device.ok()) << device.status().Text();
    const base::Result<device::Selection> selection = (*device)->Select({program_, step_});
    ASSERT_TRUE(selection.ok()) << selection.status().Text();
    ASSERT_EQ(selection->recipe->implementation(), "byte product");
    const auto kernel = (*device)->Build(*selection->recipe);
    ASSERT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> addresses, constants;
    for (size_t k = 0; k < data_.size(); ++k) {
      addresses.push_back(data_[k].data());
      const bool is_constant = program_.buffers[k].kind == program::Buffer::Kind::kConstant;
      constants.push_back(is_constant ? addresses.back() : nullptr);
    }
    // Other extents, as symbols have them: constant weights are packed for each way of reading.
    if (is_convolution_ && domain_.back() >= 6) {
      const program::Dim last = std::exchange(step_.domain.back(), program::Dim(Roll(1, 5)));
      const auto other = (*kernel)->Bind(device::Bind(program_, step_, {}), constants);
      ASSERT_TRUE(other.ok()) << other.status().Text();
      step_.domain.back() = last;
    }
    const device::BoundStep bound = device::Bind(program_, step_, {});
    const auto ready = (*kernel)->Bind(bound, constants);
    ASSERT_TRUE(ready.ok()) << ready.status().Text();
    if (!(*ready)->ReadsAtRun(1)) addresses[1] = nullptr;
    detail_ = (*ready)->Detail();
    is_requantized_ = Did("requantized");
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE((*ready)->Run(addresses).ok());
    }
    CompareAll(bound);
  }

 private:
  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance(int percent) { return Roll(0, 99) < percent; }
  ElementType AnyByte() { return Chance(50) ? ElementType::kUint8 : ElementType::kInt8; }

  void MakeMatMul() {
    contract_.form = Contract::Form::kMatMul;
    const auto some = [&](int64_t most_axes, int64_t most) {
      Extents extents(static_cast<size_t>(Roll(0, most_axes)));
      for (int64_t& extent : extents) extent = Roll(1, most);
      return extents;
    };
    const Extents batch = some(Chance(60) ? 0 : 2, 3);
    const Extents m = some(2, Chance(30) ? 40 : 7);
    const Extents n = Chance(10) ? Extents{} : Extents{Chance(20) ? Roll(1, 1500) : Roll(1, 70)};
    const Extents k = some(2, Chance(50) ? 70 : 9);
    contract_.batch_axes = static_cast<int>(batch.size());
    contract_.m_axes = static_cast<int>(m.size());
    contract_.n_axes = static_cast<int>(n.size());
    contract_.inner = {k.begin(), k.end()};
    const auto join = [](std::initializer_list<Extents> parts) {
      Extents all;
      for (const Extents& part : parts) all.insert(all.end(), part.begin(), part.end());
      return all;
    };
    a_extents_ = join({batch, m, k});
    b_extents_ = join({batch, k, n});
    domain_ = join({batch, m, n});
    inner_ = k;
    column_axis_ = n.empty() ? -1 : static_cast<int>(domain_.size()) - 1;
  }

  void MakeConvolution() {
    contract_.form = Contract::Form::kConv;
    int64_t group = Chance(60) ? 1 : Roll(2, 4);
    int64_t channels = Roll(1, 20), outputs = Chance(20) ? Roll(30, 80) : Roll(1, 20);
    const int64_t walked_kernel = is_walked_ ? 3 + 2 * Roll(0, 2) : 0;
    const bool is_wide = is_walked_ && Chance(50);
    bool is_large = false;
    if (is_grouped_) {
      group = Roll(2, Chance(50) ? 40 : 6);
      channels = Chance(50) ? 4 * Roll(1, 4) : Roll(1, 9);
      outputs = Chance(30) ? channels : Roll(1, 15);
    } else if (is_walked_ || Chance(30)) {
      is_large = !is_walked_ && Chance(20);
      // A kernel per channel.
      channels = outputs = 1;
      group = Chance(50) ? Roll(2, 20) : Roll(21, 90);
    }
    // Of so many rows that they are not walked at once.
    const bool is_tall = is_wide && Chance(20);
    if (is_tall) group = Roll(2, 3);
    contract_.group = group;
    a_extents_ = {Roll(1, 3), channels * group};
    b_extents_ = {outputs * group, channels};
    domain_ = {a_extents_[0], outputs * group};
    inner_ = {channels};
    const int64_t spatial = is_walked_ && !is_wide
                                ? Roll(walked_kernel == 7 ? 1 : 2, walked_kernel == 3 ? 3 : 2)
                            : is_large || is_tall ? 2
                                                  : Roll(1, 3);
    while (static_cast<int64_t>(a_extents_.size()) < 2 + spatial) {
      const bool is_along_rows = is_wide && static_cast<int64_t>(a_extents_.size()) == 1 + spatial;
      const int64_t in = is_tall ? Roll(20, 24)
                         : is_along_rows && spatial == 1
                             ? Roll(10, 90)
                             : Roll(Chance(30) ? 7 : 1, spatial == 3 ? 7 : 12);
      const int64_t kernel = is_tall         ? Roll(20, 22)
                             : is_along_rows ? Roll(3, spatial == 1 ? 35 : 8)
                             : is_wide       ? Roll(1, 3)
                             : is_walked_    ? walked_kernel
                             : is_large      ? Roll(9, 11)
                                             : Roll(1, 3);
      const int64_t stride = Chance(60) ? 1 : Roll(1, 3), dilation = Chance(70) ? 1 : 2;
      const int64_t before = Roll(0, 2), after = Roll(0, 2);
      const int64_t reach = dilation * (kernel - 1) + 1;
      if (in + before + after < reach) continue;
      a_extents_.push_back(in);
      b_extents_.push_back(kernel);
      inner_.push_back(kernel);
      domain_.push_back((in + before + after - reach) / stride + 1);
      contract_.a_spatial.push_back(in);
      contract_.strides.push_back(stride);
      contract_.dilations.push_back(dilation);
      contract_.pads_begin.push_back(before);
    }
    contract_.inner = {inner_.begin(), inner_.end()};
    column_axis_ = 1;
  }

  // A buffer of bytes, often all of the largest or smallest, with a gap at its end.
  program::View AddBuffer(const Extents& extents, ElementType type, bool is_constant,
                          int64_t element_bytes = 1) {
    program::Buffer buffer;
    buffer.kind = is_constant ? program::Buffer::Kind::kConstant : program::Buffer::Kind::kInput;
    buffer.type = type;
    buffer.shape = {extents.begin(), extents.end()};
    std::vector<std::byte>& bytes =
        data_.emplace_back(static_cast<size_t>(tensor::ElementCount(extents) * element_bytes));
    const int64_t same =
        Chance(25) ? std::vector<int64_t>{0x00, 0x7F, 0x80, 0xFF}[static_cast<size_t>(Roll(0, 3))]
                   : -1;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(same >= 0 ? same : Roll(0, 255));
    return program::DenseView(program_.AddBuffer(std::move(buffer)), type,
                              {extents.begin(), extents.end()});
  }

  // Its axes lie in memory in any order.
  program::View AddPermuted(const Extents& extents, ElementType type, bool is_constant,
                            int64_t element_bytes = 1) {
    std::vector<size_t> order(extents.size());
    for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
    if (Chance(40)) std::shuffle(order.begin(), order.end(), random_);
    if (is_convolution_ && Chance(40)) {
      order = {0};
      for (size_t axis = 2; axis < extents.size(); ++axis) order.push_back(axis);
      order.push_back(1);
    }
    program::View view = AddBuffer(extents, type, is_constant, element_bytes);
    int64_t stride = 1;
    for (size_t at = order.size(); at-- > 0;) {
      view.strides[order[at]] = stride;
      stride *= extents[order[at]];
    }
    return view;
  }

  // Elements half as far from the middle of their type, all but some.
  void Narrow(ElementType type, std::vector<std::byte>& bytes) {
    const uint8_t flip = type == ElementType::kUint8 ? 0x80 : 0;
    for (std::byte& byte : bytes) {
      if (Chance(2)) continue;
      const auto element = static_cast<int8_t>(std::to_integer<uint8_t>(byte) ^ flip);
      byte = static_cast<std::byte>(static_cast<uint8_t>(element / 2) ^ flip);
    }
  }

  void AddOperand(const Extents& extents, ElementType type, bool is_constant) {
    program::View view = AddPermuted(extents, type, is_constant);
    if (Chance(60)) Narrow(type, data_.back());
    // One matrix for all batches, at times.
    if (!is_convolution_ && Chance(30)) {
      for (int axis = 0; axis < contract_.batch_axes; ++axis) {
        view.strides[static_cast<size_t>(axis)] = 0;
      }
    }
    step_.reads.push_back(std::move(view));
  }

  program::ExprId MakePrologue(int operand, ElementType type) {
    program::ExprPool& pool = program_.exprs;
    const ElementType sum = ElementType::kInt32;
    const Expr element = Cast(Load(pool, type, operand), sum);
    if (Chance((is_walked_ || is_grouped_) && operand == 1 ? 80 : 30)) return element.id();
    const Extents& extents = operand == 0 ? a_extents_ : b_extents_;
    Extents varied(extents.size(), 1);
    if (Chance(40)) {
      const auto batch = static_cast<size_t>(contract_.batch_axes);
      const size_t depth = inner_.size();
      for (size_t axis = 0; axis < extents.size(); ++axis) {
        const bool may_vary = is_convolution_ ? operand == 1 && axis == 0
                              : operand == 0  ? axis < extents.size() - depth
                                              : axis < batch || axis >= batch + depth;
        if (may_vary) varied[axis] = extents[axis];
      }
    }
    program::View view = AddBuffer(varied, type, Chance(50));
    if (is_grouped_ && operand == 1 && Chance(50)) {
      std::ranges::fill(data_.back(), std::byte{0});
    }
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (varied[axis] == 1) view.strides[axis] = 0;
    }
    const int read = static_cast<int>(step_.reads.size());
    step_.reads.push_back(std::move(view));
    zero_point_reads_[operand] = read;
    return (element - Cast(Load(pool, type, read), sum)).id();
  }

  void MakeEpilogue() {
    program::ExprPool& pool = program_.exprs;
    Expr value = Accumulator(pool, ElementType::kInt32);
    epilogue_ = static_cast<int>(Roll(0, 5));
    if (epilogue_ > 2) {
      epilogue_ = 3;
      value = MakeChain(value);
    } else if (epilogue_ > 0) {
      // A scale per column, and a bias.
      program::View scale =
          AddBuffer({domain_.empty() ? 1 : Columns()}, ElementType::kFloat32, false, sizeof(float));
      auto* scales = reinterpret_cast<float*>(data_.back().data());
      for (int64_t c = 0; c < Columns(); ++c) {
        scales[c] = static_cast<float>(Roll(1, 1000)) * 1e-6F;
      }
      scale.strides.assign(domain_.size(), program::Dim(0));
      if (column_axis_ >= 0) scale.strides[static_cast<size_t>(column_axis_)] = 1;
      scale_buffer_ = scale.buffer;
      const int read = static_cast<int>(step_.reads.size());
      step_.reads.push_back(std::move(scale));
      value = Cast(value, ElementType::kFloat32) * Load(pool, ElementType::kFloat32, read);
      value = value + Like(value, 0.375);
    }
    if (epilogue_ == 2) {
      value = Unary(ExprOp::kRoundEven, value);
      value =
          Cast(Minimum(Maximum(value, Like(value, -128)), Like(value, 127)), ElementType::kInt8);
    }
    contract_.roots = {value.id()};
    const int64_t bytes = tensor::BitWidth(value.type()) / 8;
    step_.domain = {domain_.begin(), domain_.end()};
    step_.writes = {AddPermuted(domain_, value.type(), false, bytes)};
    program_.buffers.back().kind = program::Buffer::Kind::kTemporary;
    data_.back().resize(data_.back().size() + 64, std::byte{kUntouched});
    result_ = static_cast<size_t>(step_.writes[0].buffer);
  }

  // One number for all columns, or one for each, between the bounds.
  struct Numbers {
    Expr load;
    std::vector<double> of_column;
  };
  Numbers AddNumbers(ElementType type, double least, double most, bool is_constant = true) {
    const bool is_one = column_axis_ < 0 || Chance(40);
    const int64_t count = is_one ? 1 : Columns();
    program::View view =
        AddBuffer({count}, type, is_constant, static_cast<int64_t>(tensor::BitWidth(type) / 8));
    view.strides.assign(domain_.size(), program::Dim(0));
    if (!is_one) view.strides[static_cast<size_t>(column_axis_)] = 1;
    Numbers numbers;
    for (int64_t c = 0; c < count; ++c) {
      const double drawn = std::uniform_real_distribution<double>(least, most)(random_);
      std::byte* at = data_.back().data();
      if (type == ElementType::kInt32) {
        reinterpret_cast<int32_t*>(at)[c] = static_cast<int32_t>(drawn);
        numbers.of_column.push_back(static_cast<int32_t>(drawn));
      } else {
        reinterpret_cast<float*>(at)[c] = static_cast<float>(drawn);
        numbers.of_column.push_back(static_cast<float>(drawn));
      }
    }
    numbers.of_column.resize(static_cast<size_t>(Columns()), numbers.of_column[0]);
    numbers.load = Load(program_.exprs, type, static_cast<int>(step_.reads.size()));
    step_.reads.push_back(std::move(view));
    return numbers;
  }

  // An operation on the value so far at a column and a position of the domain.
  using Operation = std::function<float(float value, int64_t column, const Extents& at)>;

  Expr Apply(ExprOp op, Expr value, const Numbers& numbers) {
    operations_.push_back(
        [op, of_column = numbers.of_column](float x, int64_t column, const Extents& /*at*/) {
          const auto y = static_cast<float>(of_column[static_cast<size_t>(column)]);
          return op == ExprOp::kAdd ? x + y : op == ExprOp::kSub ? x - y : x * y;
        });
    return Binary(op, value, numbers.load);
  }

  // As QuantizeLinear and DequantizeLinear are lowered.
  Expr Quantize(Expr value, ElementType type, float least_scale, float most_scale) {
    // Of a power of two, quotients often lie in the middle between two integers.
    const float scale =
        Chance(30) ? std::exp2(std::round(std::log2(most_scale)))
                   : std::uniform_real_distribution<float>(least_scale, most_scale)(random_);
    const bool is_signed = type == ElementType::kInt8;
    const auto zero_point = static_cast<float>(is_signed ? Roll(-128, 127) : Roll(0, 255));
    const float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    const bool is_scaled = Chance(90), is_moved = Chance(80);
    operations_.push_back([=](float x, int64_t /*column*/, const Extents& /*at*/) {
      float y = std::nearbyint(is_scaled ? x / scale : x);
      if (is_moved) y += zero_point;
      return std::min(std::max(y, low), high);
    });
    if (is_scaled) value = value / Like(value, scale);
    value = Unary(ExprOp::kRoundEven, value);
    if (is_moved) value = value + Like(value, zero_point);
    return Cast(Minimum(Maximum(value, Like(value, low)), Like(value, high)), type);
  }
  Expr Dequantize(Expr bytes, Operation* out_operation) {
    const bool is_signed = bytes.type() == ElementType::kInt8;
    const int64_t zero_point = Chance(70) ? is_signed ? Roll(-128, 127) : Roll(0, 255) : 0;
    const float scale = static_cast<float>(Roll(1, 1000)) * 1e-3F;
    *out_operation = [=](float x, int64_t /*column*/, const Extents& /*at*/) {
      return (x - static_cast<float>(zero_point)) * scale;
    };
    Expr value = Cast(bytes, ElementType::kInt32);
    if (zero_point != 0) {
      value = value - IntConstant(program_.exprs, ElementType::kInt32, zero_point);
    }
    value = Cast(value, ElementType::kFloat32);
    return value * Like(value, scale);
  }

  Expr MakeChain(Expr value) {
    if (Chance(40)) {
      const Numbers offsets = AddNumbers(ElementType::kInt32, -5000, 5000);
      offsets_ = offsets.of_column;
      value = value + offsets.load;
    }
    value = Cast(value, ElementType::kFloat32);
    // What is no constant stays in the tile engine.
    value = Apply(ExprOp::kMul, value,
                  AddNumbers(ElementType::kFloat32, 1e-4, 1e-2, /*is_constant=*/Chance(90)));
    if (Chance(60)) {
      value = Apply(ExprOp::kAdd, value, AddNumbers(ElementType::kFloat32, -5, 5));
    }
    if (Chance(50)) {
      value = Quantize(value, AnyByte(), 0.02F, 0.5F);
      Operation dequantize;
      value = Dequantize(value, &dequantize);
      operations_.push_back(dequantize);
      if (Chance(60)) {
        value = Apply(ExprOp::kSub, value, AddNumbers(ElementType::kFloat32, -5, 5));
        value = Apply(ExprOp::kMul, value, AddNumbers(ElementType::kFloat32, -2, 2));
      }
    }
    if (Chance(50)) {
      const ElementType type = AnyByte();
      program::View view = AddPermuted(domain_, type, /*is_constant=*/false);
      if (Chance(30)) view.strides = step_.reads.back().strides;  // one for all, or per column
      const int read = static_cast<int>(step_.reads.size());
      step_.reads.push_back(view);
      Operation dequantize;
      const Expr added = Dequantize(Load(program_.exprs, type, read), &dequantize);
      operations_.push_back([=, this](float x, int64_t column, const Extents& at) {
        int64_t offset = 0;
        for (size_t axis = 0; axis < at.size(); ++axis) {
          offset += at[axis] * view.strides[axis].constant();
        }
        const std::byte byte = data_[static_cast<size_t>(view.buffer)][static_cast<size_t>(offset)];
        const float number = type == ElementType::kInt8
                                 ? static_cast<float>(static_cast<int8_t>(byte))
                                 : static_cast<float>(byte);
        return x + dequantize(number, column, at);
      });
      value = Chance(50) ? value + added : added + value;
    }
    if (Chance(30)) {
      const float slope = Chance(50) ? 0.1F : 1.5F;
      operations_.push_back([=](float x, int64_t /*column*/, const Extents& /*at*/) {
        return x < 0 ? x * slope : x;
      });
      value = Select(value < Like(value, 0), Like(value, slope) * value, value);
    }
    if (Chance(50)) {
      const float low = Chance(50) ? 0 : -3, high = Chance(50) ? 6 : 1e6F;
      operations_.push_back([=](float x, int64_t /*column*/, const Extents& /*at*/) {
        return std::min(std::max(x, low), high);
      });
      value = Minimum(Maximum(value, Like(value, low)), Like(value, high));
    }
    if (Chance(20)) return value;
    value = Quantize(value, AnyByte(), 0.02F, 0.5F);
    if (Chance(70)) return value;
    // An activation between two quantizations.
    has_byte_function_ = true;
    Operation dequantize;
    value = Dequantize(value, &dequantize);
    operations_.push_back(dequantize);
    constexpr float kSlope = 0.125F;
    operations_.push_back(
        [](float x, int64_t /*column*/, const Extents& /*at*/) { return x < 0 ? x * kSlope : x; });
    value = Select(value < Like(value, 0), value * Like(value, kSlope), value);
    return Chance(40) ? value : Quantize(value, AnyByte(), 0.02F, 0.5F);
  }

  int64_t Columns() const {
    return column_axis_ < 0 ? 1 : domain_[static_cast<size_t>(column_axis_)];
  }

  int64_t ByteAt(const device::BoundView& view, const Extents& at) const {
    int64_t offset = view.offset;
    for (size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * view.strides[axis];
    const std::byte byte = data_[static_cast<size_t>(view.buffer)][static_cast<size_t>(offset)];
    return view.type == ElementType::kInt8 ? static_cast<int8_t>(byte) : static_cast<int64_t>(byte);
  }
  // The element less its zero point.
  int64_t FactorAt(const device::BoundStep& step, int operand, const Extents& at) const {
    const int64_t element = ByteAt(step.reads[static_cast<size_t>(operand)], at);
    const int zero_point = zero_point_reads_[operand];
    if (zero_point < 0) return element;
    return element - ByteAt(step.reads[static_cast<size_t>(zero_point)], at);
  }

  static Extents CoordinatesOf(int64_t position, const Extents& extents) {
    Extents at(extents.size());
    for (size_t axis = extents.size(); axis-- > 0;) {
      at[axis] = position % extents[axis];
      position /= extents[axis];
    }
    return at;
  }

  int64_t SumAt(const device::BoundStep& step, const Extents& out) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < tensor::ElementCount(inner_); ++k) {
      const Extents depth = CoordinatesOf(k, inner_);
      Extents a, b;
      if (is_convolution_) {
        const int64_t group = out[1] / (domain_[1] / contract_.group);
        a = {out[0], group * inner_[0] + depth[0]};
        b = {out[1], depth[0]};
        bool is_inside = true;
        for (size_t axis = 1; axis < inner_.size(); ++axis) {
          const int64_t in = out[axis + 1] * contract_.strides[axis - 1] +
                             depth[axis] * contract_.dilations[axis - 1] -
                             contract_.pads_begin[axis - 1].constant();
          is_inside = is_inside && in >= 0 && in < a_extents_[axis + 1];
          a.push_back(in);
          b.push_back(depth[axis]);
        }
        if (!is_inside) continue;
      } else {
        const auto batch = out.begin() + contract_.batch_axes;
        const auto rows = batch + contract_.m_axes;
        a.assign(out.begin(), rows);
        a.insert(a.end(), depth.begin(), depth.end());
        b.assign(out.begin(), batch);
        b.insert(b.end(), depth.begin(), depth.end());
        b.insert(b.end(), rows, out.end());
      }
      sum += FactorAt(step, 0, a) * FactorAt(step, 1, b);
    }
    return sum;
  }

  void CompareAll(const device::BoundStep& step) const {
    const device::BoundView& view = step.writes[0];
    const std::byte* result = data_[result_].data();
    for (int64_t position = 0; position < tensor::ElementCount(domain_); ++position) {
      const Extents at = CoordinatesOf(position, domain_);
      int64_t offset = 0;
      for (size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * view.strides[axis];
      const auto sum = static_cast<int32_t>(SumAt(step, at));
      if (epilogue_ == 0) {
        ASSERT_EQ(reinterpret_cast<const int32_t*>(result)[offset], sum) << position;
        continue;
      }
      const int64_t column = column_axis_ < 0 ? 0 : at[static_cast<size_t>(column_axis_)];
      if (epilogue_ == 3) {
        const int64_t offset_of_sum =
            offsets_.empty() ? 0 : static_cast<int64_t>(offsets_[static_cast<size_t>(column)]);
        auto chained = static_cast<float>(static_cast<int32_t>(sum + offset_of_sum));
        for (const Operation& operation : operations_) chained = operation(chained, column, at);
        const float computed = view.type == ElementType::kFloat32
                                   ? reinterpret_cast<const float*>(result)[offset]
                               : view.type == ElementType::kInt8
                                   ? static_cast<float>(static_cast<int8_t>(result[offset]))
                                   : static_cast<float>(result[offset]);
        ASSERT_EQ(computed, chained) << position;
        continue;
      }
      const float scale =
          reinterpret_cast<const float*>(data_[static_cast<size_t>(scale_buffer_)].data())[column];
      const float scaled = static_cast<float>(sum) * scale;
      const float value = scaled + 0.375F;
      if (epilogue_ == 1) {
        // Multiplied and added at once, at times.
        ASSERT_NEAR(reinterpret_cast<const float*>(result)[offset], value,
                    1e-6 * std::abs(value) + 1e-6)
            << position;
      } else {
        const double rounded = std::nearbyint(static_cast<double>(value));
        ASSERT_EQ(static_cast<int8_t>(result[offset]), std::clamp(rounded, -128.0, 127.0))
            << position;
      }
    }
    const size_t size = data_[result_].size();
    for (size_t at = size - 64; at < size; ++at) {
      ASSERT_EQ(data_[result_][at], std::byte{kUntouched}) << "behind the result";
    }
  }

  std::mt19937 random_;
  const bool is_walked_, is_grouped_;
  program::Program program_;
  program::Step step_;
  Contract contract_;
  bool is_convolution_ = false;
  Extents a_extents_, b_extents_, domain_, inner_;
  int column_axis_ = -1;
  int zero_point_reads_[2] = {-1, -1};
  int epilogue_ = 0;
  std::vector<double> offsets_;        // of sums, per column; may be empty
  std::vector<Operation> operations_;  // of a chain, on sums as float32
  std::string detail_;                 // what the kernel says
  bool is_requantized_ = false;
  bool has_byte_function_ = false;
  program::BufferId scale_buffer_ = program::kNoBuffer;
  std::vector<std::vector<std::byte>> data_;
  size_t result_ = 0;
};

TEST(RandomProductTest, AgreesWithSumsOfIntegers) {
  integer::ForEachMultiplier([](const std::string& multiplier) {
    SCOPED_TRACE(multiplier);
    int requantized = 0, with_function = 0, in_pieces = 0, large = 0, in_tiles = 0;
    for (uint32_t seed = 0; seed < 400 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      RandomProduct product(seed);
      if (product.IsSmall()) product.Check();
      if (product.is_requantized()) ++requantized;
      if (product.is_requantized() && product.has_byte_function()) ++with_function;
      if (product.Did("read in pieces")) ++in_pieces;
      if (product.Did("AMX")) ++in_tiles;
      if (product.HasLargeKernelPerChannel() && product.Did("a kernel per channel")) ++large;
    }
    EXPECT_GT(requantized, 40);
    EXPECT_GT(with_function, 8);
    EXPECT_GT(in_pieces, 8);
    EXPECT_GE(large, 2);
    EXPECT_EQ(in_tiles > 100, multiplier.ends_with("tiles"));
  });
}

TEST(RandomProductTest, AgreesWhereWindowsAreWalked) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    int checked = 0, along_rows = 0;
    for (uint32_t seed = 1000; seed < 1400 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      RandomProduct product(seed, RandomProduct::Kind::kWalked);
      if (!product.IsSmall()) continue;
      product.Check();
      ++checked;
      if (product.Did("along rows")) ++along_rows;
    }
    EXPECT_GT(checked, 200);
    if (processor::HasByteProducts() && std::string(target) == "AVX3") {
      EXPECT_GT(along_rows, 100);
    }
  });
}

TEST(RandomProductTest, AgreesInSmallGroups) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    int checked = 0, side_by_side = 0;
    for (uint32_t seed = 2000; seed < 2500 && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(seed);
      RandomProduct product(seed, RandomProduct::Kind::kGrouped);
      if (!product.IsSmall()) continue;
      product.Check();
      ++checked;
      if (product.Did("side by side")) ++side_by_side;
    }
    EXPECT_GT(checked, 200);
    if (processor::HasByteProducts() && std::string(target) == "AVX3") {
      EXPECT_GT(side_by_side, 100);
    }
  });
}

}  // namespace
}  // namespace onnxifi::cpu
