// SPDX-License-Identifier: Apache-2.0
//
// TransformInStages. Complex numbers are pairs along the last axis: a product of two of them reads
// the real and the imaginary part of one, each times a pair of the other.

#include "backends/core/ops/signal/fast_transform.h"

#include <bit>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>

#include "backends/core/ops/shape/concat.h"

namespace onnxifi::ops {
namespace {

// Shorter lines are multiplied with the matrix of the whole transform.
constexpr int64_t kMinLength = 512;
// What is left of a line behind its stages is, too.
constexpr int64_t kMaxRest = 256;
// The largest matrix of a stage.
constexpr int64_t kMaxFactor = 64;
// The chirp of a line is a constant.
constexpr int64_t kMaxChirpLength = int64_t{1} << 22;

// The largest factor of the length that a stage takes; 1 if there is none.
int64_t FactorOf(int64_t length) {
  int64_t factor = std::min(kMaxFactor, length);
  while (length % factor != 0) --factor;
  return factor;
}

// Whether factors leave something short, or a chirp is not too long.
bool HasStages(int64_t length) {
  while (length > kMaxRest && FactorOf(length) > 1) length /= FactorOf(length);
  return length <= kMaxRest || length <= kMaxChirpLength;
}

Expr IsReal(StepBuilder& map) {
  const Expr part = map.Coordinate(static_cast<int>(map.domain().size()) - 1);
  return part == Like(part, 0);
}

// The numbers i times those of `pairs`, for the imaginary part that is multiplied with them.
Expr Turned(StepBuilder& map, const Operand& pairs) {
  const int axis = pairs.rank() - 1;
  const Expr real = map.Read(program::Slice(pairs, axis, 0, 1, 1));
  const Expr imaginary = map.Read(program::Slice(pairs, axis, 1, 1, 1));
  return Select(IsReal(map), -imaginary, real);
}

// x times `pairs`, broadcast to [..., 2]. `x` has one part or two.
Operand Times(Lowering& lowering, const Operand& x, const Operand& pairs) {
  const int axis = x.rank() - 1;
  Shape shape = x.shape;
  shape.back() = 2;
  StepBuilder map(lowering, shape);
  Expr value = map.Read(program::Slice(x, axis, 0, 1, 1)) * map.Read(pairs);
  if (x.shape.back() == Dim(2)) {
    value = value + map.Read(program::Slice(x, axis, 1, 1, 1)) * Turned(map, pairs);
  }
  return map.WriteMap(value, x.type());
}

Operand PaddedTo(Lowering& lowering, const Operand& x, int axis, Dim extent) {
  if (x.shape[static_cast<size_t>(axis)] == extent) return x;
  const Dims before(x.shape.size(), Dim(0));
  Dims after = before;
  after[static_cast<size_t>(axis)] = extent - x.shape[static_cast<size_t>(axis)];
  std::optional<Operand> padded = program::Pad(x, before, after, tensor::Scalar());
  if (!padded) padded = program::Pad(lowering.Dense(x), before, after, tensor::Scalar());
  return lowering.Dense(*padded);
}

using Numbers = std::vector<std::complex<double>>;

// In place, of a power of two.
void TransformNumbers(Numbers& x) {
  const size_t length = x.size();
  for (size_t n = 1, mirrored = 0; n < length; ++n) {
    size_t bit = length >> 1;
    for (; (mirrored & bit) != 0; bit >>= 1) mirrored ^= bit;
    mirrored ^= bit;
    if (n < mirrored) std::swap(x[n], x[mirrored]);
  }
  for (size_t half = 1; half < length; half *= 2) {
    Numbers roots;
    for (size_t k = 0; k < half; ++k) {
      roots.push_back(std::polar(1.0, -std::numbers::pi * double(k) / double(half)));
    }
    for (size_t start = 0; start < length; start += 2 * half) {
      for (size_t k = start; k < start + half; ++k) {
        const std::complex<double> odd = x[k + half] * roots[k - start];
        x[k + half] = x[k] - odd;
        x[k] += odd;
      }
    }
  }
}

Operand ConstantPairs(Lowering& lowering, const Numbers& numbers, ElementType type) {
  const tensor::Extents extents = {static_cast<int64_t>(numbers.size()), 2};
  if (type == ElementType::kFloat64) {
    std::vector<double> pairs;
    for (const auto& number : numbers) pairs.insert(pairs.end(), {number.real(), number.imag()});
    return lowering.ConstantTensor(
        tensor::Tensor::FromValues<double>(type, extents, std::span(std::as_const(pairs))));
  }
  std::vector<float> pairs;
  for (const auto& number : numbers) {
    pairs.insert(pairs.end(), {float(number.real()), float(number.imag())});
  }
  return lowering.ConstantTensor(
      tensor::Tensor::FromValues<float>(type, extents, std::span(std::as_const(pairs))));
}

// Transforms lines [rows, length, parts] of float32 or float64 to [rows, length, 2].
class Stages {
 public:
  Stages(Lowering& lowering, ElementType type) : lowering_(lowering), type_(type) {}

  Result<Operand> Run(const Operand& x, int64_t length, bool is_inverse) {
    if (length <= kMaxRest) return ByMatrix(x, length, is_inverse);
    const int64_t factor = FactorOf(length);
    if (factor == 1) return ByChirp(x, length, is_inverse);
    // With n = rest n1 + n2 and k = k1 + factor k2: a transform over n1, a root of unity to the
    // power of n2 k1, a transform over n2.
    const int64_t rest = length / factor;
    const Dim rows = x.shape[0];
    const Dim parts = x.shape[2];
    const Operand apart = lowering_.Reshaped(x, {rows, factor, rest, parts});
    const Operand lines =
        lowering_.Reshaped(program::Permute(apart, {0, 2, 1, 3}), {rows * rest, factor, parts});
    ONNXIFI_ASSIGN_OR_RETURN(Operand y, ByMatrix(lines, factor, is_inverse));
    y = program::Permute(lowering_.Reshaped(y, {rows, rest, factor, 2}), {0, 2, 1, 3});
    y = Times(lowering_, y, Roots(factor, rest, is_inverse));
    ONNXIFI_ASSIGN_OR_RETURN(
        y, Run(lowering_.Reshaped(y, {rows * factor, rest, 2}), rest, is_inverse));
    y = program::Permute(lowering_.Reshaped(y, {rows, factor, rest, 2}), {0, 2, 1, 3});
    return lowering_.Reshaped(y, {rows, length, 2});
  }

 private:
  Result<Operand> ByMatrix(const Operand& x, int64_t length, bool is_inverse) {
    Transform transform;
    transform.length = transform.used = transform.bins = length;
    transform.is_inverse = is_inverse;
    transform.in_parts = x.shape.back();
    return TransformByMatrix(lowering_, transform, x, /*window=*/nullptr);
  }

  // [factor, rest, 2]: roots of unity to the powers of k1 n2.
  Operand Roots(int64_t factor, int64_t rest, bool is_inverse) {
    StepBuilder map(lowering_, {factor, rest, 2});
    const UnitRoot root =
        MakeUnitRoot(map.Coordinate(0) * map.Coordinate(1), map.Extent(factor * rest), type_);
    const Expr imaginary = is_inverse ? root.imaginary : -root.imaginary;
    return map.WriteMap(Select(IsReal(map), root.real, imaginary), type_);
  }

  // With n k = (n n + k k - (k - n)(k - n)) / 2 the sum is a convolution.
  Result<Operand> ByChirp(const Operand& x, int64_t length, bool is_inverse) {
    const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
    Numbers chirp;
    Numbers convolved(static_cast<size_t>(padded));
    for (int64_t n = 0; n < length; ++n) {
      const double angle = std::numbers::pi * double(n * n % (2 * length)) / double(length);
      chirp.push_back(std::polar(1.0, is_inverse ? angle : -angle));
      convolved[static_cast<size_t>(n)] = std::conj(chirp.back());
      convolved[static_cast<size_t>((padded - n) % padded)] = std::conj(chirp.back());
    }
    TransformNumbers(convolved);
    Operand y = Times(lowering_, x, ConstantPairs(lowering_, chirp, type_));
    ONNXIFI_ASSIGN_OR_RETURN(y,
                             Run(PaddedTo(lowering_, y, 1, padded), padded, /*is_inverse=*/false));
    y = Times(lowering_, y, ConstantPairs(lowering_, convolved, type_));
    ONNXIFI_ASSIGN_OR_RETURN(y, Run(y, padded, /*is_inverse=*/true));
    if (is_inverse) {
      for (auto& number : chirp) number /= double(length);
    }
    return Times(lowering_, program::Slice(y, 1, 0, 1, length),
                 ConstantPairs(lowering_, chirp, type_));
  }

  Lowering& lowering_;
  const ElementType type_;
};

// Half a spectrum with its conjugate other half behind it.
Result<Operand> Mirrored(Lowering& lowering, const Operand& x, int64_t length) {
  const int64_t half = length / 2 + 1;
  const Operand first = PaddedTo(lowering, x, 1, half);
  const Operand other = program::Slice(first, 1, length - half, -1, length - half);
  StepBuilder map(lowering, other.shape);
  Expr value = map.Read(other);
  if (x.shape.back() == Dim(2)) value = Select(IsReal(map), value, -value);
  return Concatenate(lowering, {first, map.WriteMap(value, x.type())}, 1);
}

}  // namespace

bool IsFasterInStages(const Transform& transform, const Shape& extents) {
  return transform.length.is_constant() && transform.length.constant() >= kMinLength &&
         transform.used.is_constant() && transform.in_parts.is_constant() &&
         extents.back().is_constant() && HasStages(transform.length.constant());
}

Result<Operand> TransformInStages(Lowering& lowering, const Transform& transform, const Operand& x,
                                  const Operand* window) {
  const int64_t length = transform.length.constant();
  const ElementType compute = tensor::ArithmeticType(x.type());
  Operand lines = lowering.CastTo(x, compute);
  if (window != nullptr) {
    StepBuilder map(lowering, lines.shape);
    const Operand factors = program::InsertAxis(*window, 1);
    lines = map.WriteMap(map.Read(lines) * map.ReadArithmetic(factors), compute);
  }
  Shape rows(x.shape.begin(), x.shape.end() - 2);
  lines = lowering.Reshaped(lines, {tensor::Product(rows), transform.used, transform.in_parts});
  if (transform.mirrors()) {
    ONNXIFI_ASSIGN_OR_RETURN(lines, Mirrored(lowering, lines, length));
  } else {
    lines = PaddedTo(lowering, lines, 1, length);
  }
  ONNXIFI_ASSIGN_OR_RETURN(Operand y,
                           Stages(lowering, compute).Run(lines, length, transform.is_inverse));
  y = program::Slice(y, 1, 0, 1, transform.bins);
  y = program::Slice(y, 2, 0, 1, transform.out_parts);
  rows.push_back(transform.bins);
  rows.push_back(transform.out_parts);
  return lowering.Reshaped(lowering.CastTo(y, x.type()), rows);
}

}  // namespace onnxifi::ops
