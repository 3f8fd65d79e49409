// SPDX-License-Identifier: Apache-2.0
//
// Transpose: two rounds of interleaving turn four columns of a vector's length into blocks of 16
// bytes that each hold four neighbours of one row. Elements of 8 bytes need one round, those of 2
// and of 1 three and four. Where there are columns enough, blocks of four times as many columns are
// loaded so that the result is a vector of one row.

#include "backends/cpu/transpose/transpose.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/transpose/transpose.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::transpose {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void TransposePlain(const T* HWY_RESTRICT source, int64_t source_stride, T* HWY_RESTRICT target,
                    int64_t target_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      // The source may be a model's own bytes, at any address.
      std::memcpy(&target[r * target_stride + c], source + c * source_stride + r, sizeof(T));
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void TransposeBlocks(const T* source, int64_t source_stride, T* target, int64_t target_stride,
                     int64_t rows, int64_t columns) {
  TransposePlain(source, source_stride, target, target_stride, rows, columns);
}
int64_t TransposeVectors(const uint32_t* /*source*/, int64_t /*source_stride*/,
                         uint32_t* /*target*/, int64_t /*target_stride*/, int64_t /*rows*/,
                         int64_t /*columns*/) {
  return 0;
}

#else

// As many neighbours of a row as fill 16 bytes.
template <typename T>
inline constexpr int kColumns = 16 / static_cast<int>(sizeof(T));

// Stores the 16-byte blocks of `v` to rows that are `stride` elements apart.
template <class D, class V, typename T>
HWY_INLINE void StoreBlocks(D d, V v, T* target, int64_t stride) {
  constexpr size_t kBlocks = HWY_MAX_BYTES / 16;
  const hn::Full128<T> block;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if constexpr (kBlocks == 4) {
    const auto low = hn::LowerHalf(v);
    const auto high = hn::UpperHalf(hn::Half<D>(), v);
    hn::StoreU(hn::LowerHalf(low), block, target);
    hn::StoreU(hn::UpperHalf(block, low), block, target + stride);
    hn::StoreU(hn::LowerHalf(high), block, target + 2 * stride);
    hn::StoreU(hn::UpperHalf(block, high), block, target + 3 * stride);
    return;
  }
  if constexpr (kBlocks == 2) {
    hn::StoreU(hn::LowerHalf(v), block, target);
    hn::StoreU(hn::UpperHalf(block, v), block, target + stride);
    return;
  }
#endif
  if constexpr (kBlocks == 1) {
    hn::StoreU(v, d, target);
  } else {
    HWY_ALIGN T all[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, all);
    constexpr int kLanes = kColumns<T>;
    for (size_t b = 0; b < hn::Lanes(d) / kLanes; ++b) {
      hn::StoreU(hn::LoadU(block, all + b * kLanes), block,
                 target + static_cast<int64_t>(b) * stride);
    }
  }
}

// One round: a vector of each half, element by element in turns.
template <class D, class V, size_t count>
HWY_INLINE void InterleaveHalves(D d, V (&v)[count]) {
  constexpr size_t kHalf = count / 2;
  V mixed[count];
#pragma GCC unroll 8
  for (size_t k = 0; k < kHalf; ++k) {
    mixed[2 * k] = hn::InterleaveLower(d, v[k], v[k + kHalf]);
    mixed[2 * k + 1] = hn::InterleaveUpper(d, v[k], v[k + kHalf]);
  }
#pragma GCC unroll 16
  for (size_t k = 0; k < count; ++k) v[k] = mixed[k];
}

// kColumns columns, a vector of rows.
template <class D, typename T>
HWY_INLINE void TransposeBlock(D d, const T* source, int64_t source_stride, T* target,
                               int64_t target_stride) {
  constexpr int kCount = kColumns<T>;
  hn::Vec<D> v[kCount];
#pragma GCC unroll 16
  for (int c = 0; c < kCount; ++c) v[c] = hn::LoadU(d, source + c * source_stride);
#pragma GCC unroll 4
  for (int round = 1; round < kCount; round *= 2) InterleaveHalves(d, v);
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
    StoreBlocks(d, v[r], target + r * target_stride, kCount * target_stride);
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

// The 16-byte blocks at `source` and every `stride` elements from there, as many as a vector has.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const T* source, int64_t stride) {
  constexpr size_t kBlocks = hn::MaxLanes(D()) * sizeof(T) / 16;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, source);
  } else {
    const hn::Half<D> half;
    return hn::Combine(
        d, LoadBlocks(half, source + static_cast<int64_t>(kBlocks / 2) * stride, stride),
        LoadBlocks(half, source, stride));
  }
}

// A vector of columns, four rows: whole vectors are stored, and what a vector holds of one column
// comes to its place by being loaded.
template <class D>
HWY_INLINE void TransposeFourRows(D d, const uint32_t* source, int64_t source_stride,
                                  uint32_t* target, int64_t target_stride) {
  using V = hn::Vec<D>;
  const V a = LoadBlocks(d, source, 4 * source_stride);
  const V b = LoadBlocks(d, source + source_stride, 4 * source_stride);
  const V c = LoadBlocks(d, source + 2 * source_stride, 4 * source_stride);
  const V e = LoadBlocks(d, source + 3 * source_stride, 4 * source_stride);
  const V ac_low = hn::InterleaveLower(d, a, c);
  const V ac_high = hn::InterleaveUpper(d, a, c);
  const V be_low = hn::InterleaveLower(d, b, e);
  const V be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac_low, be_low), d, target);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, target + target_stride);
  hn::StoreU(hn::InterleaveLower(d, ac_high, be_high), d, target + 2 * target_stride);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, target + 3 * target_stride);
}

// As many columns as are whole vectors. Returns them; none where rows of the target do not begin at
// vectors: one that is stored across two lines takes longer than the blocks of which it consists.
int64_t TransposeVectors(const uint32_t* source, int64_t source_stride, uint32_t* target,
                         int64_t target_stride, int64_t rows, int64_t columns) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vector_bytes = static_cast<size_t>(lanes) * sizeof(uint32_t);
  if (reinterpret_cast<uintptr_t>(target) % vector_bytes != 0 || target_stride % lanes != 0) {
    return 0;
  }
  const int64_t whole_rows = rows / 4 * 4;
  const int64_t whole_columns = columns / lanes * lanes;
  for (int64_t c = 0; c < whole_columns; c += lanes) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      TransposeFourRows(d, source + c * source_stride + r, source_stride,
                        target + r * target_stride + c, target_stride);
    }
  }
  TransposePlain(source + whole_rows, source_stride, target + whole_rows * target_stride,
                 target_stride, rows - whole_rows, whole_columns);
  return whole_columns;
}

#else

int64_t TransposeVectors(const uint32_t* /*source*/, int64_t /*source_stride*/,
                         uint32_t* /*target*/, int64_t /*target_stride*/, int64_t /*rows*/,
                         int64_t /*columns*/) {
  return 0;
}

#endif

template <typename T>
void TransposeBlocks(const T* source, int64_t source_stride, T* target, int64_t target_stride,
                     int64_t rows, int64_t columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole_rows = rows / lanes * lanes;
  const int64_t whole_columns = columns / kColumns<T> * kColumns<T>;
  // Along the target's rows, so that a line of it is written at once.
  for (int64_t r = 0; r < whole_rows; r += lanes) {
    for (int64_t c = 0; c < whole_columns; c += kColumns<T>) {
      TransposeBlock(d, source + c * source_stride + r, source_stride,
                     target + r * target_stride + c, target_stride);
    }
  }
  TransposePlain(source + whole_rows, source_stride, target + whole_rows * target_stride,
                 target_stride, rows - whole_rows, whole_columns);
  TransposePlain(source + whole_columns * source_stride, source_stride, target + whole_columns,
                 target_stride, rows, columns - whole_columns);
}

#endif

// After how many columns all rows of the target, as a caller's that begin anywhere, are at whole
// vectors; 0 where they never are, where few columns would be left, and without TransposeVectors.
int64_t ColumnsToAlign(const uint32_t* target, int64_t target_stride, int64_t columns) {
  constexpr int64_t kMinVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint32_t>()));
  if (HWY_TARGET != HWY_AVX3 && HWY_TARGET != HWY_AVX2) return 0;
  const auto address = reinterpret_cast<uintptr_t>(target);
  if (address % sizeof(uint32_t) != 0 || target_stride % lanes != 0) return 0;
  if (columns < kMinVectors * lanes) return 0;
  const auto behind = static_cast<int64_t>(address / sizeof(uint32_t)) % lanes;
  return (lanes - behind) % lanes;
}

void TransposeTyped(const std::byte* source, int64_t source_stride, std::byte* target,
                    int64_t target_stride, int64_t rows, int64_t columns, int64_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return TransposeBlocks(reinterpret_cast<const uint8_t*>(source), source_stride,
                             reinterpret_cast<uint8_t*>(target), target_stride, rows, columns);
    case 2:
      return TransposeBlocks(reinterpret_cast<const uint16_t*>(source), source_stride,
                             reinterpret_cast<uint16_t*>(target), target_stride, rows, columns);
    case 4: {
      const auto* from = reinterpret_cast<const uint32_t*>(source);
      auto* to = reinterpret_cast<uint32_t*>(target);
      int64_t done = ColumnsToAlign(to, target_stride, columns);
      TransposeBlocks(from, source_stride, to, target_stride, rows, done);
      done += TransposeVectors(from + done * source_stride, source_stride, to + done, target_stride,
                               rows, columns - done);
      return TransposeBlocks(from + done * source_stride, source_stride, to + done, target_stride,
                             rows, columns - done);
    }
    case 8:
      return TransposeBlocks(reinterpret_cast<const uint64_t*>(source), source_stride,
                             reinterpret_cast<uint64_t*>(target), target_stride, rows, columns);
    default:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::transpose
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::transpose {

HWY_EXPORT(TransposeTyped);

void Transpose(const std::byte* source, int64_t source_stride, std::byte* target,
               int64_t target_stride, int64_t rows, int64_t columns, int64_t element_bytes) {
  HWY_DYNAMIC_DISPATCH(TransposeTyped)
  (source, source_stride, target, target_stride, rows, columns, element_bytes);
}

}  // namespace onnxifi::transpose
#endif
