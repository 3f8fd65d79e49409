// SPDX-License-Identifier: Apache-2.0
//
// Processor: what this backend's kernels know of the processor when they choose between algorithms
// and sizes of blocks: its caches, its vectors, and how long some things take. Choices made from it
// are promises, not measurements; none changes a result beyond its rounding.

#ifndef ONNXIFI_BACKENDS_CPU_PROCESSOR_PROCESSOR_H_
#define ONNXIFI_BACKENDS_CPU_PROCESSOR_PROCESSOR_H_

#include <cstdint>

namespace onnxifi::processor {

// The caches for data of one core.
struct Caches {
  int64_t l1_bytes;
  int64_t l2_bytes;
};

// Those of this machine; where the system does not tell, 32 KiB and 1 MiB, which most processors
// have at least. Threads: any.
Caches OwnCaches();
// The caches that kernels go by: those of this machine, unless a test states others
// (testing/stated_caches.h), which it does not do while a kernel is selected, bound or run.
Caches UsedCaches();
void StateCaches(Caches caches);

// Of one core: what the caches that kernels go by hold, and what it computes in float32 with the
// vectors that kernels may use. Threads: any.
int64_t L1Floats();
int64_t L2Floats();
double MultiplyAddsPerCycle();
// Whether one instruction of those vectors multiplies bytes and adds up their products (VNNI), and
// kernels may use it.
bool HasByteProducts();
// Before the first kernel is made; tests also between kernels.
void AllowByteProducts(bool is_allowed);
// Whether it has tiles of bytes (AMX), the system lets this process use them, and kernels may. The
// first call asks the system for that, for all threads of the process.
bool HasByteTiles();
// As AllowByteProducts().
void AllowByteTiles(bool is_allowed);
// The name of those vectors for reports: "AVX3" is Highway's of AVX-512.
const char* VectorName();

// Times, mostly in cycles of a core. Each was found by running the networks of
// benchmarks/compare.py with values around it, on two cores of a Sapphire Rapids Xeon at about 2.2
// GHz (AVX-512, 2 MiB of L2 cache, one and two threads), and keeping what made none of them slower.

// A thread reads a float of weights from memory, while the other threads do too. Between 0.6 and 1
// the same kernels were chosen; from 2 on, Winograd's larger weights were avoided where they pay.
inline constexpr double kCyclesPerFloatFromMemory = 0.8125;
// A thread reads a float that another has in its cache.
inline constexpr double kCyclesPerSharedFloat = 0.1875;
// A transform of Winograd's algorithm loads, combines and stores a float, its share of the padding
// included: in multiply-adds, since it has the same vectors as these.
inline constexpr double kMultiplyAddsPerTransformedFloat = 6;
// Another thread begins with its part of a loop: 7 us.
inline constexpr double kCyclesToWakeAThread = 15625;
// The same for a loop that copies, in floats.
inline constexpr int64_t kFloatsWorthAThread = 16384;

}  // namespace onnxifi::processor

#endif  // ONNXIFI_BACKENDS_CPU_PROCESSOR_PROCESSOR_H_
