// SPDX-License-Identifier: Apache-2.0
//
// LimitIsa: Highway counts better instruction sets down, bit by bit.

#include "backends/cpu/isa.h"

#include <hwy/targets.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "backends/cpu/gemm/bfloat16_gemm.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::cpu {

void LimitIsa(threads::Isa isa) {
#if HWY_ARCH_X86
  int64_t best = HWY_AVX3;
  dnnl::cpu_isa limit = dnnl::cpu_isa::avx512_core;
  if (isa == threads::Isa::kAvx2) {
    best = HWY_AVX2;
    limit = dnnl::cpu_isa::avx2;
  } else if (isa == threads::Isa::kSse4) {
    best = HWY_SSE4;
    limit = dnnl::cpu_isa::sse41;
  }
  // Processors with AVX2 and without AVX-512 have them too, but those are newer than AVX2.
  processor::AllowByteProducts(isa == threads::Isa::kAvx512);
  processor::AllowByteTiles(false);
  hwy::DisableTargets(best - 1);
  // Asked for what is supported, Highway 1.0 chooses among all that the processor has.
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  gemm::AllowBfloat16Gemm(false);
  // Too late, or a processor without it, leaves the setting as it is.
  (void)dnnl::set_max_cpu_isa(limit);
#else
  (void)isa;
#endif
}

std::string IsaInUse() {
  const std::string name = processor::VectorName();
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return name + ", oneDNN SSE4.1";
    case dnnl::cpu_isa::avx:
      return name + ", oneDNN AVX";
    case dnnl::cpu_isa::avx2:
      return name + ", oneDNN AVX2";
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx2_vnni_2:
      return name + ", oneDNN AVX2 with VNNI";
    case dnnl::cpu_isa::isa_default:
      return name + ", oneDNN as it chooses";
    default:
      return name + ", oneDNN AVX-512";
  }
}

}  // namespace onnxifi::cpu
