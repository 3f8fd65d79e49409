// SPDX-License-Identifier: Apache-2.0
//
// Heads: mixed radix numbers of the axes of heads and of those of their members.

#include "backends/cpu/attention/heads.h"

#include <algorithm>
#include <utility>

namespace onnxifi::attention {

Heads::Heads(const device::BoundStep& step, std::vector<bool> is_shared)
    : batch_(step.domain.begin(), step.domain.end() - 2),
      is_shared_(std::move(is_shared)),
      queries_(step.domain[step.domain.size() - 2]) {
  for (size_t axis = 0; axis < batch_.size(); ++axis) {
    (is_shared_[axis] ? members_ : count_) *= batch_[axis];
  }
}

QueryRun Heads::RunAt(int64_t head, int64_t row, int64_t rows) const {
  QueryRun run{{}, row % queries_, 0};
  run.queries = std::min(rows, queries_ - run.first_query);
  int64_t member = row / queries_;
  for (size_t axis = batch_.size(); axis-- > 0;) {
    int64_t& number = is_shared_[axis] ? member : head;
    run.batch[axis] = number % batch_[axis];
    number /= batch_[axis];
  }
  return run;
}

CoordinateRange Heads::RangeOf(int64_t head, int64_t row, int64_t rows) const {
  const QueryRun run = RunAt(head, row, rows);
  const bool is_one = run.queries == rows;
  CoordinateRange range;
  for (size_t axis = 0; axis < batch_.size(); ++axis) {
    const bool is_any = !is_one && is_shared_[axis];
    range.first[axis] = is_any ? 0 : run.batch[axis];
    range.last[axis] = is_any ? batch_[axis] - 1 : run.batch[axis];
  }
  const size_t queries = batch_.size();
  range.first[queries] = is_one ? run.first_query : 0;
  range.last[queries] = is_one ? run.first_query + run.queries - 1 : queries_ - 1;
  return range;
}

}  // namespace onnxifi::attention
