// SPDX-License-Identifier: Apache-2.0
//
// What CUDA C++ has beyond C++, for a host compiler: stands between interface.h and a kernel's
// text. It includes nothing, so that a compilation costs little. Items of a block run one after
// another; where one waits for others, the driver goes on with the next.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_SIMT_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_SIMT_H_

static EmulatedItem emulated_item;
static const EmulatedMachine* emulated_machine;
static void* emulated_dynamic_shared;

#define threadIdx (emulated_item.thread)
#define blockIdx (emulated_item.block)
#define blockDim (emulated_item.block_extent)
#define gridDim (emulated_item.grid_extent)
#define warpSize 32

#define __device__
#define __host__
#define __global__ __attribute__((visibility("hidden")))
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __maxnreg__(...)
// A section of its own, so that a block's memory has a beginning and an end.
#define __shared__ static __attribute__((section("emulated_shared,\"aw\",@nobits#")))
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));

// Every place where an item may wait leaves a byte in this section.
#define EMULATED_WAITS \
  asm volatile(".pushsection emulated_waits,\"a\",@progbits\n.byte 1\n.popsection")
extern char __start_emulated_waits[] __attribute__((weak, visibility("hidden")));

static inline void emulated_wait_for_block(int line) {
  EMULATED_WAITS;
  emulated_machine->wait_for_block(line);
}
#define __syncthreads() emulated_wait_for_block(__LINE__)

static inline const EmulatedWarp* emulated_gather(unsigned mask, const unsigned long long* values,
                                                  int count, int line) {
  EMULATED_WAITS;
  return emulated_machine->gather(mask, values, count, line);
}

static inline void __threadfence() { asm volatile("" ::: "memory"); }
static inline void __threadfence_block() { asm volatile("" ::: "memory"); }
static inline void __threadfence_system() { asm volatile("" ::: "memory"); }
static inline void __trap() { emulated_machine->fail("A kernel calls __trap().", 0); }
#define __nanosleep(duration) ((void)0)
static inline long long clock64() { return 0; }
#define __ldg(address) (*(address))
#define __ldcs(address) (*(address))
#define __ldcg(address) (*(address))
#define __stcs(address, value) (*(address) = (value))
#define __stcg(address, value) (*(address) = (value))

// ---- vector types

#define EMULATED_VECTORS(type, name)                                                 \
  struct name##1 {                                                                   \
    type x;                                                                          \
  };                                                                                 \
  struct alignas(2 * sizeof(type)) name##2 {                                         \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct alignas(4 * sizeof(type) > 16 ? 16 : 4 * sizeof(type)) name##4 {            \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATED_VECTORS(signed char, char)
EMULATED_VECTORS(unsigned char, uchar)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(unsigned short, ushort)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(unsigned int, uint)
EMULATED_VECTORS(long long, longlong)
EMULATED_VECTORS(unsigned long long, ulonglong)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)
struct dim3 {
  unsigned int x = 1, y = 1, z = 1;
};

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_SIMT_H_
