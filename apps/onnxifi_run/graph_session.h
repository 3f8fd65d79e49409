// SPDX-License-Identifier: Apache-2.0
//
// GraphSession: a model on one device, with memory for its outputs, that runs again and again.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_GRAPH_SESSION_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_GRAPH_SESSION_H_

#include <cstddef>
#include <onnxifi/onnxifi.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/onnxifi_run/first_result.h"
#include "apps/onnxifi_run/options.h"
#include "apps/onnxifi_run/precision.h"
#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::run {

// Empty where the library does not tell it.
std::string KeyOf(const Device& device);

// The folder that the model's external data are in.
std::string BaseFolderOf(const Options& options);

// What all sessions of a program have in common; the references outlive them.
struct SessionRequest {
  const Options& options;
  std::span<const std::byte> model;
  const onnx_file::ModelOutline& outline;
  std::vector<onnx_file::DenseTensor>& inputs;
  // Of the outputs, where their extents depend on data; may be empty.
  const std::vector<onnx_file::FileValue>& expected;
};

class GraphSession {
 public:
  // Initialises the model on the device, and binds; as values where an input or output is no tensor
  // of numbers, or where nothing tells how large an output may be. Errors carry the library's
  // status and sentence; UNSUPPORTED_PROPERTY for a placement on a device that has no others to
  // place nodes on. A device that does not know a permission computes without it.
  static base::Result<GraphSession> Open(const Device& device, const SessionRequest& request,
                                         const std::optional<Placement>& placement,
                                         bool is_profiled, const RoundingPermissions& rounding);

  // One run, of so many milliseconds. Afterwards outputs bound by an upper bound have the shape
  // that the run gave them.
  base::Result<double> Run();
  // Not to be run any more.
  std::vector<onnx_file::FileValue> TakeOutputs();

  const Graph& graph() const { return graph_; }
  const std::string& device_key() const { return device_key_; }
  // The parts that happen in this object: from the device to the first run, 0 before it.
  const FirstResult& first_result() const { return first_result_; }

 private:
  GraphSession(Backend backend, Graph graph)
      : backend_(std::move(backend)), graph_(std::move(graph)) {}

  Backend backend_;
  Graph graph_;
  std::string device_key_;
  // What outputs are bound to, or what the last run kept.
  bool by_values_ = false;
  std::vector<onnx_file::DenseTensor> outputs_;
  std::vector<onnx_file::FileValue> values_;
  std::vector<std::string> output_names_;
  FirstResult first_result_;
  bool has_run_ = false;
};

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_GRAPH_SESSION_H_
