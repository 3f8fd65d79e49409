// SPDX-License-Identifier: Apache-2.0
//
// QuantizedWeights: takes the prologue apart, and packs the matrix when a step is first bound.

#include "backends/cpu/matmul/quantized_weights.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/quantized_matrix.h"
#include "backends/cpu/matmul/prologue_reader.h"
#include "backends/cpu/matmul/quantized_weights_kernel.h"
#include "backends/cpu/transpose/transpose.h"

namespace onnxifi::matmul {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;

// Elements of a block are a multiple of this.
constexpr int64_t kMinBlock = 16;
// Of 32 columns, as many as are packed, bytes take as much memory as 8 columns of float32.
constexpr int64_t kMinColumns = 8;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedAttribute, std::move(sentence));
}

// A number as the packed matrix has it: signed, in 8 bits.
int8_t SignedOf(ElementType type, const std::byte* data, int64_t index) {
  const tensor::Scalar number = tensor::LoadScalar(type, data, index);
  return static_cast<int8_t>(tensor::IsSigned(type) ? number.i : number.u ^ 0x80);
}

// What has become 0 of the numbers.
int ZeroOf(ElementType type) { return tensor::IsSigned(type) ? 0 : 128; }

// A matrix of bytes, or of less.
struct Source {
  ElementType type;
  const std::byte* data;
  int64_t offset, inner, column;

  // `count` elements of column n from element k on.
  void Read(int64_t n, int64_t k_first, int64_t count, int8_t* to) const {
    const int64_t first = offset + n * column + k_first * inner;
    if (tensor::BitWidth(type) != 8) {
      for (int64_t k = 0; k < count; ++k) to[k] = SignedOf(type, data, first + k * inner);
      return;
    }
    const std::byte flip{static_cast<uint8_t>(ZeroOf(type))};
    for (int64_t k = 0; k < count; ++k) {
      to[k] = static_cast<int8_t>(data[first + k * inner] ^ flip);
    }
  }
  // Whether columns are stored as those of 4 bits are packed, but for the sign.
  bool HasPackedColumns() const {
    return tensor::BitWidth(type) == 4 && inner == 1 && offset % 2 == 0 && column % 2 == 0;
  }
  // Such a column.
  void CopyPacked(int64_t n, int64_t depth, std::byte* to) const {
    const std::byte* from = data + (offset + n * column) / 2;
    const std::byte flip{static_cast<uint8_t>(tensor::IsSigned(type) ? 0x88 : 0)};
    for (int64_t k = 0; k < (depth + 1) / 2; ++k) to[k] = from[k] ^ flip;
  }
};

class QuantizedWeightsMethod final : public Method {
 public:
  explicit QuantizedWeightsMethod(const QuantizedProduct& weights) : weights_(weights) {}

  std::string_view name() const override { return "quantized weights"; }

  BindResult Bind(const device::BoundStep& step, device::Addresses constants,
                  runtime::Runtime& runtime, runtime::WeightStore& store) const override {
    ONNXIFI_ASSIGN_OR_RETURN(PackedQuantizedMatrix matrix,
                             FindPacked(step, constants, runtime, store));
    return BindQuantizedWeights(weights_, matrix.layout, std::move(matrix.numbers), step, runtime);
  }

  Result<PackedQuantizedMatrix> FindPacked(const device::BoundStep& step,
                                           device::Addresses constants, runtime::Runtime& runtime,
                                           runtime::WeightStore& store) const {
    for (const gemm::QuantizedLayout& layout : Layouts()) {
      if (runtime::PackedWeights packed = store.Peek(NumberOf(layout))) {
        return PackedQuantizedMatrix{layout, std::move(packed)};
      }
    }
    const gemm::QuantizedLayout layout = ChooseLayout(step, constants, runtime.pool());
    const auto pack = [&](float* to) {
      Pack(step, constants, layout, reinterpret_cast<std::byte*>(to), runtime.pool());
      return base::Ok();
    };
    constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
    ONNXIFI_ASSIGN_OR_RETURN(
        runtime::PackedWeights packed,
        store.Find(NumberOf(layout), runtime.memory(), layout.size_bytes() / kFloatBytes, pack));
    return PackedQuantizedMatrix{layout, std::move(packed)};
  }

 private:
  // What the numbers of a column are, less this: 8 for those of 4 bits without a sign.
  static int MiddleOf(ElementType type, int bits) {
    return tensor::IsSigned(type) ? 0 : bits == 4 ? 8 : 128;
  }

  gemm::QuantizedLayout LayoutOf(int bits, bool has_zeros) const {
    gemm::QuantizedLayout layout;
    layout.depth = weights_.depth;
    layout.columns = weights_.columns;
    layout.matrices = weights_.matrices;
    // Scales of larger blocks are repeated.
    layout.block = gemm::kMaxQuantizedBlock;
    while (weights_.block < weights_.depth && weights_.block % layout.block != 0) layout.block /= 2;
    layout.bits = bits;
    layout.has_zeros = has_zeros;
    return layout;
  }
  std::vector<gemm::QuantizedLayout> Layouts() const {
    return {LayoutOf(4, false), LayoutOf(4, true), LayoutOf(8, false), LayoutOf(8, true)};
  }
  static int NumberOf(const gemm::QuantizedLayout& layout) {
    return static_cast<int>(Layout::kQuantized) + (layout.bits == 8 ? 1 : 0) +
           (layout.has_zeros ? 2 : 0);
  }

  static Source SourceOf(const QuantizedProduct& weights, const device::BoundStep& step,
                         device::Addresses constants) {
    const device::BoundView& view = step.reads[static_cast<size_t>(weights.numbers)];
    return {view.type, constants[view.buffer], view.offset, weights.w_inner, weights.w_column};
  }

  // The scale of the first block of column n.
  const float* ScaleOf(const device::BoundStep& step, device::Addresses constants,
                       int64_t n) const {
    const device::BoundView& view = step.reads[static_cast<size_t>(weights_.scale.read)];
    return gemm::FloatsAt(constants, view) + n * weights_.scale.column_stride;
  }
  int ZeroPointAt(const device::BoundStep& step, device::Addresses constants, int64_t n,
                  int64_t k) const {
    if (!weights_.zero_point) return 0;
    const PerBlock& numbers = *weights_.zero_point;
    const device::BoundView& view = step.reads[static_cast<size_t>(numbers.read)];
    const tensor::Scalar number = tensor::LoadScalar(
        view.type, constants[view.buffer],
        view.offset + k / numbers.block * numbers.block_stride + n * numbers.column_stride);
    return tensor::IsSigned(view.type) ? static_cast<int>(number.i) : static_cast<int>(number.u);
  }

  gemm::QuantizedLayout ChooseLayout(const device::BoundStep& step, device::Addresses constants,
                                     threads::ThreadPool& pool) const {
    const Source source = SourceOf(weights_, step, constants);
    std::atomic<bool> is_wide = tensor::BitWidth(source.type) == 8;
    if (is_wide) {
      is_wide = false;
      pool.For(weights_.matrices * weights_.columns, /*grain=*/16, [&](int64_t begin, int64_t end) {
        std::array<int8_t, gemm::kMaxQuantizedBlock> chunk;
        // Whether a number, less the middle of 4 bits, has more than these.
        const int shift = tensor::IsSigned(source.type) ? 8 : 128;
        for (int64_t n = begin; n < end && !is_wide; ++n) {
          unsigned all = 0;
          for (int64_t k = 0; k < weights_.depth; k += gemm::kMaxQuantizedBlock) {
            const int64_t count = std::min(gemm::kMaxQuantizedBlock, weights_.depth - k);
            source.Read(n, k, count, chunk.data());
            for (int64_t j = 0; j < count; ++j) {
              all |= static_cast<unsigned>(chunk[static_cast<size_t>(j)] + shift);
            }
          }
          if (all > 15) is_wide = true;
        }
      });
    }
    const int bits = is_wide ? 8 : 4;
    const int middle = MiddleOf(source.type, bits);
    std::atomic<bool> has_zeros = false;
    // One zero point is looked at once.
    const std::optional<PerBlock>& zero_point = weights_.zero_point;
    const int64_t columns =
        zero_point && zero_point->column_stride != 0 ? weights_.matrices * weights_.columns : 1;
    const bool is_per_block = zero_point && zero_point->block < weights_.depth;
    const int64_t distance = is_per_block ? zero_point->block : weights_.depth;
    pool.For(columns, /*grain=*/64, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end && !has_zeros; ++n) {
        for (int64_t k = 0; k < weights_.depth; k += distance) {
          if (ZeroPointAt(step, constants, n, k) != middle) has_zeros = true;
        }
      }
    });
    return LayoutOf(bits, has_zeros);
  }

  // `column` plus `shift`, as a column of so many bits.
  static void Narrow(std::span<const int8_t> column, int bits, int shift, std::byte* to) {
    for (size_t k = 0; k < column.size(); k += 2) {
      const int first = column[k] + shift, second = column[k + 1] + shift;
      if (bits == 4) {
        to[k / 2] = static_cast<std::byte>(((first + 8) & 15) | ((second + 8) & 15) << 4);
      } else {
        to[k] = static_cast<std::byte>(first);
        to[k + 1] = static_cast<std::byte>(second);
      }
    }
  }

  void Pack(const device::BoundStep& step, device::Addresses constants,
            const gemm::QuantizedLayout& layout, std::byte* to, threads::ThreadPool& pool) const {
    const Source source = SourceOf(weights_, step, constants);
    const int middle = MiddleOf(source.type, layout.bits);
    // From what Read gives to numbers less the middle.
    const int shift = ZeroOf(source.type) - middle;
    pool.For(layout.matrices * layout.groups(), /*grain=*/1, [&](int64_t begin, int64_t end) {
      const int64_t column_bytes = layout.words() * kWordBytes;
      std::vector<std::byte> columns(static_cast<size_t>(gemm::kQuantizedColumns * column_bytes));
      std::array<int8_t, gemm::kMaxQuantizedBlock> block;
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group % layout.groups() * gemm::kQuantizedColumns;
        const int64_t count = std::min(gemm::kQuantizedColumns, layout.columns - first);
        // Among the columns of all matrices.
        const int64_t before = group / layout.groups() * layout.columns + first;
        std::byte* const packed = to + group * layout.group_bytes();
        std::memset(packed, 0, static_cast<size_t>(layout.group_bytes()));
        for (int64_t n = 0; n < count; ++n) {
          std::byte* const numbers = columns.data() + n * column_bytes;
          if (source.HasPackedColumns()) {
            std::memset(numbers, 0, static_cast<size_t>(column_bytes));
            source.CopyPacked(before + n, layout.depth, numbers);
            continue;
          }
          for (int64_t k = 0; k < layout.depth; k += layout.block) {
            block.fill(0);
            source.Read(before + n, k, std::min(layout.block, layout.depth - k), block.data());
            Narrow({block.data(), static_cast<size_t>(layout.block)}, layout.bits, shift,
                   numbers + k * layout.bits / 8);
          }
        }
        for (int64_t number = 0; number < layout.blocks(); ++number) {
          transpose::Transpose(columns.data() + number * layout.block_words() * kWordBytes,
                               layout.words(),
                               packed + layout.WordLine(number * layout.block) * kLineBytes,
                               gemm::kQuantizedColumns, layout.block_words(), count, kWordBytes);
        }
        PackBlocks(step, constants, layout, before, count, middle, packed);
      }
    });
  }

  // The scales and zeros of `count` columns, from `before` among all on, of the group at `packed`.
  void PackBlocks(const device::BoundStep& step, device::Addresses constants,
                  const gemm::QuantizedLayout& layout, int64_t before, int64_t count, int middle,
                  std::byte* packed) const {
    auto* const floats = reinterpret_cast<float*>(packed);
    for (int64_t n = 0; n < count; ++n) {
      const float* const scale = ScaleOf(step, constants, before + n);
      for (int64_t number = 0; number < layout.blocks(); ++number) {
        const int64_t k = number * layout.block;
        floats[layout.ScaleLine(number) * gemm::kQuantizedColumns + n] =
            scale[k / weights_.scale.block * weights_.scale.block_stride];
        if (layout.has_zeros) {
          floats[layout.ZeroLine(number) * gemm::kQuantizedColumns + n] =
              static_cast<float>(ZeroPointAt(step, constants, before + n, k) - middle);
        }
      }
    }
  }

  static constexpr int64_t kWordBytes = 4;
  static constexpr int64_t kLineBytes = gemm::kQuantizedColumns * kWordBytes;

  const QuantizedProduct weights_;
};

}  // namespace

Result<QuantizedProduct> DescribeQuantizedWeights(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(const ConstantMatrix matrix, DescribeAnyMatrix(facts));
  ONNXIFI_RETURN_IF_ERROR(CheckOneMatrix(facts.step, matrix));
  const program::View& numbers = facts.step.reads[1];
  if (!tensor::IsInteger(numbers.type) || tensor::BitWidth(numbers.type) > 8 ||
      !numbers.guards.empty() || !numbers.offset.is_constant()) {
    return Refuse("The matrix is of no integers of at most 8 bits.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(QuantizedProduct weights,
                           DescribeDequantization(facts, matrix, PrologueReader(facts, matrix)));
  if (weights.numbers != 1) return Refuse("The matrix is loaded at other coordinates.");
  weights.may_round_rows =
      facts.program.has_fast_algorithms && (facts.program.has_dynamic_quantization ||
                                            facts.step.As<program::Contract>()->may_round_to_bytes);
  return weights;
}

Result<QuantizedProduct> DescribeDequantization(const device::Facts& facts,
                                                const ConstantMatrix& matrix,
                                                const PrologueReader& reader) {
  QuantizedProduct weights{};
  static_cast<ConstantMatrix&>(weights) = matrix;
  const program::ExprPool& pool = facts.program.exprs;
  const ExprNode& product = pool[facts.step.As<program::Contract>()->b_prologue];
  if (product.op != ExprOp::kMul || product.type != ElementType::kFloat32) {
    return Refuse("The matrix is no product with a scale (" + std::string(Name(product.op)) + ").");
  }
  const auto type_of = [&](int read) { return facts.step.reads[static_cast<size_t>(read)].type; };
  ExprId numbers = DifferenceOf(pool, product.operands[0]);
  if (pool[numbers].op == ExprOp::kSub) {
    ONNXIFI_ASSIGN_OR_RETURN(weights.zero_point, reader.Describe(pool[numbers].operands[1]));
    const ElementType type = type_of(weights.zero_point->read);
    if (!tensor::IsInteger(type) || tensor::BitWidth(type) > 8) {
      return Refuse("The zero point is " + std::string(tensor::Name(type)) + ".");
    }
    numbers = pool[numbers].operands[0];
  }
  ONNXIFI_ASSIGN_OR_RETURN(const PerBlock elements, reader.Describe(numbers));
  const ElementType type = type_of(elements.read);
  if (!tensor::IsInteger(type) || tensor::BitWidth(type) > 8) {
    return Refuse("The matrix is " + std::string(tensor::Name(type)) + ".");
  }
  weights.numbers = elements.read;
  weights.w_inner = elements.block_stride;
  weights.w_column = elements.column_stride;
  weights.entry_stride = elements.entry_stride;
  if (weights.depth > 1 && elements.block_stride != 0 && elements.block != 1) {
    return Refuse("The matrix has its elements more than once.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(weights.scale, reader.Describe(product.operands[1]));
  if (type_of(weights.scale.read) != ElementType::kFloat32) {
    return Refuse("The scale is not float32.");
  }
  weights.block = weights.scale.block;
  if (weights.zero_point && weights.zero_point->block != weights.depth) {
    if (weights.block != weights.depth && weights.block != weights.zero_point->block) {
      return Refuse("Scales and zero points have different blocks.");
    }
    weights.block = weights.zero_point->block;
  }
  if (weights.columns < kMinColumns) {
    return Status(Code::kUnsupportedShape, "The matrix has " + std::to_string(weights.columns) +
                                               " columns; from " + std::to_string(kMinColumns) +
                                               " on it takes less memory than in float32.");
  }
  if (weights.block < weights.depth && weights.block % kMinBlock != 0) {
    return Status(Code::kUnsupportedShape, "A scale has " + std::to_string(weights.block) +
                                               " elements, no multiple of " +
                                               std::to_string(kMinBlock) + ".");
  }
  return weights;
}

Status CheckConstant(const device::Facts& facts, const QuantizedProduct& weights) {
  std::vector<int> reads = {weights.numbers, weights.scale.read};
  if (weights.zero_point) reads.push_back(weights.zero_point->read);
  for (const int read : reads) {
    if (!facts.IsConstant(facts.step.reads[static_cast<size_t>(read)])) {
      return Refuse("The matrix, a scale or a zero point is computed at run time.");
    }
  }
  return base::Ok();
}

Result<PackedQuantizedMatrix> FindPackedMatrix(const QuantizedProduct& weights,
                                               const device::BoundStep& step,
                                               device::Addresses constants,
                                               runtime::Runtime& runtime,
                                               runtime::WeightStore& store) {
  return QuantizedWeightsMethod(weights).FindPacked(step, constants, runtime, store);
}

std::shared_ptr<const Method> MakeMethod(const QuantizedProduct& weights) {
  return std::make_shared<QuantizedWeightsMethod>(weights);
}

}  // namespace onnxifi::matmul
