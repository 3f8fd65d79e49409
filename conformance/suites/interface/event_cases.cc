// SPDX-License-Identifier: Apache-2.0
//
// Events: single-shot, waitable by many, never blocking where they must not.

#include <onnx/onnxifi.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

using std::chrono::milliseconds;

onnxEventState StateOf(Check& check, onnxEvent event) {
  onnxEventState state = 77;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxGetEventState(event, &state),
                     "onnxGetEventState on a live event");
  return state;
}

void GoesFromNonsignalledToSignalledOnce(Check& check) {
  Scene scene(check);
  const onnxEvent event = scene.InitEvent();
  if (event == nullptr) return;
  check.Expect(StateOf(check, event) == ONNXIFI_EVENT_STATE_NONSIGNALLED,
               "A new event is not NONSIGNALLED.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent on a new event");
  check.Expect(StateOf(check, event) == ONNXIFI_EVENT_STATE_SIGNALLED,
               "A signalled event is not SIGNALLED.");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_STATE, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent on a signalled event");
  check.Expect(StateOf(check, event) == ONNXIFI_EVENT_STATE_SIGNALLED,
               "A second signal changes the event's state.");
  for (int time = 0; time < 3; ++time) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event),
                       "onnxWaitEvent on a signalled event, repeatedly");
  }
}

void ArgumentsAreChecked(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  const client::Library& library = check.library();
  int local = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxInitEvent(scene.backend(), nullptr),
                     "onnxInitEvent with a NULL result");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, library.onnxInitEvent(nullptr, nullptr),
                     "onnxInitEvent with two NULLs");
  for (const onnxBackend backend : {onnxBackend{nullptr}, static_cast<onnxBackend>(&local)}) {
    onnxEvent event = &local;
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, library.onnxInitEvent(backend, &event),
                       "onnxInitEvent with no backend");
    check.Expect(event == nullptr, "onnxInitEvent fails and leaves *event other than NULL.");
  }
  for (const onnxEvent event : {onnxEvent{nullptr}, static_cast<onnxEvent>(&local),
                                static_cast<onnxEvent>(scene.backend())}) {
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxSignalEvent(event),
                       "onnxSignalEvent with no event");
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxWaitEvent(event),
                       "onnxWaitEvent with no event");
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxReleaseEvent(event),
                       "onnxReleaseEvent with no event (R35)");
    onnxEventState state = 77;
    check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT, library.onnxGetEventState(event, &state),
                       "onnxGetEventState with no event");
    check.Expect(state == ONNXIFI_EVENT_STATE_INVALID,
                 "onnxGetEventState fails and leaves *state other than INVALID.");
  }
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxGetEventState(scene.InitEvent(), nullptr),
                     "onnxGetEventState with a NULL result");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, library.onnxGetEventState(nullptr, nullptr),
                     "onnxGetEventState with two NULLs");
}

void WaitersInSeveralThreadsAllWake(Check& check) {
  Scene scene(check);
  const onnxEvent event = scene.InitEvent();
  if (event == nullptr) return;
  std::atomic<int> awake = 0;
  std::vector<std::jthread> waiters;
  for (int waiter = 0; waiter < 8; ++waiter) {
    waiters.emplace_back([&] {
      check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event),
                         "onnxWaitEvent in a thread of its own");
      ++awake;
    });
  }
  std::this_thread::sleep_for(milliseconds(50));
  check.Expect(awake == 0, "onnxWaitEvent returns before the event is signalled.");
  check.Expect(StateOf(check, event) == ONNXIFI_EVENT_STATE_NONSIGNALLED,
               "Waiting changes the state of an event.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent with waiters");
  waiters.clear();  // Joins; a waiter that does not wake is a hang of this case.
  check.Expect(awake == 8, "Not all waiters wake.");
}

void ManyEventsAtOnce(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  std::vector<onnxEvent> events;
  for (int index = 0; index < 2000; ++index) {
    events.push_back(scene.InitEvent());
    if (events.back() == nullptr) return;
  }
  // Each is its own: signalling every other one leaves the rest.
  for (size_t index = 0; index < events.size(); index += 2) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(events[index]),
                       "onnxSignalEvent on one of many");
  }
  for (size_t index = 0; index < events.size(); ++index) {
    check.Expect(
        StateOf(check, events[index]) ==
            (index % 2 == 0 ? ONNXIFI_EVENT_STATE_SIGNALLED : ONNXIFI_EVENT_STATE_NONSIGNALLED),
        "Signalling one event changes another.");
  }
}

void ReleasedWhileWaitedFor(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  onnxEvent event = nullptr;
  if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                          check.library().onnxInitEvent(scene.backend(), &event),
                          "onnxInitEvent")) {
    return;
  }
  std::jthread waiter([&] {
    // R30: the waiter leaves; nobody can signal the event any more.
    check.ExpectOneOf({ONNXIFI_STATUS_INVALID_EVENT, ONNXIFI_STATUS_SUCCESS},
                      check.library().onnxWaitEvent(event),
                      "onnxWaitEvent on an event that is released meanwhile (R30)");
  });
  std::this_thread::sleep_for(milliseconds(30));
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseEvent(event),
                     "onnxReleaseEvent while another thread waits (R30)");
}

void SignalledAndReleasedWhileWaitedFor(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  for (int time = 0; time < 200; ++time) {
    onnxEvent event = nullptr;
    if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                            check.library().onnxInitEvent(scene.backend(), &event),
                            "onnxInitEvent")) {
      return;
    }
    std::atomic<bool> is_waiting = false;
    std::jthread waiter([&] {
      is_waiting = true;
      // It may come too late and meet a handle that is gone.
      check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_INVALID_EVENT},
                        check.library().onnxWaitEvent(event), "onnxWaitEvent in a race (R30)");
    });
    while (!is_waiting) std::this_thread::yield();
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                       "onnxSignalEvent in a race (R30)");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseEvent(event),
                       "onnxReleaseEvent in a race (R30)");
  }
}

void LeakedEventsDoNotHoldTheBackend(Check& check) {
  Scene scene(check);
  if (!scene.is_ready()) return;
  for (int index = 0; index < 10; ++index) {
    onnxEvent leaked = nullptr;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxInitEvent(scene.backend(), &leaked), "onnxInitEvent");
  }
  // R8: the release below neither fails nor hangs.
  scene.ReleaseBackendNow();
}

constexpr InterfaceCase kCases[] = {
    {"events", "signalled_once_and_for_good", GoesFromNonsignalledToSignalledOnce},
    {"events", "event_functions_check_their_arguments", ArgumentsAreChecked},
    {"events", "waiters_in_several_threads_all_wake", WaitersInSeveralThreadsAllWake},
    {"events", "many_events_are_each_their_own", ManyEventsAtOnce},
    {"events", "event_released_while_waited_for", ReleasedWhileWaitedFor},
    {"events", "event_signalled_and_released_in_a_race", SignalledAndReleasedWhileWaitedFor},
    {"events", "leaked_events_do_not_hold_the_backend", LeakedEventsDoNotHoldTheBackend},
};

}  // namespace

std::span<const InterfaceCase> EventCases() { return kCases; }

}  // namespace onnxifi::suites
