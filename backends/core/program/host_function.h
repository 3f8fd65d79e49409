// SPDX-License-Identifier: Apache-2.0
//
// HostFunction: the closed list of what Host steps compute: functions of whole values (sequences,
// optionals, maps), of the text of strings, and of tables and trees that no loop over elements
// says. Each is told by its attributes; core/host computes it.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/core/program/value_type.h"

namespace onnxifi::program {

// (elements...) -> sequence. None: the empty sequence.
struct MakeSequence {};

// (sequence of `type`, element, position int64, may be omitted: the end) -> sequence. A position in
// [-n, n].
struct InsertElement {
  ValueType type;
};

// (sequence, position, may be omitted: the last) -> sequence. A position in [-n, n - 1].
struct EraseElement {};

// (sequence, position in [-n, n - 1]) -> its element.
struct TakeElement {};

// (sequence) -> int64 scalar.
struct CountElements {};

// (tensor, lengths of the parts, a scalar for the largest of them, omitted: 1) -> sequence of the
// parts along `axis`, without that axis if `removes_axis`.
struct SplitTensor {
  int axis = 0;
  bool removes_axis = false;
};

// (sequence of tensors) -> one tensor, along an existing axis or a new one. `axis` is as in the
// model: negative from the back.
struct JoinElements {
  int64_t axis = 0;
  bool is_new_axis = false;
};

// (optional, may be omitted) -> bool scalar.
struct TestPresence {};

// (value, may be omitted: nothing) -> the same as an optional, or the element of an optional, which
// must be there where the write is not optional.
struct PassValue {};

struct HostFunction
    : std::variant<MakeSequence, InsertElement, EraseElement, TakeElement, CountElements,
                   SplitTensor, JoinElements, TestPresence, PassValue> {
  using variant::variant;
};

// "insert element", ... for dumps and reports.
std::string_view Name(const HostFunction& function);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_
