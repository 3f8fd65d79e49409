// SPDX-License-Identifier: Apache-2.0
//
// Layers of networks that a kernel was slow for, or another kernel was chosen for: which one
// computes them now, with how much to share among threads, and that its results are right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/device.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/processor/testing/stated_caches.h"

namespace onnxifi::cpu {
namespace {

using program::Buffer;
using program::Contract;
using tensor::ElementType;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr ElementType kFloat = ElementType::kFloat32;

struct Layer {
  int64_t batch, in, out;
  std::vector<int64_t> image, kernel, stride, pad, dilation;
  int64_t group = 1;
  bool is_transposed = false;
  // Channels lie apart, as a caller has them.
  bool has_planes = false, makes_planes = false;

  size_t rank() const { return image.size(); }
  int64_t Extent(size_t axis) const {
    const int64_t reach = (kernel[axis] - 1) * dilation[axis] + 1;
    return is_transposed ? (image[axis] - 1) * stride[axis] + reach - 2 * pad[axis]
                         : (image[axis] + 2 * pad[axis] - reach) / stride[axis] + 1;
  }
};

// Two axes, square, between channels that lie side by side.
Layer Square(int64_t in, int64_t out, int64_t side, int64_t kernel, int64_t stride, int64_t pad,
             int64_t dilation = 1) {
  return {1,
          in,
          out,
          {side, side},
          {kernel, kernel},
          {stride, stride},
          {pad, pad},
          {dilation, dilation}};
}

int64_t Product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

// A tensor's strides: batch, channel, and along each axis.
std::vector<int64_t> StridesOf(int64_t channels, const std::vector<int64_t>& extents, bool planes) {
  const int64_t pixels = Product(extents);
  std::vector<int64_t> strides = {channels * pixels, planes ? pixels : 1};
  int64_t stride = planes ? pixels : pixels * channels;
  for (const int64_t extent : extents) strides.push_back(stride /= extent);
  return strides;
}

class LayerStep {
 public:
  explicit LayerStep(Layer layer) : layer_(std::move(layer)) {
    for (size_t axis = 0; axis < layer_.rank(); ++axis) result_.push_back(layer_.Extent(axis));
    source_strides_ = StridesOf(layer_.in, layer_.image, layer_.has_planes);
    result_strides_ = StridesOf(layer_.out, result_, layer_.makes_planes);
    const int64_t in = layer_.in / layer_.group;
    const int64_t taps = Product(layer_.kernel);
    const int64_t weights = layer_.in * layer_.out / layer_.group * taps;
    const float scale = 1 / std::sqrt(static_cast<float>(in * taps));
    AddBuffer(layer_.has_planes ? Buffer::Kind::kInput : Buffer::Kind::kTemporary,
              layer_.batch * layer_.in * Product(layer_.image), 1);
    AddBuffer(Buffer::Kind::kConstant, weights, scale);
    AddBuffer(Buffer::Kind::kConstant, layer_.out, 1);
    AddBuffer(Buffer::Kind::kTemporary, layer_.batch * layer_.out * Product(result_), 0);
    const int64_t inner = layer_.is_transposed ? layer_.out / layer_.group : in;
    std::vector<int64_t> weight_strides = {inner * taps, taps};
    int64_t stride = taps;
    for (const int64_t extent : layer_.kernel) weight_strides.push_back(stride /= extent);
    weight_strides_ = weight_strides;
    std::vector<int64_t> bias_strides(2 + layer_.rank(), 0);
    bias_strides[1] = 1;
    Contract contract;
    contract.form = layer_.is_transposed ? Contract::Form::kConvTranspose : Contract::Form::kConv;
    contract.group = layer_.group;
    contract.inner = {in};
    for (size_t axis = 0; axis < layer_.rank(); ++axis) {
      contract.inner.push_back(layer_.kernel[axis]);
      contract.a_spatial.push_back(layer_.image[axis]);
      contract.strides.push_back(layer_.stride[axis]);
      contract.dilations.push_back(layer_.dilation[axis]);
      contract.pads_begin.push_back(layer_.pad[axis]);
    }
    contract.a_prologue = Load(program_.exprs, kFloat, 0).id();
    contract.b_prologue = Load(program_.exprs, kFloat, 1).id();
    const program::Expr sum =
        program::Accumulator(program_.exprs, kFloat) + Load(program_.exprs, kFloat, 2);
    contract.roots = {Maximum(sum, Like(sum, 0)).id()};
    step_.body = contract;
    step_.domain = {layer_.batch, layer_.out};
    for (const int64_t extent : result_) step_.domain.push_back(extent);
    step_.reads = {ViewOf(0, source_strides_), ViewOf(1, weight_strides), ViewOf(2, bias_strides)};
    step_.writes = {ViewOf(3, result_strides_)};
  }

  // Runs it and compares the result; the name of what did it, and its detail.
  std::string Check(Device& device) {
    const auto selection = device.Select({program_, step_});
    EXPECT_TRUE(selection.ok()) << selection.status().Text();
    const auto kernel = device.Build(*selection->recipe);
    EXPECT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> addresses, constants;
    for (size_t buffer = 0; buffer < data_.size(); ++buffer) {
      addresses.push_back(reinterpret_cast<std::byte*>(data_[buffer].data()));
      const bool is_constant = program_.buffers[buffer].kind == Buffer::Kind::kConstant;
      constants.push_back(is_constant ? addresses.back() : nullptr);
    }
    const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
    const auto bound = (*kernel)->Bind(device::Bind(program_, step_, dims), constants);
    EXPECT_TRUE(bound.ok()) << bound.status().Text();
    std::fill(data_[3].begin(), data_[3].end(), -1.0F);
    const base::Status status = (*bound)->Run(addresses);
    EXPECT_TRUE(status.ok()) << status.Text();
    Compare();
    return std::string(selection->recipe->implementation()) + ": " + (*bound)->Detail();
  }

 private:
  void AddBuffer(Buffer::Kind kind, int64_t size, float scale) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float>& values = data_.emplace_back(static_cast<size_t>(size));
    for (float& value : values) value = scale * normal(random_);
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = kFloat;
    buffer.shape = {size};
    if (kind == Buffer::Kind::kConstant) {
      buffer.index = static_cast<int>(program_.constants.size());
      program_.constants.push_back(tensor::Tensor::FromValues<float>(kFloat, {size}, values));
    }
    program_.AddBuffer(buffer);
  }

  static program::View ViewOf(program::BufferId buffer, const std::vector<int64_t>& strides) {
    program::View view;
    view.buffer = buffer;
    view.type = kFloat;
    for (const int64_t stride : strides) view.strides.push_back(stride);
    return view;
  }

  // The position at `place` of a grid of these extents.
  std::vector<int64_t> PositionOf(int64_t place, const std::vector<int64_t>& extents) const {
    std::vector<int64_t> position(extents.size());
    for (size_t axis = extents.size(); axis-- > 0; place /= extents[axis]) {
      position[axis] = place % extents[axis];
    }
    return position;
  }

  int64_t Offset(const std::vector<int64_t>& strides, int64_t outer, int64_t channel,
                 const std::vector<int64_t>& position) const {
    int64_t offset = outer * strides[0] + channel * strides[1];
    for (size_t axis = 0; axis < position.size(); ++axis) {
      offset += position[axis] * strides[2 + axis];
    }
    return offset;
  }

  double Exact(int64_t n, int64_t m, const std::vector<int64_t>& at) const {
    const int64_t in = layer_.in / layer_.group;
    const int64_t group = m / (layer_.out / layer_.group);
    double sum = static_cast<double>(data_[2][static_cast<size_t>(m)]);
    for (int64_t tap = 0; tap < Product(layer_.kernel); ++tap) {
      const std::vector<int64_t> k = PositionOf(tap, layer_.kernel);
      std::vector<int64_t> from(at.size());
      bool is_inside = true;
      for (size_t axis = 0; axis < at.size(); ++axis) {
        if (layer_.is_transposed) {
          const int64_t moved = at[axis] + layer_.pad[axis] - k[axis] * layer_.dilation[axis];
          is_inside = is_inside && moved >= 0 && moved % layer_.stride[axis] == 0;
          from[axis] = moved / layer_.stride[axis];
        } else {
          from[axis] =
              at[axis] * layer_.stride[axis] - layer_.pad[axis] + k[axis] * layer_.dilation[axis];
        }
        is_inside = is_inside && from[axis] >= 0 && from[axis] < layer_.image[axis];
      }
      for (int64_t c = 0; is_inside && c < in; ++c) {
        const int64_t outer = layer_.is_transposed ? group * in + c : m;
        const int64_t inner = layer_.is_transposed ? m % (layer_.out / layer_.group) : c;
        const int64_t source = Offset(source_strides_, n, group * in + c, from);
        const int64_t weight = Offset(weight_strides_, outer, inner, k);
        sum += static_cast<double>(data_[0][static_cast<size_t>(source)]) *
               static_cast<double>(data_[1][static_cast<size_t>(weight)]);
      }
    }
    return std::max(sum, 0.0);
  }

  // Of some elements, the first and the last ones among them.
  void Compare() {
    constexpr int64_t kSamples = 3000;
    const int64_t pixels = Product(result_);
    const int64_t all = layer_.batch * layer_.out * pixels;
    for (int64_t sample = 0; sample < std::min(all, kSamples); ++sample) {
      const int64_t spread = std::uniform_int_distribution<int64_t>(0, all - 1)(random_);
      const int64_t k = all <= kSamples ? sample
                        : sample < 100  ? sample
                        : sample < 200  ? all + 99 - sample
                                        : spread;
      const int64_t n = k / (layer_.out * pixels), m = k / pixels % layer_.out;
      const std::vector<int64_t> at = PositionOf(k % pixels, result_);
      ASSERT_NEAR(data_[3][static_cast<size_t>(Offset(result_strides_, n, m, at))], Exact(n, m, at),
                  1e-4)
          << "element " << k;
    }
  }

  const Layer layer_;
  std::vector<int64_t> result_;
  std::vector<int64_t> source_strides_, weight_strides_, result_strides_;
  std::mt19937 random_{1};
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<float>> data_;  // by buffer
};

std::unique_ptr<Device> MakeDevice(int threads) {
  auto device = Device::Create(std::make_shared<threads::ThreadPool>(threads),
                               base::Log(base::LogLevel::kWarning));
  EXPECT_TRUE(device.ok()) << device.status().Text();
  return *std::move(device);
}

// Of several rows, some channels at a time, so that rows that windows share stay in the L1 cache.
TEST(LayerTest, DepthwiseRowsShareTheirWindows) {
  const processor::StatedCaches caches(processor::kMediumCaches);
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t channels : {192, 200}) {
      Layer layer = Square(channels, channels, 14, kernel, 1, kernel / 2);
      layer.group = channels;
      EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(1)), StartsWith("depthwise"));
      EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("depthwise"));
    }
  }
}

// An image of which all rows fit one strip is still for all threads.
TEST(LayerTest, SmallImagesOfPlanesAreDivided) {
  Layer layer = Square(4, 64, 32, 3, 1, 1);
  layer.has_planes = true;
  EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(1)), StartsWith("planar: strips of 32 rows"));
  EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("planar: strips of 4 rows"));
  layer.batch = 3;
  EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("planar: strips of 12 rows"));
}

// The last layers of decoders of waves and of images, whose channels lie side by side or, as a
// caller has them, apart.
TEST(LayerTest, TransposedToFewOutputsMultipliesPixels) {
  Layer wave = {1, 512, 1, {1999}, {16}, {8}, {0}, {1}};
  wave.is_transposed = true;
  Layer image = Square(64, 3, 32, 4, 2, 1);
  image.is_transposed = true;
  // With gaps along all axes but the last.
  Layer frames = {2, 16, 2, {3, 5, 7}, {2, 3, 3}, {2, 1, 2}, {0, 1, 1}, {3, 2, 1}};
  frames.is_transposed = true;
  // In several chunks of several blocks each; in rows of several blocks.
  Layer volume = {1, 24, 3, {12, 30, 25}, {4, 3, 3}, {2, 1, 2}, {1, 1, 0}, {1, 1, 1}};
  volume.is_transposed = true;
  Layer band = {1, 20, 1, {3, 3000}, {4, 32}, {2, 8}, {1, 12}, {1, 1}};
  band.is_transposed = true;
  // Four columns, as text detectors end with.
  Layer mask = Square(8, 1, 96, 2, 2, 0);
  mask.is_transposed = true;
  for (Layer layer : {wave, image, frames, volume, band, mask}) {
    layer.makes_planes = true;
    const auto device = MakeDevice(2);
    EXPECT_THAT(LayerStep(layer).Check(*device), StartsWith("transposed to few outputs: "));
    layer.has_planes = true;
    EXPECT_THAT(LayerStep(layer).Check(*device), StartsWith("transposed to few outputs: "));
  }
}

// Of a kernel dilated over half of the image, every window sees padding with some of its taps.
TEST(LayerTest, WideDilationsMultiplyNoPadding) {
  for (const int threads : {1, 2}) {
    const auto device = MakeDevice(threads);
    EXPECT_THAT(LayerStep(Square(128, 80, 33, 3, 1, 18, 18)).Check(*device),
                HasSubstr("tap by tap, depth 128"));
    Layer line = {2, 64, 40, {50}, {3}, {1}, {24}, {24}};
    EXPECT_THAT(LayerStep(line).Check(*device), HasSubstr("tap by tap, depth 64"));
    // A quarter of the taps, and no more, makes it worth it.
    line.pad = line.dilation = {12};
    EXPECT_THAT(LayerStep(line).Check(*device), Not(HasSubstr("tap by tap")));
  }
}

// Of three frames, each of the first and last results sees two.
TEST(LayerTest, FramesOfPaddingAreNotMultiplied) {
  Layer layer = {2, 48, 40, {4, 13, 11}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}};
  for (const int threads : {1, 3}) {
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(threads)),
                StartsWith("gathered: without frames of padding, "));
  }
  // Small ones would read the weights once for each.
  layer.image = {4, 5, 5};
  EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(1)), StartsWith("gathered: chunks of "));
}

// Strides of a 1 x 1 kernel: a thread copies what it multiplies, some pixels at a time, and goes on
// from one row and image to the next.
TEST(LayerTest, StridesOfPixelsAreCopiedInChunks) {
  Layer layer = Square(300, 40, 61, 1, 2, 0);
  layer.batch = 2;
  const auto device = MakeDevice(2);
  EXPECT_THAT(LayerStep(layer).Check(*device), StartsWith("pointwise: copies of "));
  EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(1)),
              Not(StartsWith("pointwise: copies of 1922 ")));
  layer.makes_planes = true;
  EXPECT_THAT(LayerStep(layer).Check(*device), Not(StartsWith("pointwise")));
}

// As generators of images begin: each result has one tap, whatever the stride.
TEST(LayerTest, TransposedSinglePixelsAreOneProduct) {
  for (const int64_t stride : {1, 2}) {
    Layer layer = {2, 100, 96, {1, 1}, {4, 4}, {stride, stride}, {0, 0}, {1, 1}};
    layer.is_transposed = true;
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("transposed: 16 remainders"));
    layer.pad = {1, 1};
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("transposed: 4 remainders"));
    layer.pad = {0, 0};
    layer.kernel = {8, 8};
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("transposed: 64 remainders"));
  }
}

// With more remainders than the kernel has, most of each window would be padding.
TEST(LayerTest, TransposedSinglePixelsOfManyRemaindersAreNotGathered) {
  for (const std::vector<int64_t>& kernel :
       {std::vector<int64_t>{9, 9}, {7, 10}, {65}, {5, 4, 4}, {2, 64}, {64, 2}}) {
    const std::vector<int64_t> ones(kernel.size(), 1), zeros(kernel.size(), 0);
    Layer layer = {2, 24, 24, ones, kernel, ones, zeros, ones};
    layer.is_transposed = true;
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("onednn deconvolution"));
  }
}

// With few channels, adding up products is most of the work.
TEST(LayerTest, TransposedFewChannelsToFewOutputsAreOtherKernels) {
  const auto device = MakeDevice(2);
  const auto check = [&](Layer layer) {
    layer.is_transposed = true;
    return LayerStep(layer).Check(*device);
  };
  EXPECT_THAT(check(Square(3, 3, 40, 3, 1, 1)), StartsWith("onednn deconvolution"));
  EXPECT_THAT(check(Square(4, 4, 20, 9, 1, 4)), StartsWith("onednn deconvolution"));
  Layer volume = {1, 16, 3, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  EXPECT_THAT(check(volume), StartsWith("onednn deconvolution"));
  volume.has_planes = volume.makes_planes = true;
  EXPECT_THAT(check(volume), StartsWith("onednn deconvolution"));

  EXPECT_THAT(check(Square(16, 7, 20, 3, 2, 1)), StartsWith("onednn deconvolution"));

  constexpr std::string_view kOwn = "transposed to few outputs";
  volume.in = 32;
  EXPECT_THAT(check(volume), StartsWith(kOwn));
  volume.in = 16;
  volume.stride = {1, 1, 2};
  EXPECT_THAT(check(volume), StartsWith(kOwn));
  EXPECT_THAT(check(Square(3, 3, 40, 4, 2, 1)), StartsWith(kOwn));
  EXPECT_THAT(check(Square(17, 7, 20, 3, 2, 1)), StartsWith(kOwn));
  EXPECT_THAT(check(Square(12, 3, 40, 3, 1, 1)), StartsWith(kOwn));
  EXPECT_THAT(check(Square(3, 1, 40, 3, 1, 1)), StartsWith(kOwn));
  Layer planes = Square(3, 3, 40, 3, 1, 1);
  planes.has_planes = planes.makes_planes = true;
  EXPECT_THAT(check(planes), StartsWith(kOwn));
}

// Nothing of a single pixel is added up.
TEST(LayerTest, TransposedSinglePixelsToFewOutputsAreOtherKernels) {
  for (const bool has_planes : {false, true}) {
    Layer layer = {2, 16, 3, {1, 1}, {20, 20}, {1, 1}, {0, 0}, {1, 1}};
    layer.is_transposed = true;
    layer.has_planes = layer.makes_planes = has_planes;
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)),
                Not(StartsWith("transposed to few outputs")));
    layer.image = {1, 2};
    EXPECT_THAT(LayerStep(layer).Check(*MakeDevice(2)), StartsWith("transposed to few outputs"));
  }
}

}  // namespace
}  // namespace onnxifi::cpu
