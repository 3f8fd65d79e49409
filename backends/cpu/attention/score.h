// SPDX-License-Identifier: Apache-2.0
//
// ScoreCode: what is known of a step's score expression before extents are: whether the loops of
// score_rows.h compute it or the tile engine does, and what is left of it in a block where its
// conditions are decided: there a causal mask is no mask, or masks everything.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/attention/condition.h"
#include "backends/cpu/engine/code.h"

namespace onnxifi::attention {

// sum * number or sum / number, plus what a read has for each key.
struct SimpleScore {
  bool divides = false;
  float number = 1;
  int number_read = -1;  // of which one element is the number
  int addend_read = -1;
};

// A score that does not tell keys apart.
struct MaskedScore {
  float score;
  // Whether it stands in the place of the sum; else it is added to it, minus infinity, which makes
  // the same of every finite one.
  bool replaces_sum;
  SimpleScore added_to{};  // where it is added
};

// An expression that computes scores in some blocks, or in all.
struct ScoreForm {
  std::optional<MaskedScore> masked;
  std::optional<SimpleScore> simple;
  engine::Code code;  // computes it in any case; of `masked` nothing
};

class ScoreCode {
 public:
  static constexpr size_t kMaxConditions = 2;
  // Right in every block, and for each way in which the conditions can be decided.
  static constexpr size_t kMaxForms = 1 + (size_t{1} << kMaxConditions);

  static ScoreCode Compile(const device::Facts& facts, engine::LoopSet loops);

  const std::vector<Condition>& conditions() const { return conditions_; }
  // Form 0 is right in every block. Form 1 + truths is right where each condition is decided: bit k
  // of `truths` is whether condition k holds.
  size_t form_count() const { return forms_.size(); }
  const ScoreForm& form(size_t k) const { return forms_[k]; }

 private:
  std::vector<Condition> conditions_;
  std::vector<ScoreForm> forms_;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_SCORE_H_
