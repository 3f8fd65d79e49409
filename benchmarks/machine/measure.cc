// SPDX-License-Identifier: Apache-2.0
//
// Measure: the same work on every thread at once, timed from the first start to the last end.

#include "benchmarks/machine/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>
#include <vector>

#include "benchmarks/machine/multiply_add.h"
#include "benchmarks/machine/read_bytes.h"

namespace onnxifi::machine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTries = 5;
constexpr double kTrySeconds = 0.05;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `work(thread)` on `threads` threads that start together; returns the seconds until the last
// has finished.
double TimeTogether(int threads, const std::function<void(int thread)>& work) {
  Clock::time_point start;
  std::barrier ready(threads, [&]() noexcept { start = Clock::now(); });
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      ready.arrive_and_wait();
      work(thread);
    });
  }
  ready.arrive_and_wait();
  work(0);
  for (std::thread& other : others) other.join();
  return SecondsSince(start);
}

// The most units per second of `work(thread, repeats)`, each repeat of which is `units` on each
// thread. Repeats until a try takes kTrySeconds.
double BestRate(int threads, double units, const std::function<void(int, int64_t)>& work) {
  int64_t repeats = 1;
  double seconds = 0;
  while (true) {
    seconds = TimeTogether(threads, [&](int thread) { work(thread, repeats); });
    if (seconds >= kTrySeconds) break;
    repeats = std::max(repeats + 1, static_cast<int64_t>(static_cast<double>(repeats) *
                                                         (1.2 * kTrySeconds / (seconds + 1e-6))));
  }
  for (int attempt = 1; attempt < kTries; ++attempt) {
    seconds = std::min(seconds, TimeTogether(threads, [&](int thread) { work(thread, repeats); }));
  }
  return units * static_cast<double>(repeats) * threads / seconds;
}

double MeasureFloat32(int threads) {
  constexpr int64_t kRounds = 10'000;
  std::vector<float> sinks(static_cast<size_t>(threads) * 16);  // a cache line each
  const double operations = static_cast<double>(MultiplyAdd(kRounds, sinks.data()));
  return BestRate(threads, operations,
                  [&](int thread, int64_t repeats) {
                    MultiplyAdd(repeats * kRounds, &sinks[static_cast<size_t>(thread) * 16]);
                  }) *
         1e-9;
}

// A product of bytes on every thread, by oneDNN, which knows each processor's instructions for it.
double MeasureInt8(int threads) {
  constexpr int64_t kM = 256, kN = 256, kK = 1024;
  struct Product {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    // Without a pool of threads: on the calling one.
    dnnl::stream stream{engine};
    dnnl::memory a, b, c;
    dnnl::matmul matmul;

    Product() {
      using Memory = dnnl::memory;
      const auto desc = [](Memory::dims dims, Memory::data_type type, Memory::format_tag tag) {
        return Memory::desc(std::move(dims), type, tag);
      };
      // The weights as the kernel wants them, as a packed constant would be.
      const dnnl::matmul::primitive_desc primitive(
          engine, desc({kM, kK}, Memory::data_type::u8, Memory::format_tag::ab),
          desc({kK, kN}, Memory::data_type::s8, Memory::format_tag::any),
          desc({kM, kN}, Memory::data_type::s32, Memory::format_tag::ab));
      a = Memory(primitive.src_desc(), engine);
      b = Memory(primitive.weights_desc(), engine);
      c = Memory(primitive.dst_desc(), engine);
      std::memset(a.get_data_handle(), 3, primitive.src_desc().get_size());
      std::memset(b.get_data_handle(), 5, primitive.weights_desc().get_size());
      matmul = dnnl::matmul(primitive);
    }
    void Run() {
      matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
      stream.wait();
    }
  };
  try {
    std::vector<std::unique_ptr<Product>> products;
    for (int thread = 0; thread < threads; ++thread) {
      products.push_back(std::make_unique<Product>());
      products.back()->Run();
    }
    return BestRate(threads, 2.0 * kM * kN * kK,
                    [&](int thread, int64_t repeats) {
                      for (int64_t k = 0; k < repeats; ++k) products[thread]->Run();
                    }) *
           1e-9;
  } catch (const dnnl::error&) {
    return 0;  // Not measured: this processor has no such product in oneDNN.
  }
}

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Reads `size_bytes` in all, a share per thread, in memory that it has touched first.
double MeasureRead(int threads, int64_t size_bytes) {
  const int64_t share = std::max(size_bytes / threads / kReadGroup, int64_t{1}) * kReadGroup;
  std::vector<std::unique_ptr<std::byte, Free>> from(threads);
  TimeTogether(threads, [&](int thread) {
    from[thread].reset(
        static_cast<std::byte*>(std::aligned_alloc(kReadGroup, static_cast<size_t>(share))));
    std::memset(from[thread].get(), 1, static_cast<size_t>(share));
  });
  std::vector<uint64_t> sinks(static_cast<size_t>(threads) * 8);  // a cache line each
  return BestRate(threads, static_cast<double>(share),
                  [&](int thread, int64_t repeats) {
                    for (int64_t k = 0; k < repeats; ++k) {
                      sinks[static_cast<size_t>(thread) * 8] +=
                          ReadBytes(from[thread].get(), share);
                    }
                  }) *
         1e-9;
}

// Copies `size_bytes` in all, a share per thread, each in memory that it has touched first.
double MeasureCopy(int threads, int64_t size_bytes) {
  constexpr int64_t kAlignment = 4096;
  const int64_t share = std::max(size_bytes / threads / kAlignment, int64_t{1}) * kAlignment;
  std::vector<std::unique_ptr<std::byte, Free>> from(threads), to(threads);
  TimeTogether(threads, [&](int thread) {
    for (auto* memory : {&from[thread], &to[thread]}) {
      memory->reset(
          static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(share))));
      std::memset(memory->get(), 1, static_cast<size_t>(share));
    }
  });
  return BestRate(threads, 2.0 * static_cast<double>(share),
                  [&](int thread, int64_t repeats) {
                    for (int64_t k = 0; k < repeats; ++k) {
                      std::memcpy(to[thread].get(), from[thread].get(), static_cast<size_t>(share));
                    }
                  }) *
         1e-9;
}

}  // namespace

Limits Measure(const std::function<void(std::string_view part)>& progress) {
  Limits limits;
  limits.processor = ProcessorName();
  limits.instructions = InstructionsUsed();
  std::vector<int> counts;
  for (int threads = 1; threads < UsableProcessors(); threads *= 2) counts.push_back(threads);
  counts.push_back(UsableProcessors());
  for (const int threads : counts) {
    ThreadLimits& entry = limits.by_threads.emplace_back();
    entry.threads = threads;
    const std::string on = fmt::format(" on {} thread{}", threads, threads == 1 ? "" : "s");
    progress("float32 multiply-adds" + on);
    entry.float32_gflops = MeasureFloat32(threads);
    progress("int8 products" + on);
    entry.int8_gops = MeasureInt8(threads);
    progress("reads of main memory" + on);
    entry.read_gigabytes_per_s = MeasureRead(threads, int64_t{256} << 20);
    // From what fits the innermost cache of one core to what fits none.
    for (const int64_t kilobytes : {8, 64, 256, 1024, 4096, 16384, 65536, 262144}) {
      progress(fmt::format("copies of {} KiB{}", kilobytes, on));
      const int64_t size_bytes = kilobytes * 1024;
      entry.copies.push_back({size_bytes, MeasureCopy(threads, size_bytes)});
    }
  }
  return limits;
}

}  // namespace onnxifi::machine
