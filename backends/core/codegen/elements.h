// SPDX-License-Identifier: Apache-2.0
//
// Elements: the elements of the reductions of a step, and which item of which group takes them. For
// the generators of Reduce, Row and Scan (reduction.cc, scan.cc) alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ELEMENTS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ELEMENTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/family.h"
#include "backends/core/codegen/reduction_writer.h"

namespace onnxifi::codegen {

// A state as 64 bits in working memory, and back.
std::string ToWord(tensor::ElementType type, const std::string& value);
std::string FromWord(tensor::ElementType type, const std::string& word);

class Elements {
 public:
  Elements(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        is_in_parts_(source.form.is_grouped && source.capabilities.run_length > 1),
        is_grouped_(source.form.is_grouped && !is_in_parts_),
        group_size_(GroupSizeOf(source)) {}

  // Opens the block of one item, or begins that of a group, and gives its scope: the reduced axes
  // stand at coordinate 0. With `parts` a reduction is that many groups', each of which takes
  // `length` elements in a row.
  Scope Open(const std::string& parts = {}, const std::string& length = {});

  // Of a row that fits: reads that several loops over it look at come from memory in the first of
  // them, and from shared memory in the others, as far as that reaches beside `merged_bytes` for
  // each item. An item has the same elements in each loop, so that it waits for nobody.
  void KeepReads(const std::set<int>& reads, int64_t merged_bytes);

  // What `body` writes, around it the loops over the elements of this item; `reads` are those that
  // it looks at.
  template <typename Body>
  void ForEach(const Scope& scope, const Body& body, const std::set<int>& reads = {}) {
    Scope inner = scope;
    const int blocks = OpenLoops(inner, reads);
    body(inner);
    for (int k = 0; k < blocks; ++k) writer_.Close();
  }

  // The whole reduction: gives the names of its state at the end.
  std::vector<std::string> Reduce(const Scope& scope, const program::Reduction& reduction,
                                  const std::set<int>& reads = {});
  // The same, of states that groups have left in working memory: the first `used` of the `parts` of
  // this group's reduction. Where `used` may be 0 the states then are of no meaning.
  std::vector<std::string> ReduceParts(const program::Reduction& reduction,
                                       const std::string& parts, const std::string& used);
  // Leaves the states of a group for ReduceParts.
  void StoreParts(const program::Reduction& reduction, const std::vector<std::string>& names);

  // What one item alone writes for all of its group.
  void OpenFirst() {
    if (is_grouped_) writer_.Open("if (LANE == 0 && ", is_inside_, ")");
  }
  void CloseFirst() {
    if (is_grouped_) writer_.Close();
  }
  // What each item writes.
  void OpenStores() {
    if (is_grouped_) writer_.Open("if (", is_inside_, ")");
  }
  void CloseStores() {
    if (is_grouped_) writer_.Close();
  }

  Launch Close();

  // Names, of a group's: the elements [first, end) that it takes, and which of the parts of its
  // reduction they are.
  const std::string& first() const { return first_; }
  const std::string& end() const { return end_; }
  const std::string& part() const { return part_; }

 private:
  static int GroupSizeOf(const Source& source);

  struct Kept {
    int read;
    std::string array;
    bool is_filled = false;
  };

  // Gives `inner` the coordinates of an element; how many blocks it has opened.
  int OpenLoops(Scope& inner, const std::set<int>& reads);
  // A round takes an element into each part.
  std::vector<std::string> ReduceByPartialSums(const Scope& scope,
                                               const program::Reduction& reduction);
  // Gives the reads that are kept names for the element of `scope`.
  void NameKept(Scope& scope, const std::set<int>& reads, const std::string& element);

  Writer& writer_;
  const Source& source_;
  const bool is_in_parts_;
  const bool is_grouped_;
  const int group_size_;   // of a group that takes a reduction
  std::string is_inside_;  // the group is one of those that were asked for
  std::string group_;      // its number
  std::string reduction_;  // the number of its reduction
  std::string part_;       // the number of the part that it takes
  std::string total_;      // how many elements the group takes
  std::string first_;      // of them, as numbers of the reduction's elements
  std::string end_;        // behind the last one
  std::vector<Kept> kept_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ELEMENTS_H_
