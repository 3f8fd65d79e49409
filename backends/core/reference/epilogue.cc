// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: blocks of consecutive outputs, whose accumulators are consecutive too.

#include "backends/core/reference/epilogue.h"

#include <algorithm>

#include "backends/core/reference/compiled_step.h"

namespace onnxifi::reference {

Epilogue::Epilogue(const Expression& roots, tensor::ElementType accumulator,
                   const device::BoundStep& step, device::Parallel& parallel)
    : roots_(roots),
      lane_bytes_(LaneBytes(accumulator)),
      dims_(roots.BindDims(step.dims)),
      domain_(step.domain),
      reads_(step.reads),
      writes_(step.writes),
      count_(tensor::ElementCount(step.domain)),
      grain_(Grain(step, count_, 1)),
      parallel_(parallel) {}

base::Status Epilogue::Run(std::byte* accumulators, device::Addresses addresses) const {
  return ForRange(parallel_, count_, grain_, [&](int64_t begin, int64_t end) {
    Frame frame(roots_, dims_, reads_, addresses);
    Sweep sweep(domain_);
    for (int64_t position = begin; position < end; position += kBlock) {
      std::byte* const column[] = {accumulators + position * lane_bytes_};
      frame.Attach(program::ExprOp::kAccumulator, column);
      sweep.Move(position, std::min(kBlock, end - position));
      frame.Run(sweep);
      for (int k = 0; k < roots_.root_count(); ++k) {
        StoreColumn(writes_[k], addresses[writes_[k].buffer], sweep, frame.root(k));
      }
    }
  });
}

}  // namespace onnxifi::reference
