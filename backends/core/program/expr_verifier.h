// SPDX-License-Identifier: Apache-2.0
//
// ExprVerifier: the part of Verify that looks into expressions. Where one may stand is described by
// what its leaves may read (AllowedLeaves).

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_VERIFIER_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_VERIFIER_H_

#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/program/program.h"

namespace onnxifi::program {

// INTERNAL_ERROR: what Verify finds is a fault of ours.
base::Status Fault(std::string sentence);
std::string TypeText(tensor::ElementType type);
// Whether view number `index` of those that `what` names has `expected` axes.
base::Status CheckRank(const char* what, size_t index, const View& view, size_t expected);

// What the leaves of an expression may be where it stands.
struct AllowedLeaves {
  size_t index_axes = 0;  // kIndex
  size_t load_rank = 0;   // axes of a view loaded at the domain's coordinates
  bool may_load = true;
  const std::vector<Reduction::State>* state = nullptr;  // kState
  bool has_other = false;                                // kOther, with the types of `state`
  size_t row_passes = 0;                                 // kRow of passes before this one
  const std::vector<Row::Pass>* passes = nullptr;
  ElementType accumulator = ElementType::kUndefined;  // kAccumulator, unless undefined
};

// Of one step of a program; borrows both.
class ExprVerifier {
 public:
  ExprVerifier(const Program& program, const Step& step) : program_(program), step_(step) {}

  // Of every node below `root`: its operands' types, and that its place provides what it reads.
  base::Status Check(ExprId root, const AllowedLeaves& place) const;

 private:
  base::Status CheckNode(const ExprNode& node, const AllowedLeaves& place) const;
  base::Status CheckArithmetic(const ExprNode& node) const;
  base::Status CheckLoad(const ExprNode& node, const AllowedLeaves& place) const;

  const Program& program_;
  const Step& step_;
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_EXPR_VERIFIER_H_
