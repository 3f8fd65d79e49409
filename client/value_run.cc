// SPDX-License-Identifier: Apache-2.0
//
// One bind-run-read cycle on values.

#include "client/value_run.h"

#include <algorithm>
#include <utility>

namespace onnxifi::client {

using onnx_file::FileValue;

void ValueList::Add(const FileValue& value) { values_.push_back(Append(value)); }

const onnxValue* ValueList::Append(const FileValue& value) {
  onnxValue& record = records_.emplace_back();
  record = {};
  record.struct_size = sizeof(record);
  record.name = value.name.c_str();
  switch (value.kind) {
    case FileValue::Kind::kNothing:
      record.kind = ONNXIFI_SDK_VALUE_NOTHING;
      return &record;
    case FileValue::Kind::kTensor:
      record.kind = ONNXIFI_SDK_VALUE_TENSOR;
      break;
    case FileValue::Kind::kSequence:
      record.kind = ONNXIFI_SDK_VALUE_SEQUENCE;
      break;
    case FileValue::Kind::kMap:
      record.kind = ONNXIFI_SDK_VALUE_MAP;
      break;
  }
  if (value.kind != FileValue::Kind::kSequence) {
    record.data_type = static_cast<onnxEnum>(value.tensor.type);
    record.rank = static_cast<uint32_t>(value.tensor.extents.size());
    record.extents = value.tensor.extents.data();
    record.data = value.tensor.bytes.data();
    record.data_size_bytes = value.tensor.bytes.size();
    std::vector<onnxString>& strings = strings_.emplace_back();
    for (const std::string& text : value.tensor.strings) {
      strings.push_back({text.data(), text.size()});
    }
    record.strings = strings.data();
  }
  if (value.kind != FileValue::Kind::kTensor) {
    std::vector<const onnxValue*>& elements = elements_.emplace_back();
    for (const FileValue& element : value.elements) elements.push_back(Append(element));
    record.element_count = elements.size();
    record.elements = elements.data();
  }
  return &record;
}

FileValue FromRecord(const onnxValue& record) {
  FileValue value;
  value.name = record.name != nullptr ? record.name : "";
  switch (record.kind) {
    case ONNXIFI_SDK_VALUE_TENSOR:
      value.kind = FileValue::Kind::kTensor;
      break;
    case ONNXIFI_SDK_VALUE_SEQUENCE:
      value.kind = FileValue::Kind::kSequence;
      break;
    case ONNXIFI_SDK_VALUE_MAP:
      value.kind = FileValue::Kind::kMap;
      break;
    default:
      return value;
  }
  if (value.kind != FileValue::Kind::kSequence) {
    onnx_file::DenseTensor& tensor = value.tensor;
    tensor.name = value.name;
    tensor.type = static_cast<onnx_file::ElementType>(record.data_type);
    tensor.extents.assign(record.extents, record.extents + record.rank);
    const int64_t count = tensor.element_count();
    if (tensor.type == onnx_file::ElementType::kString) {
      for (int64_t k = 0; k < count; ++k) {
        tensor.strings.emplace_back(record.strings[k].data, record.strings[k].size_bytes);
      }
    } else {
      const auto* bytes = static_cast<const std::byte*>(record.data);
      tensor.bytes.assign(bytes, bytes + record.data_size_bytes);
    }
  }
  for (size_t k = 0; k < record.element_count; ++k) {
    value.elements.push_back(FromRecord(*record.elements[k]));
  }
  return value;
}

bool HasValues(const Extensions& extensions) {
  return extensions.get_backend_value_compatibility != nullptr &&
         extensions.set_graph_values != nullptr && extensions.get_run_values != nullptr;
}

base::Result<std::vector<FileValue>> ExecuteOnValues(const Library& library,
                                                     const Extensions& extensions,
                                                     onnxBackend backend, onnxGraph graph,
                                                     std::span<const FileValue> inputs,
                                                     const ExecutionOptions& options) {
  {
    // Gone before the run, with all that it points to: a library copies the values.
    const std::vector<FileValue> copies(inputs.begin(), inputs.end());
    ValueList list;
    for (const FileValue& input : copies) list.Add(input);
    ONNXIFI_RETURN_IF_ERROR(ExpectSuccess(
        library, "onnxSetGraphValues",
        extensions.set_graph_values(graph, 0, nullptr, list.count(), list.data(), 0, nullptr)));
  }
  onnxEvent output_event = nullptr;
  const base::Status run = RunAndWait(library, backend, graph, options, output_event);
  const ScopedEvent scoped_output(library, output_event);
  ONNXIFI_RETURN_IF_ERROR(run);
  std::vector<FileValue> outputs;
  const onnxValueCallback collect = [](void* context, const onnxValue* record) {
    static_cast<std::vector<FileValue>*>(context)->push_back(FromRecord(*record));
  };
  ONNXIFI_RETURN_IF_ERROR(ExpectSuccess(
      library, "onnxGetRunValues", extensions.get_run_values(output_event, collect, &outputs)));
  return outputs;
}

}  // namespace onnxifi::client
