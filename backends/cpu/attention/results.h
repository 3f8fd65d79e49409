// SPDX-License-Identifier: Apache-2.0
//
// Results: sums of weighted values over their weights, through the step's epilogue to memory.

#ifndef ONNXIFI_BACKENDS_CPU_ATTENTION_RESULTS_H_
#define ONNXIFI_BACKENDS_CPU_ATTENTION_RESULTS_H_

#include <cstdint>
#include <optional>

#include "backends/core/device/device.h"
#include "backends/cpu/attention/box_expression.h"
#include "backends/cpu/attention/heads.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/loop.h"

namespace onnxifi::attention {

// What is known of the epilogue before extents are.
struct EpilogueCode {
  bool is_nothing = false;  // the mean is the only result, a float32
  // Where it is one of 16-bit floats, what rounds a row of them; else null.
  engine::Loop round = nullptr;
  engine::Code code;

  static EpilogueCode Compile(const device::Facts& facts, engine::LoopSet loops);
};

// Immutable once made. `code` outlives it. The domain is not empty.
class BoundResults {
 public:
  BoundResults(const EpilogueCode& code, const device::BoundStep& step);

  int64_t scratch_bytes() const { return expression_ ? expression_->scratch_bytes() : 0; }

 private:
  friend class ResultWriter;
  device::BoundView view_;                   // of the only result
  engine::Loop round_ = nullptr;             // rows before they are stored
  std::optional<BoxExpression> expression_;  // nothing where rows are stored as they are
  int64_t values_;
};

// For one thread. All that it is given outlives it.
class ResultWriter {
 public:
  // `scratch` holds results.scratch_bytes() on a cache line boundary.
  ResultWriter(const BoundResults& results, device::Addresses addresses, std::byte* scratch);

  // Stores sums / total of a query, by row of a run. Overwrites the sums.
  void Write(const QueryRun& run, const float* totals, float* sums);

 private:
  const BoundResults& results_;
  device::Addresses addresses_;
  std::byte* scratch_;
  std::optional<engine::Frame> frame_;
};

}  // namespace onnxifi::attention

#endif  // ONNXIFI_BACKENDS_CPU_ATTENTION_RESULTS_H_
