// SPDX-License-Identifier: Apache-2.0
//
// TensorStorage: memory grows and is never given back before the binding is.

#include "onnxifi/partitioned/tensor_storage.h"

#include <algorithm>
#include <new>
#include <string>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/partitioned/crossing_value.h"

namespace onnxifi::partitioned {

using base::Code;
using base::Status;
using plugins::SharedSource;

namespace {

constexpr std::align_val_t kAlignment{64};
// What is smaller is copied in no time that could be measured.
constexpr size_t kMinSharedBytes = size_t{64} << 10;

}  // namespace

base::Result<size_t> SizeBytes(const abi::TensorDescriptor& descriptor) {
  int64_t count = 1;
  bool fits = true;
  for (const uint64_t extent : descriptor.shape) {
    if (extent == 0) return size_t{0};
    fits = fits && extent <= static_cast<uint64_t>(INT64_MAX / count);
    if (fits) count *= static_cast<int64_t>(extent);
  }
  const auto type = tensor::ElementTypeFromOnnx(static_cast<int64_t>(descriptor.data_type));
  const int64_t size = type && fits ? tensor::SizeBytes(*type, count) : INT64_MAX;
  if (size == INT64_MAX) {
    return Status(Code::kNoSystemMemory,
                  "No memory holds '" + descriptor.name + "' between two islands.");
  }
  return static_cast<size_t>(size);
}

void TensorStorage::TakeInference(const abi::TensorShape* told, bool varies) {
  const bool is_known = told != nullptr && IsKnown(*told);
  extent_source = !is_known ? ExtentSource::kRun
                  : varies  ? ExtentSource::kInference
                            : ExtentSource::kBinding;
  if (location == Location::kWorkspace || location == Location::kRunResult) {
    location = is_known ? Location::kWorkspace : Location::kRunResult;
  }
}

abi::TensorDescriptor TensorStorage::DescriptorFor(const SharedSource* device) const {
  abi::TensorDescriptor told = descriptor;
  if (location != Location::kWorkspace || sharer == nullptr || sharer != device) return told;
  told.memory_type = memory.memory_type;
  told.buffer = memory.buffer;
  return told;
}

Status TensorStorage::Reserve(std::span<const SharedSource* const> sources) {
  ONNXIFI_ASSIGN_OR_RETURN(const size_t size_bytes, SizeBytes(descriptor));
  if (location == Location::kCallerMemory) {
    if (size_bytes <= capacity_bytes) return base::Ok();
    return {Code::kMismatchingShape, "Output '" + descriptor.name + "' takes " +
                                         std::to_string(size_bytes) + " bytes, more than the " +
                                         std::to_string(capacity_bytes) +
                                         " of the shape that is bound."};
  }
  if (memory.owner == nullptr || capacity_bytes < size_bytes) {
    const size_t wanted_bytes = std::max<size_t>(size_bytes, 1);
    // Whatever is thrown on the way, there is no more memory than this says.
    capacity_bytes = 0;
    sharer = nullptr;
    for (const SharedSource* source : sources) {
      if (size_bytes < kMinSharedBytes) break;
      auto made = source->AllocateShared(static_cast<int64_t>(size_bytes));
      // Another may; else it is copied.
      if (!made.ok()) continue;
      memory = *std::move(made);
      sharer = source;
      break;
    }
    if (sharer == nullptr) {
      auto* bytes =
          static_cast<std::byte*>(::operator new[](wanted_bytes, kAlignment, std::nothrow));
      if (bytes == nullptr) {
        return {Code::kNoSystemMemory, "There are no " + std::to_string(size_bytes) +
                                           " bytes for '" + descriptor.name +
                                           "' between two islands."};
      }
      memory = {.address = reinterpret_cast<onnxPointer>(bytes),
                .owner = std::shared_ptr<const void>(
                    bytes, [](std::byte* old) { ::operator delete[](old, kAlignment); })};
    }
    capacity_bytes = wanted_bytes;
  }
  descriptor.buffer = memory.address;
  // Whoever has it bound keeps it.
  descriptor.owner = memory.owner;
  return base::Ok();
}

Status TensorStorage::CheckAfterRun(const abi::TensorShape& told) const {
  const bool agrees = IsKnown(told) && told.data_type == descriptor.data_type;
  if (agrees && std::ranges::equal(told.extents, descriptor.shape)) return base::Ok();
  if (agrees && location == Location::kCallerMemory) {
    abi::TensorDescriptor smaller = descriptor;
    smaller.shape.assign(told.extents.begin(), told.extents.end());
    const auto size_bytes = SizeBytes(smaller);
    if (size_bytes.ok() && *size_bytes <= capacity_bytes) return base::Ok();
  }
  return Contradiction(told.name, "has shape " + ShapeText(told.extents) +
                                      " after a run, which is not what it was bound for");
}

}  // namespace onnxifi::partitioned
