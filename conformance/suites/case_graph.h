// SPDX-License-Identifier: Apache-2.0
//
// CaseGraph: the graph of a replayed case on the device under test, how it is asked about, and its
// runs.

#ifndef ONNXIFI_CONFORMANCE_SUITES_CASE_GRAPH_H_
#define ONNXIFI_CONFORMANCE_SUITES_CASE_GRAPH_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/device_list.h"
#include "client/execution.h"
#include "client/library.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::suites {

// A device that is ready to take graphs.
struct Target {
  const client::Library& library;
  const client::Extensions& extensions;
  onnxBackendID id;
  onnxBackend backend;
  // Devices that models name for their nodes in turn; empty: models are taken as they are.
  std::span<const client::Device> alternates;
};

// A model with everything that onnxInitGraph is given.
struct GraphRequest {
  std::span<const std::byte> model;
  // Given by weight descriptors.
  std::span<const onnx_file::DenseTensor> weights;
  std::vector<uint64_t> properties;
  // Inputs and outputs are values of the SDK's extension in place of descriptors.
  bool by_values = false;

  // The function that answers whether the device takes it.
  std::string_view claim_function() const;
};

// The device's answer about the model.
onnxStatus Claim(const Target& target, const GraphRequest& request);

class CaseGraph {
 public:
  explicit CaseGraph(const Target& target) : target_(target) {}
  ~CaseGraph();
  CaseGraph(const CaseGraph&) = delete;
  CaseGraph& operator=(const CaseGraph&) = delete;

  // onnxInitGraph. Buffers of weights are spoiled and freed when it returns.
  onnxStatus Init(const GraphRequest& request);

  onnxGraph get() const { return graph_; }

  // As client::Execute and client::ExecuteOnValues.
  base::Result<std::vector<onnx_file::DenseTensor>> Run(
      std::span<const onnx_file::DenseTensor> inputs,
      std::span<const onnx_file::DenseTensor> outputs,
      const client::ExecutionOptions& options) const;
  base::Result<std::vector<onnx_file::FileValue>> RunOnValues(
      std::span<const onnx_file::FileValue> inputs, const client::ExecutionOptions& options) const;

  // The extents of the outputs for these inputs, ONNXIFI_SDK_UNKNOWN where only data tell them, by
  // output. Nothing when the library does not tell, or the rank of an output is not known.
  base::Result<std::optional<std::vector<std::vector<int64_t>>>> InferExtents(
      std::span<const onnx_file::DenseTensor> inputs) const;

  // The families of the graph's steps; nothing when the library does not tell.
  std::optional<std::vector<std::string>> ReadStepFamilies() const;

 private:
  const Target& target_;
  onnxGraph graph_ = nullptr;
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_CASE_GRAPH_H_
