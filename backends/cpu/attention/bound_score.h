// SPDX-License-Identifier: Apache-2.0
//
// BoundScore: a ScoreCode with numbers; ScoreWriter: makes scores of sums for one thread.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_BOUND_SCORE_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_BOUND_SCORE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/cpu/attention/box_expression.h"
#include "backends/cpu/attention/heads.h"
#include "backends/cpu/attention/score.h"
#include "backends/cpu/attention/score_rows.h"

namespace onnxifi::attention {

// Immutable once made. `code` outlives it.
class BoundScore {
 public:
  static constexpr size_t kWhole = 0;  // the form that is right everywhere

  // Blocks have up to `block_keys` keys and begin at a multiple of that. There are keys.
  BoundScore(const ScoreCode& code, const device::BoundStep& step, int64_t keys, int64_t block_keys,
             int64_t tile_lanes);

  // The form that computes the scores of all coordinates of a range.
  size_t FormFor(const CoordinateRange& range) const;
  const std::optional<MaskedScore>& masked(size_t form) const { return code_.form(form).masked; }
  // Of a ScoreWriter.
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // Picoseconds to compute a score.
  int64_t cost() const { return cost_; }

 private:
  friend class ScoreWriter;
  // A form that the loops of score_rows.h compute.
  struct Simple {
    SimpleScore score;
    std::optional<device::BoundView> number;
    std::optional<device::BoundView> addend;
  };
  struct Form {
    std::optional<Simple> simple;
    std::optional<BoxExpression> expression;
    int64_t scratch_at = 0;
  };

  const ScoreCode& code_;
  std::vector<Condition> conditions_;
  std::vector<Form> forms_;
  int64_t scratch_bytes_ = 0;
  int64_t cost_ = 0;
};

// All that it is given outlives it.
class ScoreWriter {
 public:
  // `scratch` holds score.scratch_bytes() on a cache line boundary.
  ScoreWriter(const BoundScore& score, device::Addresses addresses, std::byte* scratch);

  // Makes scores of sums, of all queries of a run and keys from `first_key` on. Rows lie next to
  // each other. The form is no masked one.
  void Write(size_t form, const QueryRun& run, int64_t first_key, const ScoreRows& rows);

 private:
  void WriteSimple(const BoundScore::Simple& simple, const QueryRun& run, int64_t first_key,
                   const ScoreRows& rows) const;

  const BoundScore& score_;
  device::Addresses addresses_;
  std::byte* scratch_;
  // By form; made when first met.
  std::array<std::optional<engine::Frame>, ScoreCode::kMaxForms> frames_;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_BOUND_SCORE_H_
