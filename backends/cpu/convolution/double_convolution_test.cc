// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of float64, transposed or not, along one to three axes, with any strides, dilations,
// padding and groups, with weights that are constant or computed, against sums in plain loops over
// wider floats.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/core/reference/random_step.h"
#include "backends/cpu/device.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::cpu {
namespace {

using program::Buffer;
using program::Contract;
using program::Expr;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kDouble = ElementType::kFloat64;

class DoubleConvolution {
 public:
  explicit DoubleConvolution(uint32_t seed) : random_(seed) {
    const auto axes = static_cast<size_t>(Roll(1, 3));
    is_transposed_ = Chance(40);
    group_ = Chance(30) ? Roll(2, 3) : 1;
    in_ = group_ * Roll(1, 9);
    out_ = group_ * Roll(1, 21);
    batch_ = Roll(1, 2);
    // Nothing to compute is no fault.
    if (Chance(6)) (Chance(50) ? batch_ : out_) = 0;
    Contract contract;
    contract.form = is_transposed_ ? Contract::Form::kConvTranspose : Contract::Form::kConv;
    contract.group = group_;
    contract.accumulator = kDouble;
    contract.inner = {in_ / group_};
    for (size_t axis = 0; axis < axes; ++axis) {
      kernel_.push_back(Roll(1, 4));
      strides_.push_back(Roll(1, 3));
      dilations_.push_back(Roll(1, 2));
      pads_.push_back(Roll(0, kernel_.back() - 1));
      const int64_t reach = (kernel_.back() - 1) * dilations_.back() + 1;
      const int64_t source = Roll(reach, reach + (axes == 1 ? 50 : 6));
      source_.push_back(source);
      result_.push_back(is_transposed_ ? (source - 1) * strides_.back() + reach - pads_.back()
                                       : (source + 2 * pads_.back() - reach) / strides_.back() + 1);
      contract.inner.emplace_back(kernel_.back());
      contract.a_spatial.emplace_back(source);
      contract.pads_begin.emplace_back(pads_.back());
      contract.strides.push_back(strides_.back());
      contract.dilations.push_back(dilations_.back());
    }
    program::Step step;
    AddView(step.reads, {batch_, in_}, source_);
    const bool is_constant = Chance(60);
    AddView(step.reads, is_transposed_ ? Extents{in_, out_ / group_} : Extents{out_, in_ / group_},
            kernel_, is_constant);
    program::ExprPool& pool = made_.program.exprs;
    Expr sum = program::Accumulator(pool, kDouble);
    epilogue_ = static_cast<int>(Roll(0, 2));
    if (epilogue_ > 0) {
      // A bias per channel.
      AddView(step.reads, {out_}, {});
      program::View& bias = step.reads.back();
      bias.strides.assign(2 + axes, program::Dim(0));
      bias.strides[1] = 1;
      sum = sum + Load(pool, kDouble, 2);
    }
    if (epilogue_ > 1) sum = Maximum(sum, sum * Like(sum, 0.25));
    AddView(step.writes, {batch_, out_}, result_);
    contract.a_prologue = Load(pool, kDouble, 0).id();
    contract.b_prologue = Load(pool, kDouble, 1).id();
    contract.roots = {sum.id()};
    step.body = contract;
    step.domain = {batch_, out_};
    for (const int64_t extent : result_) step.domain.emplace_back(extent);
    made_.program.steps.push_back(std::move(step));
  }

  void Check(Device& device) {
    const device::Selection selection = *device.Select({made_.program, made_.program.steps[0]});
    ASSERT_EQ(selection.recipe->implementation(),
              epilogue_ > 1 ? "split epilogue" : "float64 convolution");
    const auto results = RunStep(device, made_);
    ASSERT_TRUE(results.ok()) << results.status().Text();
    const auto* const found = reinterpret_cast<const double*>(results->back().data());
    const int64_t positions = tensor::ElementCount(result_);
    for (int64_t k = 0; k < batch_ * out_ * positions; ++k) {
      const double expected = Expected(k / positions / out_, k / positions % out_, k % positions);
      ASSERT_NEAR(found[k], expected, 1e-13) << k;
    }
  }

 private:
  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }

  void AddView(std::vector<program::View>& views, Extents extents, const Extents& spatial,
               bool is_constant = false) {
    extents.insert(extents.end(), spatial.begin(), spatial.end());
    const int64_t size = tensor::ElementCount(extents);
    std::vector<double> values(static_cast<size_t>(size));
    std::normal_distribution<double> normal(0, 0.3);
    for (double& value : values) value = normal(random_);
    Buffer buffer;
    buffer.type = kDouble;
    buffer.shape = {size};
    if (is_constant) {
      buffer.kind = Buffer::Kind::kConstant;
      buffer.index = static_cast<int>(made_.program.constants.size());
      made_.program.constants.push_back(
          tensor::Tensor::FromValues<double>(kDouble, {size}, values));
    }
    made_.buffers.push_back(tensor::Tensor::FromValues<double>(kDouble, {size}, values));
    program::View view;
    view.buffer = made_.program.AddBuffer(buffer);
    view.type = kDouble;
    int64_t stride = size;
    for (const int64_t extent : extents) {
      view.strides.emplace_back(stride /= std::max<int64_t>(1, extent));
    }
    views.push_back(std::move(view));
  }

  long double At(size_t buffer, int64_t place) const {
    return reinterpret_cast<const double*>(made_.buffers[buffer].data())[place];
  }

  double Expected(int64_t image, int64_t output, int64_t position) const {
    const int64_t depth = in_ / group_, outputs = out_ / group_;
    const int64_t group = output / outputs;
    const int64_t taps = tensor::ElementCount(kernel_);
    long double sum = epilogue_ > 0 ? At(2, output) : 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t place = 0, step = 1, rest = position, rest_tap = tap;
      bool is_met = true;
      for (size_t axis = kernel_.size(); axis-- > 0;) {
        const int64_t p = rest % result_[axis], t = rest_tap % kernel_[axis] * dilations_[axis];
        int64_t at = p * strides_[axis] - pads_[axis] + t;
        if (is_transposed_) {
          at = p + pads_[axis] - t;
          is_met = is_met && at % strides_[axis] == 0;
          at /= strides_[axis];
        }
        is_met = is_met && at >= 0 && at < source_[axis];
        place += at * step;
        step *= source_[axis];
        rest /= result_[axis];
        rest_tap /= kernel_[axis];
      }
      if (!is_met) continue;
      for (int64_t channel = 0; channel < depth; ++channel) {
        const int64_t source = group * depth + channel;
        const int64_t weight = is_transposed_ ? (source * outputs + output % outputs) * taps + tap
                                              : (output * depth + channel) * taps + tap;
        sum += At(0, (image * in_ + source) * step + place) * At(1, weight);
      }
    }
    if (epilogue_ > 1) sum = std::max(sum, sum / 4);
    return static_cast<double>(sum);
  }

  std::mt19937 random_;
  reference::RandomStep made_;
  bool is_transposed_ = false;
  int epilogue_ = 0;
  int64_t group_ = 1, in_ = 1, out_ = 1, batch_ = 1;
  Extents kernel_, strides_, dilations_, pads_, source_, result_;
};

TEST(DoubleConvolutionTest, AgreesWithWiderSums) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    auto device = Device::Create(std::make_shared<threads::ThreadPool>(2),
                                 base::Log(base::LogLevel::kWarning));
    ASSERT_TRUE(device.ok()) << device.status().Text();
    for (uint32_t seed = 0; seed < 60 && !testing::Test::HasFatalFailure(); ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      DoubleConvolution(seed).Check(**device);
    }
  });
}

}  // namespace
}  // namespace onnxifi::cpu
