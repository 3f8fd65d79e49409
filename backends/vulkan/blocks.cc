// SPDX-License-Identifier: Apache-2.0
//
// Blocks: the first free place that is large enough, in the oldest block that has one.

#include "backends/vulkan/blocks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/core/reference/host_memory.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr int64_t RoundUp(int64_t size_bytes) {
  return (size_bytes + Blocks::kAlignment - 1) / Blocks::kAlignment * Blocks::kAlignment;
}

}  // namespace

Result<std::unique_ptr<Block>> MakeBlock(const Runtime& runtime, const BlockRequest& request) {
  const DeviceApi& api = runtime.api();
  VkDevice device = runtime.device();
  const bool is_import = request.import != nullptr;
  const std::string amount = std::to_string(request.size_bytes) + " bytes";
  const std::string doing = (is_import ? "import " : "allocate ") + amount;
  auto block = std::make_unique<Block>();
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = request.handle_type;
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.pNext = is_import ? &external : nullptr;
  buffer_info.size = static_cast<VkDeviceSize>(request.size_bytes);
  buffer_info.usage = kBufferUsage;
  VkBuffer buffer = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      runtime.Check(api.CreateBuffer(device, &buffer_info, nullptr, &buffer), doing));
  Handle<VkBuffer> owned(device, buffer, api.DestroyBuffer);
  VkMemoryRequirements requirements{};
  api.GetBufferMemoryRequirements(device, buffer, &requirements);
  if ((requirements.memoryTypeBits & (1U << request.memory_type)) == 0) {
    return Status(is_import ? Code::kInvalidMemoryLocation : Code::kInternalError,
                  "Buffers of " + runtime.info().name + " do not lie in memory of type " +
                      std::to_string(request.memory_type) + ".");
  }
  const auto given_bytes = static_cast<VkDeviceSize>(request.allocation_bytes);
  if (is_import && requirements.size > given_bytes) {
    return Status(Code::kInvalidMemoryLocation,
                  "A buffer of " + amount + " needs " + std::to_string(requirements.size) +
                      " bytes of memory; there are " + std::to_string(given_bytes) + ".");
  }
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = request.import;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.pNext = &flags;
  memory_info.allocationSize = is_import ? given_bytes : requirements.size;
  memory_info.memoryTypeIndex = request.memory_type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ONNXIFI_RETURN_IF_ERROR(
      runtime.Check(api.AllocateMemory(device, &memory_info, nullptr, &memory), doing));
  block->memory = {device, memory, api.FreeMemory};
  if (request.taken_fd != nullptr) *request.taken_fd = -1;
  ONNXIFI_RETURN_IF_ERROR(runtime.Check(api.BindBufferMemory(device, buffer, memory, 0), doing));
  block->buffer = std::move(owned);
  if (request.is_mapped) {
    void* mapped = nullptr;
    ONNXIFI_RETURN_IF_ERROR(runtime.Check(
        api.MapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "map " + amount));
    block->mapped = static_cast<std::byte*>(mapped);
  }
  VkBufferDeviceAddressInfo address_info{};
  address_info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address_info.buffer = buffer;
  block->address = api.GetBufferDeviceAddress(device, &address_info);
  block->size_bytes = request.size_bytes;
  return block;
}

bool Blocks::Take(Block& block, int64_t size_bytes, Piece& piece) {
  for (auto place = block.free.begin(); place != block.free.end(); ++place) {
    const auto [offset, free_bytes] = *place;
    if (free_bytes < size_bytes) continue;
    block.free.erase(place);
    if (free_bytes > size_bytes) block.free.emplace(offset + size_bytes, free_bytes - size_bytes);
    piece = {&block, offset, size_bytes};
    return true;
  }
  return false;
}

Result<Blocks::Piece> Blocks::Allocate(int64_t size_bytes) {
  const int64_t wanted = RoundUp(size_bytes);
  const std::lock_guard lock(mutex_);
  Piece piece;
  if (wanted <= kMaxPieceBytes) {
    for (const std::unique_ptr<Block>& block : blocks_) {
      if (Take(*block, wanted, piece)) return piece;
    }
  }
  Result<std::unique_ptr<Block>> made = NewBlockFor(wanted, size_bytes);
  if (!made.ok() && made.status().code() == Code::kNoDeviceMemory && GiveUpEmptyBlocks()) {
    made = NewBlockFor(wanted, size_bytes);
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Block> block, std::move(made));
  runtime_.CountBytes(type_, block->size_bytes);
  Take(*block, wanted, piece);
  blocks_.push_back(std::move(block));
  return piece;
}

Result<std::unique_ptr<Block>> Blocks::NewBlockFor(int64_t wanted, int64_t size_bytes) {
  const int64_t available = AvailableBytes();
  if (wanted > available) {
    return Status(Code::kNoDeviceMemory, "An allocation of " + std::to_string(size_bytes) +
                                             " bytes exceeds the " + std::to_string(available) +
                                             " bytes that " + runtime_.info().name +
                                             " has for one.");
  }
  const int64_t block_bytes =
      wanted > kMaxPieceBytes ? wanted : std::max(wanted, std::min(kBlockBytes, available));
  Result<std::unique_ptr<Block>> made = NewBlock(block_bytes);
  if (!made.ok() && made.status().code() == Code::kNoDeviceMemory && block_bytes > wanted) {
    // Others may have what the driver does not tell of.
    made = NewBlock(wanted);
  }
  return made;
}

bool Blocks::IsEmpty(const Block& block) {
  return block.free.size() == 1 && block.free.begin()->second + kAlignment == block.size_bytes;
}

bool Blocks::GiveUpEmptyBlocks() {
  return std::erase_if(blocks_, [&](const std::unique_ptr<Block>& block) {
           if (!IsEmpty(*block)) return false;
           runtime_.CountBytes(type_, -block->size_bytes);
           return true;
         }) > 0;
}

int64_t Blocks::AvailableBytes() const {
  uint64_t available =
      std::min(runtime_.info().largest_allocation_bytes, runtime_.AvailableBytes(type_));
  // Drivers for processors hand out memory that the system does not have.
  if (runtime_.info().is_processor()) {
    available = std::min(available, static_cast<uint64_t>(reference::AvailableBytes()));
  }
  // What an address may need to be aligned.
  available -= std::min<uint64_t>(available, kAlignment);
  return static_cast<int64_t>(std::min<uint64_t>(available, INT64_MAX / 2));
}

Result<std::unique_ptr<Block>> Blocks::NewBlock(int64_t size_bytes) {
  BlockRequest request;
  request.size_bytes = size_bytes + kAlignment;
  request.memory_type = type_.index;
  request.is_mapped = type_.is_mapped;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Block> block, MakeBlock(runtime_, request));
  const auto first = static_cast<int64_t>(-block->address % static_cast<uint64_t>(kAlignment));
  block->free.emplace(first, size_bytes);
  return block;
}

void Blocks::Free(const Piece& piece) {
  std::unique_ptr<Block> gone;  // given up after the lock
  const std::lock_guard lock(mutex_);
  std::map<int64_t, int64_t>& free = piece.block->free;
  auto place = free.emplace(piece.offset_bytes, piece.size_bytes).first;
  const auto next = std::next(place);
  if (next != free.end() && place->first + place->second == next->first) {
    place->second += next->second;
    free.erase(next);
  }
  if (place != free.begin()) {
    const auto before = std::prev(place);
    if (before->first + before->second == place->first) {
      before->second += place->second;
      free.erase(place);
      place = before;
    }
  }
  if (!IsEmpty(*piece.block)) return;
  // One empty block of the usual size stays for who comes next.
  const bool is_spare =
      piece.block->size_bytes <= kBlockBytes + kAlignment &&
      std::ranges::count_if(blocks_, [&](const auto& block) { return IsEmpty(*block); }) == 1;
  if (is_spare) return;
  const auto found = std::ranges::find(blocks_, piece.block, &std::unique_ptr<Block>::get);
  runtime_.CountBytes(type_, -piece.block->size_bytes);
  gone = std::move(*found);
  blocks_.erase(found);
}

int64_t Blocks::block_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(blocks_.size());
}

}  // namespace onnxifi::vulkan
