// SPDX-License-Identifier: Apache-2.0
//
// DataSet: the inputs of a generated case and the outputs that are expected of them.

#ifndef ONNXIFI_CONFORMANCE_SUITES_DATA_SET_H_
#define ONNXIFI_CONFORMANCE_SUITES_DATA_SET_H_

#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/value_file.h"
#include "conformance/cases/case_list.h"

namespace onnxifi::suites {

struct DataSet {
  // In the order of the graph's inputs that are not initializers, with their names.
  std::vector<onnx_file::FileValue> inputs;
  std::vector<onnx_file::FileValue> outputs;
};

base::Result<DataSet> ReadDataSet(const cases::CaseDescription& description, int number,
                                  const onnx_file::ModelOutline& outline);

// Whether a value of this kind and type can be a descriptor.
bool CanCross(const onnx_file::ValueOutline& value);

// The first graph input or output that no descriptor can carry, in words; empty if there is none.
std::string FindValueThatCannotCross(const onnx_file::ModelOutline& outline);

// The tensors of values that are all tensors.
std::vector<onnx_file::DenseTensor> TensorsOf(std::span<const onnx_file::FileValue> values);

// Each element type of what crosses the interface, once.
std::vector<std::string> ElementTypesOf(const onnx_file::ModelOutline& outline);

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_DATA_SET_H_
