// SPDX-License-Identifier: Apache-2.0
//
// Call: the one place where what oneDNN says becomes a Status. Everything in this folder reaches
// the library through it.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_CALL_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_CALL_H_

#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

#include "backends/core/base/status.h"

namespace onnxifi::onednn {

// `doing` completes "oneDNN fails in ...". Out of memory is NO_SYSTEM_MEMORY, everything else
// INTERNAL_ERROR.
base::Status StatusOf(dnnl_status_t status, std::string_view doing);

// Calls `body`, which returns a Status and may call oneDNN's C++ interface.
template <typename Body>
base::Status Call(std::string_view doing, const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    return StatusOf(error.status, doing);
  } catch (const std::bad_alloc&) {
    return StatusOf(dnnl_out_of_memory, doing);
  }
}

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_CALL_H_
