// SPDX-License-Identifier: Apache-2.0
//
// Library: the state of one ONNXIFI library in a process, i.e. its Provider and the tables of live
// handles, with the objects that the handles stand for. Every exported function starts here.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_LIBRARY_H_
#define ONNXIFI_BACKENDS_CORE_ABI_LIBRARY_H_

#include <onnx/onnxifi.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/core/abi/handle_table.h"
#include "backends/core/abi/provider.h"

namespace onnxifi::abi {

// What an onnxBackend stands for. Shared by its graphs and events: its resources go with the last
// of them, whatever the order in which the caller releases handles.
struct BackendObject {
  const BackendId* id = nullptr;
  BackendProperties properties;
  std::unique_ptr<Backend> backend;
  std::mutex shared_mutex;
  // What it made for onnxAllocateSharedMemory, by address. Guarded by `shared_mutex`.
  std::map<onnxPointer, SharedMemory> shared;
};

struct GraphObject {
  // Declared before `graph`, so that the backend outlives it.
  std::shared_ptr<BackendObject> owner;
  std::unique_ptr<Graph> graph;
  std::mutex mutex;
  // What onnxSetGraphIO set last, null without or after a failure. Guarded by `mutex`.
  std::shared_ptr<const Binding> binding;
  // What onnxSetIOAndRunGraph set and what serves later runs, the last first, by several callers in
  // turn. Guarded by `mutex`.
  std::vector<std::shared_ptr<const Binding>> one_run_bindings;
};

struct EventObject {
  std::shared_ptr<BackendObject> owner;
  // The binding of the run that made the event; null for an event of the caller's.
  std::shared_ptr<const Binding> binding;
  std::shared_ptr<Event> event;

  bool is_of_run() const { return binding != nullptr; }
};

class Library {
 public:
  // Made on the first call. Destroyed when the library is unloaded, unless handles are alive then:
  // at the exit of a process that leaks objects, waiting for their runs could hang.
  static Library& Get();

  Library();

  Provider& provider() { return *provider_; }
  HandleTable<const BackendId>& backend_ids() { return backend_ids_; }
  HandleTable<BackendObject>& backends() { return backends_; }
  HandleTable<GraphObject>& graphs() { return graphs_; }
  HandleTable<EventObject>& events() { return events_; }

  // The handle of an ID, the same for every call.
  onnxBackendID HandleOf(const BackendId* id);
  bool HasLiveObjects() const;

 private:
  // Declared first: everything in the tables rests on it.
  std::unique_ptr<Provider> provider_;
  HandleTable<const BackendId> backend_ids_{HandleKind::kBackendId};
  HandleTable<BackendObject> backends_{HandleKind::kBackend};
  HandleTable<GraphObject> graphs_{HandleKind::kGraph};
  HandleTable<EventObject> events_{HandleKind::kEvent};
  std::mutex id_handles_mutex_;
  std::unordered_map<const BackendId*, onnxBackendID> id_handles_;
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_LIBRARY_H_
