// SPDX-License-Identifier: Apache-2.0
//
// The part of cudnn_graph.h that is called, as all versions 9 have it: numbers, types and
// functions. NVIDIA's header is not needed to build.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_FUNCTIONS_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_FUNCTIONS_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace onnxifi::cuda::dnn {

using Handle = struct HandleObject*;          // cudnnHandle_t
using Descriptor = struct DescriptorObject*;  // cudnnBackendDescriptor_t

// cudnnStatus_t: a thousand per kind.
enum Result : int {
  kSuccess = 0,
  kNotInitialized = 1001,
  kOtherVersionOfAPart = 1002,
  kPartNotLoaded = 1008,
  kBadParameter = 2000,
  kNotSupported = 3000,
  kInternalError = 4000,
  kCompilationFailed = 4001,
  kHostAllocationFailed = 4003,
  kDeviceAllocationFailed = 4004,
  kExecutionFailed = 5000
};
// cudnnBackendDescriptorType_t.
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
// cudnnBackendAttributeType_t.
enum AttributeType : int {
  kOfHandle = 0,
  kOfDataType = 1,
  kOfBoolean = 2,
  kOfInt64 = 3,
  kOfFloat = 4,
  kOfPointer = 6,
  kOfConvolutionMode = 7,
  kOfHeuristicMode = 8,
  kOfNanPropagation = 10,
  kOfNumericalNote = 11,
  kOfPointwiseMode = 14,
  kOfDescriptor = 15
};
// cudnnBackendAttributeName_t.
enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseNan = 2,
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPadsAfter = 104,
  kConvolutionPadsBefore = 105,
  kConvolutionSpatialAxes = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardWeights = 703,
  kForwardImage = 704,
  kForwardOutput = 705,
  kOperationPointwise = 750,
  kOperationInput = 751,
  kOperationSecondInput = 752,
  kOperationOutput = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303
};
enum DataType : int { kFloat32 = 0, kFloat16 = 2, kBfloat16 = 9 };
enum Mode : int { kCrossCorrelation = 1 };
enum PointwiseMode : int { kAdd = 0, kRelu = 100 };
enum NanPropagation : int { kPropagateNan = 1 };
// By the size of a table of engines; what works, however slowly.
enum HeuristicMode : int { kFallback = 2, kByTable = 3 };
// What an engine does to numbers (cudnnBackendNumericalNote_t).
enum Note : int {
  kTensorCores = 0,
  kNarrowsInputs = 1,
  kNarrowsSums = 2,
  kFft = 3,
  kNotDeterministic = 4,
  kWinograd = 5,
  kWinogradOf4 = 6,
  kWinogradOf6 = 7,
  kWinogradOf13 = 8,
  kStrictNan = 9
};
constexpr int64_t kMaxNotes = 32;

}  // namespace onnxifi::cuda::dnn

// The name here, cuDNN's without its prefix, and its parameters; all give a dnn::Result.
#define ONNXIFI_CUDNN_FUNCTIONS(X)                                                              \
  X(Create, (dnn::Handle * made))                                                               \
  X(Destroy, (dnn::Handle handle))                                                              \
  X(SetStream, (dnn::Handle handle, CUstream stream))                                           \
  X(BackendCreateDescriptor, (int kind, dnn::Descriptor* made))                                 \
  X(BackendDestroyDescriptor, (dnn::Descriptor descriptor))                                     \
  X(BackendFinalize, (dnn::Descriptor descriptor))                                              \
  X(BackendSetAttribute,                                                                        \
    (dnn::Descriptor descriptor, int attribute, int type, int64_t count, const void* elements)) \
  X(BackendGetAttribute, (dnn::Descriptor descriptor, int attribute, int type, int64_t wanted,  \
                          int64_t* count, void* elements))                                      \
  X(BackendExecute, (dnn::Handle handle, dnn::Descriptor plan, dnn::Descriptor pack))

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUDNN_FUNCTIONS_H_
