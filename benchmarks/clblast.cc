// SPDX-License-Identifier: Apache-2.0
//
// Clblast: its C interface, whose constants are those of CBLAS.

#include "benchmarks/clblast.h"

#include <dlfcn.h>

#include <string>
#include <utility>
#include <vector>

namespace onnxifi::opencl {

using base::Code;
using base::Result;
using base::Status;

namespace {

constexpr int kRowMajor = 101;
constexpr int kPlain = 111;
constexpr int kTransposed = 112;

}  // namespace

Result<std::unique_ptr<Clblast>> Clblast::Open(const Api& api, const DeviceInfo& info) {
  // Never closed: it keeps kernels of drivers that are not closed either.
  void* const library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const sgemm = library == nullptr ? nullptr : dlsym(library, "CLBlastSgemm");
  if (sgemm == nullptr) {
    const char* const why = dlerror();
    return Status(Code::kUnsupportedOperator, why != nullptr ? why : "There is no CLBlastSgemm.");
  }
  auto clblast = std::make_unique<Clblast>();
  clblast->sgemm_ = reinterpret_cast<Sgemm>(sgemm);
  ONNXIFI_ASSIGN_OR_RETURN(clblast->runtime_, Runtime::Open(api, info));
  return clblast;
}

Status Clblast::Reserve(const GemmExtents& extents) {
  extents_ = extents;
  const Api& api = runtime_->api();
  const auto reserve = [&](Handle<cl_mem>& buffer, int64_t count) {
    std::vector<float> zeros(static_cast<size_t>(count));
    cl_int result = CL_SUCCESS;
    buffer = {api.CreateBuffer(runtime_->context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                               zeros.size() * sizeof(float), zeros.data(), &result),
              api.ReleaseMemObject};
    return ToStatus(result, "allocate a matrix");
  };
  ONNXIFI_RETURN_IF_ERROR(reserve(a_, extents.m * extents.k));
  ONNXIFI_RETURN_IF_ERROR(reserve(b_, extents.k * extents.n));
  return reserve(c_, extents.m * extents.n);
}

Status Clblast::Multiply() {
  const auto m = static_cast<size_t>(extents_.m);
  const auto n = static_cast<size_t>(extents_.n);
  const auto k = static_cast<size_t>(extents_.k);
  cl_command_queue queue = runtime_->queue().get();
  const int result =
      sgemm_(kRowMajor, kPlain, extents_.is_b_transposed ? kTransposed : kPlain, m, n, k,
             /*alpha=*/1, a_.get(), 0, k, b_.get(), 0, extents_.is_b_transposed ? k : n,
             /*beta=*/0, c_.get(), 0, n, &queue, nullptr);
  if (result != 0) {
    return {Code::kInternalError, "CLBlastSgemm answers " + std::to_string(result) + "."};
  }
  return ToStatus(runtime_->api().Finish(queue), "finish a product");
}

}  // namespace onnxifi::opencl
