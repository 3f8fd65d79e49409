// SPDX-License-Identifier: Apache-2.0
//
// Limits: what this machine can do at most, as onnxifi_bench --machine measured it, and the file
// in the cache that keeps it for onnxifi_run --profile.

#ifndef ONNXIFI_BENCHMARKS_MACHINE_LIMITS_H_
#define ONNXIFI_BENCHMARKS_MACHINE_LIMITS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::machine {

// Copying `size_bytes` in all from one place to another: bytes read plus bytes written per second.
struct CopyLimit {
  int64_t size_bytes = 0;
  double gigabytes_per_s = 0;
};

// With `threads` threads that all do the same.
struct ThreadLimits {
  int threads = 0;
  double float32_gflops = 0;        // a multiply-add is two
  double int8_gops = 0;             // products of bytes summed up; 0 where it was not measured
  double read_gigabytes_per_s = 0;  // of main memory, where nothing is written
  std::vector<CopyLimit> copies;    // by growing size; the last is that of main memory

  // Bandwidth where `size_bytes` are read and written: that of the smallest copy measured that
  // moves as much, so that what stays in a cache is held against the cache.
  double BandwidthFor(int64_t size_bytes) const;
};

struct Limits {
  std::string processor;
  std::string instructions;  // what the fastest multiply-adds used, e.g. "AVX3"
  std::vector<ThreadLimits> by_threads;

  // Those for `threads`, or for the most that were measured below it. Null without any.
  const ThreadLimits* For(int threads) const;
};

std::string ToJson(const Limits& limits);
// INVALID_STATE for text that is no such JSON.
base::Result<Limits> FromJson(std::string_view text);

// The name of this processor, and one name for all that shapes the limits: model, usable
// processors, instruction sets.
std::string ProcessorName();
std::string MachineKey();

// The processors that this process may run on.
int UsableProcessors();
// Threads that the CPU plugin will use: ONNXIFI_NUM_THREADS, or else all usable processors.
int ThreadsInUse();

// Where the limits of this machine are kept. Below ONNXIFI_CACHE_HOME, XDG_CACHE_HOME or HOME;
// empty when none is set.
std::filesystem::path CachePath();
// INVALID_NAME when there is no such file.
base::Result<Limits> ReadCached();
base::Status WriteCached(const Limits& limits);

}  // namespace onnxifi::machine

#endif  // ONNXIFI_BENCHMARKS_MACHINE_LIMITS_H_
