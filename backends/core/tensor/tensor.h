// SPDX-License-Identifier: Apache-2.0
//
// Tensor: a dense tensor in host memory with its owner: initializers, attribute tensors, folded
// constants, and what the tests compare. Immutable once shared; data are row-major, packed types as
// in ONNX's raw_data.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_TENSOR_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::tensor {

using Extents = std::vector<int64_t>;

// Product of the extents; 1 for a scalar; INT64_MAX when it overflows. Extents are not negative.
int64_t ElementCount(std::span<const int64_t> extents);
// Row-major strides in elements of a dense tensor.
Extents DenseStrides(std::span<const int64_t> extents);
// "[2, 3, 4]" for messages.
std::string ToString(std::span<const int64_t> extents);

// What is behind memory that a tensor borrows.
enum class Backing : uint8_t {
  kMemory,
  kFile,  // a private mapping of a file that nobody has written to (file_pages.h)
};

class Tensor {
 public:
  Tensor() = default;
  // Zero-filled, owned. NO_SYSTEM_MEMORY when the size overflows or cannot be had. Strings: empty
  // strings.
  static base::Result<Tensor> Allocate(ElementType type, Extents extents);
  // Borrows `data`; `owner` (may be null for memory that outlives everything) keeps it alive.
  static Tensor Borrow(ElementType type, Extents extents, const std::byte* data,
                       std::shared_ptr<const void> owner, Backing backing = Backing::kMemory);
  static Tensor FromStrings(Extents extents, std::vector<std::string> strings);
  // A dense copy of typed values; sizeof(T) must be the width of `type`, values.size() the element
  // count.
  template <typename T>
  static Tensor FromValues(ElementType type, Extents extents, std::span<const T> values) {
    return FromBytes(type, std::move(extents), std::as_bytes(values));
  }
  static Tensor FromBytes(ElementType type, Extents extents, std::span<const std::byte> bytes);

  ElementType type() const { return type_; }
  const Extents& extents() const { return extents_; }
  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t element_count() const { return ElementCount(extents_); }
  int64_t size_bytes() const { return SizeBytes(type_, element_count()); }
  const std::byte* data() const { return data_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_bytes())}; }
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data_), static_cast<size_t>(element_count())};
  }
  // Only while this is the sole owner of memory it allocated itself.
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }
  const std::vector<std::string>& strings() const { return *strings_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  Backing backing() const { return backing_; }

  // Element `index` (row-major) as float64 / int64, whatever the type (not strings, not complex).
  double AsDouble(int64_t index) const;
  int64_t AsInt(int64_t index) const;

  // The same data under other extents of the same element count.
  Tensor Reshaped(Extents extents) const;

 private:
  ElementType type_ = ElementType::kUndefined;
  Extents extents_;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  Backing backing_ = Backing::kMemory;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_TENSOR_H_
