// SPDX-License-Identifier: Apache-2.0
//
// Captures: what runs that became part of callers' graphs need: recordings, bindings and memory
// stay as long as such a graph, its copies or what was instantiated of them.

#ifndef ONNXIFI_BACKENDS_CUDA_CAPTURES_H_
#define ONNXIFI_BACKENDS_CUDA_CAPTURES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// Any thread.
class Captures : public std::enable_shared_from_this<Captures> {
 public:
  using Objects = std::vector<std::shared_ptr<const void>>;

  // With the context of `runtime` current. What the driver cannot tie to `graph` stays until Close.
  void Keep(const Api& api, CUgraph graph, Objects objects);
  // Lets go what no graph needs any more; not by the driver's thread that tells so, which must not
  // call the driver.
  void Sweep();
  // Lets everything go: the device goes, and callers start their graphs no more.
  void Close();

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct Tie {
    std::shared_ptr<Captures> captures;
    uint64_t number = 0;
  };
  static void CUDA_CB Untie(void* tie);

  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<uint64_t, Objects> kept_;
  std::vector<Objects> over_;
  uint64_t next_number_ = 0;
  std::atomic<bool> has_over_ = false;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_CAPTURES_H_
