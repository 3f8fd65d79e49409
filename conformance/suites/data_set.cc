// SPDX-License-Identifier: Apache-2.0
//
// A file per value, as tools/case_store.py lays them out.

#include "conformance/suites/data_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::FileValue;
using onnx_file::ModelOutline;
using onnx_file::ValueOutline;

base::Result<std::vector<FileValue>> ReadValues(const std::filesystem::path& folder,
                                                std::string_view prefix,
                                                const std::vector<ValueOutline>& values) {
  std::vector<FileValue> read;
  for (size_t index = 0; index < values.size(); ++index) {
    ONNXIFI_ASSIGN_OR_RETURN(
        FileValue value, onnx_file::ReadValueFile(folder / fmt::format("{}_{}.pb", prefix, index),
                                                  values[index].kind));
    // Some data files have no names; position decides.
    value.name = values[index].name;
    value.tensor.name = value.name;
    read.push_back(std::move(value));
  }
  return read;
}

}  // namespace

base::Result<DataSet> ReadDataSet(const cases::CaseDescription& description, int number,
                                  const ModelOutline& outline) {
  const std::filesystem::path folder = description.folder / fmt::format("test_data_set_{}", number);
  DataSet data_set;
  ONNXIFI_ASSIGN_OR_RETURN(data_set.inputs, ReadValues(folder, "input", outline.inputs));
  ONNXIFI_ASSIGN_OR_RETURN(data_set.outputs, ReadValues(folder, "output", outline.outputs));
  return data_set;
}

bool CanCross(const ValueOutline& value) {
  return value.kind == onnx_file::ValueKind::kTensor &&
         value.type != onnx_file::ElementType::kString;
}

std::string FindValueThatCannotCross(const ModelOutline& outline) {
  const auto describe = [](std::string_view role, const ValueOutline& value) {
    return fmt::format(
        "{} '{}' is a {}, which no descriptor can carry", role, value.name,
        value.kind == onnx_file::ValueKind::kTensor ? "tensor of strings" : NameOf(value.kind));
  };
  for (const ValueOutline& input : outline.inputs) {
    if (!CanCross(input)) return describe("Input", input);
  }
  for (const ValueOutline& output : outline.outputs) {
    if (!CanCross(output)) return describe("Output", output);
  }
  return {};
}

std::vector<DenseTensor> TensorsOf(std::span<const FileValue> values) {
  std::vector<DenseTensor> tensors;
  for (const FileValue& value : values) tensors.push_back(value.tensor);
  return tensors;
}

std::vector<std::string> ElementTypesOf(const ModelOutline& outline) {
  std::vector<std::string> types;
  for (const std::vector<ValueOutline>* values : {&outline.inputs, &outline.outputs}) {
    for (const ValueOutline& value : *values) {
      std::string type = NameOf(value.type);
      if (std::ranges::find(types, type) == types.end()) types.push_back(std::move(type));
    }
  }
  return types;
}

}  // namespace onnxifi::suites
