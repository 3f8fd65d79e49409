// SPDX-License-Identifier: Apache-2.0
//
// Oracle: a graph per model, run once.

#include "conformance/suites/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "client/default_library.h"
#include "client/execution.h"
#include "client/onnx_file/model_outline.h"
#include "conformance/suites/case_graph.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kUnsupportedShape, std::move(sentence));
}

}  // namespace

Oracle::Oracle(const client::Library& tested, std::string device)
    : tested_(tested), tested_device_(std::move(device)) {}

Oracle::~Oracle() {
  if (backend_ != nullptr) (void)library_->onnxReleaseBackend(backend_);
}

const std::string& Oracle::FindObstacle() {
  if (is_opened_) return obstacle_;
  is_opened_ = true;
  if (tested_device_.starts_with("null:")) {
    obstacle_ = "The device is the oracle itself.";
  } else if (const base::Status status = Open(); !status.ok()) {
    obstacle_ = "There is no oracle: " + status.Text();
  }
  return obstacle_;
}

base::Status Oracle::Open() {
  ONNXIFI_ASSIGN_OR_RETURN(const std::filesystem::path path, client::FindDefaultLibrary());
  std::error_code error;
  library_ = &tested_;
  if (!std::filesystem::equivalent(path, tested_.path(), error)) {
    ONNXIFI_ASSIGN_OR_RETURN(own_, client::Library::Open(path));
    library_ = own_.get();
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<client::Device> devices,
                           client::ListDevices(*library_));
  ONNXIFI_ASSIGN_OR_RETURN(device_, client::ChooseDevice(devices, "null"));
  extensions_ = library_->FindExtensions(device_.id);
  return client::ExpectSuccess(*library_, "onnxInitBackend",
                               library_->onnxInitBackend(device_.id, nullptr, &backend_));
}

base::Result<std::vector<DenseTensor>> Oracle::Compute(std::span<const std::byte> model,
                                                       std::span<const DenseTensor> inputs) {
  const Target target = {.library = *library_,
                         .extensions = extensions_,
                         .id = device_.id,
                         .backend = backend_,
                         .alternates = {}};
  ONNXIFI_ASSIGN_OR_RETURN(const onnx_file::ModelOutline outline,
                           onnx_file::ParseModelOutline(model));
  CaseGraph graph(target);
  ONNXIFI_RETURN_IF_ERROR(client::ExpectSuccess(
      *library_, "onnxInitGraph",
      graph.Init({.model = model, .weights = {}, .properties = {0}, .by_values = false})));
  ONNXIFI_ASSIGN_OR_RETURN(const auto extents, graph.InferExtents(inputs));
  if (!extents) return Fault("The rank of an output is not known.");
  int64_t most_inputs = 1;
  for (const DenseTensor& input : inputs) {
    most_inputs = std::max(most_inputs, input.element_count());
  }
  std::vector<DenseTensor> outputs;
  for (size_t index = 0; index < extents->size(); ++index) {
    DenseTensor& output = outputs.emplace_back();
    output.name = outline.outputs[index].name;
    output.type = outline.outputs[index].type;
    output.extents = (*extents)[index];
    // What only data tell is bounded by the elements there are.
    std::ranges::replace(output.extents, int64_t{ONNXIFI_SDK_UNKNOWN}, most_inputs);
    const std::optional<int64_t> count = onnx_file::ElementCount(output.extents);
    if (!count || *count > kMaxOutputElements) {
      return Fault(
          fmt::format("Output '{}' has more than {} elements.", output.name, kMaxOutputElements));
    }
    const std::optional<int64_t> size_bytes = onnx_file::SizeBytes(output.type, *count);
    if (!size_bytes) return Fault(fmt::format("Output '{}' has no size.", output.name));
    output.bytes.resize(static_cast<size_t>(*size_bytes));
  }
  return graph.Run(inputs, outputs, {.signal_before_run = true});
}

}  // namespace onnxifi::suites
