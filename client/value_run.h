// SPDX-License-Identifier: Apache-2.0
//
// Runs a graph once on values of any kind, by the SDK's extension for them.

#ifndef ONNXIFI_CLIENT_VALUE_RUN_H_
#define ONNXIFI_CLIENT_VALUE_RUN_H_

#include <deque>
#include <span>
#include <vector>

#include "client/execution.h"
#include "client/onnx_file/value_file.h"

namespace onnxifi::client {

// Structures for values, which outlive them.
class ValueList {
 public:
  void Add(const onnx_file::FileValue& value);

  const onnxValue* const* data() const { return values_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(values_.size()); }

 private:
  const onnxValue* Append(const onnx_file::FileValue& value);

  std::vector<const onnxValue*> values_;
  // Addresses of their elements stay when they grow.
  std::deque<onnxValue> records_;
  std::deque<std::vector<onnxString>> strings_;
  std::deque<std::vector<const onnxValue*>> elements_;
};

// A copy of what a library tells.
onnx_file::FileValue FromRecord(const onnxValue& record);

// Whether the library has the functions for values.
bool HasValues(const Extensions& extensions);

// Binds all inputs as values and no output, runs once, waits, and reads what the run kept. Errors:
// any call that does not succeed.
base::Result<std::vector<onnx_file::FileValue>> ExecuteOnValues(
    const Library& library, const Extensions& extensions, onnxBackend backend, onnxGraph graph,
    std::span<const onnx_file::FileValue> inputs, const ExecutionOptions& options);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_VALUE_RUN_H_
