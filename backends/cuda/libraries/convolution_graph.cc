// SPDX-License-Identifier: Apache-2.0
//
// ConvolutionGraph: it says itself what its parts are; a function returns the first error of what
// it sets.

#include "backends/cuda/libraries/convolution_graph.h"

#include <bit>
#include <cstdint>

namespace onnxifi::cuda {

using base::Result;
using base::Status;
using tensor::ElementType;

namespace {

dnn::DataType TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return dnn::kFloat16;
    case ElementType::kBfloat16:
      return dnn::kBfloat16;
    default:
      return dnn::kFloat32;
  }
}

}  // namespace

class ConvolutionGraphMaker {
 public:
  ConvolutionGraphMaker(const Cudnn& library, ElementType operand, const ConvolutionLayout& layout)
      : library_(library), operand_(operand), layout_(layout) {}

  Result<ConvolutionGraph> Make(const LibraryResults& results, ElementType result_type) {
    operations_left_ = (results.addend != nullptr ? 1 : 0) + (results.bias != nullptr ? 1 : 0) +
                       (results.is_rectified ? 1 : 0);
    ONNXIFI_RETURN_IF_ERROR(Convolve(result_type));
    if (results.addend != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const addend,
                               MakeTensor(ConvolutionGraph::kAddend, layout_.addend, result_type));
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kAdd, addend, result_type));
    }
    if (results.bias != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const bias,
                               MakeTensor(ConvolutionGraph::kBias, layout_.bias, result_type));
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kAdd, bias, result_type));
    }
    if (results.is_rectified) {
      ONNXIFI_RETURN_IF_ERROR(Apply(dnn::kRelu, nullptr, result_type));
    }
    ONNXIFI_ASSIGN_OR_RETURN(made_.graph_, Make(dnn::kGraph));
    CudnnDescriptor& graph = made_.graph_;
    ONNXIFI_RETURN_IF_ERROR(graph.Set(dnn::kGraphHandle, dnn::kOfHandle, library_.handle()));
    ONNXIFI_RETURN_IF_ERROR(graph.Set(dnn::kGraphOperations, dnn::kOfDescriptor, operations_));
    ONNXIFI_RETURN_IF_ERROR(
        library_.host().Do("choose an engine", [&] { return graph.Finalize(); }));
    return std::move(made_);
  }

 private:
  Result<CudnnDescriptor> Make(dnn::Kind kind) { return CudnnDescriptor::Create(library_, kind); }
  Result<CudnnDescriptor*> Keep(CudnnDescriptor descriptor) {
    made_.parts_.push_back(std::make_unique<CudnnDescriptor>(std::move(descriptor)));
    return made_.parts_.back().get();
  }

  Result<CudnnDescriptor*> MakeTensor(int64_t id, const ConvolutionLayout::Tensor& tensor,
                                      ElementType type, bool is_virtual = false) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor made, Make(dnn::kTensor));
    // Buffers lie at multiples of 16 bytes or more.
    const auto offset_bytes =
        static_cast<uint64_t>(tensor.offset * tensor::BitWidth(type) / 8) | uint64_t{16};
    const int64_t aligned = int64_t{1} << std::countr_zero(offset_bytes);
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorType, dnn::kOfDataType, TypeOf(type)));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorExtents, dnn::kOfInt64, tensor.extents));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorStrides, dnn::kOfInt64, tensor.strides));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorId, dnn::kOfInt64, id));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorAlignment, dnn::kOfInt64, aligned));
    ONNXIFI_RETURN_IF_ERROR(made.Set(dnn::kTensorIsVirtual, dnn::kOfBoolean, is_virtual));
    ONNXIFI_RETURN_IF_ERROR(made.Finalize());
    return Keep(std::move(made));
  }

  // What the next operation writes: the step's output, or sums that are nowhere in memory.
  Result<CudnnDescriptor*> MakeOutput(ElementType result_type) {
    if (operations_left_-- == 0)
      return MakeTensor(ConvolutionGraph::kOutput, layout_.output, result_type);
    return MakeTensor(ConvolutionGraph::kFirstSums + operations_left_, layout_.output,
                      ElementType::kFloat32,
                      /*is_virtual=*/true);
  }

  Status Convolve(ElementType result_type) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor convolution, Make(dnn::kConvolution));
    const auto axes = static_cast<int64_t>(layout_.strides.size());
    ONNXIFI_RETURN_IF_ERROR(
        convolution.Set(dnn::kConvolutionPrecision, dnn::kOfDataType, dnn::kFloat32));
    ONNXIFI_RETURN_IF_ERROR(
        convolution.Set(dnn::kConvolutionMode, dnn::kOfConvolutionMode, dnn::kCrossCorrelation));
    ONNXIFI_RETURN_IF_ERROR(convolution.Set(dnn::kConvolutionSpatialAxes, dnn::kOfInt64, axes));
    for (const auto& [attribute, numbers] : {std::pair{dnn::kConvolutionStrides, &layout_.strides},
                                             {dnn::kConvolutionDilations, &layout_.dilations},
                                             {dnn::kConvolutionPadsBefore, &layout_.pads_before},
                                             {dnn::kConvolutionPadsAfter, &layout_.pads_after}}) {
      ONNXIFI_RETURN_IF_ERROR(convolution.Set(attribute, dnn::kOfInt64, *numbers));
    }
    ONNXIFI_RETURN_IF_ERROR(convolution.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(convolution)));
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const image,
                             MakeTensor(ConvolutionGraph::kImage, layout_.image, operand_));
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const weights,
                             MakeTensor(ConvolutionGraph::kWeights, layout_.weights, operand_));
    ONNXIFI_ASSIGN_OR_RETURN(output_, MakeOutput(result_type));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor forward, Make(dnn::kForward));
    const float one = 1, zero = 0;
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardConvolution, *kept));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardImage, *image));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardWeights, *weights));
    ONNXIFI_RETURN_IF_ERROR(forward.SetDescriptor(dnn::kForwardOutput, *output_));
    ONNXIFI_RETURN_IF_ERROR(forward.Set(dnn::kForwardAlpha, dnn::kOfFloat, one));
    ONNXIFI_RETURN_IF_ERROR(forward.Set(dnn::kForwardBeta, dnn::kOfFloat, zero));
    return AddOperation(std::move(forward));
  }

  Status AddOperation(CudnnDescriptor operation) {
    ONNXIFI_RETURN_IF_ERROR(operation.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(operation)));
    operations_.push_back(kept->get());
    return base::Ok();
  }

  // To what the operation before it leaves.
  Status Apply(dnn::PointwiseMode mode, const CudnnDescriptor* second, ElementType result_type) {
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor* const to, MakeOutput(result_type));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor pointwise, Make(dnn::kPointwise));
    ONNXIFI_RETURN_IF_ERROR(pointwise.Set(dnn::kPointwiseMode, dnn::kOfPointwiseMode, mode));
    ONNXIFI_RETURN_IF_ERROR(
        pointwise.Set(dnn::kPointwisePrecision, dnn::kOfDataType, dnn::kFloat32));
    if (mode == dnn::kRelu) {
      ONNXIFI_RETURN_IF_ERROR(
          pointwise.Set(dnn::kPointwiseNan, dnn::kOfNanPropagation, dnn::kPropagateNan));
    }
    ONNXIFI_RETURN_IF_ERROR(pointwise.Finalize());
    ONNXIFI_ASSIGN_OR_RETURN(const CudnnDescriptor* const kept, Keep(std::move(pointwise)));
    ONNXIFI_ASSIGN_OR_RETURN(CudnnDescriptor operation, Make(dnn::kPointwiseOperation));
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationPointwise, *kept));
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationInput, *output_));
    if (second != nullptr) {
      ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationSecondInput, *second));
    }
    ONNXIFI_RETURN_IF_ERROR(operation.SetDescriptor(dnn::kOperationOutput, *to));
    output_ = to;
    return AddOperation(std::move(operation));
  }

  const Cudnn& library_;
  const ElementType operand_;
  const ConvolutionLayout& layout_;
  ConvolutionGraph made_;
  std::vector<dnn::Descriptor> operations_;
  CudnnDescriptor* output_ = nullptr;  // of the last operation
  int operations_left_ = 0;
};

Result<ConvolutionGraph> ConvolutionGraph::Make(const Cudnn& library, ElementType operand,
                                                const ConvolutionLayout& layout,
                                                const LibraryResults& results,
                                                ElementType result_type) {
  return ConvolutionGraphMaker(library, operand, layout).Make(results, result_type);
}

}  // namespace onnxifi::cuda
