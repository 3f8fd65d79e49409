// SPDX-License-Identifier: Apache-2.0
//
// TiledTest: for tests of contractions cut into tiles: products and convolutions of any attributes,
// on kernels as they are cut for a processor and as for a GPU.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TILED_FIXTURE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TILED_FIXTURE_H_

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {

using program::Contract;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

inline constexpr auto kVariable = program::Buffer::Kind::kTemporary;
inline constexpr auto kConstant = program::Buffer::Kind::kConstant;

// On kernels as they are cut for a processor, and as for a GPU.
class TiledTest : public StepTest, public testing::WithParamInterface<bool> {
 protected:
  bool is_gpu() const { return GetParam(); }
  void SetUp() override {
    const char* const before = std::getenv(kTuning);
    const std::optional<std::string> kept =
        before == nullptr ? std::nullopt : std::optional<std::string>(before);
    setenv(kTuning, is_gpu() ? "gpu" : "processor", 1);
    StepTest::SetUp();
    kept ? setenv(kTuning, kept->c_str(), 1) : unsetenv(kTuning);
    if (is_gpu() && tested_ != nullptr && tested_->CompilesSlowly() &&
        std::getenv("ONNXIFI_TEST_GPU_KERNELS") == nullptr) {
      GTEST_SKIP() << "Compiling a GPU's kernels takes " << tested_->name()
                   << " minutes; ONNXIFI_TEST_GPU_KERNELS=1 does.";
    }
  }

 private:
  static constexpr char kTuning[] = "ONNXIFI_TUNING";
};

struct ProductShape {
  int64_t batch, m, n, k;
  bool a_transposed = false, b_transposed = false, b_shared = false;
  program::Buffer::Kind b_kind = kVariable;
  ElementType type = kFloat, accumulator = kFloat;
};

inline RandomStep MakeProduct(const ProductShape& shape, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.accumulator = shape.accumulator;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {shape.k};
  View a = make.Buffer(shape.a_transposed ? Extents{shape.batch, shape.k, shape.m}
                                          : Extents{shape.batch, shape.m, shape.k},
                       shape.type);
  View b = make.Buffer(shape.b_transposed ? Extents{shape.batch, shape.n, shape.k}
                                          : Extents{shape.batch, shape.k, shape.n},
                       shape.type, shape.b_kind);
  if (shape.a_transposed) std::swap(a.strides[1], a.strides[2]);
  if (shape.b_transposed) std::swap(b.strides[1], b.strides[2]);
  if (shape.b_shared) b.strides[0] = 0;
  contract.a_prologue = Cast(make.Read(a), shape.accumulator).id();
  contract.b_prologue = Cast(make.Read(b), shape.accumulator).id();
  make.Finish(std::move(contract), {shape.batch, shape.m, shape.n}, 2);
  return std::move(make.made);
}

struct Axis {
  int64_t extent, kernel, stride = 1, dilation = 1, before = 0, after = 0;

  int64_t out() const {
    return (extent + before + after - dilation * (kernel - 1) - 1) / stride + 1;
  }
  // Of a transposed convolution; `after` is the output padding.
  int64_t transposed_out() const {
    return (extent - 1) * stride + dilation * (kernel - 1) + 1 - before + after;
  }
};

inline RandomStep MakeConvolution(int64_t images, int64_t group, int64_t channels, int64_t outputs,
                                  const std::vector<Axis>& axes, ElementType type, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = group;
  contract.inner = {channels};
  Extents a = {images, group * channels}, b = {group * outputs, channels};
  Extents domain = {images, group * outputs};
  for (const Axis& axis : axes) {
    a.push_back(axis.extent);
    b.push_back(axis.kernel);
    domain.push_back(axis.out());
    contract.inner.push_back(axis.kernel);
    contract.a_spatial.push_back(axis.extent);
    contract.strides.push_back(axis.stride);
    contract.dilations.push_back(axis.dilation);
    contract.pads_begin.push_back(axis.before);
  }
  contract.a_prologue = Cast(make.Read(make.Buffer(a, type)), kFloat).id();
  contract.b_prologue = Cast(make.Read(make.Buffer(b, type, kConstant)), kFloat).id();
  make.Finish(std::move(contract), domain, 1);
  return std::move(make.made);
}

inline RandomStep MakeTransposed(int64_t images, int64_t group, int64_t channels, int64_t outputs,
                                 const std::vector<Axis>& axes, ElementType type, uint32_t seed) {
  StepMaker make(seed);
  Contract contract;
  contract.form = Contract::Form::kConvTranspose;
  contract.group = group;
  contract.inner = {channels};
  Extents a = {images, group * channels}, b = {group * channels, outputs};
  Extents domain = {images, group * outputs};
  for (const Axis& axis : axes) {
    a.push_back(axis.extent);
    b.push_back(axis.kernel);
    domain.push_back(axis.transposed_out());
    contract.inner.push_back(axis.kernel);
    contract.a_spatial.push_back(axis.extent);
    contract.strides.push_back(axis.stride);
    contract.dilations.push_back(axis.dilation);
    contract.pads_begin.push_back(axis.before);
  }
  contract.a_prologue = Cast(make.Read(make.Buffer(a, type)), kFloat).id();
  contract.b_prologue = Cast(make.Read(make.Buffer(b, type, kConstant)), kFloat).id();
  make.Finish(std::move(contract), domain, 1);
  return std::move(make.made);
}

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TILED_FIXTURE_H_
