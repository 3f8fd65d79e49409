// SPDX-License-Identifier: Apache-2.0
//
// Tensor: allocation, borrowing and element access.

#include "backends/core/tensor/tensor.h"

#include <cstring>
#include <new>
#include <utility>

#include "backends/core/tensor/convert.h"
#include "backends/core/tensor/host_block.h"

namespace onnxifi::tensor {
int64_t ElementCount(std::span<const int64_t> extents) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t extent : extents) {
    // A zero anywhere makes the whole empty, whatever overflowed before it.
    if (extent == 0) return 0;
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  return overflow ? INT64_MAX : count;
}

Extents DenseStrides(std::span<const int64_t> extents) {
  Extents strides(extents.size());
  int64_t stride = 1;
  for (size_t axis = extents.size(); axis-- > 0;) {
    strides[axis] = stride;
    if (__builtin_mul_overflow(stride, extents[axis], &stride)) stride = INT64_MAX;
  }
  return strides;
}

std::string ToString(std::span<const int64_t> extents) {
  std::string text = "[";
  for (const int64_t extent : extents) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

base::Result<Tensor> Tensor::Allocate(ElementType type, Extents extents) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.extents_ = std::move(extents);
  const int64_t element_count = tensor.element_count();
  // A quarter of the address space: beyond it sums of sizes and offsets would overflow.
  constexpr int64_t kMaxBytes = int64_t{1} << 61;
  const int64_t size_bytes = type == ElementType::kString
                                 ? SizeBytes(ElementType::kUint8, element_count)
                                 : SizeBytes(type, element_count);
  if (element_count == INT64_MAX || size_bytes > kMaxBytes) {
    return base::Status(base::Code::kNoSystemMemory,
                        "A " + std::string(Name(type)) + " tensor of extents " +
                            ToString(tensor.extents_) + " exceeds the largest size of " +
                            std::to_string(kMaxBytes) + " bytes.");
  }
  const auto refuse = [&] {
    return base::Status(base::Code::kNoSystemMemory,
                        "There is no memory for a " + std::string(Name(type)) +
                            " tensor of extents " + ToString(tensor.extents_) + ".");
  };
  if (type == ElementType::kString) {
    try {
      tensor.strings_ =
          std::make_shared<const std::vector<std::string>>(static_cast<size_t>(element_count));
    } catch (const std::exception&) {  // bad_alloc or length_error
      return refuse();
    }
    return tensor;
  }
  HostBlock block = AllocateHostBlock(static_cast<size_t>(size_bytes), Fill::kZeros);
  if (block == nullptr) return refuse();
  tensor.data_ = block.get();
  tensor.owner_ = std::move(block);
  return tensor;
}

Tensor Tensor::Borrow(ElementType type, Extents extents, const std::byte* data,
                      std::shared_ptr<const void> owner, Backing backing) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.extents_ = std::move(extents);
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  tensor.backing_ = backing;
  return tensor;
}

Tensor Tensor::FromStrings(Extents extents, std::vector<std::string> strings) {
  Tensor tensor;
  tensor.type_ = ElementType::kString;
  tensor.extents_ = std::move(extents);
  tensor.strings_ = std::make_shared<const std::vector<std::string>>(std::move(strings));
  return tensor;
}

Tensor Tensor::FromBytes(ElementType type, Extents extents, std::span<const std::byte> bytes) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.extents_ = std::move(extents);
  HostBlock block = AllocateHostBlock(bytes.size(), Fill::kNothing);
  if (block == nullptr) throw std::bad_alloc();
  if (!bytes.empty()) std::memcpy(block.get(), bytes.data(), bytes.size());
  tensor.data_ = block.get();
  tensor.owner_ = std::move(block);
  return tensor;
}

double Tensor::AsDouble(int64_t index) const {
  const Scalar scalar = LoadScalar(type_, data_, index);
  if (IsFloat(type_)) return scalar.f;
  return IsSigned(type_) ? static_cast<double>(scalar.i) : static_cast<double>(scalar.u);
}

int64_t Tensor::AsInt(int64_t index) const {
  return CastScalar(type_, ElementType::kInt64, LoadScalar(type_, data_, index)).i;
}

Tensor Tensor::Reshaped(Extents extents) const {
  Tensor tensor = *this;
  tensor.extents_ = std::move(extents);
  return tensor;
}

}  // namespace onnxifi::tensor
