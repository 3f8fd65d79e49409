// SPDX-License-Identifier: Apache-2.0
//
// Instructions of PTX that kernels write between asm's parentheses, as functions: kernel_text.cc
// makes a call of each, named after the instruction, results first.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_

// ---- mma.sync.aligned: 16 rows by 8 columns of 8 words of 32 bits
// Item 4 g + t of the warp gives the words t and t + 4 of the rows g and g + 8, and of column g.
struct EmulatedFragments {
  unsigned rows[2][8];     // of this item's sums
  unsigned columns[2][8];  // 2 t and 2 t + 1
};
static inline EmulatedFragments emulated_fragments(unsigned a0, unsigned a1, unsigned a2,
                                                   unsigned a3, unsigned b0, unsigned b1) {
  const unsigned long long given[3] = {a0 | (unsigned long long)a1 << 32,
                                       a2 | (unsigned long long)a3 << 32,
                                       b0 | (unsigned long long)b1 << 32};
  const EmulatedWarp* const warp = emulated_gather(~0u, given, 3, 0);
  if (warp->given != ~0u) emulated_machine->fail("Some items of a warp alone call mma.sync.", 0);
  const unsigned lane = emulated_lane();
  EmulatedFragments all;
  for (int word = 0; word < 8; ++word) {
    const int half = word / 4;
    for (int k = 0; k < 2; ++k) {
      const unsigned of_row = lane / 4 * 4 + word % 4;
      const unsigned of_column = (lane % 4 * 2 + k) * 4 + word % 4;
      all.rows[k][word] = (unsigned)(warp->values[half][of_row] >> (32 * k));
      all.columns[k][word] = (unsigned)(warp->values[2][of_column] >> (32 * half));
    }
  }
  return all;
}
static inline float emulated_half(unsigned bits) {
  _Float16 value;
  const unsigned short narrow = (unsigned short)bits;
  __builtin_memcpy(&value, &narrow, 2);
  return (float)value;
}
static inline float emulated_brain(unsigned bits) {
  float value;
  const unsigned wide = bits << 16;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}
static inline float emulated_tf32(unsigned bits) {
  float value;
  bits &= ~0x1fffu;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
static inline void ptx_cvt_rna_tf32_f32(unsigned& to, float from) {
  __builtin_memcpy(&to, &from, 4);
  if (__builtin_isfinite(from)) to = (to + 0x1000u) & ~0x1fffu;
}
static inline void ptx_cvt_f32_f16(float& to, unsigned short from) { to = emulated_half(from); }
// Of the payload of NaN nothing is kept.
static inline void ptx_cvt_rn_f16_f32(unsigned short& to, float from) {
  const _Float16 value = (_Float16)from;
  __builtin_memcpy(&to, &value, 2);
  if (from != from) to = 0x7fff;
}
static inline void ptx_cvt_rn_f16_s32(unsigned short& to, int from) {
  const _Float16 value = (_Float16)from;
  __builtin_memcpy(&to, &value, 2);
}
static inline int emulated_signed(unsigned bits) { return (signed char)bits; }
static inline int emulated_unsigned(unsigned bits) { return (unsigned char)bits; }

template <int kBits, class Sum, class Wide, class A, class B>
static inline void emulated_multiply(Sum& c0, Sum& c1, Sum& c2, Sum& c3,
                                     const EmulatedFragments& all, A a, B b) {
  Sum* const sums[2][2] = {{&c0, &c1}, {&c2, &c3}};
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column) {
      Wide sum = *sums[row][column];
      for (int word = 0; word < 8; ++word) {
        for (int shift = 0; shift < 32; shift += kBits) {
          sum +=
              (Wide)a(all.rows[row][word] >> shift) * (Wide)b(all.columns[column][word] >> shift);
        }
      }
      *sums[row][column] = (Sum)sum;
    }
  }
}
#define EMULATED_MMA(name, bits, sum, wide, a, b)                                                  \
  static inline void ptx_mma_sync_aligned_##name(sum& c0, sum& c1, sum& c2, sum& c3, unsigned a0,  \
                                                 unsigned a1, unsigned a2, unsigned a3,            \
                                                 unsigned b0, unsigned b1) {                       \
    emulated_multiply<bits, sum, wide>(c0, c1, c2, c3, emulated_fragments(a0, a1, a2, a3, b0, b1), \
                                       a, b);                                                      \
  }
EMULATED_MMA(m16n8k16_row_col_f32_f16_f16_f32, 16, float, double, emulated_half, emulated_half)
EMULATED_MMA(m16n8k16_row_col_f32_bf16_bf16_f32, 16, float, double, emulated_brain, emulated_brain)
EMULATED_MMA(m16n8k8_row_col_f32_tf32_tf32_f32, 32, float, double, emulated_tf32, emulated_tf32)
EMULATED_MMA(m16n8k32_row_col_s32_s8_s8_s32, 8, unsigned, unsigned, emulated_signed,
             emulated_signed)
EMULATED_MMA(m16n8k32_row_col_s32_s8_u8_s32, 8, unsigned, unsigned, emulated_signed,
             emulated_unsigned)
EMULATED_MMA(m16n8k32_row_col_s32_u8_s8_s32, 8, unsigned, unsigned, emulated_unsigned,
             emulated_signed)
EMULATED_MMA(m16n8k32_row_col_s32_u8_u8_s32, 8, unsigned, unsigned, emulated_unsigned,
             emulated_unsigned)

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_
