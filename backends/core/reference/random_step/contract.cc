// SPDX-License-Identifier: Apache-2.0
//
// MakeContract: matrix products with any number of axes, convolutions and transposed ones, with
// prologues and an epilogue.

#include <cstddef>
#include <utility>
#include <vector>

#include "backends/core/reference/random_step/epilogue.h"
#include "backends/core/reference/random_step/family.h"

namespace onnxifi::reference {

using program::Contract;
using program::Dim;
using program::Expr;
using tensor::ElementType;
using tensor::Extents;

namespace {

// Elements of an operand of Contract as its accumulator's type: loaded, perhaps dequantised or
// activated.
Expr MakePrologue(StepMaker& make, ElementType accumulator, const Extents& extents, int read,
                  ElementType type) {
  Expr element = Cast(Load(make.pool(), type, read), accumulator);
  if (make.Chance(25)) {
    // A zero point, or a bias: another read over the operand's own axes.
    const ElementType other = make.Pick({type, accumulator});
    element = element - Cast(Load(make.pool(), other, make.AddRead(other, extents, Data::kSmall)),
                             accumulator);
  }
  if (make.Chance(15)) element = Maximum(element, Like(element, 0));
  return element;
}

// The operand of a kernel for narrow types: as it is in memory, and of an integer at times less a
// zero point, which is the same along the axes that `is_summed` says, and at times along all.
Expr MakeNarrowPrologue(StepMaker& make, ElementType accumulator, const Extents& extents,
                        const std::vector<bool>& is_summed, int read, ElementType type) {
  const Expr element = Cast(Load(make.pool(), type, read), accumulator);
  if (tensor::IsFloat(type) || make.Chance(40)) return element;
  const bool is_one = make.Chance(50);
  Extents varied = extents;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (is_one || is_summed[axis]) varied[axis] = 1;
  }
  const int zero_point = make.AddRead(type, varied, Data::kSmall);
  program::View& view = make.step.reads.back();
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (!is_one && !is_summed[axis]) continue;
    view.strides[axis] = 0;
    for (program::Guard& guard : view.guards) guard.coefficients[axis] = 0;
  }
  return element - Cast(Load(make.pool(), type, zero_point), accumulator);
}

void MakeConvolution(StepMaker& make, Contract& contract, Extents& a_extents, Extents& b_extents,
                     Extents& domain, int64_t& depth) {
  const auto spatial = static_cast<size_t>(make.Roll(0, 20) == 0 ? 0 : make.Roll(1, 3));
  const bool is_transposed = contract.form == Contract::Form::kConvTranspose;
  contract.group = make.Chance(60) ? 1 : make.Roll(1, 4);
  const int64_t channels = make.Chance(20) ? 1 : make.Roll(1, 6);  // C / group
  const int64_t outputs = make.Chance(20) ? 1 : make.Roll(1, 9);   // M / group
  const int64_t images = make.Roll(1, 2);
  const StepMaker::Numbers numbers(make);
  Extents in, kernel, out;
  program::Dims pads;
  const int64_t largest = spatial == 1 ? 20 : spatial == 2 ? 9 : 5;
  while (in.size() < spatial) {
    const int64_t extent = make.Roll(1, largest), size = make.Roll(1, 4);
    const int64_t stride = make.Chance(50) ? 1 : make.Roll(1, 3),
                  dilation = make.Chance(60) ? 1 : make.Roll(1, 3);
    const int64_t before = make.Chance(40) ? 0 : make.Roll(0, 3),
                  after = make.Chance(40) ? 0 : make.Roll(0, 3);
    const int64_t reach = dilation * (size - 1) + 1;
    int64_t result = 0;
    if (is_transposed) {
      result = stride * (extent - 1) + reach - before - after + make.Roll(0, stride - 1);
    } else if (extent + before + after >= reach) {
      result = (extent + before + after - reach) / stride + 1;
    }
    if (result < 1) continue;
    in.push_back(extent);
    kernel.push_back(size);
    out.push_back(result);
    pads.push_back(before == 0 ? Dim(0) : make.MakeDim(before));
    contract.strides.push_back(stride);
    contract.dilations.push_back(dilation);
  }
  contract.pads_begin = pads;
  contract.a_spatial = make.MakeShape(in);
  Extents inner = {channels};
  inner.insert(inner.end(), kernel.begin(), kernel.end());
  contract.inner = make.MakeShape(inner);
  depth = tensor::ElementCount(inner);
  a_extents = {images, contract.group * channels};
  a_extents.insert(a_extents.end(), in.begin(), in.end());
  b_extents = is_transposed ? Extents{contract.group * channels, outputs}
                            : Extents{contract.group * outputs, channels};
  b_extents.insert(b_extents.end(), kernel.begin(), kernel.end());
  domain = {images, contract.group * outputs};
  domain.insert(domain.end(), out.begin(), out.end());
}

// Which axes of A and of B the products are summed along.
std::pair<std::vector<bool>, std::vector<bool>> SummedAxes(const Contract& contract, size_t a_rank,
                                                           size_t b_rank) {
  // The zero point of a convolution's image is one number.
  std::vector<bool> a(a_rank, contract.form != Contract::Form::kMatMul);
  std::vector<bool> b(b_rank, true);
  if (contract.form != Contract::Form::kMatMul) {
    // Those of kernels are by output.
    b[contract.form == Contract::Form::kConv ? 0 : 1] = false;
    return {a, b};
  }
  for (size_t k = 0; k < contract.inner.size(); ++k) a[a_rank - 1 - k] = true;
  const auto batch = static_cast<size_t>(contract.batch_axes);
  for (size_t axis = 0; axis < b_rank; ++axis) {
    b[axis] = axis >= batch && axis < batch + contract.inner.size();
  }
  return {a, b};
}

}  // namespace

void MakeContract(StepMaker& make) {
  Contract contract;
  const ElementType accumulator =
      make.Pick({kFloat32, kFloat32, kFloat32, kFloat32, kFloat64, ElementType::kInt32,
                 ElementType::kInt32, kInt64, ElementType::kUint32, ElementType::kUint64});
  contract.accumulator = accumulator;
  contract.form = make.Pick({Contract::Form::kMatMul, Contract::Form::kConv, Contract::Form::kConv,
                             Contract::Form::kConvTranspose});
  Extents a_extents, b_extents, domain;
  int64_t depth = 1;
  if (contract.form == Contract::Form::kMatMul) {
    auto some = [&](int max_rank, int64_t largest) {
      Extents extents(static_cast<size_t>(make.Roll(0, max_rank)));
      const StepMaker::Numbers numbers(make);
      for (int64_t& extent : extents) extent = make.Roll(make.Chance(2) ? 0 : 1, largest);
      return extents;
    };
    const Extents batch = some(2, 3), m = some(2, 9), n = some(2, make.Chance(20) ? 70 : 9);
    const Extents k = some(2, 17);
    contract.batch_axes = static_cast<int>(batch.size());
    contract.m_axes = static_cast<int>(m.size());
    contract.n_axes = static_cast<int>(n.size());
    contract.inner = make.MakeShape(k);
    auto join = [](std::initializer_list<const Extents*> parts) {
      Extents all;
      for (const Extents* part : parts) all.insert(all.end(), part->begin(), part->end());
      return all;
    };
    a_extents = join({&batch, &m, &k});
    b_extents = join({&batch, &k, &n});
    domain = join({&batch, &m, &n});
    depth = tensor::ElementCount(k);
  } else {
    MakeConvolution(make, contract, a_extents, b_extents, domain, depth);
  }
  make.step.domain = make.MakeShape(domain);
  const bool is_float = tensor::IsFloat(accumulator);
  const Data data = is_float && make.Chance(50) ? Data::kModerate : Data::kSmall;
  auto type = [&] {
    if (is_float) {
      return make.Chance(70) ? accumulator
                             : make.Pick({ElementType::kFloat16, ElementType::kBfloat16,
                                          ElementType::kInt8, kFloat32});
    }
    return make.Pick({ElementType::kInt8, ElementType::kUint8, accumulator, ElementType::kInt4});
  };
  // Both of types that devices have kernels for, or each of any.
  const bool is_narrow = make.Chance(30);
  const auto narrow = [&] {
    return is_float ? make.Pick({ElementType::kFloat16, ElementType::kBfloat16})
                    : make.Pick({ElementType::kInt8, ElementType::kUint8});
  };
  const ElementType a_type = is_narrow ? narrow() : type();
  const ElementType b_type = !is_narrow ? type() : is_float ? a_type : narrow();
  // Integers of any size would leave the tolerance below.
  make.AddRead(a_type, a_extents, tensor::IsFloat(a_type) ? data : Data::kSmall);
  make.AddRead(b_type, b_extents, tensor::IsFloat(b_type) ? data : Data::kSmall);
  if (is_narrow) {
    const auto [a_summed, b_summed] = SummedAxes(contract, a_extents.size(), b_extents.size());
    contract.a_prologue =
        MakeNarrowPrologue(make, accumulator, a_extents, a_summed, 0, a_type).id();
    contract.b_prologue =
        MakeNarrowPrologue(make, accumulator, b_extents, b_summed, 1, b_type).id();
  } else {
    contract.a_prologue = MakePrologue(make, accumulator, a_extents, 0, a_type).id();
    contract.b_prologue = MakePrologue(make, accumulator, b_extents, 1, b_type).id();
  }
  MakeEpilogue(make, accumulator, domain, /*may_write_two=*/true, contract.roots);
  if (is_float) {
    // Each product is at most 2^3 * 2^3 in size; a sum of `depth` of them is off by that many
    // roundings at most.
    const double unit = accumulator == kFloat32 ? 0x1p-24 : 0x1p-53;
    make.tolerance = 4 * unit * 64 * static_cast<double>(depth + 4);
  }
  make.step.body = std::move(contract);
}

}  // namespace onnxifi::reference
