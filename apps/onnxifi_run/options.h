// SPDX-License-Identifier: Apache-2.0
//
// The command line of onnxifi_run.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_OPTIONS_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_OPTIONS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/onnxifi_run/precision.h"

namespace onnxifi::run {

struct Options {
  std::filesystem::path model;
  // "auto", a plugin's name, or "plugin:index"; empty for the library's first device.
  std::string device;
  // Devices that run the model too, in turns with that one.
  std::vector<std::string> beside;
  std::filesystem::path library;
  // Files, each for the input that it names or stands at the place of: "FILE" or "NAME=FILE"; a
  // folder stands for its input_0.pb, input_1.pb, ...
  std::vector<std::string> inputs;
  // Numbers for symbolic extents.
  std::map<std::string, int64_t> dims;
  // Folders; empty for none.
  std::filesystem::path output;
  std::filesystem::path expect;
  int repeat = 1;
  uint32_t seed = 1;
  bool explain = false;
  bool profile = false;
  // Sums of products as their operators define them, no algorithm that rounds differently.
  bool exact_algorithms = false;
  // Devices and their implementations are timed before the runs, as far as that is not known.
  bool measure = false;
  RoundingPermissions rounding;
  // A file for the trace of the last run; empty for none. Given only with `profile`.
  std::filesystem::path trace;
  // A file for which device runs what; empty for none.
  std::filesystem::path plan;
  // Where the auto device has nodes: ONNXIFI_SDK_PLACEMENT_*, with keys of devices.
  uint32_t placement = ONNXIFI_SDK_PLACEMENT_AUTO;
  std::vector<std::string> placement_keys;
  // Names or numbers of nodes, each with the key of its device.
  std::vector<std::pair<std::string, std::string>> pins;
  // A file of a plan to be carried out; empty for none. Given without the three above.
  std::filesystem::path replay_plan;
  // An architecture of CUDA's, such as "sm_90", that kernels are compiled for; empty: the model
  // runs.
  std::string compile_for;
  bool json = false;
  // How long a plugin may take when it is tried before it is opened here; 0: it is not tried.
  double probe_limit_s = 10;
};

// Parses the command line. Returns the exit status instead when the program has nothing more to do:
// 0 after --help, 2 after an error, which it has printed.
std::optional<int> ParseOptions(int argument_count, char** arguments, Options& options);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_OPTIONS_H_
