// SPDX-License-Identifier: Apache-2.0
//
// Copies on the emulated device, which carries copies of pinned memory out late: what calls of the
// driver are made, in what order and of what sizes, and that no chunk is used again too early.

#include "backends/cuda/copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "backends/cuda/driver.h"
#include "backends/cuda/queue.h"
#include "backends/cuda/testing/emulated/control.h"

namespace onnxifi::cuda {
namespace {

using device::StagingPool;

constexpr size_t kChunkBytes = 4096;
constexpr size_t kChunks = 3;

struct Copy {
  bool is_upload;
  uintptr_t host;
  CUdeviceptr device;
  size_t size_bytes;
};

// What the driver was asked for. Plain functions stand in the table, so that both are global.
std::mutex log_mutex;
std::vector<Copy> copies;
Api real;

CUresult LoggedUpload(CUdeviceptr to, const void* from, size_t size_bytes, CUstream stream) {
  {
    const std::lock_guard lock(log_mutex);
    copies.push_back({true, reinterpret_cast<uintptr_t>(from), to, size_bytes});
  }
  return real.MemcpyHtoDAsync(to, from, size_bytes, stream);
}
CUresult LoggedDownload(void* to, CUdeviceptr from, size_t size_bytes, CUstream stream) {
  {
    const std::lock_guard lock(log_mutex);
    copies.push_back({false, reinterpret_cast<uintptr_t>(to), from, size_bytes});
  }
  return real.MemcpyDtoHAsync(to, from, size_bytes, stream);
}
size_t CopyCount() {
  const std::lock_guard lock(log_mutex);
  return copies.size();
}

std::vector<std::byte> RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class CopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    emulated_recover();
    const auto api = LoadApi();
    ASSERT_TRUE(api.ok());
    real = *api;
    Api logged = real;
    logged.MemcpyHtoDAsync = LoggedUpload;
    logged.MemcpyDtoHAsync = LoggedDownload;
    const auto devices = FindDevices(logged);
    ASSERT_TRUE(devices.ok());
    auto runtime = Runtime::Open(logged, devices->fit[0]);
    ASSERT_TRUE(runtime.ok());
    runtime_ = *std::move(runtime);
    copies.clear();
  }
  void TearDown() override {
    emulated_recover();
    for (const CUdeviceptr memory : memory_) {
      EXPECT_TRUE(Do([&] { return real.MemFree(memory); }).ok());
    }
    runtime_.reset();
    for (const char* kind : {"memory", "pinned", "stream", "event"}) {
      EXPECT_EQ(emulated_live(kind), 0) << kind;
    }
  }

  template <typename Call>
  base::Status Do(const Call& call) const {
    return runtime_->Do("test", call);
  }
  std::byte* Allocate(size_t size_bytes) {
    CUdeviceptr memory = 0;
    EXPECT_TRUE(Do([&] { return real.MemAlloc(&memory, size_bytes); }).ok());
    memory_.push_back(memory);
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(memory));
  }
  std::unique_ptr<Queue> NewQueue(StagingPool& pool) const {
    auto queue = Queue::Create(*runtime_, pool, *captures_);
    EXPECT_TRUE(queue.ok()) << queue.status().Text();
    return *std::move(queue);
  }
  bool IsPinned(uintptr_t address) const {
    CUmemorytype type{};
    CUresult result = CUDA_SUCCESS;
    static_cast<void>(Do([&] {
      result = real.PointerGetAttribute(static_cast<void*>(&type), CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        address);
      return CUDA_SUCCESS;
    }));
    return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
  }
  // The stream does nothing more until the word is 1.
  uint32_t* HoldStream() const {
    void* word = nullptr;
    const base::Status held = Do([&] {
      CUresult result = real.MemHostAlloc(&word, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP);
      if (result != CUDA_SUCCESS) return result;
      *static_cast<uint32_t*>(word) = 0;
      return real.StreamWaitValue32(runtime_->stream(), reinterpret_cast<uintptr_t>(word), 1,
                                    CU_STREAM_WAIT_VALUE_GEQ);
    });
    EXPECT_TRUE(held.ok()) << held.Text();
    return static_cast<uint32_t*>(word);
  }
  void Free(uint32_t* word) const {
    EXPECT_TRUE(Do([&] { return real.MemFreeHost(word); }).ok());
  }

  std::unique_ptr<Runtime> runtime_;
  const std::shared_ptr<Captures> captures_ = std::make_shared<Captures>();
  std::vector<CUdeviceptr> memory_;
};

int64_t Bytes(const std::vector<std::byte>& bytes) { return static_cast<int64_t>(bytes.size()); }

TEST_F(CopiesTest, PageableTensorsPassThroughChunks) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  for (const size_t size : {size_t{1}, size_t{100}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1,
                            3 * kChunkBytes, 5 * kChunkBytes + 7, 100 * kChunkBytes}) {
    const std::vector<std::byte> given = RandomBytes(size, static_cast<uint32_t>(size));
    std::vector<std::byte> results(size);
    std::byte* const memory = Allocate(size);
    copies.clear();
    ASSERT_TRUE(queue->Upload(given.data(), memory, Bytes(given)).ok());
    const size_t uploads = copies.size();
    ASSERT_TRUE(queue->Download(memory, results.data(), Bytes(results)).ok());
    ASSERT_TRUE(queue->Finish().ok());
    EXPECT_EQ(results, given) << size;
    // Each way without a gap, from chunks and no larger than they are.
    for (const bool is_upload : {true, false}) {
      CUdeviceptr next = memory_.back();
      for (const Copy& copy : copies) {
        if (copy.is_upload != is_upload) continue;
        EXPECT_EQ(copy.device, next);
        EXPECT_LE(copy.size_bytes, kChunkBytes);
        EXPECT_TRUE(IsPinned(copy.host));
        next += copy.size_bytes;
      }
      EXPECT_EQ(next, memory_.back() + size);
    }
    EXPECT_LE(uploads, size / kChunkBytes + 1);
    EXPECT_LE(emulated_live("pinned"), static_cast<int>(kChunks));
  }
  // Small tensors share a chunk.
  StagingPool other(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> second = NewQueue(other);
  const int pinned = emulated_live("pinned");
  std::vector<std::byte> bytes = RandomBytes(64, 1);
  std::byte* const memory = Allocate(64);
  for (int k = 0; k < 8; ++k) ASSERT_TRUE(second->Upload(bytes.data(), memory, 64).ok());
  ASSERT_TRUE(second->Download(memory, bytes.data(), 64).ok());
  EXPECT_EQ(emulated_live("pinned"), pinned + 1);
  ASSERT_TRUE(second->Finish().ok());
}

TEST_F(CopiesTest, AChunkIsUsedAgainOnlyOnceTheDeviceHasReadIt) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  const std::vector<std::byte> given = RandomBytes(10 * kChunkBytes, 2);
  std::vector<std::byte> results(given.size());
  std::byte* const memory = Allocate(given.size());
  uint32_t* const word = HoldStream();
  std::thread uploader(
      [&] { EXPECT_TRUE(queue->Upload(given.data(), memory, Bytes(given)).ok()); });
  while (CopyCount() < kChunks) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(CopyCount(), kChunks);
  std::atomic_ref(*word).store(1);
  uploader.join();
  ASSERT_TRUE(queue->Download(memory, results.data(), Bytes(results)).ok());
  ASSERT_TRUE(queue->Finish().ok());
  EXPECT_EQ(results, given);
  Free(word);
}

TEST_F(CopiesTest, DownloadsThatFitTheRingWaitForNothingBeforeTheEnd) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  const std::vector<std::byte> given = RandomBytes(2 * kChunkBytes, 3);
  std::byte* const memory = Allocate(given.size());
  ASSERT_TRUE(queue->Upload(given.data(), memory, Bytes(given)).ok());
  ASSERT_TRUE(queue->Finish().ok());
  const std::vector<std::byte> before(given.size(), std::byte{7});
  std::vector<std::byte> results = before;
  uint32_t* const word = HoldStream();
  ASSERT_TRUE(queue->Download(memory, results.data(), Bytes(results)).ok());
  EXPECT_EQ(results, before);
  std::atomic_ref(*word).store(1);
  // What nobody finishes is there when it is submitted.
  ASSERT_TRUE(queue->Submit().ok());
  EXPECT_EQ(results, given);
  Free(word);
}

TEST_F(CopiesTest, PinnedTensorsAreCopiedAsTheyAre) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  constexpr size_t kBytes = 7 * kChunkBytes;
  void* pinned = nullptr;
  ASSERT_TRUE(Do([&] { return real.MemHostAlloc(&pinned, kBytes, 0); }).ok());
  auto* const host = static_cast<std::byte*>(pinned);
  std::byte* const memory = Allocate(kBytes);
  // Within it, too.
  for (const size_t offset : {size_t{0}, size_t{24}}) {
    copies.clear();
    const auto size = static_cast<int64_t>(kBytes - offset);
    ASSERT_TRUE(queue->Upload(host + offset, memory, size).ok());
    ASSERT_TRUE(queue->Download(memory, host + offset, size).ok());
    ASSERT_TRUE(queue->Finish().ok());
    ASSERT_EQ(copies.size(), 2U);
    for (const Copy& copy : copies) {
      EXPECT_EQ(copy.host, reinterpret_cast<uintptr_t>(host + offset));
      EXPECT_EQ(copy.size_bytes, kBytes - offset);
    }
  }
  EXPECT_EQ(emulated_live("pinned"), 1);
  EXPECT_TRUE(Do([&] { return real.MemFreeHost(pinned); }).ok());
  // What the caller has registered, and what goes beyond it.
  std::vector<std::byte> registered = RandomBytes(kBytes, 4);
  ASSERT_TRUE(Do([&] { return cuMemHostRegister(registered.data(), kBytes / 2, 0); }).ok());
  for (const size_t size : {kBytes / 2, kBytes}) {
    copies.clear();
    ASSERT_TRUE(queue->Upload(registered.data(), memory, static_cast<int64_t>(size)).ok());
    ASSERT_TRUE(queue->Finish().ok());
    EXPECT_EQ(copies.size() == 1, size == kBytes / 2);
  }
  EXPECT_TRUE(Do([&] { return cuMemHostUnregister(registered.data()); }).ok());
}

TEST_F(CopiesTest, ATensorLargerThanAllChunksOfADevice) {
  StagingPool pool;
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  const std::vector<std::byte> given = RandomBytes((size_t{150} << 20) + 12345, 5);
  std::vector<std::byte> results(given.size());
  std::byte* const memory = Allocate(given.size());
  ASSERT_TRUE(queue->Upload(given.data(), memory, Bytes(given)).ok());
  ASSERT_TRUE(queue->Download(memory, results.data(), Bytes(results)).ok());
  ASSERT_TRUE(queue->Finish().ok());
  EXPECT_TRUE(results == given);
  static_assert(StagingPool::kChunkBytes * StagingPool::kMaxChunks == size_t{64} << 20);
  EXPECT_LE(emulated_live("pinned"), static_cast<int>(StagingPool::kMaxChunks));
  for (const Copy& copy : copies) EXPECT_LE(copy.size_bytes, StagingPool::kChunkBytes);
}

TEST_F(CopiesTest, AQueueWithoutChunksLeavesTheCopyToTheDriver) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> first = NewQueue(pool);
  const std::unique_ptr<Queue> second = NewQueue(pool);
  const std::vector<std::byte> given = RandomBytes(kChunks * kChunkBytes, 6);
  std::vector<std::byte> results(given.size());
  std::byte* const memory = Allocate(given.size());
  ASSERT_TRUE(first->Upload(given.data(), memory, Bytes(given)).ok());
  copies.clear();
  ASSERT_TRUE(second->Download(memory, results.data(), Bytes(results)).ok());
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].host, reinterpret_cast<uintptr_t>(results.data()));
  EXPECT_EQ(copies[0].size_bytes, results.size());
  ASSERT_TRUE(second->Finish().ok());
  EXPECT_EQ(results, given);
}

// One fault at every call; then everything works, and nothing is left behind.
TEST_F(CopiesTest, FaultsAreTheRunsOrOfNoConsequence) {
  StagingPool pool(kChunkBytes, kChunks);
  const std::unique_ptr<Queue> queue = NewQueue(pool);
  const std::vector<std::byte> given = RandomBytes(5 * kChunkBytes + 100, 7);
  std::byte* const memory = Allocate(given.size());
  const auto run = [&] {
    std::vector<std::byte> results(given.size());
    base::Status status = queue->Upload(given.data(), memory, Bytes(given));
    if (status.ok()) status = queue->Download(memory, results.data(), Bytes(results));
    base::Status finished = queue->Finish();
    if (status.ok()) status = std::move(finished);
    // A run that succeeds is right.
    EXPECT_TRUE(!status.ok() || results == given);
    return status;
  };
  int failed_count = 0;
  for (const char* function :
       {"cuMemHostAlloc", "cuEventCreate", "cuPointerGetAttribute", "cuEventRecord", "cuEventQuery",
        "cuEventSynchronize", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"}) {
    for (int call = 0; call < 12; ++call) {
      SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call));
      emulated_recover();
      emulated_fail(function, CUDA_ERROR_OUT_OF_MEMORY, call, 1);
      const base::Status status = run();
      if (!status.ok()) {
        ++failed_count;
        EXPECT_EQ(status.code(), base::Code::kNoDeviceMemory) << status.Text();
        EXPECT_TRUE(std::string(function).find("Alloc") == std::string::npos) << status.Text();
      }
      emulated_recover();
      const base::Status healthy = run();
      ASSERT_TRUE(healthy.ok()) << healthy.Text();
      EXPECT_LE(emulated_live("pinned"), static_cast<int>(kChunks));
    }
  }
  EXPECT_GT(failed_count, 20);
}

}  // namespace
}  // namespace onnxifi::cuda
