// SPDX-License-Identifier: Apache-2.0
//
// ModelRun: one model on one device, run and timed, perhaps beside others; the values that
// onnxifi_run prints.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_MODEL_RUN_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_MODEL_RUN_H_

#include <filesystem>
#include <map>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/onnxifi_run/first_result.h"
#include "apps/onnxifi_run/options.h"
#include "apps/onnxifi_run/profile.h"
#include "backends/core/base/result.h"
#include "client/node_answers.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::run {

// Another device that ran the same model.
struct BesideReport {
  std::string device_key;
  // Discovery and reading are the report's.
  FirstResult first_result;
  // In the order of the report's.
  std::vector<double> run_ms;
};

struct RunReport {
  std::string device_key;
  std::string device_name;
  std::vector<onnx_file::DenseTensor> inputs;
  std::vector<onnx_file::FileValue> outputs;
  // As the model declares them.
  std::vector<onnx_file::ValueKind> output_kinds;
  FirstResult first_result;
  // Of the runs that count, unsorted.
  std::vector<double> run_ms;
  // With --beside.
  std::vector<BesideReport> beside;
  std::optional<onnxGraphCounters> counters;
  // After the last run, where the library tells it.
  std::optional<GraphPlan> plan;
  // With --explain.
  std::optional<client::ModelAnswers> answers;
  // The caller says where nodes run: --placement, --pin or a plan.
  bool has_placement = false;
  // With --pin, by node.
  std::map<uint32_t, std::string> pinned;
  // With --profile: the steps of every run that counts.
  std::vector<std::vector<StepRecord>> step_records;
  // With --profile, where the library tells it.
  std::vector<LoadRecord> load_records;
  // With --profile, where a step rounded operands of its products.
  std::vector<OutputError> errors;
  std::optional<Profile> profile;
  // With --expect: per output, the worst difference as a multiple of the tolerance, and what
  // differs (empty if nothing).
  std::vector<double> worst_ratios;
  std::vector<std::string> differences;

  bool is_as_expected() const;
};

// The library that the options name, after its plugins have been asked in a child process. Those
// that end or hang that process are named on standard error and disabled for this process.
base::Result<std::filesystem::path> FindSafeLibrary(const Options& options);
base::Result<Library> OpenLibrary(const std::filesystem::path& path);
// "auto", a plugin's name, or "plugin:index"; the first where it is empty.
base::Result<Device> FindDevice(const Library& library, const std::string& name);

// Runs the model as the options say, on all devices in turns. `before` has what discovery and
// reading have taken so far. Errors carry the library's status and sentence.
base::Result<RunReport> RunModel(const Options& options, const Device& device,
                                 std::span<const Device> beside, std::span<const std::byte> model,
                                 const onnx_file::ModelOutline& outline, const FirstResult& before);

// Asks the device about every node. Works for models that the device refuses.
base::Result<Explanation> ExplainModel(const Device& device, std::span<const std::byte> model);

// Asks every device of the library. Works for models that they refuse.
base::Result<client::ModelAnswers> AskDevices(const Library& library, const Options& options,
                                              std::span<const std::byte> model);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_MODEL_RUN_H_
