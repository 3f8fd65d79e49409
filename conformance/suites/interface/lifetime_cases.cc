// SPDX-License-Identifier: Apache-2.0
//
// Order of release, stale handles and handles of the wrong kind, and everything a thousand times.

#include <onnx/onnxifi.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

void EnumerateInitReleaseAThousandTimes(Check& check) {
  const client::Library& library = check.library();
  for (int time = 0; time < 1000; ++time) {
    size_t count = 0;
    check.ExpectStatus(ONNXIFI_STATUS_FALLBACK, library.onnxGetBackendIDs(nullptr, &count),
                       "onnxGetBackendIDs with NULL");
    std::vector<onnxBackendID> ids(count, nullptr);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxGetBackendIDs(ids.data(), &count),
                       "onnxGetBackendIDs");
    onnxBackend backend = nullptr;
    if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                            library.onnxInitBackend(check.id(), nullptr, &backend),
                            "onnxInitBackend, again")) {
      return;
    }
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxReleaseBackend(backend),
                       "onnxReleaseBackend, again");
    for (const onnxBackendID id : ids) {
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxReleaseBackendID(id),
                         "onnxReleaseBackendID, again");
    }
  }
}

void WholeCycleManyTimes(Check& check) {
  for (int time = 0; time < 100; ++time) {
    Scene scene(check);
    const onnxGraph graph = scene.InitGraph(MakeAddModel());
    if (graph == nullptr) return;
    AddTensors tensors(static_cast<float>(time));
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                       "onnxSetGraphIO");
    if (!scene.RunAndWait(graph)) return;
    if (!check.Expect(tensors.IsSum(), "The sum is wrong after several cycles.")) return;
  }
}

void EveryOrderOfReleaseIsSafe(Check& check) {
  // Backend, graph, input event and output event of a finished run, released in all 24 orders (R8).
  std::array<int, 4> order = {0, 1, 2, 3};
  const client::Library& library = check.library();
  do {
    onnxBackend backend = nullptr;
    if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                            library.onnxInitBackend(check.id(), nullptr, &backend),
                            "onnxInitBackend")) {
      return;
    }
    const std::string model = MakeAddModel();
    onnxGraph graph = nullptr;
    const onnxStatus status =
        library.onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph);
    if (client::IsRefusal(status)) {
      check.SetNotSupported(status, library.LastError());
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxReleaseBackend(backend),
                         "onnxReleaseBackend");
      return;
    }
    AddTensors tensors;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(library, graph), "onnxSetGraphIO");
    onnxEvent event = nullptr;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxInitEvent(backend, &event),
                       "onnxInitEvent");
    const onnxMemoryFenceV1 input = MakeFence(event);
    onnxMemoryFenceV1 output = MakeFence(nullptr);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxRunGraph(graph, &input, &output),
                       "onnxRunGraph");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxSignalEvent(event), "onnxSignalEvent");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, library.onnxWaitEvent(output.event),
                       "onnxWaitEvent");
    for (const int which : order) {
      const onnxStatus released = which == 0   ? library.onnxReleaseBackend(backend)
                                  : which == 1 ? library.onnxReleaseGraph(graph)
                                  : which == 2 ? library.onnxReleaseEvent(event)
                                               : library.onnxReleaseEvent(output.event);
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, released,
                         "A release in one of the 24 orders of backend, graph and events (R8)");
    }
  } while (std::ranges::next_permutation(order).found);
}

void StaleHandlesAreInvalid(Check& check) {
  const client::Library& library = check.library();
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent event = nullptr;
  {
    Scene scene(check);
    backend = scene.backend();
    graph = scene.InitGraph(MakeAddModel());
    event = scene.InitEvent();
  }
  if (graph == nullptr) return;
  // R7: a handle that is gone gets its code, and its memory is not read.
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, library.onnxReleaseBackend(backend),
                     "onnxReleaseBackend on a stale handle");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, library.onnxReleaseGraph(graph),
                     "onnxReleaseGraph on a stale handle");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxReleaseEvent(event),
                     "onnxReleaseEvent on a stale handle");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxSignalEvent(event),
                     "onnxSignalEvent on a stale handle");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxWaitEvent(event),
                     "onnxWaitEvent on a stale handle");
  onnxEvent made = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, library.onnxInitEvent(backend, &made),
                     "onnxInitEvent on a stale backend");
  AddTensors tensors;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, tensors.Bind(library, graph),
                     "onnxSetGraphIO on a stale graph");
}

void HandlesOfTheWrongKindAreInvalid(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  const onnxEvent event = scene.InitEvent();
  const client::Library& library = check.library();
  // All handle types are the same C type, so no compiler catches a mix-up.
  for (void* handle : {event, graph, check.id()}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, library.onnxReleaseBackend(handle),
                       "onnxReleaseBackend on another kind of handle");
  }
  for (void* handle : {event, scene.backend(), check.id()}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, library.onnxReleaseGraph(handle),
                       "onnxReleaseGraph on another kind of handle");
  }
  for (void* handle : {graph, scene.backend(), check.id()}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxReleaseEvent(handle),
                       "onnxReleaseEvent on another kind of handle");
  }
  for (void* handle : {event, graph, scene.backend()}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, library.onnxReleaseBackendID(handle),
                       "onnxReleaseBackendID on another kind of handle");
  }
  AddTensors tensors;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(library, graph), "onnxSetGraphIO");
  scene.RunAndWait(graph);
  check.Expect(tensors.IsSum(), "The graph is no longer good after the mix-ups.");
}

void PointersIntoNowhereAreInvalid(Check& check) {
  const client::Library& library = check.library();
  // R7: a registry never reads a foreign address; these would crash a reader of magic words.
  for (const uintptr_t address :
       {uintptr_t{1}, uintptr_t{0xFFF}, UINTPTR_MAX, uintptr_t{1} << 47}) {
    void* handle = reinterpret_cast<void*>(address);
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, library.onnxReleaseBackendID(handle),
                       "onnxReleaseBackendID on an address into nowhere");
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, library.onnxReleaseBackend(handle),
                       "onnxReleaseBackend on an address into nowhere");
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, library.onnxReleaseGraph(handle),
                       "onnxReleaseGraph on an address into nowhere");
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxReleaseEvent(handle),
                       "onnxReleaseEvent on an address into nowhere");
  }
}

void ManyGraphsAtOnce(Check& check) {
  Scene scene(check);
  std::vector<onnxGraph> graphs;
  for (int index = 0; index < 32; ++index) {
    graphs.push_back(scene.InitGraph(MakeAddModel()));
    if (graphs.back() == nullptr) return;
  }
  check.Expect(std::set<onnxGraph>(graphs.begin(), graphs.end()).size() == graphs.size(),
               "Two graphs have one handle.");
  std::vector<std::unique_ptr<AddTensors>> tensors;
  std::vector<onnxEvent> outputs;
  for (const onnxGraph graph : graphs) {
    tensors.push_back(std::make_unique<AddTensors>(static_cast<float>(tensors.size())));
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.back()->Bind(check.library(), graph),
                       "onnxSetGraphIO");
    outputs.push_back(scene.StartRun(graph));
  }
  for (size_t index = 0; index < graphs.size(); ++index) {
    if (outputs[index] == nullptr) return;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(outputs[index]),
                       "onnxWaitEvent on one of many runs");
    check.Expect(tensors[index]->IsSum(), "One of many graphs computes a wrong sum.");
  }
}

void WorkInFlightAtTheEndOfTheProcess(Check& check) {
  // R31: nothing is released; the process must still end, and end well. Checked by the worker's
  // exit.
  onnxBackend backend = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxInitBackend(check.id(), nullptr, &backend),
                     "onnxInitBackend");
  onnxEvent event = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxInitEvent(backend, &event),
                     "onnxInitEvent");
}

constexpr InterfaceCase kCases[] = {
    {"lifetime", "enumerate_init_release_a_thousand_times", EnumerateInitReleaseAThousandTimes},
    {"lifetime", "whole_cycle_many_times", WholeCycleManyTimes},
    {"lifetime", "every_order_of_release_is_safe", EveryOrderOfReleaseIsSafe},
    {"lifetime", "stale_handles_are_invalid", StaleHandlesAreInvalid},
    {"lifetime", "handles_of_the_wrong_kind_are_invalid", HandlesOfTheWrongKindAreInvalid},
    {"lifetime", "pointers_into_nowhere_are_invalid", PointersIntoNowhereAreInvalid},
    {"lifetime", "many_graphs_at_once", ManyGraphsAtOnce},
    {"lifetime", "leaked_objects_do_not_hold_the_process", WorkInFlightAtTheEndOfTheProcess},
};

}  // namespace

std::span<const InterfaceCase> LifetimeCases() { return kCases; }

}  // namespace onnxifi::suites
