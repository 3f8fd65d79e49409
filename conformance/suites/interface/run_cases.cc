// SPDX-License-Identifier: Apache-2.0
//
// onnxRunGraph: fences, the order of run and signal, runs in flight, and runs that cannot finish
// well.

#include <onnx/onnxifi.h>

#include <chrono>
#include <thread>
#include <vector>

#include "client/device_list.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

using std::chrono::milliseconds;

// A bound graph of z = x + y.
struct Bound {
  explicit Bound(Check& check) : scene(check), graph(scene.InitGraph(MakeAddModel())) {
    if (graph == nullptr) return;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                       "onnxSetGraphIO");
  }

  Scene scene;
  onnxGraph graph;
  AddTensors tensors;
};

// Runs with fences as given and keeps the output event.
onnxStatus Run(Check& check, Scene& scene, onnxGraph graph, const onnxMemoryFenceV1& input,
               onnxMemoryFenceV1& output) {
  const onnxStatus status = check.library().onnxRunGraph(graph, &input, &output);
  if (status == ONNXIFI_STATUS_SUCCESS && output.type == ONNXIFI_SYNCHRONIZATION_EVENT) {
    scene.Keep(output.event);
  }
  return status;
}

onnxEventState StateOf(Check& check, onnxEvent event) {
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxGetEventState(event, &state),
                     "onnxGetEventState on an output event");
  return state;
}

void RunThenSignal(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const onnxEvent event = bound.scene.InitEvent();
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  const auto start = std::chrono::steady_clock::now();
  if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                          Run(check, bound.scene, bound.graph, MakeFence(event), output),
                          "onnxRunGraph before its input event is signalled")) {
    return;
  }
  // A library that waits inside the call hangs here, and the case with it.
  check.Expect(std::chrono::steady_clock::now() - start < std::chrono::seconds(20),
               "onnxRunGraph takes more than 20 s to return.");
  std::this_thread::sleep_for(milliseconds(50));
  check.Expect(StateOf(check, output.event) == ONNXIFI_EVENT_STATE_NONSIGNALLED,
               "The output event is signalled before the input event.");
  check.Expect(bound.tensors.z() == std::vector<float>(6, -1.0f),
               "The outputs are written before the input event is signalled.");
  // Inputs may be completed until the signal.
  for (float& value : bound.tensors.x()) value += 1000;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent after onnxRunGraph");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                     "onnxWaitEvent on the output event");
  check.Expect(bound.tensors.IsSum(), "The run does not use the inputs as they are at the signal.");
  check.Expect(StateOf(check, output.event) == ONNXIFI_EVENT_STATE_SIGNALLED,
               "The output event is not SIGNALLED after the wait.");
}

void SignalThenRun(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  bound.scene.RunAndWait(bound.graph);
  check.Expect(bound.tensors.IsSum(), "The sum is wrong.");
}

void SignalFromAnotherThread(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const onnxEvent event = bound.scene.InitEvent();
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     Run(check, bound.scene, bound.graph, MakeFence(event), output),
                     "onnxRunGraph");
  std::jthread signaller([&] {
    std::this_thread::sleep_for(milliseconds(30));
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                       "onnxSignalEvent in another thread");
  });
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                     "onnxWaitEvent while another thread signals the input");
  check.Expect(bound.tensors.IsSum(), "The sum is wrong.");
}

void OutputFenceIsNotRead(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const onnxEvent live = bound.scene.InitEvent();
  for (const onnxEvent garbage : {reinterpret_cast<onnxEvent>(uintptr_t{0xDEADBEEF}), live}) {
    const onnxEvent event = bound.scene.InitEvent();
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                       "onnxSignalEvent");
    onnxMemoryFenceV1 output = MakeFence(garbage);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       Run(check, bound.scene, bound.graph, MakeFence(event), output),
                       "onnxRunGraph with garbage in the output fence (R9)");
    check.Expect(output.event != garbage && output.event != event && output.event != nullptr,
                 "onnxRunGraph stores no new event in the output fence (R9).");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                       "onnxWaitEvent on the output event");
  }
  check.Expect(StateOf(check, live) == ONNXIFI_EVENT_STATE_NONSIGNALLED,
               "onnxRunGraph signals the event that lay in the output fence.");
}

void ArgumentsAreChecked(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const client::Library& library = check.library();
  const onnxEvent event = bound.scene.InitEvent();
  onnxMemoryFenceV1 input = MakeFence(event);
  onnxMemoryFenceV1 output = MakeFence(event);
  int local = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, library.onnxRunGraph(nullptr, nullptr, nullptr),
                     "onnxRunGraph with NULLs");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, library.onnxRunGraph(&local, &input, &output),
                     "onnxRunGraph with a foreign graph");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxRunGraph(bound.graph, nullptr, &output),
                     "onnxRunGraph without an input fence");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxRunGraph(bound.graph, &input, nullptr),
                     "onnxRunGraph without an output fence");
  input.tag = 1;
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_TAG,
                     library.onnxRunGraph(bound.graph, &input, &output),
                     "onnxRunGraph with an input fence of an unknown tag");
  input = MakeFence(event);
  output.tag = 1;
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_TAG,
                     library.onnxRunGraph(bound.graph, &input, &output),
                     "onnxRunGraph with an output fence of an unknown tag");
  output = MakeFence(event);
  input.type = 12345;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_FENCE_TYPE,
                     library.onnxRunGraph(bound.graph, &input, &output),
                     "onnxRunGraph with an input fence of an unknown type");
  input = MakeFence(event);
  output.type = 12345;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_FENCE_TYPE,
                     library.onnxRunGraph(bound.graph, &input, &output),
                     "onnxRunGraph with an output fence of an unknown type");
  output = MakeFence(event);
  for (const onnxEvent no_event :
       {onnxEvent{nullptr}, static_cast<onnxEvent>(&local), static_cast<onnxEvent>(bound.graph)}) {
    input = MakeFence(no_event);
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT,
                       library.onnxRunGraph(bound.graph, &input, &output),
                       "onnxRunGraph with no input event");
  }
  check.Expect(output.event == event, "A failed onnxRunGraph changes the output fence (R9).");
}

void ImplicitFencesMayBeUnsupported(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const uint64_t types =
      client::QueryNumber(check.library(), check.id(), ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES)
          .value_or(0);
  if ((types & ONNXIFI_SYNCHRONIZATION_IMPLICIT) != 0) return;
  const onnxEvent event = bound.scene.InitEvent();
  onnxMemoryFenceV1 implicit = MakeFence(nullptr);
  implicit.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE,
                     check.library().onnxRunGraph(bound.graph, &implicit, &output),
                     "onnxRunGraph with an IMPLICIT input fence, which the device does not list,");
  const onnxMemoryFenceV1 input = MakeFence(event);
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE,
                     check.library().onnxRunGraph(bound.graph, &input, &implicit),
                     "onnxRunGraph with an IMPLICIT output fence, which the device does not list,");
}

void UnboundGraphDoesNotRun(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  const onnxMemoryFenceV1 input = MakeFence(scene.InitEvent());
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                     check.library().onnxRunGraph(graph, &input, &output),
                     "onnxRunGraph before onnxSetGraphIO");
}

void EventOfAnotherBackendIsInvalid(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  Scene other(check);
  if (!other.is_ready() || other.backend() == bound.scene.backend()) return;
  const onnxMemoryFenceV1 input = MakeFence(other.InitEvent());
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT,
                     check.library().onnxRunGraph(bound.graph, &input, &output),
                     "onnxRunGraph with an event of another backend");
}

void InputEventReleasedBeforeSignalled(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const onnxEvent event = bound.scene.InitEvent();
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     Run(check, bound.scene, bound.graph, MakeFence(event), output),
                     "onnxRunGraph");
  bound.scene.ReleaseNow(event);
  // R15, R10: nobody can signal it any more; the run ends as failed and its event says so.
  check.ExpectOneOf({ONNXIFI_STATUS_INTERNAL_ERROR, ONNXIFI_STATUS_BACKEND_UNAVAILABLE},
                    check.library().onnxWaitEvent(output.event),
                    "onnxWaitEvent for a run whose input event was released unsignalled (R15)");
  check.Expect(StateOf(check, output.event) == ONNXIFI_EVENT_STATE_SIGNALLED,
               "The output event of a failed run is not SIGNALLED (R10).");
  check.Expect(bound.tensors.z() == std::vector<float>(6, -1.0f),
               "A run that never started writes its outputs.");
  // The graph is still good.
  bound.scene.RunAndWait(bound.graph);
  check.Expect(bound.tensors.IsSum(), "The graph is no longer good after a failed run.");
}

void InputEventReleasedAfterSignalled(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  for (int time = 0; time < 100; ++time) {
    std::fill(bound.tensors.z().begin(), bound.tensors.z().end(), -1.0f);
    const onnxEvent event = bound.scene.InitEvent();
    onnxMemoryFenceV1 output = MakeFence(nullptr);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       Run(check, bound.scene, bound.graph, MakeFence(event), output),
                       "onnxRunGraph");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                       "onnxSignalEvent");
    bound.scene.ReleaseNow(event);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                       "onnxWaitEvent after the input event was signalled and released");
    check.Expect(bound.tensors.IsSum(), "The sum is wrong.");
    bound.scene.ReleaseNow(output.event);
  }
}

void RunsInFlightAreQueued(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  // R14: each run uses the binding current at its call.
  constexpr int kRuns = 8;
  std::vector<std::unique_ptr<AddTensors>> tensors;
  std::vector<onnxEvent> inputs;
  std::vector<onnxEvent> outputs;
  for (int run = 0; run < kRuns; ++run) {
    tensors.push_back(std::make_unique<AddTensors>(static_cast<float>(run + 1)));
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.back()->Bind(check.library(), graph),
                       "onnxSetGraphIO with runs in flight");
    inputs.push_back(scene.InitEvent());
    onnxMemoryFenceV1 output = MakeFence(nullptr);
    if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                            Run(check, scene, graph, MakeFence(inputs.back()), output),
                            "onnxRunGraph with runs in flight (R14)")) {
      return;
    }
    outputs.push_back(output.event);
  }
  for (const onnxEvent input : inputs) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(input),
                       "onnxSignalEvent");
  }
  for (int run = kRuns - 1; run >= 0; --run) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxWaitEvent(outputs[static_cast<size_t>(run)]),
                       "onnxWaitEvent on one of several runs");
    check.Expect(tensors[static_cast<size_t>(run)]->IsSum(),
                 "A run in flight does not use the binding that was current at its call (R14).");
  }
}

void FenceStructuresMayGo(Check& check) {
  Bound bound(check);
  if (bound.graph == nullptr) return;
  const onnxEvent event = bound.scene.InitEvent();
  auto input = std::make_unique<onnxMemoryFenceV1>(MakeFence(event));
  auto output = std::make_unique<onnxMemoryFenceV1>(MakeFence(nullptr));
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, Run(check, bound.scene, bound.graph, *input, *output),
                     "onnxRunGraph");
  const onnxEvent output_event = output->event;
  *input = {};
  *output = {};
  input.reset();
  output.reset();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output_event),
                     "onnxWaitEvent after the fences are gone");
  check.Expect(bound.tensors.IsSum(), "The sum is wrong.");
}

void OutputEventChainsRuns(Check& check) {
  // The output event of one graph is the input event of the next: y of the first is x of the
  // second.
  Scene scene(check);
  const onnxGraph first = scene.InitGraph(MakeAddModel());
  const onnxGraph second = scene.InitGraph(MakeAddModel());
  if (first == nullptr || second == nullptr) return;
  AddTensors head(1);
  AddTensors tail(2);
  tail.inputs()[0].buffer = head.outputs()[0].buffer;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, head.Bind(check.library(), first), "onnxSetGraphIO");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tail.Bind(check.library(), second), "onnxSetGraphIO");
  const onnxEvent start = scene.InitEvent();
  onnxMemoryFenceV1 between = MakeFence(nullptr);
  onnxMemoryFenceV1 end = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, Run(check, scene, first, MakeFence(start), between),
                     "onnxRunGraph");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     Run(check, scene, second, MakeFence(between.event), end),
                     "onnxRunGraph with another run's output event as input");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(start),
                     "onnxSignalEvent");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(end.event),
                     "onnxWaitEvent on the second run");
  for (size_t index = 0; index < tail.z().size(); ++index) {
    check.Expect(tail.z()[index] == head.x()[index] + head.y()[index] + tail.y()[index],
                 "The chained runs compute a wrong sum.");
  }
}

void ReleaseOfTheGraphWaitsForRuns(Check& check) {
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeLongModel(100));
  if (graph == nullptr) return;
  const std::vector<int64_t> extents = {64, 64};
  std::vector<float> x(64 * 64, 1.0f);
  std::vector<float> m(64 * 64, 0.0f);
  for (size_t row = 0; row < 64; ++row) m[row * 65] = 1.0f;  // The identity.
  std::vector<float> y(64 * 64, -1.0f);
  client::DescriptorList inputs;
  client::DescriptorList outputs;
  inputs.Add("x", ElementType::kFloat32, extents, x.data());
  inputs.Add("m", ElementType::kFloat32, extents, m.data());
  outputs.Add("y", ElementType::kFloat32, extents, y.data());
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxSetGraphIO(graph, 2, inputs.data(), 1, outputs.data()),
                     "onnxSetGraphIO");
  const onnxEvent output = scene.StartRun(graph);
  if (output == nullptr) return;
  scene.ReleaseGraphNow(graph);
  check.Expect(y == x, "onnxReleaseGraph returns before the run in flight has finished.");
  check.Expect(StateOf(check, output) == ONNXIFI_EVENT_STATE_SIGNALLED,
               "The output event is not SIGNALLED after onnxReleaseGraph.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output),
                     "onnxWaitEvent on an output event that outlives its graph");
}

constexpr InterfaceCase kCases[] = {
    {"runs", "run_then_signal", RunThenSignal},
    {"runs", "signal_then_run", SignalThenRun},
    {"runs", "signal_from_another_thread", SignalFromAnotherThread},
    {"runs", "output_fence_is_not_read", OutputFenceIsNotRead},
    {"runs", "run_checks_its_arguments_in_order", ArgumentsAreChecked},
    {"runs", "implicit_fences_may_be_unsupported", ImplicitFencesMayBeUnsupported},
    {"runs", "unbound_graph_does_not_run", UnboundGraphDoesNotRun},
    {"runs", "event_of_another_backend_is_invalid", EventOfAnotherBackendIsInvalid},
    {"runs", "input_event_released_before_signalled", InputEventReleasedBeforeSignalled},
    {"runs", "input_event_released_after_signalled", InputEventReleasedAfterSignalled},
    {"runs", "runs_in_flight_are_queued", RunsInFlightAreQueued},
    {"runs", "fence_structures_may_go", FenceStructuresMayGo},
    {"runs", "output_event_starts_the_next_run", OutputEventChainsRuns},
    {"runs", "release_of_the_graph_waits_for_runs", ReleaseOfTheGraphWaitsForRuns},
};

}  // namespace

std::span<const InterfaceCase> RunCases() { return kCases; }

}  // namespace onnxifi::suites
