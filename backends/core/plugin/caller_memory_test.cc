// SPDX-License-Identifier: Apache-2.0
//
// CallerMemory: which tensors of the host's a device is offered, and how driver's memory is asked
// for.

#include "backends/core/plugin/caller_memory.h"

#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace onnxifi::plugin {
namespace {

using abi::TensorDescriptor;
using base::Result;
using base::Status;

class Piece final : public device::Allocation {
 public:
  Piece(std::byte* data, int64_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  std::byte* data() override { return data_; }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  std::byte* const data_;
  const int64_t size_bytes_;
};

// Takes all memory of the host's, and notes what it is asked for.
class TakingSharing final : public device::Sharing {
 public:
  Result<std::unique_ptr<device::Allocation>> ImportMemory(uint64_t handle, int64_t size_bytes,
                                                           Access /*access*/) override {
    asked += "buffer " + std::to_string(handle) + " " + std::to_string(size_bytes) + "; ";
    return std::unique_ptr<device::Allocation>(std::make_unique<Piece>(nullptr, size_bytes));
  }
  Result<std::unique_ptr<device::Allocation>> ImportOpaqueFd(uint64_t handle,
                                                             int64_t size_bytes) override {
    if (refuses_fds) return device::Sharing::ImportOpaqueFd(handle, size_bytes);
    asked += "fd " + std::to_string(handle) + " " + std::to_string(size_bytes) + "; ";
    return std::unique_ptr<device::Allocation>(std::make_unique<Piece>(nullptr, size_bytes));
  }
  std::unique_ptr<device::Allocation> ImportHostMemory(std::byte* memory,
                                                       int64_t size_bytes) override {
    return std::make_unique<Piece>(memory, size_bytes);
  }
  Result<SharedMemory> AllocateShared(int64_t /*size_bytes*/) override { return Status(); }
  Status WhenComplete(const NativeEvent& /*event*/, OnDone /*done*/) override { return {}; }
  Result<NewEvent> MakeEvent() override { return Status(); }
  bool has_callers_queue() const override { return false; }

  bool refuses_fds = false;
  std::string asked;
};

TensorDescriptor Describe(const void* buffer, uint64_t count,
                          onnxEnum data_type = ONNXIFI_DATATYPE_FLOAT32) {
  TensorDescriptor tensor;
  tensor.name = "t";
  tensor.data_type = data_type;
  tensor.shape = {count};
  tensor.buffer = reinterpret_cast<uintptr_t>(buffer);
  return tensor;
}

// By output, whether it is written in place.
std::vector<bool> InPlace(const std::vector<TensorDescriptor>& outputs,
                          const std::vector<TensorDescriptor>& inputs) {
  TakingSharing sharing;
  DeviceMemory memory(outputs.size());
  ImportHostMemory(outputs, inputs, sharing, memory);
  std::vector<bool> is_in_place;
  for (const auto& piece : memory) is_in_place.push_back(piece != nullptr);
  return is_in_place;
}

TEST(CallerMemory, IsOfferedWithItsBytes) {
  std::vector<float> values(100);
  TakingSharing sharing;
  DeviceMemory memory(1);
  ImportHostMemory(std::vector{Describe(values.data(), 100)}, {}, sharing, memory);
  ASSERT_NE(memory[0], nullptr);
  EXPECT_EQ(memory[0]->data(), reinterpret_cast<std::byte*>(values.data()));
  EXPECT_EQ(memory[0]->size_bytes(), 400);
}

TEST(CallerMemory, IsNotWrittenInPlaceWhereAnInputLies) {
  std::vector<float> values(100);
  const TensorDescriptor input = Describe(&values[20], 10);
  const std::vector<TensorDescriptor> outputs = {
      Describe(values.data(), 20), Describe(values.data(), 21), Describe(&values[20], 10),
      Describe(&values[29], 4), Describe(&values[30], 4)};
  EXPECT_EQ(InPlace(outputs, {input}), (std::vector<bool>{true, false, false, false, true}));
}

TEST(CallerMemory, IsNotOfferedWhereItIsNoneOfTheHosts) {
  std::vector<float> values(100);
  TensorDescriptor kept = Describe(values.data(), 4);
  kept.is_kept = true;
  TensorDescriptor buffer = Describe(values.data(), 4);
  buffer.memory_type = ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER;
  const std::vector<TensorDescriptor> tensors = {
      kept, buffer, Describe(values.data(), 0), Describe(nullptr, 4),
      // Written by words of 4 bytes, of which the last may not be its own.
      Describe(values.data(), 3, ONNXIFI_SDK_DATATYPE_INT4), Describe(values.data(), 3)};
  EXPECT_EQ(InPlace(tensors, {}), (std::vector<bool>{false, false, false, false, false, true}));
}

TEST(CallerMemory, OfTheDriversIsAskedForByItsType) {
  TakingSharing sharing;
  TensorDescriptor buffer = Describe(nullptr, 4);
  buffer.memory_type = ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER;
  buffer.buffer = 17;
  TensorDescriptor file = Describe(nullptr, 5, ONNXIFI_SDK_DATATYPE_INT4);
  file.memory_type = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
  file.buffer = 18;
  const auto memory =
      ImportMemory(std::vector{buffer, file}, &sharing, device::Sharing::Access::kRead, "input");
  ASSERT_TRUE(memory.ok()) << memory.status().Text();
  EXPECT_EQ(sharing.asked, "buffer 17 16; fd 18 4; ");
  sharing.refuses_fds = true;
  const auto refused =
      ImportMemory(std::vector{file}, &sharing, device::Sharing::Access::kRead, "input");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), base::Code::kUnsupportedMemoryType);
  EXPECT_NE(refused.status().Text().find("for input 't'"), std::string::npos);
}

}  // namespace
}  // namespace onnxifi::plugin
