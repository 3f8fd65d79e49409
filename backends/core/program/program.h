// SPDX-License-Identifier: Apache-2.0
//
// Program: level two. What a graph is lowered to: buffers, steps in order, symbolic extents, scalar
// expressions. Immutable once its passes have run; any number of bindings and runs share it.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_PROGRAM_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/program/expr.h"
#include "backends/core/program/step.h"
#include "backends/core/program/value_type.h"
#include "backends/core/program/view.h"
#include "backends/core/tensor/dim.h"
#include "backends/core/tensor/permissions.h"
#include "backends/core/tensor/string_table.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::program {

struct Buffer {
  enum class Kind : uint8_t {
    kInput,      // inputs[index]
    kConstant,   // constants[index]
    kTemporary,  // in the arena, or the caller's memory where it is an output
    kDynamic,    // allocated by the control or host step that writes it
    kDraws,      // written by execution before each run, as DrawCount says
  };
  Kind kind = Kind::kTemporary;
  tensor::ElementType type = tensor::ElementType::kUndefined;
  Shape shape;     // dense, row-major
  int index = -1;  // kInput, kConstant
  // The elements, of type kUint64, are numbers of strings in the table of the program and its run.
  bool holds_strings = false;
  // kInput, kDynamic: a non-tensor value in place of elements; type and shape say nothing then.
  std::optional<ValueType> value = std::nullopt;

  // As the model has it.
  tensor::ElementType element_type() const {
    return holds_strings ? tensor::ElementType::kString : type;
  }
};

// A program input or output: a dense buffer, or one of a non-tensor value, under a name.
struct Port {
  std::string name;
  BufferId buffer = kNoBuffer;
  Shape shape;
};

// Tells runs of random steps apart. Each run of a program with a buffer kDraws, and so each
// iteration of a loop whose body is one, takes the next number of the graph. The buffer, int64 [2],
// holds that number, and the same counted from `start`.
struct DrawCount {
  std::optional<int64_t> start;  // the system's random number, once a step needs it
  // Nodes without a seed that were lowered so far: each has numbers of its own.
  uint64_t unseeded_nodes = 0;
  std::atomic<int64_t> next = 0;
};

// What must hold of the extents, where lowering could not decide it. Checked when the symbols it
// needs are bound.
struct Requirement {
  Dim condition;  // must not be 0
  base::Status violation;
  // For the sentence: the numbers found are appended to it.
  Dims shown;
};

struct Program : tensor::Permissions {
  std::unique_ptr<tensor::DimTable> dims = std::make_unique<tensor::DimTable>();
  ExprPool exprs;
  std::vector<Buffer> buffers;
  std::vector<tensor::Tensor> constants;
  // Those of the constants; shared with the bodies of control steps, and constant once the graph is
  // lowered.
  std::shared_ptr<tensor::StringTable> strings = std::make_shared<tensor::StringTable>();
  // Shared with the bodies, too, and with the programs of the graph for the numbers of a shape.
  std::shared_ptr<DrawCount> draws = std::make_shared<DrawCount>();
  std::vector<Step> steps;
  // Extents are numbers or plain symbols that this input (or an earlier one) binds.
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Requirement> requirements;

  BufferId AddBuffer(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(buffers.size()) - 1;
  }
};

// Lets go of the tensors of constants, of sub-programs too: a plan holds them as it needs them.
void DropConstants(Program& program);

// Has a program and its sub-programs count their draws with others.
void ShareDraws(Program& program, const std::shared_ptr<DrawCount>& draws);

// The buffer kDraws, the only one; kNoBuffer where nothing is random.
BufferId FindDraws(const Program& program);

std::string ToString(const Program& program);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_PROGRAM_H_
