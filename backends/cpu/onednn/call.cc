// SPDX-License-Identifier: Apache-2.0
//
// Call: oneDNN's status codes in words.

#include "backends/cpu/onednn/call.h"

#include <string>

namespace onnxifi::onednn {
namespace {

std::string_view Describe(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return "there is not enough memory";
    case dnnl_invalid_arguments:
      return "it finds the arguments invalid";
    case dnnl_unimplemented:
      return "it has no implementation";
    case dnnl_last_impl_reached:
      return "it has no further implementation";
    case dnnl_not_required:
      return "it finds the call needless";
    case dnnl_invalid_graph:
      return "it finds the graph invalid";
    default:
      return "a primitive fails while it runs";
  }
}

}  // namespace

base::Status StatusOf(dnnl_status_t status, std::string_view doing) {
  if (status == dnnl_success) return base::Ok();
  const base::Code code =
      status == dnnl_out_of_memory ? base::Code::kNoSystemMemory : base::Code::kInternalError;
  return base::Status(
      code, "oneDNN fails in " + std::string(doing) + ": " + std::string(Describe(status)) + ".");
}

}  // namespace onnxifi::onednn
