// SPDX-License-Identifier: Apache-2.0
//
// HostThreads: as many threads as the process may use at a time.

#include "backends/core/device/host_threads.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "backends/core/device/usable_cpus.h"

namespace onnxifi::device {

void HostThreads::For(int64_t count, int64_t grain,
                      const std::function<void(int64_t begin, int64_t end)>& body) {
  if (count <= 0) return;
  const int64_t cpus = CountUsableCpus();
  const int64_t ranges = std::clamp<int64_t>(count / std::max<int64_t>(1, grain), 1,
                                             std::min<int64_t>(cpus, kMaxThreads));
  const auto begin_of = [&](int64_t range) {
    return count / ranges * range + std::min(range, count % ranges);
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranges));
  int64_t started = 1;  // the first range is the calling thread's
  try {
    for (; started < ranges; ++started) {
      threads.emplace_back([&, started] { body(begin_of(started), begin_of(started + 1)); });
    }
  } catch (const std::system_error&) {
    // There are as many threads as there can be.
  }
  body(0, begin_of(1));
  if (started < ranges) body(begin_of(started), count);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace onnxifi::device
