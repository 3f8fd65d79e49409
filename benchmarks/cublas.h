// SPDX-License-Identifier: Apache-2.0
//
// Cublas: the matrix product of the cuBLAS library, to compare ours with. Opened at run time where
// it is installed, so that nothing is built or linked for it.

#ifndef ONNXIFI_BENCHMARKS_CUBLAS_H_
#define ONNXIFI_BENCHMARKS_CUBLAS_H_

#include <memory>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/cuda/device.h"
#include "backends/cuda/runtime.h"
#include "benchmarks/kernel_benchmark.h"

namespace onnxifi::cuda {

// In float32 throughout: no TensorFloat-32.
class Cublas final : public benchmarks::ProductPeer {
 public:
  // On the device's stream. UNSUPPORTED_OPERATOR where the library is not installed, with the
  // linker's words.
  static base::Result<std::unique_ptr<Cublas>> Open(Device& device);
  ~Cublas() override;

  std::string_view name() const override { return "cuBLAS"; }
  base::Status Reserve(const benchmarks::GemmExtents& extents) override;
  base::Result<double> Multiply() override;

 private:
  using Library = void*;  // cublasHandle_t
  struct Functions {
    int (*create)(Library* library) = nullptr;
    int (*destroy)(Library library) = nullptr;
    int (*set_stream)(Library library, CUstream stream) = nullptr;
    int (*set_math_mode)(Library library, int mode) = nullptr;
    int (*sgemm)(Library library, int a_form, int b_form, int m, int n, int k, const float* alpha,
                 const float* a, int a_pitch, const float* b, int b_pitch, const float* beta,
                 float* c, int c_pitch) = nullptr;
  };

  Cublas(Device& device, const Functions& functions) : device_(device), functions_(functions) {}
  // `call` gives a cublasStatus_t.
  template <typename Call>
  base::Status Do(std::string_view doing, const Call& call);

  Device& device_;
  const Functions functions_;
  Library library_ = nullptr;
  Handle<CUevent> begin_, end_;
  benchmarks::GemmExtents extents_;
  std::unique_ptr<device::Allocation> a_, b_, c_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BENCHMARKS_CUBLAS_H_
