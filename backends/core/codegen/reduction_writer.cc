// SPDX-License-Identifier: Apache-2.0

#include "backends/core/codegen/reduction_writer.h"

#include <utility>

namespace onnxifi::codegen {

using program::ExprId;

std::string_view ReductionWriter::TypeOf(size_t k) const {
  return LaneType(reduction_.states[k].type);
}

std::vector<std::string> ReductionWriter::Begin(const Scope& scope) {
  std::vector<ExprId> init;
  for (const program::Reduction::State& state : reduction_.states) init.push_back(state.init);
  return BeginAt(WriteExpressions(writer_, source_.program, source_.step, scope, init));
}

std::vector<std::string> ReductionWriter::BeginAt(const std::vector<std::string>& values) {
  for (size_t k = 0; k < values.size(); ++k) {
    names_.push_back(writer_.NewName("s"));
    writer_.Line(TypeOf(k), " ", names_[k], " = ", values[k], ";");
  }
  return names_;
}

void ReductionWriter::Update(Scope scope) {
  scope.state = names_;
  std::vector<ExprId> update;
  for (const program::Reduction::State& state : reduction_.states) update.push_back(state.update);
  Replace(WriteExpressions(writer_, source_.program, source_.step, scope, update));
}

void ReductionWriter::Join(std::vector<std::string> others) {
  WriteMerge(names_, std::move(others));
}

void ReductionWriter::JoinBehind(std::vector<std::string> others) {
  WriteMerge(std::move(others), names_);
}

void ReductionWriter::Assign(const std::vector<std::string>& values) {
  for (size_t k = 0; k < values.size(); ++k) writer_.Line(names_[k], " = ", values[k], ";");
}

void ReductionWriter::WriteMerge(std::vector<std::string> states, std::vector<std::string> others) {
  Scope scope;
  scope.state = std::move(states);
  scope.other = std::move(others);
  std::vector<ExprId> merge;
  for (const program::Reduction::State& state : reduction_.states) merge.push_back(state.merge);
  Replace(WriteExpressions(writer_, source_.program, source_.step, scope, merge));
}

void ReductionWriter::Merge(int group_size, const std::string& parts) {
  std::vector<std::string> shared;
  for (size_t k = 0; k < names_.size(); ++k) {
    shared.push_back(writer_.NewName("g"));
    writer_.Share(Text(TypeOf(k), " ", shared[k], "[", group_size, "]"));
    writer_.Line(shared[k], "[LANE] = ", names_[k], ";");
  }
  writer_.Line("BARRIER;");
  const std::string half = writer_.NewName("j");
  writer_.Open("for (int ", half, " = ", group_size / 2, "; ", half, " > 0; ", half, " /= 2)");
  writer_.Open("if (LANE < ", half, " && LANE + ", half, " < ", parts, ")");
  std::vector<std::string> others;
  for (size_t k = 0; k < names_.size(); ++k) {
    others.push_back(writer_.Declare(TypeOf(k), Text(shared[k], "[LANE + ", half, "]")));
  }
  Join(std::move(others));
  for (size_t k = 0; k < names_.size(); ++k) {
    writer_.Line(shared[k], "[LANE] = ", names_[k], ";");
  }
  writer_.Close();
  writer_.Line("BARRIER;");
  writer_.Close();
  for (size_t k = 0; k < names_.size(); ++k) writer_.Line(names_[k], " = ", shared[k], "[0];");
  writer_.Line("BARRIER;");
}

void ReductionWriter::BeginParts(const Scope& scope) {
  const std::vector<std::string> values = Begin(scope);
  const int count = source_.capabilities.row_parts;
  for (size_t k = 0; k < values.size(); ++k) {
    parts_.push_back(writer_.NewName("g"));
    const bool is_byte = tensor::BitWidth(reduction_.states[k].type) <= 8;
    const int padding = is_byte ? source_.capabilities.byte_array_padding : 0;
    writer_.Line(TypeOf(k), " ", parts_[k], "[", count + padding, "];");
  }
  const std::string part = writer_.NewName("l");
  writer_.Open("for (int ", part, " = 0; ", part, " < ", count, "; ++", part, ")");
  for (size_t k = 0; k < values.size(); ++k) {
    writer_.Line(parts_[k], "[", part, "] = ", values[k], ";");
  }
  writer_.Close();
}

void ReductionWriter::UpdatePart(Scope scope, const std::string& part) {
  std::vector<ExprId> update;
  scope.state.clear();
  for (size_t k = 0; k < parts_.size(); ++k) {
    update.push_back(reduction_.states[k].update);
    scope.state.push_back(writer_.Declare(TypeOf(k), Text(parts_[k], "[", part, "]")));
  }
  const std::vector<std::string> values =
      WriteExpressions(writer_, source_.program, source_.step, scope, update);
  for (size_t k = 0; k < parts_.size(); ++k) {
    writer_.Line(parts_[k], "[", part, "] = ", values[k], ";");
  }
}

void ReductionWriter::MergeParts(const std::string& parts) {
  for (size_t k = 0; k < names_.size(); ++k) {
    writer_.Line(names_[k], " = ", parts_[k], "[0];");
  }
  const std::string part = writer_.NewName("l");
  writer_.Open("for (int ", part, " = 1; ", part, " < ", parts, "; ++", part, ")");
  std::vector<std::string> others;
  for (size_t k = 0; k < names_.size(); ++k) {
    others.push_back(writer_.Declare(TypeOf(k), Text(parts_[k], "[", part, "]")));
  }
  Join(std::move(others));
  writer_.Close();
}

void ReductionWriter::Replace(std::vector<std::string> values) {
  // All new values are computed before any is replaced; a value may be another state itself.
  for (size_t k = 0; k < values.size(); ++k) values[k] = writer_.Declare(TypeOf(k), values[k]);
  Assign(values);
}

}  // namespace onnxifi::codegen
