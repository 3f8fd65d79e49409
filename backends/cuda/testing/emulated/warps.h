// SPDX-License-Identifier: Apache-2.0
//
// CUDA's functions of a warp and votes of a block, for a host compiler: an item gives its value and
// gets those of the others.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_WARPS_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_WARPS_H_

// ---- warps
static inline unsigned emulated_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
}
static inline void emulated_wait_for_warp(unsigned mask, int line) {
  const unsigned long long nothing = 0;
  emulated_gather(mask, &nothing, 1, line);
}
template <class... Mask>
static inline void __syncwarp(Mask... mask) {
  if constexpr (sizeof...(mask) == 0) {
    emulated_wait_for_warp(~0u, 0);
  } else {
    emulated_wait_for_warp(mask..., 0);
  }
}

template <class T>
static inline T emulated_shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  const EmulatedWarp* const warp = emulated_gather(mask, &bits, 1, 0);
  __builtin_memcpy(&value, &warp->values[0][from], sizeof(T));
  return value;
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  const unsigned lane = emulated_lane();
  return emulated_shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emulated_lane();
  const unsigned place = lane & (width - 1);
  return emulated_shuffle(mask, value, place < delta ? lane : lane - delta);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned lane = emulated_lane();
  const unsigned place = lane & (width - 1);
  return emulated_shuffle(mask, value, place + delta >= (unsigned)width ? lane : lane + delta);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const unsigned lane = emulated_lane();
  const unsigned from = lane ^ bits;
  // Lanes of an earlier part of the warp can be read, those of a later part cannot.
  return emulated_shuffle(mask, value, from > (lane | (width - 1)) ? lane : from);
}
static inline unsigned __ballot_sync(unsigned mask, int claim) {
  const unsigned long long bit = claim != 0;
  const EmulatedWarp* const warp = emulated_gather(mask, &bit, 1, 0);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if (warp->given >> lane & mask >> lane & 1) ballot |= (unsigned)warp->values[0][lane] << lane;
  }
  return ballot;
}
static inline int __any_sync(unsigned mask, int claim) { return __ballot_sync(mask, claim) != 0; }
static inline int __all_sync(unsigned mask, int claim) { return __ballot_sync(mask, !claim) == 0; }
static inline unsigned __activemask() { return ~0u; }
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  const EmulatedWarp* const warp = emulated_gather(mask, &bits, 1, 0);
  unsigned equal = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((warp->given >> lane & mask >> lane & 1) && warp->values[0][lane] == bits) {
      equal |= 1u << lane;
    }
  }
  return equal;
}
template <class T, class Combine>
static inline T emulated_reduce(unsigned mask, T value, Combine combine) {
  const unsigned long long bits = (unsigned long long)value;
  const EmulatedWarp* const warp = emulated_gather(mask, &bits, 1, 0);
  bool is_first = true;
  for (int lane = 0; lane < 32; ++lane) {
    if ((warp->given >> lane & mask >> lane & 1) == 0) continue;
    const T other = (T)warp->values[0][lane];
    value = is_first ? other : combine(value, other);
    is_first = false;
  }
  return value;
}
#define EMULATED_REDUCE(type, name, expression)                                             \
  static inline type name(unsigned mask, type value) {                                      \
    return emulated_reduce(mask, value, [](type a, type b) { return (type)(expression); }); \
  }
EMULATED_REDUCE(unsigned, __reduce_add_sync, a + b)
EMULATED_REDUCE(unsigned, __reduce_min_sync, b < a ? b : a)
EMULATED_REDUCE(unsigned, __reduce_max_sync, a < b ? b : a)
EMULATED_REDUCE(int, __reduce_add_sync, (unsigned)a + (unsigned)b)
EMULATED_REDUCE(int, __reduce_min_sync, b < a ? b : a)
EMULATED_REDUCE(int, __reduce_max_sync, a < b ? b : a)
EMULATED_REDUCE(unsigned, __reduce_and_sync, a& b)
EMULATED_REDUCE(unsigned, __reduce_or_sync, a | b)
EMULATED_REDUCE(unsigned, __reduce_xor_sync, a ^ b)

// ---- votes of a block
static inline int emulated_vote(int claim, int line, int kind) {
  EMULATED_WAITS;
  static __attribute__((section("emulated_shared,\"aw\",@nobits#"))) int sum;
  emulated_machine->wait_for_block(line);
  sum = 0;
  emulated_machine->wait_for_block(line);
  sum += claim != 0;
  emulated_machine->wait_for_block(line);
  const int all = (int)(blockDim.x * blockDim.y * blockDim.z);
  return kind == 0 ? sum : kind == 1 ? sum == all : sum != 0;
}
#define __syncthreads_count(claim) emulated_vote(claim, __LINE__, 0)
#define __syncthreads_and(claim) emulated_vote(claim, __LINE__, 1)
#define __syncthreads_or(claim) emulated_vote(claim, __LINE__, 2)

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_WARPS_H_
