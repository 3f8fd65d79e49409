// SPDX-License-Identifier: Apache-2.0
//
// TensorDescriptor and its relatives: what a caller's descriptors say, copied and checked by
// core/abi, as a Provider receives them; and what a graph declares about the tensors that cross its
// edge.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_TENSOR_DESCRIPTOR_H_
#define ONNXIFI_BACKENDS_CORE_ABI_TENSOR_DESCRIPTOR_H_

#include <onnx/onnxifi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/core/tensor/value.h"

namespace onnxifi::abi {

// A dense row-major tensor of the caller. The buffer is borrowed: during onnxInitGraph for a
// weight, until the runs that use it have finished for an input or output. By onnxSetGraphValues
// also a value, or an output that has no memory.
struct TensorDescriptor {
  std::string name;
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU;
  std::vector<uint64_t> shape;
  // Address for CPU memory; 0 only where an extent is 0.
  onnxPointer buffer = 0;
  // An input that was given as a value, else null. For a tensor type and shape say the same, and
  // the buffer, of numbers, is the value's.
  tensor::ValueRef value = nullptr;
  // Keeps the buffer for as long as anybody has it bound, where it is memory of ours; else null.
  std::shared_ptr<const void> owner = nullptr;
  // An output that the run keeps; there is only its name.
  bool is_kept = false;

  const void* cpu_data() const {
    return reinterpret_cast<const void*>(static_cast<uintptr_t>(buffer));
  }
  void* mutable_cpu_data() const { return reinterpret_cast<void*>(static_cast<uintptr_t>(buffer)); }
};

// The host's memory of a tensor; none for one that lies elsewhere, or that is a value or kept.
std::span<std::byte> HostBytesOf(const TensorDescriptor& tensor);

// The host's memory of many tensors, to ask of each of many others whether it has bytes in common
// with one of them. Keeps nothing of the tensors.
class HostRanges {
 public:
  explicit HostRanges(std::span<const TensorDescriptor> tensors);
  bool Overlap(const TensorDescriptor& tensor) const;

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* last_end;  // of this range and of those before it
  };
  std::vector<Range> ranges_;  // by `begin`
};

// One dimension that a model declares: a number, a named symbol, or an unnamed symbol.
struct DeclaredDimension {
  static constexpr int64_t kSymbolic = -1;
  int64_t extent = kSymbolic;
  std::string symbol;

  bool is_number() const { return extent >= 0; }
};

// A graph input or output as the model declares it, completed by what was inferred.
struct DeclaredTensor {
  std::string name;
  // UNDEFINED when the model does not say; any type is taken then.
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  // False when not even the rank is known; any shape is taken then.
  bool has_shape = false;
  std::vector<DeclaredDimension> dimensions;
  // What it is, for messages, where that is nothing that a descriptor carries, e.g. "a sequence";
  // else empty.
  std::string whole = {};
};

// The tensors that onnxSetGraphIO binds, in the model's order.
struct Signature {
  // Graph inputs without initialisers and weight descriptors: each needs a descriptor.
  std::vector<DeclaredTensor> inputs;
  std::vector<DeclaredTensor> outputs;
};

// An output that a run kept.
struct KeptValue {
  std::string name;
  tensor::ValueRef value;
};

// Shape of an output before or after a run.
struct TensorShape {
  std::string name;
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  bool has_rank = true;
  // -1 where the extent depends on data.
  std::vector<int64_t> extents;
};

// What a run tells of its outputs.
struct RunOutputs {
  // Empty when they are those of the binding.
  std::vector<TensorShape> shapes = {};
  // In the model's order.
  std::vector<KeptValue> kept = {};
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_TENSOR_DESCRIPTOR_H_
