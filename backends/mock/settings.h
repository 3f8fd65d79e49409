// SPDX-License-Identifier: Apache-2.0
//
// Settings: how one copy of the mock plugin behaves, as its file says.

#ifndef ONNXIFI_BACKENDS_MOCK_SETTINGS_H_
#define ONNXIFI_BACKENDS_MOCK_SETTINGS_H_

#include <onnx/onnxifi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/mock/testing/shared_number.h"

namespace onnxifi::mock {

struct Settings {
  // "devices" and "type" ("cpu", "gpu", "npu").
  int device_count = 1;
  onnxEnum device_type = ONNXIFI_DEVICE_TYPE_CPU;
  // "operators": types that are claimed, constants beside them; nothing: all that the reference
  // runs. "refused": types that are not, even so.
  std::optional<std::set<std::string>> operators;
  std::set<std::string> refused;
  // "lies": types that are claimed and then refused by onnxInitGraph.
  std::set<std::string> lies;
  // "emulated": types that are claimed with FALLBACK, "*" for all. What the reference computes
  // counts as done by kernels of the device's own otherwise.
  std::set<std::string> emulated;
  // "behind": the interface that the device is reached through, of which it takes buffers
  // ("opencl", "vulkan"); none: it works on the host's memory alone.
  uint64_t memory_types = 0;
  // "uuid", "luid": of the physical device, 32 and 16 hexadecimal digits; "pci": domain, bus and
  // device of its address. Of each: none, it tells none.
  std::string uuid;
  std::string luid;
  std::optional<std::array<uint64_t, 3>> pci;
  // "step_ms": what a node takes by its operator type, "*" for all others; "launch_ms": what a run
  // takes beside. Runs of one device follow one another. Nothing is slept where both are 0.
  std::map<std::string, double> step_ms;
  double launch_ms = 0;
  // "clock": a file with a number, nanoseconds. Where it is set runs add their time to it and do
  // not sleep.
  std::shared_ptr<SharedNumber> clock;
  // "gate": a file with a number, to which every run adds one before it goes on, which it does when
  // the number is "gate_opens_at" at least. After half a minute it ends with INTERNAL_ERROR.
  std::shared_ptr<SharedNumber> gate;
  int64_t gate_opens_at = 0;
  // "misstates": what is told of a graph's first output that is not so: "shapes" and "types" by
  // onnxInferOutputShapes, "run shapes" and "run types" after a run, when "kept" outputs are not
  // handed over either.
  std::set<std::string> misstates;
  // "measured": a file with a number, to which every graph adds one that may be measured.
  std::shared_ptr<SharedNumber> measured;
  // "init_ms": what onnxInitGraph takes beside the work it does.
  double init_ms = 0;
  // "memory_bytes": of the device; 0: no limit. More is NO_DEVICE_MEMORY.
  int64_t memory_bytes = 0;
  // "fails_at_run": runs of a device from this one on (counted from 1) end with INTERNAL_ERROR
  // after their time; "vanishes_at_run": with BACKEND_UNAVAILABLE, and all other calls to the
  // device too. 0: never.
  int64_t fails_at_run = 0;
  int64_t vanishes_at_run = 0;

  bool Claims(const std::string& operator_type) const;
  // Whether it does so by emulation.
  bool Emulates(const std::string& operator_type) const;
  // Of one node. Constants are no work.
  std::chrono::nanoseconds StepTime(const std::string& operator_type) const;
};

// INVALID_PROPERTY with what is wrong, a key that there is not among it.
base::Result<Settings> ParseSettings(std::string_view json);

// The settings of the file, the defaults where there is none. INVALID_PROPERTY.
base::Result<Settings> ReadSettings(const std::filesystem::path& file);

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_SETTINGS_H_
