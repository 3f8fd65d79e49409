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
static inline double emulated_half(unsigned bits) {
  _Float16 value;
  const unsigned short narrow = (unsigned short)bits;
  __builtin_memcpy(&value, &narrow, 2);
  return (double)value;
}
static inline double emulated_brain(unsigned bits) {
  float value;
  const unsigned wide = bits << 16;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}
static inline double emulated_tf32(unsigned bits) {
  float value;
  bits &= ~0x1fffu;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
static inline void ptx_cvt_rna_tf32_f32(unsigned& to, float from) {
  __builtin_memcpy(&to, &from, 4);
  if (__builtin_isfinite(from)) to = (to + 0x1000u) & ~0x1fffu;
}
static inline void ptx_cvt_f32_f16(float& to, unsigned short from) {
  to = (float)emulated_half(from);
}
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
static inline unsigned emulated_signed(unsigned bits) { return (unsigned)(int)(signed char)bits; }
static inline unsigned emulated_unsigned(unsigned bits) { return (unsigned char)bits; }

// Sums of floats are those of tensor cores of compute capability 8.0 (M. Fasi, N. J. Higham,
// M. Mikaitis, S. Pranesh: Numerical behavior of NVIDIA tensor cores, 2021): products of four words
// at a time are exact; what they and the sum before them have more than a bit below the largest
// one's last bit is cut off, and so is what the new sum has behind its own. Nothing is rounded.
static inline double emulated_cut(double value, double unit) {
  return (double)(long long)(value / unit) * unit;
}
// 2^exponent, of one that has a power in double.
static inline double emulated_power(int exponent) {
  const unsigned long long bits = (unsigned long long)(exponent + 1023) << 52;
  double power;
  __builtin_memcpy(&power, &bits, 8);
  return power;
}
static inline int emulated_exponent(double value) {
  unsigned long long bits;
  __builtin_memcpy(&bits, &value, 8);
  return (int)(bits >> 52 & 0x7ff) - 1023;
}
template <int kCount>
static inline float emulated_sum(float before, const double (&products)[kCount]) {
  constexpr int kLastBit = 23;
  double whole = before;
  int exponent = emulated_exponent(before);
  for (const double product : products) {
    whole += product;
    const int own = emulated_exponent(product);
    if (own > exponent) exponent = own;
  }
  // Infinite or NaN, or zeros alone.
  if (exponent == 1024 || exponent == -1023) return (float)whole;
  const double unit = emulated_power(exponent - kLastBit - 1);
  double sum = emulated_cut(before, unit);
  for (const double product : products) sum += emulated_cut(product, unit);
  exponent = emulated_exponent(sum);
  if (exponent == -1023) return 0;
  constexpr int kMinExponent = -126;
  if (exponent < kMinExponent) exponent = kMinExponent;
  return (float)emulated_cut(sum, emulated_power(exponent - kLastBit));
}

template <int kCount>
static inline unsigned emulated_sum(unsigned before, const unsigned (&products)[kCount]) {
  for (const unsigned product : products) before += product;
  return before;
}

template <int kBits, class Sum, class A, class B>
static inline void emulated_multiply(Sum& c0, Sum& c1, Sum& c2, Sum& c3,
                                     const EmulatedFragments& all, A a, B b) {
  Sum* const sums[2][2] = {{&c0, &c1}, {&c2, &c3}};
  constexpr int kOfWord = 32 / kBits;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 2; ++column) {
      Sum sum = *sums[row][column];
      for (int half = 0; half < 2; ++half) {
        decltype(a(0) * b(0)) products[4 * kOfWord];
        for (int k = 0; k < 4 * kOfWord; ++k) {
          const int word = half * 4 + k / kOfWord;
          const int shift = k % kOfWord * kBits;
          products[k] = a(all.rows[row][word] >> shift) * b(all.columns[column][word] >> shift);
        }
        sum = emulated_sum(sum, products);
      }
      *sums[row][column] = sum;
    }
  }
}
#define EMULATED_MMA(name, bits, sum, a, b)                                                       \
  static inline void ptx_mma_sync_aligned_##name(sum& c0, sum& c1, sum& c2, sum& c3, unsigned a0, \
                                                 unsigned a1, unsigned a2, unsigned a3,           \
                                                 unsigned b0, unsigned b1) {                      \
    emulated_multiply<bits>(c0, c1, c2, c3, emulated_fragments(a0, a1, a2, a3, b0, b1), a, b);    \
  }
// Of sums that begin with a number of their own.
static inline void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(
    float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
    unsigned b0, unsigned b1, float first) {
  c0 = c1 = c2 = c3 = first;
  emulated_multiply<32>(c0, c1, c2, c3, emulated_fragments(a0, a1, a2, a3, b0, b1), emulated_tf32,
                        emulated_tf32);
}
EMULATED_MMA(m16n8k16_row_col_f32_f16_f16_f32, 16, float, emulated_half, emulated_half)
EMULATED_MMA(m16n8k16_row_col_f32_bf16_bf16_f32, 16, float, emulated_brain, emulated_brain)
EMULATED_MMA(m16n8k8_row_col_f32_tf32_tf32_f32, 32, float, emulated_tf32, emulated_tf32)
EMULATED_MMA(m16n8k32_row_col_s32_s8_s8_s32, 8, unsigned, emulated_signed, emulated_signed)
EMULATED_MMA(m16n8k32_row_col_s32_s8_u8_s32, 8, unsigned, emulated_signed, emulated_unsigned)
EMULATED_MMA(m16n8k32_row_col_s32_u8_s8_s32, 8, unsigned, emulated_unsigned, emulated_signed)
EMULATED_MMA(m16n8k32_row_col_s32_u8_u8_s32, 8, unsigned, emulated_unsigned, emulated_unsigned)

// ---- ldmatrix: each item names 16 bytes of shared memory, 8 of them a block's rows
static inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& a, unsigned& b,
                                                                unsigned& c, unsigned& d,
                                                                unsigned from) {
  const unsigned long long given = from;
  const EmulatedWarp* const warp = emulated_gather(~0u, &given, 1, 0);
  if (warp->given != ~0u) emulated_machine->fail("Some items of a warp alone call ldmatrix.", 0);
  const unsigned lane = emulated_lane();
  unsigned* const words[4] = {&a, &b, &c, &d};
  for (int block = 0; block < 4; ++block) {
    const unsigned long long at = warp->values[0][block * 8 + lane / 4];
    if (at % 16 != 0) emulated_machine->fail("ldmatrix reads at no multiple of 16 bytes.", 0);
    __builtin_memcpy(words[block], __start_emulated_shared + at + lane % 4 * 4, 4);
  }
}

// ---- cp.async: copies come when an item waits for them, and no earlier
struct EmulatedCopy {
  unsigned to;
  const void* from;
  unsigned group;
  EmulatedIndex block;
};
constexpr unsigned kEmulatedCopies = 128;  // of an item, on their way
static EmulatedCopy emulated_copies[1024][kEmulatedCopies];
static unsigned emulated_copy_count[1024];
static unsigned emulated_copy_group[1024];
static inline void ptx_cp_async_cg_shared_global(unsigned to, const void* from) {
  const unsigned item = threadIdx.x;
  if (to % 16 != 0 || (unsigned long long)from % 16 != 0) {
    emulated_machine->fail("cp.async copies from or to no multiple of 16 bytes.", 0);
  }
  if (emulated_copy_count[item] == kEmulatedCopies) {
    emulated_machine->fail("An item has more copies on their way than there is room for.", 0);
  }
  emulated_copies[item][emulated_copy_count[item]++] = {to, from, emulated_copy_group[item],
                                                        blockIdx};
}
static inline void ptx_cp_async_commit_group() { ++emulated_copy_group[threadIdx.x]; }
static inline void ptx_cp_async_wait_group(unsigned most) {
  const unsigned item = threadIdx.x;
  unsigned kept = 0;
  for (unsigned k = 0; k < emulated_copy_count[item]; ++k) {
    const EmulatedCopy copy = emulated_copies[item][k];
    // Nobody waited for what an earlier block copied.
    if (copy.block.x != blockIdx.x || copy.block.y != blockIdx.y || copy.block.z != blockIdx.z) {
      continue;
    }
    if (copy.group + most >= emulated_copy_group[item]) {
      emulated_copies[item][kept++] = copy;
    } else {
      __builtin_memcpy(__start_emulated_shared + copy.to, copy.from, 16);
    }
  }
  emulated_copy_count[item] = kept;
}

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_PTX_H_
