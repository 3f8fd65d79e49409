// SPDX-License-Identifier: Apache-2.0
//
// An emulated cuBLASLt: libcublasLt.so.13, which computes what it was told by plain loops in
// float64, in the emulated driver's streams and captures. What the real one would refuse, or take
// at the caller's peril, is an invalid value here, with a sentence.

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "backends/cuda/libraries/cublaslt_functions.h"
#include "backends/cuda/testing/emulated/control.h"
#include "backends/cuda/testing/emulated/library.h"

namespace onnxifi::cuda::lt {

struct HandleObject {};
struct ProductObject {
  int compute = 0;
  int scale_type = 0;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = kPlain;
  const void* bias = nullptr;
};
struct LayoutObject {
  int type = 0;
  int64_t rows = 0, columns = 0, leading = 0;
  int32_t batches = 1;
  int64_t batch_stride = 0;
  auto operator<=>(const LayoutObject&) const = default;
};
struct PreferenceObject {
  uint64_t most_workspace_bytes = 0;
  uint32_t schemes = 7;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};
};

}  // namespace onnxifi::cuda::lt

namespace {

using namespace onnxifi::cuda;

// Of products that want working memory.
constexpr size_t kWorkspaceBytes = 1000;
constexpr size_t kVersion = 130100;
constexpr uint64_t kAlgorithm = 0x6c742d656d756c61;

LibraryState& S() {
  static auto* const state = new LibraryState("cuBLASLt", lt::kInvalidValue);
  return *state;
}
int Misuse(std::string sentence) { return S().Misuse(std::move(sentence)); }
bool IsLive(const void* object) { return S().IsLive(object); }

#define EMULATED_CALL(name) \
  if (int failed = 0; S().Fails(name, &failed)) return failed

// A product with everything that it depends on, for as long as a graph may start it.
struct Work {
  lt::LayoutObject a_layout, b_layout, c_layout, d_layout;
  bool transpose_a = false, transpose_b = false, has_bias = false, is_rectified = false;
  int compute = 0;
  double alpha = 0, beta = 0;
  uintptr_t a = 0, b = 0, c = 0, d = 0, bias = 0, workspace = 0;
  size_t workspace_bytes = 0;
  auto operator<=>(const Work&) const = default;
};

std::optional<Number> TypeOf(int type) {
  switch (type) {
    case lt::kInt8:
      return Number::kInt8;
    case lt::kFloat16:
      return Number::kFloat16;
    case lt::kBfloat16:
      return Number::kBfloat16;
    case lt::kFloat32:
      return Number::kFloat32;
    case lt::kInt32:
      return Number::kInt32;
    default:
      return std::nullopt;
  }
}
int BytesOfType(int type) { return BytesOf(*TypeOf(type)); }

// Copies an attribute; false if its size is another.
template <typename T>
bool Take(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return false;
  std::memcpy(&to, value, bytes);
  return true;
}

double LoadRounded(uintptr_t base, int type, int64_t element, int compute) {
  const double value = Load(base, *TypeOf(type), element);
  switch (compute) {
    case lt::kRoundedToTf32:
      return Rounded(static_cast<float>(value), 10);
    default:
      return value;
  }
}

void Multiply(void* data) {
  const Work& work = *static_cast<const Work*>(data);
  // Nothing of anybody's lies there, before the product and behind it.
  const auto fill_workspace = [&] {
    std::memset(reinterpret_cast<void*>(work.workspace), 0xa5, work.workspace_bytes);
  };
  fill_workspace();
  const int64_t depth = work.transpose_a ? work.a_layout.rows : work.a_layout.columns;
  const auto at = [](const lt::LayoutObject& layout, int64_t batch, int64_t row, int64_t column) {
    return batch * layout.batch_stride + column * layout.leading + row;
  };
  for (int64_t batch = 0; batch < work.d_layout.batches; ++batch) {
    for (int64_t column = 0; column < work.d_layout.columns; ++column) {
      for (int64_t row = 0; row < work.d_layout.rows; ++row) {
        double sum = 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t in_a = work.transpose_a ? at(work.a_layout, batch, k, row)
                                                : at(work.a_layout, batch, row, k);
          const int64_t in_b = work.transpose_b ? at(work.b_layout, batch, column, k)
                                                : at(work.b_layout, batch, k, column);
          sum += LoadRounded(work.a, work.a_layout.type, in_a, work.compute) *
                 LoadRounded(work.b, work.b_layout.type, in_b, work.compute);
        }
        double value = work.alpha * sum;
        if (work.beta != 0) {
          value += work.beta *
                   Load(work.c, *TypeOf(work.c_layout.type), at(work.c_layout, batch, row, column));
        }
        if (work.has_bias) value += Load(work.bias, *TypeOf(work.d_layout.type), row);
        if (work.is_rectified && value < 0) value = 0;
        Store(work.d, *TypeOf(work.d_layout.type), at(work.d_layout, batch, row, column), value);
      }
    }
  }
  fill_workspace();
}

// Elements from the first to the last.
int64_t SpanOf(const lt::LayoutObject& layout) {
  return (layout.batches - 1) * layout.batch_stride + (layout.columns - 1) * layout.leading +
         layout.rows;
}

// Why there is no such product; empty if there is. `is_unknown`: the library just has no algorithm.
std::string Check(const lt::ProductObject& product, const lt::LayoutObject& a,
                  const lt::LayoutObject& b, const lt::LayoutObject& c, const lt::LayoutObject& d,
                  bool* is_unknown) {
  const int64_t rows = product.transpose_a != 0 ? a.columns : a.rows;
  const int64_t depth = product.transpose_a != 0 ? a.rows : a.columns;
  const int64_t columns = product.transpose_b != 0 ? b.rows : b.columns;
  const int64_t b_depth = product.transpose_b != 0 ? b.columns : b.rows;
  if (rows != d.rows || columns != d.columns || depth != b_depth) return "The extents do not fit.";
  if (c.rows != d.rows || c.columns != d.columns || c.type != d.type) return "C is not like D.";
  if (a.batches != d.batches || b.batches != d.batches || c.batches != d.batches) {
    return "Counts of batches differ.";
  }
  if (d.batches > 1) {
    const int64_t of_one = (d.columns - 1) * d.leading + d.rows;
    const bool is_between = d.batch_stride >= d.rows && d.batch_stride * d.batches <= d.leading;
    if (d.batch_stride < of_one && !is_between) return "D's batches overlap.";
  }
  if (a.type != b.type) return "The operands have two types.";
  const bool is_integer = product.compute == lt::kInInt32;
  if (is_integer != (a.type == lt::kInt8) || is_integer != (d.type == lt::kInt32) ||
      is_integer != (product.scale_type == lt::kInt32)) {
    return "The types do not fit the arithmetic.";
  }
  if (!is_integer && d.type != lt::kFloat32 && d.type != a.type) return "D has a third type.";
  const bool rounds = product.compute != lt::kInFloat32 && !is_integer;
  if (rounds && a.type != lt::kFloat32) return "Operands that are narrow are rounded.";
  if (is_integer && product.epilogue != lt::kPlain) return "Integers have no epilogue.";
  *is_unknown = is_integer && (product.transpose_a == 0 || product.transpose_b != 0 ||
                               a.leading % 4 != 0 || b.leading % 4 != 0 || d.leading % 4 != 0);
  return std::string();
}

bool IsAligned(const void* pointer, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return kVersion; }

int cublasLtCreate(lt::Handle* made) {
  EMULATED_CALL("Create");
  CUcontext context = nullptr;
  if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return lt::kNotInitialized;
  return S().Make(made, lt::HandleObject());
}
int cublasLtDestroy(lt::Handle handle) {
  EMULATED_CALL("Destroy");
  return S().Destroy(handle);
}

int cublasLtMatmulDescCreate(lt::Product* made, int compute, int scale_type) {
  EMULATED_CALL("MatmulDescCreate");
  if (scale_type != (compute == lt::kInInt32 ? lt::kInt32 : lt::kFloat32)) {
    return Misuse("The scales' type does not fit the arithmetic.");
  }
  return S().Make(made, lt::ProductObject{.compute = compute, .scale_type = scale_type});
}
int cublasLtMatmulDescDestroy(lt::Product product) {
  EMULATED_CALL("MatmulDescDestroy");
  return S().Destroy(product);
}
int cublasLtMatmulDescSetAttribute(lt::Product product, int attribute, const void* value,
                                   size_t bytes) {
  EMULATED_CALL("MatmulDescSetAttribute");
  if (!IsLive(product) || value == nullptr) return lt::kInvalidValue;
  bool is_taken = false;
  switch (attribute) {
    case lt::kTransposeA:
      is_taken = Take(product->transpose_a, value, bytes);
      break;
    case lt::kTransposeB:
      is_taken = Take(product->transpose_b, value, bytes);
      break;
    case lt::kEpilogue:
      is_taken = Take(product->epilogue, value, bytes);
      break;
    case lt::kBiasPointer:
      is_taken = Take(product->bias, value, bytes);
      break;
    default:
      break;
  }
  const uint32_t epilogue = product->epilogue;
  const bool is_known = epilogue == lt::kPlain || epilogue == lt::kRelu || epilogue == lt::kBias ||
                        epilogue == lt::kReluBias;
  return is_taken && is_known ? int{lt::kSuccess} : Misuse("An attribute of a product is none.");
}

int cublasLtMatrixLayoutCreate(lt::Layout* made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  EMULATED_CALL("MatrixLayoutCreate");
  if (!TypeOf(type) || rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) {
    return Misuse("A matrix of " + std::to_string(rows) + " rows has them " +
                  std::to_string(leading) + " elements apart.");
  }
  return S().Make(made, lt::LayoutObject{.type = type,
                                         .rows = static_cast<int64_t>(rows),
                                         .columns = static_cast<int64_t>(columns),
                                         .leading = leading});
}
int cublasLtMatrixLayoutDestroy(lt::Layout layout) {
  EMULATED_CALL("MatrixLayoutDestroy");
  return S().Destroy(layout);
}
int cublasLtMatrixLayoutSetAttribute(lt::Layout layout, int attribute, const void* value,
                                     size_t bytes) {
  EMULATED_CALL("MatrixLayoutSetAttribute");
  if (!IsLive(layout) || value == nullptr) return lt::kInvalidValue;
  const bool is_taken = attribute == lt::kBatchCount    ? Take(layout->batches, value, bytes)
                        : attribute == lt::kBatchStride ? Take(layout->batch_stride, value, bytes)
                                                        : false;
  if (!is_taken || layout->batches < 1 || layout->batch_stride < 0) {
    return Misuse("An attribute of a matrix is none.");
  }
  return lt::kSuccess;
}

int cublasLtMatmulPreferenceCreate(lt::Preference* made) {
  EMULATED_CALL("MatmulPreferenceCreate");
  return S().Make(made, lt::PreferenceObject());
}
int cublasLtMatmulPreferenceDestroy(lt::Preference preference) {
  EMULATED_CALL("MatmulPreferenceDestroy");
  return S().Destroy(preference);
}
int cublasLtMatmulPreferenceSetAttribute(lt::Preference preference, int attribute,
                                         const void* value, size_t bytes) {
  EMULATED_CALL("MatmulPreferenceSetAttribute");
  if (!IsLive(preference) || value == nullptr) return lt::kInvalidValue;
  bool is_taken = false;
  if (attribute == lt::kMaxWorkspaceBytes) {
    is_taken = Take(preference->most_workspace_bytes, value, bytes);
  } else if (attribute == lt::kReductionSchemes) {
    is_taken = Take(preference->schemes, value, bytes);
  } else if (attribute >= lt::kMinAlignmentA && attribute <= lt::kMinAlignmentD) {
    const auto which = static_cast<size_t>(attribute - lt::kMinAlignmentA);
    is_taken = Take(preference->alignments[which], value, bytes);
  }
  return is_taken ? int{lt::kSuccess} : Misuse("An attribute of a preference is none.");
}

int cublasLtMatmulAlgoGetHeuristic(lt::Handle handle, lt::Product product, lt::Layout a,
                                   lt::Layout b, lt::Layout c, lt::Layout d,
                                   lt::Preference preference, int wanted, lt::Candidate* candidates,
                                   int* found) {
  EMULATED_CALL("MatmulAlgoGetHeuristic");
  for (const void* const object :
       {static_cast<const void*>(handle), static_cast<const void*>(product),
        static_cast<const void*>(a), static_cast<const void*>(b), static_cast<const void*>(c),
        static_cast<const void*>(d), static_cast<const void*>(preference)}) {
    if (!IsLive(object)) return Misuse("An object of a product is none.");
  }
  if (wanted < 1 || candidates == nullptr || found == nullptr) return lt::kInvalidValue;
  *found = 0;
  bool is_unknown = false;
  const std::string fault = Check(*product, *a, *b, *c, *d, &is_unknown);
  if (!fault.empty()) return Misuse(fault);
  if (is_unknown) return lt::kNotSupported;
  // In a type narrower than the sum's, parts of it must not be added up.
  if (BytesOfType(d->type) < 4 && (preference->schemes & ~uint32_t{lt::kInComputeType}) != 0) {
    return Misuse("Parts of a sum may be added up in the output's type.");
  }
  if (preference->most_workspace_bytes > uint64_t{64} << 20) {
    return Misuse("Working memory may have over 64 MiB.");
  }
  *found = 1;
  *candidates = {};
  candidates->workspace_bytes =
      std::min<uint64_t>(d->rows % 3 == 0 ? 0 : kWorkspaceBytes, preference->most_workspace_bytes);
  candidates->algorithm.data[0] = kAlgorithm;
  candidates->algorithm.data[1] = candidates->workspace_bytes;
  for (size_t k = 0; k < 4; ++k) {
    candidates->algorithm.data[2 + k] = preference->alignments[k];
  }
  return lt::kSuccess;
}

int cublasLtMatmul(lt::Handle handle, lt::Product product, const void* alpha, const void* a,
                   lt::Layout a_layout, const void* b, lt::Layout b_layout, const void* beta,
                   const void* c, lt::Layout c_layout, void* d, lt::Layout d_layout,
                   const lt::Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                   CUstream stream) {
  EMULATED_CALL("Matmul");
  if (!IsLive(handle) || !IsLive(product)) return Misuse("A product is none.");
  bool is_unknown = false;
  const std::string fault =
      Check(*product, *a_layout, *b_layout, *c_layout, *d_layout, &is_unknown);
  if (!fault.empty()) return Misuse(fault);
  if (algorithm == nullptr || algorithm->data[0] != kAlgorithm) {
    return Misuse("An algorithm is none.");
  }
  if (workspace_bytes < algorithm->data[1] || !IsAligned(workspace, 256) ||
      (workspace_bytes > 0 && workspace == nullptr)) {
    return Misuse("Working memory is too small, or at no multiple of 256 bytes.");
  }
  const std::array<const void*, 4> pointers = {a, b, c, d};
  for (size_t k = 0; k < pointers.size(); ++k) {
    if (!IsAligned(pointers[k], algorithm->data[2 + k])) {
      return Misuse("A matrix is not where it was said to be.");
    }
  }
  Work work{.a_layout = *a_layout,
            .b_layout = *b_layout,
            .c_layout = *c_layout,
            .d_layout = *d_layout,
            .transpose_a = product->transpose_a != 0,
            .transpose_b = product->transpose_b != 0,
            .has_bias = (product->epilogue & lt::kBias) != 0,
            .is_rectified = (product->epilogue & lt::kRelu) != 0,
            .compute = product->compute,
            .a = reinterpret_cast<uintptr_t>(a),
            .b = reinterpret_cast<uintptr_t>(b),
            .c = reinterpret_cast<uintptr_t>(c),
            .d = reinterpret_cast<uintptr_t>(d),
            .bias = reinterpret_cast<uintptr_t>(product->bias),
            .workspace = reinterpret_cast<uintptr_t>(workspace),
            .workspace_bytes = algorithm->data[1]};
  const bool is_integer = product->compute == lt::kInInt32;
  work.alpha = is_integer ? *static_cast<const int32_t*>(alpha) : *static_cast<const float*>(alpha);
  work.beta = is_integer ? *static_cast<const int32_t*>(beta) : *static_cast<const float*>(beta);
  const auto bytes_of = [](const lt::LayoutObject& layout) {
    return SpanOf(layout) * BytesOfType(layout.type);
  };
  if (!IsInside(work.a, bytes_of(*a_layout)) || !IsInside(work.b, bytes_of(*b_layout)) ||
      !IsInside(work.d, bytes_of(*d_layout)) ||
      (work.beta != 0 && !IsInside(work.c, bytes_of(*c_layout))) ||
      (work.has_bias && !IsInside(work.bias, d_layout->rows * BytesOfType(d_layout->type))) ||
      (work.workspace_bytes > 0 &&
       !IsInside(work.workspace, static_cast<int64_t>(work.workspace_bytes)))) {
    return Misuse("A matrix reaches beyond its memory.");
  }
  const CUresult put = cuLaunchHostFunc(stream, Multiply, S().Hold(work));
  return put == CUDA_SUCCESS ? lt::kSuccess : lt::kExecutionFailed;
}

void emulated_cublaslt_fail(const char* function, int result, int call, int count) {
  S().Fail(function, result, call, count);
}
int emulated_cublaslt_call_count(const char* function) { return S().call_count(function); }
int emulated_cublaslt_live(void) { return S().live_count(); }
const char* emulated_cublaslt_misuse(void) { return S().misuse(); }

}  // extern "C"
