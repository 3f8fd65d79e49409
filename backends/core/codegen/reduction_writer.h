// SPDX-License-Identifier: Apache-2.0
//
// ReductionWriter: the lines that begin, update and merge the state of one reduction. The state is
// variables of an item; it may also be parts in arrays, and the items of a group may merge theirs.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCTION_WRITER_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCTION_WRITER_H_

#include <string>
#include <vector>

#include "backends/core/codegen/family.h"

namespace onnxifi::codegen {

class ReductionWriter {
 public:
  ReductionWriter(Writer& writer, const Source& source, const program::Reduction& reduction)
      : writer_(writer), source_(source), reduction_(reduction) {}

  // Declares the state as it begins; gives the names of its variables. `scope` has the coordinates
  // of the first element.
  std::vector<std::string> Begin(const Scope& scope);
  // The same with the states that it begins with.
  std::vector<std::string> BeginAt(const std::vector<std::string>& values);
  // Reduces the element at the scope's coordinates into the state.
  void Update(Scope scope);
  // Joins the state with `others`, which has seen elements, as it has.
  void Join(std::vector<std::string> others);
  // The same with `others`, which has seen the elements before those of the state.
  void JoinBehind(std::vector<std::string> others);
  // Gives the state other values.
  void Assign(const std::vector<std::string>& values);
  // Joins the states of the group's items, of which the first `parts` have seen elements, and gives
  // the result to all of them.
  void Merge(int group_size, const std::string& parts);

  // Declares the states of Capabilities::row_parts parts as they begin.
  void BeginParts(const Scope& scope);
  // Reduces the element at the scope's coordinates into part `part`.
  void UpdatePart(Scope scope, const std::string& part);
  // Joins the states of the first `parts` parts, at least one, all of which have seen elements.
  void MergeParts(const std::string& parts);

  const std::vector<std::string>& names() const { return names_; }
  // The type of the variables of state `k`.
  std::string_view TypeOf(size_t k) const;

 private:
  void WriteMerge(std::vector<std::string> states, std::vector<std::string> others);
  void Replace(std::vector<std::string> values);

  Writer& writer_;
  const Source& source_;
  const program::Reduction& reduction_;
  std::vector<std::string> names_;
  std::vector<std::string> parts_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_REDUCTION_WRITER_H_
