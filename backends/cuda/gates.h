// SPDX-License-Identifier: Apache-2.0
//
// Gates: CUDA's events that the host completes. An event is that of work, so there is a stream that
// waits for a word of memory, and the event behind it.

#ifndef ONNXIFI_BACKENDS_CUDA_GATES_H_
#define ONNXIFI_BACKENDS_CUDA_GATES_H_

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
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

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
    CUstream stream = nullptr;
    uint32_t* word = nullptr;  // pinned; 1 opens
    CUdeviceptr address = 0;   // of the word, for the device
  };

  base::Result<Gate> TakeGate();
  base::Result<Made> Close(const Gate& gate);
  void Destroy(const Gate& gate) const;
  void Open(const Gate& gate);

  const std::shared_ptr<const Context> context_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<Gate> idle_;
  int closed_count_ = 0;
  std::vector<CUdeviceptr> freed_later_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_GATES_H_
