// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionGraph: a convolution in the library's words: operations on tensors, of which engines
// are asked for.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_GRAPH_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_GRAPH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/cuda/libraries/contract_form.h"
#include "backends/cuda/libraries/convolution_layout.h"
#include "backends/cuda/libraries/cudnn.h"

namespace onnxifi::cuda {

class ConvolutionGraph {
 public:
  // By which a run names the tensors; behind them, sums that are nowhere in memory.
  enum Tensor : int64_t { kImage = 1, kWeights, kOutput, kBias, kAddend, kFirstSums };

  // Sums of products, an addend, a bias, at least 0; the output and all terms have the type
  // `result_type`. While the library's lock is held, also until it is destroyed; the library
  // outlives it.
  static base::Result<ConvolutionGraph> Make(const Cudnn& library, tensor::ElementType operand,
                                             const ConvolutionLayout& layout,
                                             const LibraryResults& results,
                                             tensor::ElementType result_type);

  const CudnnDescriptor& descriptor() const { return graph_; }

 private:
  friend class ConvolutionGraphMaker;
  ConvolutionGraph() = default;

  // What the graph is made of, which outlives it.
  std::vector<std::unique_ptr<CudnnDescriptor>> parts_;
  CudnnDescriptor graph_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CONVOLUTION_GRAPH_H_
