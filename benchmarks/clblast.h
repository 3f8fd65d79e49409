// SPDX-License-Identifier: Apache-2.0
//
// Clblast: the matrix product of the CLBlast library, to compare ours with. Opened at run time
// where it is installed (Debian's libclblast1), so that nothing is built or linked for it.

#ifndef ONNXIFI_BENCHMARKS_CLBLAST_H_
#define ONNXIFI_BENCHMARKS_CLBLAST_H_

#include <cstdint>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"
#include "benchmarks/kernel_cases.h"

namespace onnxifi::opencl {

using benchmarks::GemmExtents;

class Clblast {
 public:
  // In a context of its own. UNSUPPORTED_OPERATOR where the library is not installed, with the
  // linker's words.
  static base::Result<std::unique_ptr<Clblast>> Open(const Api& api, const DeviceInfo& info);

  // Makes place for the operands, whose contents are zeros.
  base::Status Reserve(const GemmExtents& extents);
  // One product, to its end.
  base::Status Multiply();

 private:
  using Sgemm = int (*)(int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k,
                        float alpha, cl_mem a, size_t a_offset, size_t a_ld, cl_mem b,
                        size_t b_offset, size_t b_ld, float beta, cl_mem c, size_t c_offset,
                        size_t c_ld, cl_command_queue* queue, cl_event* event);

  Sgemm sgemm_ = nullptr;
  std::unique_ptr<Runtime> runtime_;
  GemmExtents extents_;
  Handle<cl_mem> a_, b_, c_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BENCHMARKS_CLBLAST_H_
