// SPDX-License-Identifier: Apache-2.0
//
// Gates: CUDA's events that the host completes. An event is that of work, so there is a stream that
// waits for a word of memory, and the event behind it.

#ifndef ONNXIFI_BACKENDS_CUDA_GATES_H_
#define ONNXIFI_BACKENDS_CUDA_GATES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

// Any thread.
class Gates : public std::enable_shared_from_this<Gates> {
 public:
  explicit Gates(std::shared_ptr<const Context> context) : context_(std::move(context)) {}

  // An event, the receiver's to destroy, and the function that completes it, to be called once,
  // which keeps this object. Resource codes; UNSUPPORTED_FENCE_TYPE where streams cannot wait for
  // memory.
  struct Made {
    CUevent event = nullptr;
    std::function<void()> complete;
  };
  base::Result<Made> Make();

  // Frees the memory, later if an event is not complete yet: the driver waits for all streams
  // before it frees, and the work that completes an event may come only after that.
  void Free(CUdeviceptr memory);

 private:
  struct Gate {
    Handle<void*> word;       // 1 opens
    Handle<CUstream> stream;  // goes before the word that it waits for
    void Set(uint32_t value) const {
      std::atomic_ref(*static_cast<uint32_t*>(word.get())).store(value);
    }
  };

  base::Result<std::shared_ptr<const Gate>> TakeGate();
  // Has the event recorded behind a wait for the word.
  base::Status Close(const Gate& gate, CUevent event) const;
  void Open(std::shared_ptr<const Gate> gate);

  const std::shared_ptr<const Context> context_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::shared_ptr<const Gate>> idle_;
  int closed_count_ = 0;
  std::vector<CUdeviceptr> freed_later_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_GATES_H_
