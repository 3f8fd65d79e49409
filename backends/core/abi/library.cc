// SPDX-License-Identifier: Apache-2.0
//
// Library: one per image, because every plugin and libonnxifi compile this file with hidden
// symbols.

#include "backends/core/abi/library.h"

#include <memory>
#include <utility>

namespace onnxifi::abi {

Library& Library::Get() {
  struct Holder {
    Library* library = new Library;
    // The pointer stays here where the object is leaked, so that leak checkers find it.
    ~Holder() {
      if (!library->HasLiveObjects()) delete std::exchange(library, nullptr);
    }
  };
  static Holder holder;
  // A caller's static destructor may run after ours and release what it still names.
  if (holder.library == nullptr) holder.library = new Library;
  return *holder.library;
}

Library::Library() : provider_(MakeProvider()) {}

onnxBackendID Library::HandleOf(const BackendId* id) {
  std::lock_guard lock(id_handles_mutex_);
  const auto found = id_handles_.find(id);
  if (found != id_handles_.end()) return found->second;
  // The provider owns the ID; the table only needs to find it.
  const onnxBackendID handle =
      backend_ids_.Add(std::shared_ptr<const BackendId>(std::shared_ptr<const BackendId>(), id));
  id_handles_.emplace(id, handle);
  return handle;
}

bool Library::HasLiveObjects() const {
  return backends_.size() + graphs_.size() + events_.size() > 0;
}

}  // namespace onnxifi::abi
