// SPDX-License-Identifier: Apache-2.0
//
// Captures: a user object of the driver's, owned by the caller's graph, tells when nothing can
// start it any more.

#include "backends/cuda/captures.h"

#include <utility>

namespace onnxifi::cuda {

void Captures::Keep(const Api& api, CUgraph graph, Objects objects) {
  auto tie = std::make_unique<Tie>(Tie{shared_from_this()});
  {
    const std::lock_guard lock(mutex_);
    tie->number = next_number_++;
    kept_[tie->number] = std::move(objects);
  }
  CUuserObject object = nullptr;
  if (api.UserObjectCreate(&object, tie.get(), Untie, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) !=
      CUDA_SUCCESS) {
    return;
  }
  Tie* const tied = tie.release();  // Untie's
  if (api.GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS) {
    return;
  }
  tied->number = kNone;  // the objects stay
  static_cast<void>(api.UserObjectRelease(object, 1));
}

void CUDA_CB Captures::Untie(void* tie) {
  const std::unique_ptr<Tie> untied(static_cast<Tie*>(tie));
  Captures& captures = *untied->captures;
  const std::lock_guard lock(captures.mutex_);
  const auto found = captures.kept_.find(untied->number);
  if (found == captures.kept_.end()) return;
  captures.over_.push_back(std::move(found->second));
  captures.kept_.erase(found);
  captures.has_over_ = true;
}

void Captures::Sweep() {
  if (!has_over_) return;
  std::vector<Objects> over;  // which goes without the lock
  {
    const std::lock_guard lock(mutex_);
    has_over_ = false;
    over.swap(over_);
  }
}

void Captures::Close() {
  std::map<uint64_t, Objects> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
  }
  has_over_ = true;
  Sweep();
}

}  // namespace onnxifi::cuda
