// SPDX-License-Identifier: Apache-2.0
//
// The part of cublasLt.h that is called, as versions 12 and 13 have it in common: numbers, types
// and functions. NVIDIA's header is not needed to build.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace onnxifi::cuda::lt {

using Handle = struct HandleObject*;
using Product = struct ProductObject*;        // cublasLtMatmulDesc_t
using Layout = struct LayoutObject*;          // cublasLtMatrixLayout_t
using Preference = struct PreferenceObject*;  // cublasLtMatmulPreference_t

struct Algorithm {
  uint64_t data[8];
};
// cublasLtMatmulHeuristicResult_t.
struct Candidate {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

enum Result : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kArchitectureMismatch = 8,
  kMappingError = 11,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15
};
// cudaDataType_t, and cublasComputeType_t.
enum Type : int { kFloat32 = 0, kFloat16 = 2, kInt8 = 3, kInt32 = 10, kBfloat16 = 14 };
enum Compute : int { kInFloat32 = 68, kInInt32 = 72, kRoundedToTf32 = 77 };
enum ProductAttribute : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum Epilogue : uint32_t { kPlain = 1, kRelu = 2, kBias = 4, kReluBias = 6 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspaceBytes = 1,
  kReductionSchemes = 3,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8
};
// Parts of a sum that are added up in the output, in the sum's type.
enum ReductionScheme : uint32_t { kInPlace = 1, kInComputeType = 2 };

}  // namespace onnxifi::cuda::lt

// The name here, cublasLt's without its prefix, and its parameters; all give an lt::Result.
#define ONNXIFI_CUBLASLT_FUNCTIONS(X)                                                              \
  X(Create, (lt::Handle * made))                                                                   \
  X(Destroy, (lt::Handle handle))                                                                  \
  X(MatmulDescCreate, (lt::Product * made, int compute, int scale_type))                           \
  X(MatmulDescDestroy, (lt::Product product))                                                      \
  X(MatmulDescSetAttribute, (lt::Product product, int attribute, const void* value, size_t bytes)) \
  X(MatrixLayoutCreate,                                                                            \
    (lt::Layout * made, int type, uint64_t rows, uint64_t columns, int64_t leading))               \
  X(MatrixLayoutDestroy, (lt::Layout layout))                                                      \
  X(MatrixLayoutSetAttribute, (lt::Layout layout, int attribute, const void* value, size_t bytes)) \
  X(MatmulPreferenceCreate, (lt::Preference * made))                                               \
  X(MatmulPreferenceDestroy, (lt::Preference preference))                                          \
  X(MatmulPreferenceSetAttribute,                                                                  \
    (lt::Preference preference, int attribute, const void* value, size_t bytes))                   \
  X(MatmulAlgoGetHeuristic,                                                                        \
    (lt::Handle handle, lt::Product product, lt::Layout a, lt::Layout b, lt::Layout c,             \
     lt::Layout d, lt::Preference preference, int wanted, lt::Candidate* candidates, int* found))  \
  X(Matmul,                                                                                        \
    (lt::Handle handle, lt::Product product, const void* alpha, const void* a,                     \
     lt::Layout a_layout, const void* b, lt::Layout b_layout, const void* beta, const void* c,     \
     lt::Layout c_layout, void* d, lt::Layout d_layout, const lt::Algorithm* algorithm,            \
     void* workspace, size_t workspace_bytes, CUstream stream))

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CUBLASLT_FUNCTIONS_H_
