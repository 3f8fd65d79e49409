// SPDX-License-Identifier: Apache-2.0
//
// DescriptorCheck: every sentence names the tensor, the value given and the limit.

#include "backends/core/abi/descriptor_check.h"

#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::abi {

using base::Code;
using base::Status;

namespace {

std::string_view RoleName(DescriptorRole role) {
  switch (role) {
    case DescriptorRole::kWeight:
      return "Weight";
    case DescriptorRole::kInput:
      return "Input";
    case DescriptorRole::kOutput:
      return "Output";
  }
  return "Tensor";
}

std::string Title(DescriptorRole role, std::string_view name) {
  return std::string(RoleName(role)) + " '" + std::string(name) + "'";
}

// The same behind other words of a sentence.
std::string Mention(DescriptorRole role, std::string_view name) {
  std::string title = Title(role, name);
  title.front() = static_cast<char>(title.front() - 'A' + 'a');
  return title;
}

// "float (1)"; the number alone where ONNX has no such type.
std::string TypeText(onnxEnum type) {
  const auto element_type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(type));
  if (!element_type) return std::to_string(type);
  return std::string(tensor::Name(*element_type)) + " (" + std::to_string(type) + ")";
}

std::string Position(DescriptorRole role, uint32_t index) {
  return std::string(RoleName(role)) + " descriptor " + std::to_string(index);
}

const DeclaredTensor* FindDeclared(const std::vector<DeclaredTensor>* declared,
                                   std::string_view name) {
  if (declared == nullptr) return nullptr;
  for (const DeclaredTensor& tensor : *declared) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// The fork's descriptor is 96 bytes long under the same tag: where our second descriptor has no tag
// but the fork's would have one, the caller was built with the fork's header. Both places lie
// inside the array, which is at least two of our descriptors long.
bool LooksLikeFoxi(const onnxTensorDescriptorV1* descriptors, uint32_t count) {
  constexpr size_t kFoxiStride = 96;
  static_assert(kFoxiStride + sizeof(int32_t) <= 2 * sizeof(onnxTensorDescriptorV1));
  if (count < 2 || descriptors[0].tag != ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) return false;
  int32_t tag = 0;
  std::memcpy(&tag, reinterpret_cast<const std::byte*>(descriptors) + kFoxiStride, sizeof(tag));
  return tag == ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
}

Status CheckTag(DescriptorRole role, uint32_t index, uint32_t count,
                const onnxTensorDescriptorV1* descriptors) {
  const int32_t tag = descriptors[index].tag;
  if (tag == ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) return base::Ok();
  if (index == 1 && LooksLikeFoxi(descriptors, count)) {
    return Status(Code::kUnsupportedTag,
                  std::string(RoleName(role)) +
                      " descriptors are laid out in the 96 bytes of the foxi fork; this library "
                      "takes the 56 bytes of ONNX.");
  }
  return Status(Code::kUnsupportedTag, Position(role, index) + " has the tag " +
                                           std::to_string(tag) + "; the only one known is " +
                                           std::to_string(ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1) + ".");
}

bool IsDataTypeOfInterface(onnxEnum type) {
  constexpr onnxEnum kString = 8;
  return type >= ONNXIFI_DATATYPE_FLOAT32 && type <= ONNXIFI_DATATYPE_BFLOAT16 && type != kString;
}

Status CheckDataType(DescriptorRole role, const onnxTensorDescriptorV1& descriptor,
                     const Backend& backend) {
  const onnxEnum type = descriptor.dataType;
  if (backend.TakesDataType(type)) return base::Ok();
  if (IsDataTypeOfInterface(type)) {
    return Status(Code::kUnsupportedDatatype, Title(role, descriptor.name) + " has element type " +
                                                  TypeText(type) +
                                                  ", which this backend does not take.");
  }
  return Status(Code::kInvalidDatatype, Title(role, descriptor.name) + " has element type " +
                                            std::to_string(type) +
                                            ", which is no element type of a descriptor.");
}

bool IsMemoryTypeOfInterface(onnxEnum type) {
  return type == ONNXIFI_MEMORY_TYPE_CPU || type == ONNXIFI_MEMORY_TYPE_CUDA_BUFFER ||
         type == ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER ||
         type == ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D ||
         type == ONNXIFI_MEMORY_TYPE_D3D_RESOURCE ||
         type == ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER || type == ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
}

Status CheckMemoryType(DescriptorRole role, const onnxTensorDescriptorV1& descriptor,
                       const Backend& backend) {
  const onnxEnum type = descriptor.memoryType;
  if (type == ONNXIFI_MEMORY_TYPE_CPU) return base::Ok();
  if (role != DescriptorRole::kWeight && backend.TakesMemoryType(type)) return base::Ok();
  if (IsMemoryTypeOfInterface(type)) {
    return Status(
        Code::kUnsupportedMemoryType,
        Title(role, descriptor.name) + " lies in memory of type " + std::to_string(type) +
            (role == DescriptorRole::kWeight ? "; weights are taken from CPU memory (0) only."
                                             : ", which this backend does not take."));
  }
  return Status(Code::kInvalidMemoryType, Title(role, descriptor.name) + " has memory type " +
                                              std::to_string(type) +
                                              ", which is no memory type of the interface.");
}

// An extent of 0 is an error unless the model declares it or leaves it open.
bool ZeroIsDeclared(const DeclaredTensor& declared, uint32_t axis) {
  if (!declared.has_shape) return true;
  if (axis >= declared.dimensions.size()) return false;
  const DeclaredDimension& dimension = declared.dimensions[axis];
  return !dimension.is_number() || dimension.extent == 0;
}

Status CheckShape(DescriptorRole role, const onnxTensorDescriptorV1& descriptor,
                  const std::vector<DeclaredTensor>* declared, bool* out_is_empty) {
  *out_is_empty = false;
  if (descriptor.dimensions == 0) return base::Ok();
  // No model has tensors of such a rank; a field that was never set may say so, and the shape must
  // not be read that far.
  constexpr uint32_t kMaxRank = 64;
  if (descriptor.dimensions > kMaxRank) {
    return Status(Code::kInvalidShape, Title(role, descriptor.name) + " has rank " +
                                           std::to_string(descriptor.dimensions) +
                                           "; the largest one taken is " +
                                           std::to_string(kMaxRank) + ".");
  }
  if (descriptor.shape == nullptr) {
    return Status(Code::kInvalidPointer, Title(role, descriptor.name) + " has rank " +
                                             std::to_string(descriptor.dimensions) +
                                             " and a NULL shape.");
  }
  const DeclaredTensor* declaration = FindDeclared(declared, descriptor.name);
  // Bytes of the largest element type, complex128; signed so that sizes fit ptrdiff_t as well.
  constexpr uint64_t kMaxElementBytes = 16;
  constexpr uint64_t kMaxCount =
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / kMaxElementBytes;
  uint64_t element_count = 1;
  for (uint32_t axis = 0; axis < descriptor.dimensions; ++axis) {
    const uint64_t extent = descriptor.shape[axis];
    if (extent == 0) {
      *out_is_empty = true;
      const bool is_taken =
          declaration != nullptr ? ZeroIsDeclared(*declaration, axis) : declared == nullptr;
      if (!is_taken) {
        return Status(Code::kInvalidShape, "Dimension " + std::to_string(axis) + " of " +
                                               Mention(role, descriptor.name) +
                                               " is 0, which the model does not declare.");
      }
    } else if (element_count > kMaxCount / extent) {
      return Status(Code::kInvalidShape, Title(role, descriptor.name) +
                                             " has more than the largest number of elements (" +
                                             std::to_string(kMaxCount) + "): dimension " +
                                             std::to_string(axis) + " is " +
                                             std::to_string(extent) + ".");
    } else {
      element_count *= extent;
    }
  }
  return base::Ok();
}

std::string ShapeText(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + "]";
}

// The numbers that symbols have got so far, and by which tensor.
using SymbolValues = std::unordered_map<std::string, std::pair<uint64_t, std::string>>;

Status CheckDeclaration(DescriptorRole role, const TensorDescriptor& tensor,
                        const DeclaredTensor& declared, SymbolValues* symbols) {
  if (tensor.is_kept) return base::Ok();
  if (!declared.whole.empty()) {
    // What a value has in it is for those to check who know the model.
    if (tensor.value != nullptr) return base::Ok();
    return Status(Code::kMismatchingDatatype, Title(role, tensor.name) + " is " + declared.whole +
                                                  "; a descriptor carries a tensor of numbers.");
  }
  if (tensor.value != nullptr && !tensor.value->is_tensor()) {
    return Status(Code::kMismatchingDatatype, Title(role, tensor.name) + " is " +
                                                  tensor::Describe(*tensor.value) +
                                                  "; the model declares a tensor.");
  }
  if (declared.data_type != ONNXIFI_DATATYPE_UNDEFINED && tensor.data_type != declared.data_type) {
    return Status(Code::kMismatchingDatatype,
                  Title(role, tensor.name) + " has element type " + TypeText(tensor.data_type) +
                      "; the model declares " + TypeText(declared.data_type) + ".");
  }
  if (!declared.has_shape) return base::Ok();
  if (tensor.shape.size() != declared.dimensions.size()) {
    return Status(Code::kMismatchingShape,
                  Title(role, tensor.name) + " has rank " + std::to_string(tensor.shape.size()) +
                      " (shape " + ShapeText(tensor.shape) + "); the model declares rank " +
                      std::to_string(declared.dimensions.size()) + ".");
  }
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const DeclaredDimension& dimension = declared.dimensions[axis];
    const uint64_t extent = tensor.shape[axis];
    if (dimension.is_number()) {
      if (extent != static_cast<uint64_t>(dimension.extent)) {
        return Status(Code::kMismatchingShape,
                      "Dimension " + std::to_string(axis) + " of " + Mention(role, tensor.name) +
                          " is " + std::to_string(extent) + "; the model declares " +
                          std::to_string(dimension.extent) + ".");
      }
    } else if (!dimension.symbol.empty()) {
      const auto [known, is_new] =
          symbols->try_emplace(dimension.symbol, extent, Mention(role, tensor.name));
      if (!is_new && known->second.first != extent) {
        return Status(Code::kMismatchingShape,
                      "Dimension " + std::to_string(axis) + " of " + Mention(role, tensor.name) +
                          " gives the symbol '" + dimension.symbol + "' the number " +
                          std::to_string(extent) + ", but " + known->second.second + " gives it " +
                          std::to_string(known->second.first) + ".");
      }
    }
  }
  return base::Ok();
}

}  // namespace

base::Result<std::vector<TensorDescriptor>> CopyDescriptors(
    DescriptorRole role, uint32_t count, const onnxTensorDescriptorV1* descriptors,
    const Backend& backend, const std::vector<DeclaredTensor>* declared, bool needs_buffer) {
  std::vector<TensorDescriptor> tensors;
  for (uint32_t index = 0; index < count; ++index) {
    const onnxTensorDescriptorV1& descriptor = descriptors[index];
    ONNXIFI_RETURN_IF_ERROR(CheckTag(role, index, count, descriptors));
    if (descriptor.name == nullptr) {
      return Status(Code::kInvalidName, Position(role, index) + " has a NULL name.");
    }
    ONNXIFI_RETURN_IF_ERROR(CheckDataType(role, descriptor, backend));
    ONNXIFI_RETURN_IF_ERROR(CheckMemoryType(role, descriptor, backend));
    bool is_empty = false;
    ONNXIFI_RETURN_IF_ERROR(CheckShape(role, descriptor, declared, &is_empty));
    if (needs_buffer && descriptor.buffer == 0 && !is_empty &&
        descriptor.memoryType == ONNXIFI_MEMORY_TYPE_CPU) {
      return Status(Code::kInvalidMemoryLocation,
                    Title(role, descriptor.name) + " has a NULL buffer in CPU memory.");
    }
    TensorDescriptor tensor;
    tensor.name = descriptor.name;
    tensor.data_type = descriptor.dataType;
    tensor.memory_type = descriptor.memoryType;
    if (descriptor.dimensions > 0) {
      tensor.shape.assign(descriptor.shape, descriptor.shape + descriptor.dimensions);
    }
    tensor.buffer = descriptor.buffer;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status CheckNames(DescriptorRole role, const std::vector<TensorDescriptor>& tensors,
                  const std::vector<DeclaredTensor>* declared) {
  std::unordered_set<std::string_view> declared_names;
  if (declared != nullptr) {
    for (const DeclaredTensor& tensor : *declared) declared_names.insert(tensor.name);
  }
  std::unordered_set<std::string_view> names;
  for (const TensorDescriptor& tensor : tensors) {
    if (declared != nullptr && !declared_names.contains(tensor.name)) {
      return Status(Code::kInvalidName,
                    Title(role, tensor.name) + " is none of the graph's " +
                        std::to_string(declared->size()) +
                        (role == DescriptorRole::kOutput ? " outputs." : " inputs to bind."));
    }
    if (!names.insert(tensor.name).second) {
      return Status(Code::kInvalidName, Title(role, tensor.name) + " has two descriptors.");
    }
  }
  return base::Ok();
}

base::Result<std::vector<TensorDescriptor>> Arrange(DescriptorRole role,
                                                    std::vector<TensorDescriptor> tensors,
                                                    const std::vector<DeclaredTensor>& declared) {
  std::unordered_map<std::string_view, size_t> positions;
  for (size_t position = 0; position < tensors.size(); ++position) {
    positions.emplace(tensors[position].name, position);
  }
  std::vector<TensorDescriptor> arranged;
  arranged.reserve(declared.size());
  for (const DeclaredTensor& declaration : declared) {
    const auto found = positions.find(declaration.name);
    if (found == positions.end()) {
      return Status(Code::kUnidentifiedName,
                    Title(role, declaration.name) + " of the graph has no descriptor.");
    }
    // Copied, because a graph may list one output twice.
    arranged.push_back(tensors[found->second]);
  }
  return arranged;
}

Status CheckDeclarations(const GraphTensors& tensors, const Signature& signature) {
  SymbolValues symbols;
  for (size_t index = 0; index < tensors.inputs.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckDeclaration(DescriptorRole::kInput, tensors.inputs[index],
                                             signature.inputs[index], &symbols));
  }
  for (size_t index = 0; index < tensors.outputs.size(); ++index) {
    ONNXIFI_RETURN_IF_ERROR(CheckDeclaration(DescriptorRole::kOutput, tensors.outputs[index],
                                             signature.outputs[index], &symbols));
  }
  return base::Ok();
}

}  // namespace onnxifi::abi
