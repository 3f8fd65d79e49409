// SPDX-License-Identifier: Apache-2.0
//
// Heap: a piece is asked of the blocks by the pool alone, and enters the map of addresses then.

#include "backends/vulkan/heap.h"

#include <string>
#include <utility>
#include <vector>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr int64_t kMaxIdleTensorBytes = int64_t{1} << 30;
constexpr int64_t kMaxIdleOtherBytes = int64_t{64} << 20;

std::byte* ToPointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

}  // namespace

// A piece under its addresses.
class Heap::Mapped final : public device::Allocation {
 public:
  // `counter`, unless null, counts its bytes while it exists.
  Mapped(Heap& heap, Blocks& blocks, const Blocks::Piece& piece, std::atomic<int64_t>* counter)
      : heap_(heap), blocks_(blocks), piece_(piece), counter_(counter) {
    if (counter_ != nullptr) *counter_ += piece_.size_bytes;
    const Block& block = *piece.block;
    heap_.places_.Insert(
        data(), size_bytes(),
        {block.buffer.get(), piece.offset_bytes,
         block.mapped == nullptr ? nullptr : block.mapped + piece.offset_bytes, piece.size_bytes});
  }
  ~Mapped() override {
    heap_.places_.Erase(data());
    blocks_.Free(piece_);
    if (counter_ != nullptr) *counter_ -= piece_.size_bytes;
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::byte* data() override {
    return ToPointer(piece_.block->address + static_cast<uint64_t>(piece_.offset_bytes));
  }
  int64_t size_bytes() const override { return piece_.size_bytes; }

 private:
  Heap& heap_;
  Blocks& blocks_;
  const Blocks::Piece piece_;
  std::atomic<int64_t>* const counter_;
};

// What callers have: its piece goes back to the pool when it may.
class Heap::Owned final : public device::Allocation {
 public:
  Owned(Heap& heap, std::unique_ptr<device::Allocation> piece)
      : heap_(heap), piece_(std::move(piece)) {}
  ~Owned() override { heap_.Release(std::move(piece_)); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  std::byte* data() override { return piece_->data(); }
  int64_t size_bytes() const override { return piece_->size_bytes(); }

 private:
  Heap& heap_;
  std::unique_ptr<device::Allocation> piece_;
};

// A part of a caller's buffer; the whole buffer is found as long as there is one.
class Heap::Imported final : public device::Allocation {
 public:
  Imported(Heap& heap, std::byte* buffer, std::byte* data, int64_t size_bytes)
      : heap_(heap), buffer_(buffer), data_(data), size_bytes_(size_bytes) {}
  ~Imported() override {
    const std::lock_guard lock(heap_.mutex_);
    const auto found = heap_.imported_.find(buffer_);
    if (--found->second.count > 0) return;
    heap_.places_.Erase(buffer_);
    heap_.imported_.erase(found);
  }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  std::byte* data() override { return data_; }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  Heap& heap_;
  std::byte* const buffer_;
  std::byte* const data_;
  const int64_t size_bytes_;
};

// Memory that others made and the driver knows by a block of its own.
class Heap::Adopted final : public device::Allocation {
 public:
  Adopted(Heap& heap, std::unique_ptr<Block> block, int64_t offset_bytes, int64_t size_bytes)
      : heap_(heap),
        block_(std::move(block)),
        data_(ToPointer(block_->address) + offset_bytes),
        size_bytes_(size_bytes) {
    heap_.places_.Insert(data_, size_bytes_,
                         {block_->buffer.get(), offset_bytes, nullptr, size_bytes_});
  }
  ~Adopted() override { heap_.places_.Erase(data_); }
  Adopted(const Adopted&) = delete;
  Adopted& operator=(const Adopted&) = delete;

  std::byte* data() override { return data_; }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  Heap& heap_;
  const std::unique_ptr<Block> block_;
  std::byte* const data_;
  const int64_t size_bytes_;
};

Heap::Heap(Runtime& runtime)
    : runtime_(runtime),
      tensor_blocks_(runtime, runtime.info().memory_types.device),
      number_blocks_(runtime, runtime.info().memory_types.numbers),
      staging_blocks_(runtime, runtime.info().memory_types.staging),
      tensors_([this](int64_t size) { return NewPiece(Purpose::kTensor, size); },
               kMaxIdleTensorBytes),
      numbers_([this](int64_t size) { return NewPiece(Purpose::kNumbers, size); },
               kMaxIdleOtherBytes),
      staging_([this](int64_t size) { return NewPiece(Purpose::kStaging, size); },
               kMaxIdleOtherBytes) {}

Heap::~Heap() { waiting_.clear(); }

Blocks& Heap::BlocksOf(Purpose purpose) {
  const MemoryTypes& types = runtime_.info().memory_types;
  if (purpose == Purpose::kTensor) return tensor_blocks_;
  const uint32_t index = purpose == Purpose::kNumbers ? types.numbers.index : types.staging.index;
  if (index == types.device.index) return tensor_blocks_;
  return index == types.numbers.index ? number_blocks_ : staging_blocks_;
}

Result<std::unique_ptr<device::Allocation>> Heap::NewPiece(Purpose purpose, int64_t size_bytes) {
  const bool is_staging = purpose == Purpose::kStaging || purpose == Purpose::kLastStaging;
  std::unique_lock<std::mutex> lock;
  if (is_staging) lock = std::unique_lock(staging_mutex_);
  if (purpose == Purpose::kStaging && staging_bytes_ + size_bytes > kMaxStagingBytes) {
    return Status(Code::kNoDeviceResources,
                  "Staging memory of " + std::to_string(size_bytes) + " bytes exceeds the " +
                      std::to_string(kMaxStagingBytes) + " that all streams have together.");
  }
  Blocks* blocks = &BlocksOf(purpose);
  Result<Blocks::Piece> piece = blocks->Allocate(size_bytes);
  Blocks* const staging = &BlocksOf(Purpose::kStaging);
  if (!piece.ok() && purpose == Purpose::kNumbers && blocks != staging) {
    // The window through which the host writes the device's memory may be small, and full: kernels
    // read the host's memory too.
    blocks = staging;
    Result<Blocks::Piece> other = blocks->Allocate(size_bytes);
    if (other.ok()) piece = std::move(other);
  }
  if (!piece.ok()) return std::move(piece).status();
  return std::unique_ptr<device::Allocation>(
      std::make_unique<Mapped>(*this, *blocks, *piece, is_staging ? &staging_bytes_ : nullptr));
}

Result<std::unique_ptr<device::Allocation>> Heap::Allocate(Purpose purpose, int64_t size_bytes) {
  Sweep();
  // No recording names staging memory, and who has it keeps it until the device is done with it.
  if (purpose == Purpose::kStaging) return staging_.Allocate(size_bytes);
  if (purpose == Purpose::kLastStaging) return NewPiece(purpose, size_bytes);
  ONNXIFI_ASSIGN_OR_RETURN(
      std::unique_ptr<device::Allocation> piece,
      (purpose == Purpose::kNumbers ? numbers_ : tensors_).Allocate(size_bytes));
  return std::unique_ptr<device::Allocation>(std::make_unique<Owned>(*this, std::move(piece)));
}

Result<std::unique_ptr<device::Allocation>> Heap::Import(VkBuffer buffer, uint64_t address,
                                                         int64_t buffer_bytes, int64_t offset_bytes,
                                                         int64_t size_bytes) {
  std::byte* const first = ToPointer(address);
  const std::lock_guard lock(mutex_);
  ImportedBuffer& imported = imported_[first];
  if (imported.count > 0 && imported.buffer != buffer) {
    return Status(Code::kInvalidMemoryLocation,
                  "Another Vulkan buffer over the same memory is bound already.");
  }
  if (imported.count == 0) {
    imported.buffer = buffer;
    places_.Insert(first, buffer_bytes, {buffer, 0, nullptr, buffer_bytes});
  }
  ++imported.count;
  return std::unique_ptr<device::Allocation>(
      std::make_unique<Imported>(*this, first, first + offset_bytes, size_bytes));
}

std::unique_ptr<device::Allocation> Heap::Adopt(std::unique_ptr<Block> block, int64_t offset_bytes,
                                                int64_t size_bytes) {
  return std::make_unique<Adopted>(*this, std::move(block), offset_bytes, size_bytes);
}

void Heap::Release(std::unique_ptr<device::Allocation> piece) {
  const uint64_t moment = runtime_.retirement().Now();
  if (runtime_.retirement().IsOver(moment)) return;
  const std::lock_guard lock(mutex_);
  waiting_bytes_ += piece->size_bytes();
  waiting_.push_back({moment, std::move(piece)});
}

void Heap::Sweep() {
  std::vector<std::unique_ptr<device::Allocation>> done;  // go after the lock
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && runtime_.retirement().IsOver(waiting_.front().moment)) {
    waiting_bytes_ -= waiting_.front().piece->size_bytes();
    done.push_back(std::move(waiting_.front().piece));
    waiting_.pop_front();
  }
}

int64_t Heap::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

Result<Heap::Location> Heap::Find(const std::byte* address) const {
  device::AddressMap<Entry>::Location place{};
  if (!places_.Find(address, place)) {
    return Status(Code::kInternalError, "An address is none of the device's.");
  }
  const Entry& entry = place.handle;
  return Location{entry.buffer, entry.offset_bytes + place.offset_bytes,
                  entry.mapped == nullptr ? nullptr : entry.mapped + place.offset_bytes,
                  entry.size_bytes - place.offset_bytes};
}

int64_t Heap::piece_count() const {
  return tensors_.made_count() + numbers_.made_count() + staging_.made_count();
}

int64_t Heap::block_count() const {
  return tensor_blocks_.block_count() + number_blocks_.block_count() +
         staging_blocks_.block_count();
}

}  // namespace onnxifi::vulkan
