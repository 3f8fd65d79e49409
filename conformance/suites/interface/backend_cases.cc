// SPDX-License-Identifier: Apache-2.0
//
// Backends: properties, several of one device, bad arguments.

#include <onnx/onnxifi.h>

#include <array>

#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

// Initialises with a list and releases again.
onnxStatus InitWith(Check& check, const uint64_t* properties) {
  onnxBackend backend = reinterpret_cast<onnxBackend>(&check);
  const onnxStatus status = check.library().onnxInitBackend(check.id(), properties, &backend);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseBackend(backend),
                       "onnxReleaseBackend");
  } else {
    check.Expect(backend == nullptr, "onnxInitBackend fails and leaves *backend other than NULL.");
  }
  return status;
}

void EmptyListsAreAccepted(Check& check) {
  const std::array<uint64_t, 1> none = {ONNXIFI_BACKEND_PROPERTY_NONE};
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, InitWith(check, nullptr),
                     "onnxInitBackend with a NULL list");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, InitWith(check, none.data()),
                     "onnxInitBackend with an empty list");
}

void StandardPropertiesAreUnderstood(Check& check) {
  // A value may be 0: a reader steps over pairs and does not look for the first 0.
  const std::array<uint64_t, 5> list = {
      ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT,
      ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, ONNXIFI_LOG_LEVEL_ERROR, ONNXIFI_BACKEND_PROPERTY_NONE};
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, InitWith(check, list.data()),
                     "onnxInitBackend with OPTIMIZATION and LOG_LEVEL (R27)");
}

void ValueBehindAZeroIsRead(Check& check) {
  const std::array<uint64_t, 5> list = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION,
                                        ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT, 0x7777, 1,
                                        ONNXIFI_BACKEND_PROPERTY_NONE};
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, InitWith(check, list.data()),
                     "onnxInitBackend with an unknown key behind a value of 0");
}

void UnknownKeyIsUnsupported(Check& check) {
  // R2: nothing behind an unknown key is read, so the list need not be ended.
  const std::array<uint64_t, 1> list = {0x7777};
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, InitWith(check, list.data()),
                     "onnxInitBackend with an unknown key");
  const std::array<uint64_t, 3> vendor = {uint64_t{0x7777} << 40, 1, 0};
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_PROPERTY, InitWith(check, vendor.data()),
                     "onnxInitBackend with an unknown vendor key");
}

void ValueOutOfRangeIsInvalid(Check& check) {
  const std::array<uint64_t, 3> optimization = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, 77,
                                                ONNXIFI_BACKEND_PROPERTY_NONE};
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_PROPERTY, InitWith(check, optimization.data()),
                     "onnxInitBackend with optimisation target 77");
  const std::array<uint64_t, 3> level = {ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, 0,
                                         ONNXIFI_BACKEND_PROPERTY_NONE};
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_PROPERTY, InitWith(check, level.data()),
                     "onnxInitBackend with log level 0");
}

void ArgumentsAreChecked(Check& check) {
  int local = 0;
  onnxBackend backend = &local;
  const client::Library& library = check.library();
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxInitBackend(check.id(), nullptr, nullptr),
                     "onnxInitBackend with a NULL result");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     library.onnxInitBackend(nullptr, nullptr, nullptr),
                     "onnxInitBackend with a NULL result and a NULL ID");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, library.onnxInitBackend(nullptr, nullptr, &backend),
                     "onnxInitBackend with a NULL ID");
  check.Expect(backend == nullptr, "onnxInitBackend leaves *backend after INVALID_ID.");
  backend = &local;
  const std::array<uint64_t, 1> unknown = {0x7777};
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID,
                     library.onnxInitBackend(&local, unknown.data(), &backend),
                     "onnxInitBackend with a foreign ID and an unknown key");
  check.Expect(backend == nullptr, "onnxInitBackend leaves *backend after INVALID_ID.");
}

void ReleasingNoBackendIsInvalid(Check& check) {
  int local = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, check.library().onnxReleaseBackend(nullptr),
                     "onnxReleaseBackend with NULL");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, check.library().onnxReleaseBackend(&local),
                     "onnxReleaseBackend with a foreign pointer");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_BACKEND, check.library().onnxReleaseBackend(check.id()),
                     "onnxReleaseBackend with an ID");
}

void TwoBackendsOfOneIdAreIndependent(Check& check) {
  Scene first(check);
  {
    Scene second(check);
    if (!first.is_ready() || !second.is_ready()) return;
    const onnxGraph graph = second.InitGraph(MakeAddModel());
    if (graph == nullptr) return;
    AddTensors tensors(2);
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                       "onnxSetGraphIO");
    second.RunAndWait(graph);
    check.Expect(tensors.IsSum(), "The second backend computes a wrong sum.");
  }
  // R4: handles are counted or distinct; releasing one leaves the other alive.
  const onnxGraph graph = first.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors tensors(3);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  first.RunAndWait(graph);
  check.Expect(tensors.IsSum(), "The first backend computes a wrong sum after the second is gone.");
}

void IdMayGoBeforeItsBackendIsUsed(Check& check) {
  Scene scene(check);
  // Some callers release all IDs right after onnxInitBackend; IDs are static (R3).
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseBackendID(check.id()),
                     "onnxReleaseBackendID with a backend alive");
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors tensors(2);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  scene.RunAndWait(graph);
  check.Expect(tensors.IsSum(), "The sum is wrong.");
}

constexpr InterfaceCase kCases[] = {
    {"backends", "empty_property_lists_are_accepted", EmptyListsAreAccepted},
    {"backends", "standard_properties_are_understood", StandardPropertiesAreUnderstood},
    {"backends", "property_behind_a_zero_value_is_read", ValueBehindAZeroIsRead},
    {"backends", "unknown_property_is_unsupported", UnknownKeyIsUnsupported},
    {"backends", "property_value_out_of_range_is_invalid", ValueOutOfRangeIsInvalid},
    {"backends", "init_backend_checks_its_arguments_in_order", ArgumentsAreChecked},
    {"backends", "release_of_no_backend_is_invalid", ReleasingNoBackendIsInvalid},
    {"backends", "two_backends_of_one_id_are_independent", TwoBackendsOfOneIdAreIndependent},
    {"backends", "id_may_be_released_before_its_backend", IdMayGoBeforeItsBackendIsUsed},
};

}  // namespace

std::span<const InterfaceCase> BackendCases() { return kCases; }

}  // namespace onnxifi::suites
