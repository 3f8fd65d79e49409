// SPDX-License-Identifier: Apache-2.0
//
// Processor: asks the system for caches and Highway for vectors.

#include "backends/cpu/processor/processor.h"

#include <unistd.h>

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/processor/processor.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::processor {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Two units, of which each multiplies and adds at once where there is an instruction for it.
double Rate() {
  constexpr double kPerUnit = HWY_NATIVE_FMA ? 1 : 0.5;
  return 2 * kPerUnit * static_cast<double>(hn::Lanes(hn::ScalableTag<float>()));
}

const char* Name() { return hwy::TargetName(HWY_TARGET); }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
bool AskForByteProducts() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool is_wide = HWY_TARGET == HWY_AVX3;
  if (__get_cpuid_count(7, is_wide ? 0 : 1, &eax, &ebx, &ecx, &edx) == 0) return false;
  // AVX512_VNNI, AVX_VNNI.
  return is_wide ? (ecx >> 11 & 1) != 0 : (eax >> 4 & 1) != 0;
}
#endif

bool MultipliesBytes() {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  static const bool has_them = AskForByteProducts();  // a virtual machine answers slowly
  return has_them;
#else
  return false;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::processor
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::processor {
namespace {

HWY_EXPORT(Rate);
HWY_EXPORT(Name);
HWY_EXPORT(MultipliesBytes);

// Where the system does not tell, what most processors have at least.
int64_t CacheBytes(int64_t told_bytes, int64_t otherwise_bytes) {
  return told_bytes > 0 ? told_bytes : otherwise_bytes;
}

Caches AskForCaches() {
  int64_t l1_bytes = 0, l2_bytes = 0;
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE)
  l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
  return {CacheBytes(l1_bytes, int64_t{32} << 10), CacheBytes(l2_bytes, int64_t{1} << 20)};
}

// In bytes; 0: those of this machine. Two numbers, so that a reader needs no lock.
std::atomic<int64_t> stated_l1 = 0;
std::atomic<int64_t> stated_l2 = 0;

std::atomic<bool> allows_byte_products = true;
std::atomic<bool> allows_byte_tiles = true;

#if defined(__x86_64__) && defined(__linux__)
// AMX_TILE and AMX_INT8, AVX-512 of bytes beside them, and the parts of a thread's state that the
// system keeps.
bool AskForByteTiles() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(1, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr uint32_t kOsxsave = uint32_t{1} << 27;
  if ((ecx & kOsxsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr uint32_t kTiles = uint32_t{3} << 24;
  constexpr uint32_t kAvx512bw = uint32_t{1} << 30;
  if ((edx & kTiles) != kTiles || (ebx & kAvx512bw) == 0) return false;
  uint32_t kept = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  constexpr uint32_t kTileState = uint32_t{3} << 17;
  if ((kept & kTileState) != kTileState) return false;
  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, which older systems' headers lack; XFEATURE_XTILEDATA.
  constexpr int64_t kAskFor = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kAskFor, kTileData) == 0;
}
#else
bool AskForByteTiles() { return false; }
#endif

int64_t BytesOf(const std::atomic<int64_t>& stated, int64_t Caches::*own) {
  const int64_t bytes = stated.load(std::memory_order_relaxed);
  return bytes > 0 ? bytes : OwnCaches().*own;
}

}  // namespace

Caches OwnCaches() {
  static const Caches caches = AskForCaches();
  return caches;
}

Caches UsedCaches() {
  return {BytesOf(stated_l1, &Caches::l1_bytes), BytesOf(stated_l2, &Caches::l2_bytes)};
}

void StateCaches(Caches caches) {
  stated_l1 = caches.l1_bytes;
  stated_l2 = caches.l2_bytes;
}

int64_t L1Floats() { return UsedCaches().l1_bytes / static_cast<int64_t>(sizeof(float)); }
int64_t L2Floats() { return UsedCaches().l2_bytes / static_cast<int64_t>(sizeof(float)); }

double MultiplyAddsPerCycle() { return HWY_DYNAMIC_DISPATCH(Rate)(); }

bool HasByteProducts() {
  return allows_byte_products.load(std::memory_order_relaxed) &&
         HWY_DYNAMIC_DISPATCH(MultipliesBytes)();
}

void AllowByteProducts(bool is_allowed) { allows_byte_products = is_allowed; }

bool HasByteTiles() {
  if (!allows_byte_tiles.load(std::memory_order_relaxed)) return false;
  static const bool has_them = AskForByteTiles();
  return has_them;
}

void AllowByteTiles(bool is_allowed) { allows_byte_tiles = is_allowed; }

const char* VectorName() { return HWY_DYNAMIC_DISPATCH(Name)(); }

}  // namespace onnxifi::processor
#endif
