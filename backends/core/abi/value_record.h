// SPDX-License-Identifier: Apache-2.0
//
// ValueRecord: between onnxValue of <onnxifi/sdk.h> and tensor::Value: what a caller gives is
// checked and copied; what a run kept is told in structures that point into it.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_VALUE_RECORD_H_
#define ONNXIFI_BACKENDS_CORE_ABI_VALUE_RECORD_H_

#include <onnxifi/sdk.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/value.h"

namespace onnxifi::abi {

// A copy of `record`, which no longer needs to live then; `what` names it in messages.
// INVALID_SIZE, INVALID_DATATYPE, INVALID_SHAPE, INVALID_POINTER, INVALID_MEMORY_LOCATION,
// NO_SYSTEM_MEMORY.
base::Result<tensor::ValueRef> CopyValue(const onnxValue& record, const std::string& what);

// Whether CopyValue would take `record`, and it has every field of today's structure. Copies
// nothing: for what a plugin tells and its caller reads.
bool IsSound(const onnxValue& record);

// The structures of one value, which with its name outlives them.
class ValueRecord {
 public:
  ValueRecord(const std::string& name, const tensor::Value& value);
  ValueRecord(const ValueRecord&) = delete;
  ValueRecord& operator=(const ValueRecord&) = delete;

  const onnxValue& get() const { return *top_; }

 private:
  const onnxValue* Add(const tensor::Value& value, const char* name);
  void AddTensor(const tensor::Tensor& tensor, onnxValue& record);
  void AddRows(const tensor::MapRows& rows, onnxValue& record);

  // Addresses of their elements stay when they grow.
  std::deque<onnxValue> records_;
  std::deque<std::vector<onnxString>> strings_;
  std::deque<std::vector<const onnxValue*>> elements_;
  // Of maps in rows: a structure per map with those of its values behind it, and who points to
  // them.
  std::unique_ptr<onnxValue[]> row_records_;
  std::unique_ptr<const onnxValue*[]> row_elements_;
  const onnxValue* top_;
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_VALUE_RECORD_H_
