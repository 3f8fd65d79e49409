// SPDX-License-Identifier: Apache-2.0
//
// Requantize: a vector of columns at a time, whose factors and summands stay in registers, and of
// these some rows at a time. A quotient is rounded from two products instead, and divided where
// these do not agree, which is seldom.

#include "backends/cpu/integer/requantize.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/engine/byte_function.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/integer/requantize.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::integer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
using IntTag = hn::ScalableTag<int32_t>;
using Ints = hn::Vec<IntTag>;

// Of numbers within 32 bits.
HWY_INLINE Ints RoundToInts(Vec x) {
#if HWY_TARGET == HWY_AVX3
  return Ints{_mm512_cvtps_epi32(x.raw)};
#elif HWY_TARGET == HWY_AVX2
  return Ints{_mm256_cvtps_epi32(x.raw)};
#else
  return hn::NearestInt(x);
#endif
}

using engine::HWY_NAMESPACE::kHasMaskedMemory;

constexpr int kRows = 8;

template <int rows>
HWY_INLINE void RoundQuotients(const Quantizer& quantizer, const Vec* x, Ints* quotients) {
  const Tag d;
  const IntTag di;
  if (quantizer.divisor == 1) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) quotients[r] = RoundToInts(x[r]);
    return;
  }
  const Vec below = hn::Set(d, quantizer.below), above = hn::Set(d, quantizer.above);
  auto differ = hn::Zero(di);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    quotients[r] = RoundToInts(hn::Mul(x[r], below));
    const Ints other = RoundToInts(hn::Mul(x[r], above));
    differ = hn::Or(differ, hn::Xor(quotients[r], other));
  }
  if (HWY_LIKELY(hn::AllTrue(di, hn::Eq(differ, hn::Zero(di))))) return;
  const Vec divisor = hn::Set(d, quantizer.divisor);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) quotients[r] = RoundToInts(hn::Div(x[r], divisor));
}

template <typename Byte>
HWY_INLINE Ints LoadBytes(const uint8_t* from, int64_t count) {
  const IntTag d;
  const hn::Rebind<Byte, IntTag> narrow;
  const auto* bytes = reinterpret_cast<const Byte*>(from);
  if (count >= static_cast<int64_t>(hn::Lanes(d))) {
    return hn::PromoteTo(d, hn::LoadU(narrow, bytes));
  }
  if constexpr (kHasMaskedMemory<Byte>) {
    const auto first = hn::FirstN(narrow, static_cast<size_t>(count));
    return hn::PromoteTo(d, hn::MaskedLoad(first, narrow, bytes));
  } else {
    HWY_ALIGN Byte lanes[HWY_MAX_BYTES] = {};
    std::memcpy(lanes, bytes, static_cast<size_t>(count));
    return hn::PromoteTo(d, hn::LoadU(narrow, lanes));
  }
}

// Lanes [0, count); nothing behind them is touched.
template <class D>
HWY_INLINE void StoreFirst(D d, hn::Vec<D> values, int64_t count, std::byte* result) {
  using T = hn::TFromD<D>;
  auto* to = reinterpret_cast<T*>(result);
  if (count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(values, d, to);
  if constexpr (kHasMaskedMemory<T>) {
    hn::BlendedStore(values, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::StoreU(values, d, lanes);
    std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(T));
  }
}

// A vector of columns.
template <typename Result>
class Columns {
 public:
  HWY_INLINE Columns(const Requantization& how, const SumBlock& block, int64_t column)
      : how_(how),
        block_(block),
        column_(column),
        at_(static_cast<size_t>(block.first_column + column)),
        count_(block.columns - column) {}

  template <int rows>
  HWY_INLINE void Run(int64_t row) const {
    const Tag d;
    const IntTag di;
    Vec x[rows];
    const int32_t* sums = block_.sums + row * block_.sum_stride + column_;
    const bool has_offsets = !how_.offsets.empty();
    const Ints offsets = has_offsets ? hn::LoadU(di, how_.offsets.data() + at_) : hn::Zero(di);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r, sums += block_.sum_stride) {
      x[r] = hn::ConvertTo(d, hn::Add(hn::LoadU(di, sums), offsets));
    }
    for (const Link& link : how_.links) {
      const auto apply = [&](auto operation) HWY_ATTR {
        const Vec operand = hn::LoadU(d, link.table.data() + at_);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) x[r] = operation(x[r], operand);
      };
      switch (link.kind) {
        case LinkKind::kAdd:
          apply([](Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); });
          break;
        case LinkKind::kSub:
          apply([](Vec a, Vec b) HWY_ATTR { return hn::Sub(a, b); });
          break;
        case LinkKind::kMul:
          apply([](Vec a, Vec b) HWY_ATTR { return hn::Mul(a, b); });
          break;
        case LinkKind::kMin:
          apply([](Vec a, Vec b) HWY_ATTR { return hn::Min(a, b); });
          break;
        case LinkKind::kMax:
          apply([](Vec a, Vec b) HWY_ATTR { return hn::Max(a, b); });
          break;
        case LinkKind::kLeaky:
          apply([](Vec a, Vec b) HWY_ATTR {
            return hn::IfThenElse(hn::Lt(a, hn::Zero(Tag())), hn::Mul(a, b), a);
          });
          break;
        case LinkKind::kAddBytes:
          how_.is_added_signed ? AddBytes<rows, int8_t>(link.dequantizer, row, x)
                               : AddBytes<rows, uint8_t>(link.dequantizer, row, x);
          break;
        case LinkKind::kRound:
          RoundAgain<rows>(link, x);
          break;
        case LinkKind::kRescale:
          Rescale<rows>(link, x);
          break;
      }
    }
    std::byte* result =
        block_.result + row * block_.result_stride + column_ * static_cast<int64_t>(sizeof(Result));
    if constexpr (std::is_same_v<Result, float>) {
      if (!how_.real_lookup.empty()) LookUpReals<rows>(x);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r, result += block_.result_stride) {
        StoreFirst(d, x[r], count_, result);
      }
    } else {
      const Quantizer& last = how_.last;
      Ints quotients[rows];
      RoundQuotients<rows>(last, x, quotients);
      const Ints zero_point = hn::Set(di, last.zero_point);
#if HWY_TARGET == HWY_AVX3
      if (last.zero_point != 0) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) quotients[r] = hn::Add(quotients[r], zero_point);
      }
      // The bounds of bytes are those of the instruction that makes bytes.
      const Ints least = hn::Set(di, last.low), most = hn::Set(di, last.high);
      if (last.low != hwy::LimitsMin<Result>() || last.high != hwy::LimitsMax<Result>()) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          quotients[r] = hn::Min(hn::Max(quotients[r], least), most);
        }
      }
      const auto bytes_of = [&](Ints quotient) HWY_ATTR {
        if constexpr (std::is_signed_v<Result>) {
          return _mm512_cvtsepi32_epi8(quotient.raw);
        } else {
          return _mm512_cvtusepi32_epi8(hn::Max(quotient, hn::Zero(di)).raw);
        }
      };
      if (count_ >= static_cast<int64_t>(hn::Lanes(d))) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r, result += block_.result_stride) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(result), bytes_of(quotients[r]));
        }
        return;
      }
      const auto first = static_cast<__mmask16>((1U << count_) - 1);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r, result += block_.result_stride) {
        _mm_mask_storeu_epi8(result, first, bytes_of(quotients[r]));
      }
#else
      int first = 0;
#if HWY_TARGET == HWY_AVX2
      const bool is_small = std::abs(last.zero_point) <= kMaxFourZeroPoint;
      if (rows >= 4 && is_small && count_ >= static_cast<int64_t>(hn::Lanes(d))) {
#pragma GCC unroll 2
        for (; first + 4 <= rows; first += 4, result += 4 * block_.result_stride) {
          StoreFour(quotients + first, result);
        }
      }
#endif
      const hn::Rebind<Result, IntTag> narrow;
      const bool is_bounded =
          last.low != hwy::LimitsMin<Result>() || last.high != hwy::LimitsMax<Result>();
      const auto low = hn::Set(narrow, static_cast<Result>(last.low));
      const auto high = hn::Set(narrow, static_cast<Result>(last.high));
#pragma GCC unroll 8
      for (int r = first; r < rows; ++r, result += block_.result_stride) {
        auto bytes = hn::DemoteTo(narrow, hn::Add(quotients[r], zero_point));
        if (is_bounded) bytes = hn::Min(hn::Max(bytes, low), high);
        StoreFirst(narrow, bytes, count_, result);
      }
#endif
    }
  }

  // `count` of them, one of the numbers that follow each `heights`.
  template <int... heights>
  HWY_INLINE void RunRows(std::integer_sequence<int, heights...> /*unused*/, int64_t row,
                          int64_t count) const {
    ((count == heights + 1 ? Run<heights + 1>(row) : void()), ...);
  }

 private:
#if HWY_TARGET == HWY_AVX2
  // Four rows of quotients in one vector of bytes. To saturate in 16 bits before such a zero point
  // is added changes nothing that lies within a byte after it.
  static constexpr int32_t kMaxFourZeroPoint = 255;
  HWY_INLINE void StoreFour(const Ints* quotients, std::byte* result) const {
    const Quantizer& last = how_.last;
    const __m256i zero_point = _mm256_set1_epi16(static_cast<int16_t>(last.zero_point));
    const auto pair = [&](Ints a, Ints b) HWY_ATTR {
      return _mm256_adds_epi16(_mm256_packs_epi32(a.raw, b.raw), zero_point);
    };
    const __m256i first = pair(quotients[0], quotients[1]);
    const __m256i second = pair(quotients[2], quotients[3]);
    const __m256i low = _mm256_set1_epi8(static_cast<char>(last.low));
    const __m256i high = _mm256_set1_epi8(static_cast<char>(last.high));
    __m256i bytes;
    if constexpr (std::is_signed_v<Result>) {
      bytes = _mm256_packs_epi16(first, second);
      bytes = _mm256_min_epi8(_mm256_max_epi8(bytes, low), high);
    } else {
      bytes = _mm256_packus_epi16(first, second);
      bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, low), high);
    }
    // Each half has four columns of every row.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    bytes = _mm256_permutevar8x32_epi32(bytes, order);
    HWY_ALIGN uint64_t of_rows[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(of_rows), bytes);
    for (int r = 0; r < 4; ++r, result += block_.result_stride) {
      std::memcpy(result, of_rows + r, sizeof(of_rows[r]));
    }
  }
#endif

  // Quantized, and what becomes of the byte.
  template <int rows>
  HWY_INLINE void LookUpReals(Vec* x) const {
    const Tag d;
    const IntTag di;
    const Quantizer& last = how_.last;
    Ints quotients[rows];
    RoundQuotients<rows>(last, x, quotients);
    const Ints zero_point = hn::Set(di, last.zero_point);
    const Ints low = hn::Set(di, last.low), high = hn::Set(di, last.high);
    const Ints bits = hn::Set(di, 0xff);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Ints byte = hn::Min(hn::Max(hn::Add(quotients[r], zero_point), low), high);
      x[r] = hn::GatherIndex(d, how_.real_lookup.data(), hn::And(byte, bits));
    }
  }

  // Quantized and dequantized.
  template <int rows>
  static HWY_INLINE void RoundAgain(const Link& link, Vec* x) {
    const Tag d;
    const IntTag di;
    const Quantizer& quantizer = link.quantizer;
    Ints quotients[rows];
    RoundQuotients<rows>(quantizer, x, quotients);
    // Of quotients, to which the zero point has not been added.
    const Ints low = hn::Set(di, quantizer.low - quantizer.zero_point);
    const Ints high = hn::Set(di, quantizer.high - quantizer.zero_point);
    const Ints shift = hn::Set(di, quantizer.zero_point - link.dequantizer.zero_point);
    const Vec scale = hn::Set(d, link.dequantizer.scale);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Ints bounded = hn::Min(hn::Max(quotients[r], low), high);
      x[r] = hn::Mul(hn::ConvertTo(d, hn::Add(bounded, shift)), scale);
    }
  }

  // Quantized, and moved along the line of each column.
  template <int rows>
  HWY_INLINE void Rescale(const Link& link, Vec* x) const {
    const Tag d;
    const IntTag di;
    const Quantizer& quantizer = link.quantizer;
    Ints quotients[rows];
    RoundQuotients<rows>(quantizer, x, quotients);
    const Ints low = hn::Set(di, quantizer.low - quantizer.zero_point);
    const Ints high = hn::Set(di, quantizer.high - quantizer.zero_point);
    const Vec factor = hn::LoadU(d, link.table.data() + at_);
    const Vec summand = hn::LoadU(d, link.summands.data() + at_);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Ints bounded = hn::Min(hn::Max(quotients[r], low), high);
      x[r] = hn::MulAdd(hn::ConvertTo(d, bounded), factor, summand);
    }
  }

  template <int rows, typename Added>
  HWY_INLINE void AddBytes(const Dequantizer& dequantizer, int64_t row, Vec* x) const {
    const Tag d;
    const Ints zero_point = hn::Set(IntTag(), dequantizer.zero_point);
    const Vec scale = hn::Set(d, dequantizer.scale);
    const uint8_t* added = block_.added + row * block_.added_stride + column_;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r, added += block_.added_stride) {
      const Ints difference = hn::Sub(LoadBytes<Added>(added, count_), zero_point);
      x[r] = hn::Add(x[r], hn::Mul(hn::ConvertTo(d, difference), scale));
    }
  }

  const Requantization& how_;
  const SumBlock& block_;
  const int64_t column_;
  const size_t at_;  // in tables
  const int64_t count_;
};

template <typename Result>
void RunBlock(const Requantization& how, const SumBlock& block) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  // In as few passes of about equal height as there can be; the first ones have a row more.
  const int64_t passes = (block.rows + kRows - 1) / kRows;
  const int64_t height = passes == 1 ? block.rows : block.rows / std::max<int64_t>(1, passes);
  const int64_t higher = block.rows - passes * height;
  for (int64_t column = 0; column < block.columns; column += lanes) {
    const Columns<Result> columns(how, block, column);
    for (int64_t row = 0, pass = 0; row < block.rows; ++pass) {
      const int64_t now = height + (pass < higher ? 1 : 0);
      columns.RunRows(std::make_integer_sequence<int, kRows>(), row, now);
      row += now;
    }
  }
}

void RunRequantization(const Requantization& how, const SumBlock& block) {
  switch (how.result) {
    case tensor::ElementType::kInt8:
      RunBlock<int8_t>(how, block);
      break;
    case tensor::ElementType::kUint8:
      RunBlock<uint8_t>(how, block);
      break;
    default:
      RunBlock<float>(how, block);
  }
  if (how.lookup.empty()) return;
  // Bytes that were stored just now become others.
  auto* const bytes = reinterpret_cast<uint8_t*>(block.result);
  engine::LookUpBytes(how.lookup.data(), block.rows, block.columns, bytes, block.result_stride,
                      bytes, block.result_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::integer
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::integer {

HWY_EXPORT(RunRequantization);

RequantizeFunction FindRequantize() { return HWY_DYNAMIC_DISPATCH(RunRequantization); }

void Requantize(const Requantization& how, const SumBlock& block) { FindRequantize()(how, block); }

}  // namespace onnxifi::integer
#endif
