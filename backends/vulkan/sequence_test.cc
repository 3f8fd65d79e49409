// SPDX-License-Identifier: Apache-2.0
//
// Random sequences of calls of the exported interface, right and wrong ones, on the plugin over the
// fake driver, which fails now and then: every answer is a documented status with a sentence,
// nothing crashes, and once all is released nothing of the driver's is left. The variables
// ONNXIFI_TEST_SEQUENCES and ONNXIFI_TEST_SEED say how many and which.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/vulkan/testing/fake_caller.h"
#include "backends/vulkan/testing/fake_driver.h"
#include "backends/vulkan/testing/sequence_material.h"

namespace onnxifi::vulkan {
namespace {

namespace fs = std::filesystem;

// Objects of one kind: those that live and those that are gone.
template <typename Handle>
struct Handles {
  std::vector<Handle> live;
  std::vector<Handle> gone;
};

// One sequence of calls, and what it made.
class Sequence {
 public:
  Sequence(uint64_t seed, bool has_faults)
      : random_(seed), has_faults_(has_faults), caller_(TheSurroundings().instance) {}

  void Play() {
    ListIds();
    const uint64_t calls = 5 + random_() % 40;
    for (uint64_t k = 0; k < calls && !testing::Test::HasFailure(); ++k) {
      if (has_faults_ && Is(20)) Fail();
      Call();
    }
    // Events first: no run waits for one any more.
    End(events_, &onnxReleaseEvent);
    End(graphs_, &onnxReleaseGraph);
    End(backends_, &onnxReleaseBackend);
    End(ids_, &onnxReleaseBackendID);
  }

  // The calls that succeeded, by function.
  const std::map<std::string, int>& good() const { return good_; }

 private:
  struct Tensor {
    std::array<float, 64> values{};
    std::array<uint64_t, 3> shape{};
    onnxOpaqueFd file = {};
    std::unique_ptr<float, decltype(&std::free)> many{nullptr, &std::free};
  };

  bool Is(uint64_t one_of) { return random_() % one_of == 0; }

  // Most often a live one, sometimes none or one that is gone, or what was never one.
  template <typename Handle>
  Handle Pick(const Handles<Handle>& of) {
    const uint64_t dice = random_() % 40;
    if (dice == 0) return nullptr;
    if (dice == 1) return reinterpret_cast<Handle>(static_cast<uintptr_t>(random_()));
    if (dice == 2 && !of.gone.empty()) return of.gone[random_() % of.gone.size()];
    return of.live.empty() ? nullptr : of.live[random_() % of.live.size()];
  }

  static std::string LastError() {
    onnxExtensionFunctionPointer address = nullptr;
    EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "onnxGetLastErrorMessage", &address),
              ONNXIFI_STATUS_SUCCESS);
    const auto get =
        reinterpret_cast<onnxGetLastErrorMessageFunction>(reinterpret_cast<void (*)()>(address));
    std::array<char, 4096> text{};
    size_t size = text.size();
    static_cast<void>(get(text.data(), &size));
    return text.data();
  }

  onnxStatus Check(onnxStatus status, const char* function) {
    EXPECT_TRUE(std::ranges::count(kStatuses, static_cast<int>(status)) == 1)
        << function << ": " << status;
    if (status == ONNXIFI_STATUS_SUCCESS) ++good_[function];
    if (status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK) return status;
    const std::string sentence = LastError();
    EXPECT_FALSE(sentence.empty()) << function << ": " << status;
    if (!has_faults_) {
      // Of a run whose input event is gone.
      EXPECT_TRUE(status != ONNXIFI_STATUS_INTERNAL_ERROR ||
                  sentence == "The event is released before anybody signals it.")
          << function << ": " << sentence;
      EXPECT_NE(status, ONNXIFI_STATUS_BACKEND_UNAVAILABLE) << function << ": " << sentence;
    }
    return status;
  }

  void Fail() {
    static const std::vector<std::string> functions = FakeDriver::Functions();
    constexpr std::array kResults = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                     VK_ERROR_DEVICE_LOST, VK_ERROR_UNKNOWN};
    if (Is(10)) FakeDriver::LoseOpenDevices();
    FakeDriver::Fail(functions[random_() % functions.size()], kResults[random_() % kResults.size()],
                     static_cast<int>(random_() % 3), 1 + static_cast<int>(random_() % 3));
  }

  void ListIds() {
    size_t count = 0;
    Check(onnxGetBackendIDs(nullptr, &count), "onnxGetBackendIDs");
    std::vector<onnxBackendID> ids(count);
    const onnxStatus status = onnxGetBackendIDs(ids.data(), &count);
    Check(status, "onnxGetBackendIDs");
    if (status == ONNXIFI_STATUS_SUCCESS) ids_.live.insert(ids_.live.end(), ids.begin(), ids.end());
  }

  template <typename Handle>
  void Release(Handles<Handle>& of, onnxStatus(ONNXIFI_ABI* release)(Handle)) {
    const Handle handle = Pick(of);
    if (Check(release(handle), "onnxRelease...") != ONNXIFI_STATUS_SUCCESS) return;
    std::erase(of.live, handle);
    of.gone.push_back(handle);
  }

  template <typename Handle>
  void End(Handles<Handle>& of, onnxStatus(ONNXIFI_ABI* release)(Handle)) {
    for (const Handle handle : of.live) Check(release(handle), "onnxRelease...");
  }

  std::string PickModel() {
    std::string model = Models()[random_() % (Is(4) ? Models().size() : 4)];
    if (Is(10)) model[random_() % model.size()] ^= static_cast<char>(1 << random_() % 8);
    if (Is(20)) model.resize(random_() % model.size());
    return model;
  }

  // Never a number that may be somebody else's file: that would be read and written as memory.
  int32_t PickUnfitFile() {
    const auto& files = TheSurroundings().unfit_files;
    if (Is(2)) return files[random_() % files.size()];
    const auto number = static_cast<int32_t>(random_() % 1000);
    // No process has so many files.
    return Is(2) ? -1 - number : INT32_MAX - number;
  }

  onnxTensorDescriptorV1 Describe(const char* name, uint64_t rows) {
    Tensor& tensor = tensors_.emplace_back();
    tensor.shape = {rows, 4, 1};
    onnxTensorDescriptorV1 descriptor{};
    descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
    descriptor.name = name;
    descriptor.dataType = ONNXIFI_DATATYPE_FLOAT32;
    descriptor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
    descriptor.dimensions = 2;
    descriptor.shape = tensor.shape.data();
    descriptor.buffer = reinterpret_cast<uintptr_t>(tensor.values.data());
    if (rows == Surroundings::kManyRows) {
      // Used in place where it lies at a multiple of 16, and not over an input.
      const bool is_over =
          name[0] == 'y' && Is(8) && tensors_.size() > 1 && tensors_.end()[-2].many != nullptr;
      tensor.many.reset(static_cast<float*>(std::calloc(4 * rows + 8, sizeof(float))));
      const float* const many = is_over ? tensors_.end()[-2].many.get() : tensor.many.get();
      descriptor.buffer = reinterpret_cast<uintptr_t>(many + (Is(2) ? 0 : random_() % 9));
    } else if (Is(6)) {
      tensor.file = TellOfFakeMemory(TheSurroundings().file, Surroundings::kFileBytes,
                                     random_() % 3 * 64, 1024 + random_() % 2 * 4096);
      if (Is(8)) tensor.file.fd = PickUnfitFile();
      if (Is(8)) tensor.file.memory_type_index = static_cast<uint32_t>(random_() % 40);
      if (Is(8)) tensor.file.struct_size = random_() % 100;
      descriptor.memoryType = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
      descriptor.buffer = reinterpret_cast<uintptr_t>(&tensor.file);
    }
    switch (random_() % 60) {
      case 0:
        descriptor.tag = static_cast<int32_t>(random_());
        break;
      case 1:
        descriptor.name = nullptr;
        break;
      case 2:
        descriptor.name = "z";
        break;
      case 3:
        descriptor.dataType = random_() % 30;
        break;
      case 4:
        // Never the host's: the structure of a file has no room for a tensor.
        descriptor.memoryType = 1 + random_() % 63;
        break;
      case 5:
        descriptor.dimensions = static_cast<uint32_t>(random_() % 4);
        break;
      case 6:
        descriptor.shape = nullptr;
        break;
      case 7:
        descriptor.buffer = 0;
        break;
      case 8:
        tensor.shape[random_() % 2] = random_() % 2 == 0 ? 0 : random_();
        break;
      default:
        break;
    }
    return descriptor;
  }

  void MakeBackend() {
    std::vector<uint64_t> properties = {ONNXIFI_BACKEND_PROPERTY_NONE};
    if (Is(10)) properties.insert(properties.begin(), {random_() % 10, random_() % 10});
    const bool is_callers = Is(3) && caller_.is_open();
    if (is_callers) {
      properties.insert(properties.begin(), {ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE,
                                             reinterpret_cast<uintptr_t>(&caller_.told())});
    }
    onnxBackend backend = nullptr;
    const onnxStatus status =
        onnxInitBackend(Pick(ids_), !is_callers && Is(2) ? nullptr : properties.data(),
                        Is(50) ? nullptr : &backend);
    if (Check(status, "onnxInitBackend") == ONNXIFI_STATUS_SUCCESS)
      backends_.live.push_back(backend);
  }

  void MakeGraph() {
    const std::string model = PickModel();
    std::vector<uint64_t> properties = {ONNXIFI_GRAPH_PROPERTY_NONE};
    if (Is(4)) properties.insert(properties.begin(), {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 1});
    if (Is(20)) properties.insert(properties.begin(), {random_() % 100, random_() % 3});
    onnxGraph graph = nullptr;
    const onnxStatus status =
        onnxInitGraph(Pick(backends_), properties.data(), Is(50) ? 0 : model.size(),
                      Is(50) ? nullptr : model.data(), 0, nullptr, Is(50) ? nullptr : &graph);
    Check(status, "onnxInitGraph");
    if (graph != nullptr) graphs_.live.push_back(graph);
  }

  void MakeEvent() {
    onnxEvent event = nullptr;
    const onnxStatus status = onnxInitEvent(Pick(backends_), Is(50) ? nullptr : &event);
    if (Check(status, "onnxInitEvent") != ONNXIFI_STATUS_SUCCESS) return;
    events_.live.push_back(event);
    unsignalled_.push_back(event);
  }

  void Signal(onnxEvent event) {
    if (Check(onnxSignalEvent(event), "onnxSignalEvent") == ONNXIFI_STATUS_SUCCESS) {
      std::erase(unsignalled_, event);
    }
  }

  onnxMemoryFenceV1 Fence(onnxEvent event) {
    onnxMemoryFenceV1 fence{};
    fence.tag = Is(50) ? static_cast<int32_t>(random_()) : ONNXIFI_TAG_MEMORY_FENCE_V1;
    fence.type = Is(50)  ? random_() % 5
                 : Is(3) ? ONNXIFI_SYNCHRONIZATION_IMPLICIT
                         : ONNXIFI_SYNCHRONIZATION_EVENT;
    fence.event = event;
    return fence;
  }

  void Run(bool is_bound) {
    onnxMemoryFenceV1 in = Fence(Pick(events_));
    onnxMemoryFenceV1 out = Fence(nullptr);
    // It waits in the call for earlier runs of the graph, and they for these.
    if (out.type == ONNXIFI_SYNCHRONIZATION_IMPLICIT) SignalAll();
    onnxStatus status = ONNXIFI_STATUS_SUCCESS;
    if (is_bound) {
      status = onnxRunGraph(Pick(graphs_), Is(50) ? nullptr : &in, Is(50) ? nullptr : &out);
    } else {
      const uint64_t rows = PickRows();
      const onnxTensorDescriptorV1 x = Describe("x", rows);
      const onnxTensorDescriptorV1 y = Describe("y", rows);
      status = onnxSetIOAndRunGraph(Pick(graphs_), Is(30) ? 0 : 1, Is(30) ? nullptr : &x,
                                    Is(30) ? 0 : 1, Is(30) ? nullptr : &y, &out);
    }
    const bool has_run = Check(status, "onnxRunGraph") == ONNXIFI_STATUS_SUCCESS;
    if (has_run && out.type == ONNXIFI_SYNCHRONIZATION_IMPLICIT) ++good_["a run in a shared queue"];
    if (has_run && out.event != nullptr) {
      events_.live.push_back(out.event);
    }
  }

  uint64_t PickRows() { return Is(6) ? Surroundings::kManyRows : 1 + random_() % 9; }

  void Bind() {
    const uint64_t rows = PickRows();
    const onnxTensorDescriptorV1 x = Describe("x", rows);
    const onnxTensorDescriptorV1 y = Describe("y", Is(20) ? rows + 1 : rows);
    Check(onnxSetGraphIO(Pick(graphs_), Is(30) ? 0 : 1, Is(30) ? nullptr : &x, Is(30) ? 0 : 1,
                         Is(30) ? nullptr : &y),
          "onnxSetGraphIO");
  }

  void SignalAll() {
    for (const onnxEvent event : std::vector<onnxEvent>(unsignalled_)) Signal(event);
  }

  void Wait() {
    // What nobody signals is not waited for.
    SignalAll();
    Check(onnxWaitEvent(Pick(events_)), "onnxWaitEvent");
  }

  void ReleaseGraph() {
    // It waits for its runs, and they for these.
    SignalAll();
    Release(graphs_, &onnxReleaseGraph);
  }

  void Ask() {
    std::array<char, 256> room{};
    size_t size = random_() % room.size();
    Check(onnxGetBackendInfo(Pick(ids_), static_cast<onnxBackendInfo>(random_() % 40),
                             Is(4) ? nullptr : room.data(), Is(20) ? nullptr : &size),
          "onnxGetBackendInfo");
    const std::string model = PickModel();
    Check(onnxGetBackendCompatibility(Pick(ids_), model.size(), Is(20) ? nullptr : model.data()),
          "onnxGetBackendCompatibility");
  }

  void Call() {
    switch (random_() % 16) {
      case 0:
        return Ask();
      case 1:
        return MakeEvent();
      case 2: {
        onnxEventState state = 0;
        Check(onnxGetEventState(Pick(events_), Is(20) ? nullptr : &state), "onnxGetEventState");
        return;
      }
      case 3:
        return Signal(Pick(events_));
      case 4:
        return Wait();
      case 5: {
        const onnxEvent event = Pick(events_);
        if (Check(onnxReleaseEvent(event), "onnxReleaseEvent") != ONNXIFI_STATUS_SUCCESS) return;
        std::erase(events_.live, event);
        std::erase(unsignalled_, event);
        events_.gone.push_back(event);
        return;
      }
      case 6:
      case 7:
        return Bind();
      case 8:
      case 9:
        return Run(/*is_bound=*/true);
      case 10:
      case 11:
        return Run(/*is_bound=*/false);
      case 12:
        return Is(4) ? Release(ids_, &onnxReleaseBackendID) : MakeGraph();
      case 13:
        return Is(3) ? Release(backends_, &onnxReleaseBackend) : MakeGraph();
      case 14:
        return Is(2) ? ReleaseGraph() : MakeBackend();
      default:
        return backends_.live.empty() ? MakeBackend() : MakeGraph();
    }
  }

  std::mt19937_64 random_;
  std::map<std::string, int> good_;
  const bool has_faults_;
  FakeCaller caller_;
  Handles<onnxBackendID> ids_;
  Handles<onnxBackend> backends_;
  Handles<onnxGraph> graphs_;
  Handles<onnxEvent> events_;
  std::vector<onnxEvent> unsignalled_;  // of the caller's
  std::deque<Tensor> tensors_;
};

class SequenceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "vulkan_sequence.XXXXXX").string();
    ASSERT_EQ(setenv("ONNXIFI_CACHE_DIR", mkdtemp(name.data()), 1), 0);
    FakeDriver::Reset();
    FakeDriver::SetDevices({UnifiedDevice()});
    size_t count = 0;
    ASSERT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
    ASSERT_EQ(count, 1U);
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    Surroundings& surroundings = TheSurroundings();
    ASSERT_EQ(FakeDriver::GetApi().CreateInstance(&info, nullptr, &surroundings.instance),
              VK_SUCCESS);
    surroundings.file = MakeFakeMemoryFile(Surroundings::kFileBytes);
    auto& unfit = surroundings.unfit_files;
    ASSERT_EQ(pipe2(unfit.data(), O_CLOEXEC), 0);
    unfit[2] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unfit[3] = MakeFakeMemoryFile(Surroundings::kFileBytes / 2);
    ASSERT_EQ(std::ranges::count(unfit, -1), 0);
    ASSERT_EQ(FakeDriver::LiveObjects(), kInstances);
  }
  static void TearDownTestSuite() { fs::remove_all(std::getenv("ONNXIFI_CACHE_DIR")); }

  // The plugin's and the callers'.
  static constexpr int64_t kInstances = 2;

  static void ExpectNothingLeft() {
    // A thread of the backend's may be about to end.
    for (int k = 0; k < 5000 && FakeDriver::LiveObjects() > kInstances; ++k) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(FakeDriver::LiveObjects(), kInstances);
    EXPECT_THAT(FakeDriver::Misuses(), testing::IsEmpty());
    FakeDriver::Recover();
  }
};

void PlayAll(uint64_t count, bool has_faults, const std::function<void()>& expect_nothing_left) {
  const uint64_t first = Number("ONNXIFI_TEST_SEED", 0);
  std::map<std::string, uint64_t> good;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    {
      Sequence sequence(seed, has_faults);
      sequence.Play();
      for (const auto& [function, calls] : sequence.good()) good[function] += calls;
    }
    expect_nothing_left();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  // Sequences of calls that are all refused would say nothing.
  for (const char* const function : {"onnxInitGraph", "onnxRunGraph", "onnxWaitEvent"}) {
    EXPECT_GT(good[function], count / 10) << function;
  }
  EXPECT_GT(good["a run in a shared queue"], count / 100);
}

TEST_F(SequenceTest, WithoutFaults) {
  PlayAll(Number("ONNXIFI_TEST_SEQUENCES", 1000), false, &ExpectNothingLeft);
}

TEST_F(SequenceTest, WithFaults) {
  PlayAll(Number("ONNXIFI_TEST_SEQUENCES", 1000), true, &ExpectNothingLeft);
}

TEST_F(SequenceTest, OfSeveralThreads) {
  const uint64_t rounds = Number("ONNXIFI_TEST_SEQUENCES", 200) / 4;
  const uint64_t first = Number("ONNXIFI_TEST_SEED", 0);
  for (uint64_t round = 0; round < rounds && !HasFailure(); ++round) {
    std::vector<std::thread> threads;
    for (uint64_t k = 0; k < 4; ++k) {
      threads.emplace_back([&, k] { Sequence(first + round * 4 + k, true).Play(); });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectNothingLeft();
  }
}

}  // namespace
}  // namespace onnxifi::vulkan
