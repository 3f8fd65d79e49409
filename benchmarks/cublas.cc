// SPDX-License-Identifier: Apache-2.0
//
// Cublas: its C interface, which counts along columns: what is row-major here is transposed there.

#include "benchmarks/cublas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace onnxifi::cuda {

using base::Code;
using base::Result;
using base::Status;

namespace {

// Of cublas_api.h.
constexpr int kPlain = 0;
constexpr int kTransposed = 1;
constexpr int kDefaultMath = 0;

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

template <typename Call>
Status Cublas::Do(std::string_view doing, const Call& call) {
  int result = 0;
  ONNXIFI_RETURN_IF_ERROR(device_.runtime().Do(doing, [&] {
    result = call();
    return CUDA_SUCCESS;
  }));
  if (result == 0) return base::Ok();
  return Status(Code::kInternalError,
                fmt::format("cuBLAS could not {}: status {}.", doing, result));
}

Result<std::unique_ptr<Cublas>> Cublas::Open(Device& device) {
  // Never closed: it has threads and memory of its own.
  void* library = nullptr;
  for (const char* const name : {"libcublas.so.13", "libcublas.so.12"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  Functions functions;
  if (library == nullptr || !Find(library, "cublasCreate_v2", functions.create) ||
      !Find(library, "cublasDestroy_v2", functions.destroy) ||
      !Find(library, "cublasSetStream_v2", functions.set_stream) ||
      !Find(library, "cublasSetMathMode", functions.set_math_mode) ||
      !Find(library, "cublasSgemm_v2", functions.sgemm)) {
    const char* const why = dlerror();
    return Status(Code::kUnsupportedOperator, why != nullptr ? why : "cuBLAS lacks a function.");
  }
  std::unique_ptr<Cublas> cublas(new Cublas(device, functions));
  ONNXIFI_RETURN_IF_ERROR(
      cublas->Do("be opened", [&] { return functions.create(&cublas->library_); }));
  ONNXIFI_RETURN_IF_ERROR(cublas->Do("take the stream", [&] {
    return functions.set_stream(cublas->library_, device.runtime().stream());
  }));
  ONNXIFI_RETURN_IF_ERROR(cublas->Do("take the precision", [&] {
    return functions.set_math_mode(cublas->library_, kDefaultMath);
  }));
  for (Handle<CUevent>* const event : {&cublas->begin_, &cublas->end_}) {
    ONNXIFI_ASSIGN_OR_RETURN(*event, NewEvent(device.runtime().context(), CU_EVENT_DEFAULT));
  }
  return cublas;
}

Cublas::~Cublas() {
  if (library_ == nullptr) return;
  static_cast<void>(Do("be closed", [&] { return functions_.destroy(library_); }));
}

Status Cublas::Reserve(const benchmarks::GemmExtents& extents) {
  extents_ = extents;
  ONNXIFI_ASSIGN_OR_RETURN(const auto queue, device_.NewQueue());
  const auto reserve = [&](std::unique_ptr<device::Allocation>& matrix, int64_t count) -> Status {
    matrix = nullptr;
    ONNXIFI_ASSIGN_OR_RETURN(matrix, device_.memory().Allocate(count * 4));
    // Zeros would cost the device less power than values do.
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 251) / 64 - 2;
    ONNXIFI_RETURN_IF_ERROR(queue->Upload(reinterpret_cast<const std::byte*>(values.data()),
                                          matrix->data(), count * 4));
    return queue->Finish();
  };
  ONNXIFI_RETURN_IF_ERROR(reserve(a_, extents.m * extents.k));
  ONNXIFI_RETURN_IF_ERROR(reserve(b_, extents.k * extents.n));
  return reserve(c_, extents.m * extents.n);
}

Result<double> Cublas::Multiply() {
  const auto m = static_cast<int>(extents_.m);
  const auto n = static_cast<int>(extents_.n);
  const auto k = static_cast<int>(extents_.k);
  const Api& api = device_.runtime().api();
  const auto record = [&](const Handle<CUevent>& event) {
    return device_.runtime().Do(
        "time a product", [&] { return api.EventRecord(event.get(), device_.runtime().stream()); });
  };
  ONNXIFI_RETURN_IF_ERROR(record(begin_));
  ONNXIFI_RETURN_IF_ERROR(Do("multiply", [&] {
    const float one = 1;
    const float zero = 0;
    const bool is_transposed = extents_.is_b_transposed;
    return functions_.sgemm(library_, is_transposed ? kTransposed : kPlain, kPlain, n, m, k, &one,
                            reinterpret_cast<const float*>(b_->data()), is_transposed ? k : n,
                            reinterpret_cast<const float*>(a_->data()), k, &zero,
                            reinterpret_cast<float*>(c_->data()), n);
  }));
  ONNXIFI_RETURN_IF_ERROR(record(end_));
  float milliseconds = 0;
  ONNXIFI_RETURN_IF_ERROR(device_.runtime().Do("time a product", [&] {
    const CUresult waited = api.EventSynchronize(end_.get());
    if (waited != CUDA_SUCCESS) return waited;
    return api.EventElapsedTime(&milliseconds, begin_.get(), end_.get());
  }));
  return milliseconds * 1e-3;
}

}  // namespace onnxifi::cuda
