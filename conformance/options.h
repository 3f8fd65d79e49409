// SPDX-License-Identifier: Apache-2.0
//
// The command line of onnxifi_conformance.

#ifndef ONNXIFI_CONFORMANCE_OPTIONS_H_
#define ONNXIFI_CONFORMANCE_OPTIONS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onnxifi::conformance {

struct Options {
  // "interface", "operators", "opsets", "domains" or "models".
  std::string suite;
  // As in client::ChooseDevice; empty for the library's first device.
  std::string device;
  // Names as of `device`: the devices that each model names for its nodes in turn; empty for models
  // as they are.
  std::vector<std::string> alternates;
  // Variants in which each case is replayed besides as it is; "all" stands for all of them.
  std::vector<std::string> variants;
  // Whether models are lent to the library, see suites::ReplayRules.
  bool lend_model = false;
  // Empty for the libonnxifi beside the program.
  std::filesystem::path library;
  // A regular expression that is searched in the names of cases; empty for all.
  std::string filter;
  // Files to write; empty for none.
  std::filesystem::path json;
  std::filesystem::path report;
  std::filesystem::path junit;
  // Folder of the generated cases; empty for the newest in the cache.
  std::filesystem::path cases;
  // Empty for the file of the device's plugin, if there is one.
  std::filesystem::path expectations;
  // A file of expectations to write from the results; empty for none. Given only without `filter`.
  std::filesystem::path write_expectations;
  // 0: chosen by suite.
  int jobs = 0;
  double timeout_s = 0;
  bool list = false;
  // Set for the child processes.
  bool is_worker = false;
};

// Parses the command line. Returns the exit status instead when the program has nothing more to do:
// 0 after --help, 2 after an error, which it has printed.
std::optional<int> ParseOptions(int argument_count, char** arguments, Options& options);

// The command line of a worker for the same suite, device, library and cases.
std::vector<std::string> MakeWorkerCommand(const std::string& program, const Options& options);

}  // namespace onnxifi::conformance

#endif  // ONNXIFI_CONFORMANCE_OPTIONS_H_
