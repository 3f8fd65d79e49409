// SPDX-License-Identifier: Apache-2.0
//
// Runtime: the engine.

#include "backends/cpu/onednn/runtime.h"

#include "backends/cpu/onednn/call.h"

namespace onnxifi::onednn {

base::Result<std::unique_ptr<Runtime>> Runtime::Create(runtime::Runtime& shared,
                                                       const base::Log& log) {
  std::unique_ptr<Runtime> runtime;
  ONNXIFI_RETURN_IF_ERROR(Call("making its CPU engine", [&] {
    runtime.reset(new Runtime(dnnl::engine(dnnl::engine::kind::cpu, 0), shared, log));
    return base::Ok();
  }));
  return runtime;
}

}  // namespace onnxifi::onednn
