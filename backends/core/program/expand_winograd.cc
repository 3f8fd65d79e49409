// SPDX-License-Identifier: Apache-2.0
//
// ExpandWinograd: F(4x4, 3x3) after Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks" (2015): a tile of 4 x 4 outputs is A^T ((G g G^T) * (B^T d B)) A of 6 x 6 inputs d and
// a kernel g. The products over all channels are a matrix product for each of 36 frequencies.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

constexpr int kTile = 4;
constexpr int kTaps = 3;
constexpr int kSide = kTile + kTaps - 1;
constexpr int kFrequencies = kSide * kSide;

template <size_t kRows, size_t kColumns>
using Matrix = std::array<std::array<double, kColumns>, kRows>;

// The polynomials are evaluated at 0, +-sqrt(1/2), +-sqrt(2) and infinity, whose powers stay closer
// together than those of 1 and 2, and the rounding errors with them. Row p of the kernels' matrix
// is [1, p, p^2] / m'(p), of the image's the coefficients of m(x) / (x - p), of the result's p^0 to
// p^3 down its column, with m(x) = x (x^2 - 1/2) (x^2 - 2) = x^5 - 5/2 x^3 + x.
constexpr double kNear = 0.70710678118654752440;
constexpr double kFar = 1.41421356237309504880;
constexpr Matrix<kSide, kSide> kInputTransform = {{{1, 0, -2.5, 0, 1, 0},
                                                   {0, -2 * kNear, -2, kNear, 1, 0},
                                                   {0, 2 * kNear, -2, -kNear, 1, 0},
                                                   {0, -kFar / 2, -0.5, kFar, 1, 0},
                                                   {0, kFar / 2, -0.5, -kFar, 1, 0},
                                                   {0, 1, 0, -2.5, 0, 1}}};
constexpr Matrix<kSide, kTaps> kKernelTransform = {{{1, 0, 0},
                                                    {-2.0 / 3, -2.0 / 3 * kNear, -1.0 / 3},
                                                    {-2.0 / 3, 2.0 / 3 * kNear, -1.0 / 3},
                                                    {1.0 / 6, kFar / 6, 1.0 / 3},
                                                    {1.0 / 6, -kFar / 6, 1.0 / 3},
                                                    {0, 0, 1}}};
constexpr Matrix<kTile, kSide> kOutputTransform = {
    {{1, 1, 1, 1, 1, 0},
     {0, kNear, -kNear, kFar, -kFar, 0},
     {0, 0.5, 0.5, 2, 2, 0},
     {0, kNear / 2, -kNear / 2, 2 * kFar, -2 * kFar, 1}}};

// The extents of a convolution that can be expanded.
struct Extents {
  int64_t images, in_channels, out_channels, in_height, in_width, pad_above, pad_left;
  int64_t out_height, out_width;

  // The last tiles may reach beyond the result.
  int64_t tiles_down() const { return (out_height + kTile - 1) / kTile; }
  int64_t tiles_across() const { return (out_width + kTile - 1) / kTile; }
  int64_t tiles() const { return images * tiles_down() * tiles_across(); }
};

// Tiles along one axis of which the same outputs lie in the result.
struct TileRange {
  int64_t first, count;
  int64_t outputs;  // per tile
};

// The whole tiles, then the last one if it is cut.
std::vector<TileRange> RangesOf(int64_t outputs) {
  std::vector<TileRange> ranges;
  const int64_t whole = outputs / kTile;
  if (whole > 0) ranges.push_back({0, whole, kTile});
  if (outputs % kTile != 0) ranges.push_back({whole, 1, outputs % kTile});
  return ranges;
}

bool AreConstant(std::span<const Dim> dims) {
  for (const Dim& dim : dims) {
    if (!dim.is_constant()) return false;
  }
  return true;
}

// Whether `id` is read `read` as it is.
bool IsPlainLoad(const ExprPool& pool, ExprId id, uint64_t read) {
  return pool[id].op == ExprOp::kLoad && pool[id].payload == read && pool[id].operands.empty() &&
         pool[id].type == ElementType::kFloat32;
}

// Nothing where the step is no convolution of this form.
std::optional<Extents> ExtentsOf(const Program& program, const Step& step) {
  const Contract* const contract = step.As<Contract>();
  const std::vector<int64_t> ones = {1, 1};
  if (contract == nullptr || contract->form != Contract::Form::kConv ||
      contract->accumulator != ElementType::kFloat32 || contract->strides != ones ||
      contract->dilations != ones || contract->group != 1 || contract->roots.size() != 1 ||
      !AreConstant(step.domain) || !AreConstant(contract->inner) ||
      !AreConstant(contract->a_spatial) || !AreConstant(contract->pads_begin)) {
    return std::nullopt;
  }
  const Shape& inner = contract->inner;
  const int64_t height = step.domain[2].constant();
  const int64_t width = step.domain[3].constant();
  if (inner[1].constant() != kTaps || inner[2].constant() != kTaps ||
      step.domain[0].constant() < 1 || height < 1 || width < 1 || inner[0].constant() < 1) {
    return std::nullopt;
  }
  const View& weights = step.reads[1];
  const Buffer& buffer = program.buffers[static_cast<size_t>(weights.buffer)];
  const Shape kernel = {step.domain[1], inner[0], inner[1], inner[2]};
  if (buffer.kind != Buffer::Kind::kConstant || !IsDense({weights, kernel}) ||
      !step.reads[0].guards.empty() || !IsPlainLoad(program.exprs, contract->a_prologue, 0) ||
      !IsPlainLoad(program.exprs, contract->b_prologue, 1)) {
    return std::nullopt;
  }
  for (const ExprId id : Reachable(program.exprs, contract->roots)) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kLoad && node.payload < 2) return std::nullopt;
  }
  return Extents{step.domain[0].constant(),
                 inner[0].constant(),
                 step.domain[1].constant(),
                 contract->a_spatial[0].constant(),
                 contract->a_spatial[1].constant(),
                 contract->pads_begin[0].constant(),
                 contract->pads_begin[1].constant(),
                 height,
                 width};
}

// G g G^T of every kernel: [frequency, out channel, in channel] of [out channel, in channel, 3, 3].
base::Result<tensor::Tensor> TransformKernels(const tensor::Tensor& weights, const Extents& of) {
  ONNXIFI_ASSIGN_OR_RETURN(
      tensor::Tensor transformed,
      tensor::Tensor::Allocate(ElementType::kFloat32,
                               {kFrequencies, of.out_channels, of.in_channels}));
  const std::byte* const kernels = weights.data();  // any address, as a model may have them
  auto* const out = reinterpret_cast<float*>(transformed.mutable_data());
  const auto pairs = static_cast<size_t>(of.out_channels * of.in_channels);
  // So many kernels at a time, in vectors.
  constexpr size_t kBlock = 64;
  using Lanes = std::array<double, kBlock>;
  std::array<std::array<Lanes, kTaps>, kTaps> taps = {};
  std::array<std::array<Lanes, kTaps>, kSide> half;
  for (size_t first = 0; first < pairs; first += kBlock) {
    const size_t count = std::min(kBlock, pairs - first);
    for (size_t lane = 0; lane < count; ++lane) {
      float kernel[kTaps * kTaps];
      std::memcpy(kernel, kernels + (first + lane) * sizeof(kernel), sizeof(kernel));
      for (size_t tap = 0; tap < kTaps * kTaps; ++tap) {
        taps[tap / kTaps][tap % kTaps][lane] = static_cast<double>(kernel[tap]);
      }
    }
    for (size_t row = 0; row < kSide; ++row) {
      const auto& g = kKernelTransform[row];
      for (size_t tap = 0; tap < kTaps; ++tap) {
        for (size_t lane = 0; lane < kBlock; ++lane) {
          half[row][tap][lane] =
              g[0] * taps[0][tap][lane] + g[1] * taps[1][tap][lane] + g[2] * taps[2][tap][lane];
        }
      }
    }
    for (size_t frequency = 0; frequency < kFrequencies; ++frequency) {
      const auto& g = kKernelTransform[frequency % kSide];
      const auto& row = half[frequency / kSide];
      float* const to = out + frequency * pairs + first;
      for (size_t lane = 0; lane < count; ++lane) {
        to[lane] =
            static_cast<float>(row[0][lane] * g[0] + row[1][lane] * g[1] + row[2][lane] * g[2]);
      }
    }
  }
  return transformed;
}

// Sums of multiples of float32 values.
Expr Combine(ExprPool& pool, std::span<const double> factors, std::span<const Expr> values) {
  Expr sum;
  for (size_t k = 0; k < factors.size(); ++k) {
    if (factors[k] == 0) continue;
    const Expr term =
        factors[k] == 1 ? values[k] : values[k] * Constant(pool, ElementType::kFloat32, factors[k]);
    sum = sum.pool() == nullptr ? term : sum + term;
  }
  return sum;
}

// matrix * values * matrix^T of a square of values, row by row.
template <size_t kRows>
std::vector<Expr> TransformSquare(ExprPool& pool, const Matrix<kRows, kSide>& matrix,
                                  const std::vector<Expr>& values) {
  std::vector<Expr> half;  // [kRows][kSide]
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t column = 0; column < kSide; ++column) {
      std::vector<Expr> of_column;
      for (size_t k = 0; k < kSide; ++k) of_column.push_back(values[k * kSide + column]);
      half.push_back(Combine(pool, matrix[row], of_column));
    }
  }
  std::vector<Expr> transformed;
  for (size_t row = 0; row < kRows; ++row) {
    const std::span<const Expr> of_row = std::span(half).subspan(row * kSide, kSide);
    for (size_t column = 0; column < kRows; ++column) {
      transformed.push_back(Combine(pool, matrix[column], of_row));
    }
  }
  return transformed;
}

class Expansion {
 public:
  Expansion(Program& program, const Step& step, const Extents& of)
      : program_(program), pool_(program.exprs), step_(step), of_(of) {}

  // The steps in place of the one.
  base::Result<std::vector<Step>> Make() {
    const Step& step = step_;
    const Buffer& kernels = program_.buffers[static_cast<size_t>(step.reads[1].buffer)];
    ONNXIFI_ASSIGN_OR_RETURN(
        tensor::Tensor transformed,
        TransformKernels(program_.constants[static_cast<size_t>(kernels.index)], of_));
    const auto constant = static_cast<int>(program_.constants.size());
    program_.constants.push_back(std::move(transformed));
    const Shape kernel_shape = {kFrequencies, of_.out_channels, of_.in_channels};
    const BufferId kernel_buffer = program_.AddBuffer(
        {Buffer::Kind::kConstant, ElementType::kFloat32, kernel_shape, constant});
    const Shape input_shape = {kFrequencies, of_.in_channels, of_.tiles()};
    const Shape product_shape = {kFrequencies, of_.out_channels, of_.tiles()};
    const BufferId input = Temporary(input_shape);
    const BufferId product = Temporary(product_shape);
    std::vector<Step> steps;
    steps.push_back(TransformInput(input));
    steps.push_back(Multiply(DenseView(kernel_buffer, ElementType::kFloat32, kernel_shape),
                             DenseView(input, ElementType::kFloat32, input_shape),
                             DenseView(product, ElementType::kFloat32, product_shape),
                             product_shape));
    // What is written has no guards: the tiles at an edge that they cross are steps of their own.
    for (const TileRange& down : RangesOf(of_.out_height)) {
      for (const TileRange& across : RangesOf(of_.out_width)) {
        steps.push_back(TransformOutput(product, down, across));
      }
    }
    for (Step& made : steps) made.node = step.node;
    return steps;
  }

 private:
  BufferId Temporary(const Shape& shape) {
    return program_.AddBuffer({Buffer::Kind::kTemporary, ElementType::kFloat32, shape, -1});
  }
  Expr Integer(int64_t value) { return IntConstant(pool_, ElementType::kInt64, value); }
  // Frequency `frequency` of what is [frequency, channel, tile], over [channel, image, tile row,
  // tile column].
  View FrequencyView(BufferId buffer, int64_t channels, int64_t frequency) const {
    View view;
    view.buffer = buffer;
    view.type = ElementType::kFloat32;
    view.offset = frequency * channels * of_.tiles();
    view.strides = {of_.tiles(), of_.tiles_down() * of_.tiles_across(), of_.tiles_across(), 1};
    return view;
  }

  Step TransformInput(BufferId transformed) {
    Step step;
    step.domain = {of_.in_channels, of_.images, of_.tiles_down(), of_.tiles_across()};
    View image = step_.reads[0];
    image.guards = {{{0, 0, 1, 0}, 0, of_.in_height}, {{0, 0, 0, 1}, 0, of_.in_width}};
    image.fill = {.f = 0};
    step.reads = {std::move(image)};
    std::vector<Expr> loads;
    for (int64_t row = 0; row < kSide; ++row) {
      for (int64_t column = 0; column < kSide; ++column) {
        const std::array<Expr, 4> at = {
            Coordinate(pool_, 1), Coordinate(pool_, 0),
            Coordinate(pool_, 2) * Integer(kTile) + Integer(row - of_.pad_above),
            Coordinate(pool_, 3) * Integer(kTile) + Integer(column - of_.pad_left)};
        loads.push_back(LoadAt(pool_, ElementType::kFloat32, 0, at));
      }
    }
    Map map;
    for (const Expr& root : TransformSquare(pool_, kInputTransform, loads)) {
      step.writes.push_back(
          FrequencyView(transformed, of_.in_channels, static_cast<int64_t>(step.writes.size())));
      map.roots.push_back(root.id());
    }
    step.body = std::move(map);
    return step;
  }

  Step Multiply(const View& kernels, const View& input, const View& product, const Shape& domain) {
    Contract contract;
    contract.form = Contract::Form::kMatMul;
    contract.batch_axes = contract.m_axes = contract.n_axes = 1;
    contract.inner = {of_.in_channels};
    contract.a_prologue = Load(pool_, ElementType::kFloat32, 0).id();
    contract.b_prologue = Load(pool_, ElementType::kFloat32, 1).id();
    contract.roots = {Accumulator(pool_, ElementType::kFloat32).id()};
    Step step;
    step.domain = domain;
    step.reads = {kernels, input};
    step.writes = {product};
    step.body = std::move(contract);
    return step;
  }

  // Of these tiles, with what the convolution does to its sums. Its reads keep their numbers; those
  // of image and kernels are the frequencies now.
  Step TransformOutput(BufferId product, const TileRange& down, const TileRange& across) {
    Step step;
    step.domain = {of_.out_channels, of_.images, down.count, across.count};
    step.reads = step_.reads;
    View frequencies = FrequencyView(product, of_.out_channels, 0);
    frequencies.offset = frequencies.offset + (down.first * of_.tiles_across() + across.first);
    frequencies.strides.insert(frequencies.strides.begin(), of_.out_channels * of_.tiles());
    step.reads[0] = step.reads[1] = frequencies;
    std::vector<Expr> loads;
    for (int64_t frequency = 0; frequency < kFrequencies; ++frequency) {
      const std::array<Expr, 5> at = {Integer(frequency), Coordinate(pool_, 0),
                                      Coordinate(pool_, 1), Coordinate(pool_, 2),
                                      Coordinate(pool_, 3)};
      loads.push_back(LoadAt(pool_, ElementType::kFloat32, 0, at));
    }
    const std::vector<Expr> sums = TransformSquare(pool_, kOutputTransform, loads);
    const View& written = step_.writes[0];
    Map map;
    for (int64_t row = 0; row < down.outputs; ++row) {
      for (int64_t column = 0; column < across.outputs; ++column) {
        const int64_t first_row = down.first * kTile + row;
        const int64_t first_column = across.first * kTile + column;
        View view = written;
        view.offset =
            view.offset + written.strides[2] * first_row + written.strides[3] * first_column;
        view.strides = {written.strides[1], written.strides[0], written.strides[2] * kTile,
                        written.strides[3] * kTile};
        step.writes.push_back(std::move(view));
        const std::array<Expr, 4> at = {
            Coordinate(pool_, 1), Coordinate(pool_, 0),
            Coordinate(pool_, 2) * Integer(kTile) + Integer(first_row),
            Coordinate(pool_, 3) * Integer(kTile) + Integer(first_column)};
        map.roots.push_back(RootAt(at, sums[static_cast<size_t>(row * kTile + column)]).id());
      }
    }
    step.body = std::move(map);
    return step;
  }

  // What the convolution writes at the coordinates of its domain, for this sum.
  Expr RootAt(const std::array<Expr, 4>& at, Expr sum) {
    std::unordered_map<ExprId, ExprId> done;
    const ExprId root = step_.As<Contract>()->roots[0];
    const auto replace = [&](ExprId id) {
      const ExprNode node = pool_[id];
      if (node.op == ExprOp::kAccumulator) return sum.id();
      if (node.op == ExprOp::kIndex) return at[node.payload].id();
      if (node.op == ExprOp::kLoad && node.operands.empty()) {
        return LoadAt(pool_, node.type, static_cast<int>(node.payload), at).id();
      }
      return kNoExpr;
    };
    return {&pool_, Rewrite(pool_, root, replace, done)};
  }

  Program& program_;
  ExprPool& pool_;
  const Step& step_;
  const Extents& of_;
};

}  // namespace

base::Status ExpandWinograd(Program& program, const PrefersWinograd& prefers) {
  std::vector<Step> steps = std::exchange(program.steps, {});
  for (Step& step : steps) {
    const std::optional<Extents> of = ExtentsOf(program, step);
    if (!of || !prefers(program, step)) {
      program.steps.push_back(std::move(step));
      continue;
    }
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<Step> made, Expansion(program, step, *of).Make());
    for (Step& part : made) program.steps.push_back(std::move(part));
  }
  return base::Ok();
}

}  // namespace onnxifi::program
