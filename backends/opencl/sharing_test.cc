// SPDX-License-Identifier: Apache-2.0
//
// Callers who use OpenCL themselves: their context, buffers, events and queue, through the exported
// interface, of the plugin and of libonnxifi in front of it. Expected values are those of the
// reference plugin. Skipped where no platform has a device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/plugin/testing/digits.h"
#include "backends/core/plugin/testing/nonzero_model.h"
#include "backends/opencl/api.h"

namespace onnxifi::opencl {
namespace {

using plugin::BothLibraries;
using plugin::DigitsModel;
using plugin::Expected;
using plugin::Images;
using plugin::ImageTensor;
using plugin::IsCloseTo;
using plugin::kBatch;
using plugin::kClasses;
using plugin::kPixels;
using plugin::LibraryName;
using plugin::NonZeroModel;
using plugin::ScoreTensor;
using testing::HasSubstr;

// A caller with a context and a queue of its own, and the plugin as `GetParam()` names it.
class SharingTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto library = Library::Open(GetParam());
    ASSERT_TRUE(library.ok()) << library.error().Text();
    library_ = std::make_unique<Library>(*std::move(library));
    ASSERT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, GetParam(), &functions_), 1);
    auto device = library_->FindDevice("opencl");
    if (!device.ok()) GTEST_SKIP() << device.error().Text();
    device_ = std::make_unique<Device>(*device);
    // The plugin has devices, so there is a loader.
    api_ = *LoadApi(kLoaderLibrary);
    context_ = MakeContext();
    queue_ = MakeQueue(context_.get());
  }

  template <typename T>
  T Id(onnxBackendInfo query) const {
    return reinterpret_cast<T>(static_cast<uintptr_t>(*device_->NumberInfo(query)));
  }

  Handle<cl_context> MakeContext() const {
    const cl_device_id device = Id<cl_device_id>(ONNXIFI_BACKEND_OPENCL_DEVICE_ID);
    const cl_context_properties properties[] = {
        CL_CONTEXT_PLATFORM,
        reinterpret_cast<cl_context_properties>(
            Id<cl_platform_id>(ONNXIFI_BACKEND_OPENCL_PLATFORM_ID)),
        0};
    cl_int result = CL_SUCCESS;
    Handle<cl_context> context(
        api_.CreateContext(properties, 1, &device, nullptr, nullptr, &result), api_.ReleaseContext);
    EXPECT_EQ(result, CL_SUCCESS);
    return context;
  }

  Handle<cl_command_queue> MakeQueue(cl_context context,
                                     cl_command_queue_properties properties = 0) const {
    cl_int result = CL_SUCCESS;
    Handle<cl_command_queue> queue(
        api_.CreateCommandQueue(context, Id<cl_device_id>(ONNXIFI_BACKEND_OPENCL_DEVICE_ID),
                                properties, &result),
        api_.ReleaseCommandQueue);
    EXPECT_EQ(result, CL_SUCCESS);
    return queue;
  }

  Handle<cl_mem> MakeBuffer(cl_context context, size_t floats,
                            cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    cl_int result = CL_SUCCESS;
    Handle<cl_mem> buffer(
        api_.CreateBuffer(context, flags, floats * sizeof(float), nullptr, &result),
        api_.ReleaseMemObject);
    EXPECT_EQ(result, CL_SUCCESS);
    return buffer;
  }

  void Write(cl_mem buffer, const std::vector<float>& values) const {
    ASSERT_EQ(
        api_.EnqueueWriteBuffer(queue_.get(), buffer, CL_TRUE, 0, values.size() * sizeof(float),
                                values.data(), 0, nullptr, nullptr),
        CL_SUCCESS);
  }
  std::vector<float> Read(cl_mem buffer, size_t floats, size_t first = 0) const {
    std::vector<float> values(floats);
    EXPECT_EQ(api_.EnqueueReadBuffer(queue_.get(), buffer, CL_TRUE, first * sizeof(float),
                                     floats * sizeof(float), values.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }

  static uint64_t Number(void* handle) { return reinterpret_cast<uintptr_t>(handle); }

  // With the caller's context.
  Backend InitBackend() const {
    const uint64_t properties[] = {ONNXIFI_BACKEND_OPENCL_CONTEXT, Number(context_.get())};
    auto backend = device_->InitBackend(properties);
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }
  // With its queue too.
  Backend InitBackendOnQueue() const {
    const uint64_t properties[] = {ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE, Number(queue_.get())};
    auto backend = device_->InitBackend(properties);
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }

  Api api_;
  // For what the wrapper has no words for; the same library, which stays.
  struct onnxifi_library functions_ = {};
  std::unique_ptr<Library> library_;
  std::unique_ptr<Device> device_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
};

TEST_P(SharingTest, QueriesTellWhatIsTaken) {
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES),
            uint64_t{ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER});
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES),
            uint64_t{ONNXIFI_SYNCHRONIZATION_IMPLICIT});
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_INIT_PROPERTIES),
            ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE);
  // The device is one of the platform's.
  cl_platform_id platform = nullptr;
  ASSERT_EQ(
      api_.GetDeviceInfo(Id<cl_device_id>(ONNXIFI_BACKEND_OPENCL_DEVICE_ID), CL_DEVICE_PLATFORM,
                         sizeof(platform), static_cast<void*>(&platform), nullptr),
      CL_SUCCESS);
  EXPECT_EQ(platform, Id<cl_platform_id>(ONNXIFI_BACKEND_OPENCL_PLATFORM_ID));
}

TEST_P(SharingTest, BuffersAreReadAndWrittenWithoutACopy) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
  // Longer than needed: the rest is to stay as it is.
  const Handle<cl_mem> scores = MakeBuffer(context_.get(), kBatch * kClasses + 5);
  Write(scores.get(), std::vector<float>(kBatch * kClasses + 5, 77));
  const auto bound =
      graph->SetIO(std::vector{ImageTensor(images.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                   std::vector{ScoreTensor(scores.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  onnxGraphCounters first = {};
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const std::vector<float> values = Images(seed);
    Write(images.get(), values);
    const auto ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    EXPECT_THAT(Read(scores.get(), kBatch * kClasses), IsCloseTo(Expected(values)));
    if (seed == 1) first = *graph->Counters();
  }
  EXPECT_EQ(Read(scores.get(), 5, kBatch * kClasses), std::vector<float>(5, 77));
  const onnxGraphCounters last = *graph->Counters();
  EXPECT_EQ(last.runs, 4U);
  EXPECT_EQ(last.copies, 0U);
  EXPECT_EQ(last.waits, 0U);
  EXPECT_EQ(last.allocations, first.allocations);
  EXPECT_EQ(last.kernel_builds, first.kernel_builds);
}

TEST_P(SharingTest, HostMemoryIsCopiedOnceEachWay) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(5);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  for (uint64_t runs = 1; runs <= 3; ++runs) {
    ASSERT_TRUE(graph->RunAndWait().ok());
    EXPECT_EQ(graph->Counters()->copies, 2 * runs);
  }
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
  EXPECT_EQ(graph->Counters()->waits, 0U);
  // One side each.
  const Handle<cl_mem> scores = MakeBuffer(context_.get(), kBatch * kClasses);
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(values.data())},
                          std::vector{ScoreTensor(scores.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)})
                  .ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_EQ(graph->Counters()->copies, 7U);
  EXPECT_THAT(Read(scores.get(), kBatch * kClasses), IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, ABufferOutlivesItsReleaseWhileItIsBound) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const std::vector<float> values = Images(6);
  std::vector<float> results(kBatch * kClasses);
  {
    const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
    Write(images.get(), values);
    ASSERT_TRUE(
        graph
            ->SetIO(std::vector{ImageTensor(images.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                    std::vector{ScoreTensor(results.data())})
            .ok());
  }
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, UnfitBuffersAreRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
  const Handle<cl_mem> scores = MakeBuffer(context_.get(), kBatch * kClasses);
  const auto bind = [&](void* in, void* out) {
    return graph->SetIO(std::vector{ImageTensor(in, ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                        std::vector{ScoreTensor(out, ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)});
  };
  const auto expect = [](const Outcome& outcome, const std::vector<std::string>& words) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
    for (const std::string& word : words) EXPECT_THAT(outcome.error().sentence, HasSubstr(word));
  };
  const Handle<cl_mem> small = MakeBuffer(context_.get(), kBatch * kPixels - 1);
  expect(bind(small.get(), scores.get()), {"764 bytes", "needs 768", "image"});
  const Handle<cl_mem> short_scores = MakeBuffer(context_.get(), 1);
  expect(bind(images.get(), short_scores.get()), {"4 bytes", "needs 120", "scores"});
  expect(bind(nullptr, scores.get()), {"NULL", "image"});
  const Handle<cl_context> other = MakeContext();
  const Handle<cl_mem> foreign = MakeBuffer(other.get(), kBatch * kPixels);
  expect(bind(foreign.get(), scores.get()), {"another context", "image"});
  const Handle<cl_mem> read_only = MakeBuffer(context_.get(), kBatch * kClasses, CL_MEM_READ_ONLY);
  expect(bind(images.get(), read_only.get()), {"only read", "scores"});
  const Handle<cl_mem> write_only = MakeBuffer(context_.get(), kBatch * kPixels, CL_MEM_WRITE_ONLY);
  expect(bind(write_only.get(), scores.get()), {"only write", "image"});
  // What was refused is forgotten, and what fits still runs.
  EXPECT_FALSE(graph->RunAndWait().ok());
  ASSERT_TRUE(bind(images.get(), scores.get()).ok());
  const std::vector<float> values = Images(7);
  Write(images.get(), values);
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(Read(scores.get(), kBatch * kClasses), IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, WithoutTheCallersContextItsBuffersAreOfAnother) {
  const auto backend = device_->InitBackend();
  ASSERT_TRUE(backend.ok());
  const auto graph = backend->InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  const auto bound =
      graph->SetIO(std::vector{ImageTensor(images.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                   std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_THAT(bound.error().sentence, HasSubstr("ONNXIFI_BACKEND_OPENCL_CONTEXT"));
}

TEST_P(SharingTest, UnfitContextsAndQueuesAreRefusedWithTheReason) {
  const auto expect = [&](std::vector<uint64_t> properties, const char* word) {
    const auto backend = device_->InitBackend(properties);
    ASSERT_FALSE(backend.ok()) << word;
    EXPECT_EQ(backend.error().status, ONNXIFI_STATUS_INVALID_PROPERTY) << word;
    EXPECT_THAT(backend.error().sentence, HasSubstr(word));
  };
  expect({ONNXIFI_BACKEND_OPENCL_CONTEXT, 0}, "context to share is NULL");
  expect({ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE, 0}, "queue to share is NULL");
  const Handle<cl_context> other = MakeContext();
  expect({ONNXIFI_BACKEND_OPENCL_CONTEXT, Number(other.get()),
          ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE, Number(queue_.get())},
         "another context");
  const Handle<cl_command_queue> loose =
      MakeQueue(context_.get(), CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  expect({ONNXIFI_SDK_BACKEND_PROPERTY_OPENCL_QUEUE, Number(loose.get())}, "out of order");
  EXPECT_TRUE(device_->InitBackend().ok());
}

TEST_P(SharingTest, RunsInASharedQueueAreOrderedByIt) {
  const Backend backend = InitBackendOnQueue();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
  const Handle<cl_mem> scores = MakeBuffer(context_.get(), kBatch * kClasses);
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(images.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                          std::vector{ScoreTensor(scores.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)})
                  .ok());
  constexpr uint32_t kRuns = 6;
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> results(kRuns, std::vector<float>(kBatch * kClasses));
  for (uint32_t run = 0; run < kRuns; ++run) values.push_back(Images(20 + run));
  // Nobody waits before the end.
  for (uint32_t run = 0; run < kRuns; ++run) {
    ASSERT_EQ(api_.EnqueueWriteBuffer(queue_.get(), images.get(), CL_FALSE, 0,
                                      values[run].size() * sizeof(float), values[run].data(), 0,
                                      nullptr, nullptr),
              CL_SUCCESS);
    const auto queued = graph->RunInSharedQueue();
    ASSERT_TRUE(queued.ok()) << queued.error().Text();
    ASSERT_EQ(api_.EnqueueReadBuffer(queue_.get(), scores.get(), CL_FALSE, 0,
                                     results[run].size() * sizeof(float), results[run].data(), 0,
                                     nullptr, nullptr),
              CL_SUCCESS);
  }
  ASSERT_EQ(api_.Finish(queue_.get()), CL_SUCCESS);
  for (uint32_t run = 0; run < kRuns; ++run) {
    EXPECT_THAT(results[run], IsCloseTo(Expected(values[run]))) << run;
  }
  EXPECT_EQ(graph->Counters()->copies, 0U);
  EXPECT_EQ(graph->Counters()->waits, 0U);
}

TEST_P(SharingTest, AnImplicitInputAndAnEventForTheEndGoTogether) {
  const Backend backend = InitBackendOnQueue();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const Handle<cl_mem> images = MakeBuffer(context_.get(), kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(images.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)},
                          std::vector{ScoreTensor(results.data())})
                  .ok());
  const std::vector<float> values = Images(30);
  ASSERT_EQ(
      api_.EnqueueWriteBuffer(queue_.get(), images.get(), CL_FALSE, 0,
                              values.size() * sizeof(float), values.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  onnxMemoryFenceV1 input = {};
  input.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  input.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  onnxMemoryFenceV1 output = input;
  output.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  ASSERT_EQ(functions_.onnxRunGraph(graph->handle(), &input, &output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(functions_.onnxWaitEvent(output.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
  EXPECT_EQ(functions_.onnxReleaseEvent(output.event), ONNXIFI_STATUS_SUCCESS);
  // The other way round nothing could be put into the queue.
  const auto event = backend.NewEvent();
  onnxMemoryFenceV1 start = input;
  start.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  start.event = event->handle();
  output.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  EXPECT_EQ(functions_.onnxRunGraph(graph->handle(), &start, &output),
            ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
}

TEST_P(SharingTest, ImplicitFencesNeedASharedQueue) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(31);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  const auto refused = graph->RunInSharedQueue();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
  EXPECT_FALSE(refused.error().sentence.empty());
  EXPECT_TRUE(graph->RunAndWait().ok());
}

// That an event which ends in an error fails the run is tested on the fake driver: PoCL calls
// nobody back then.
TEST_P(SharingTest, RunsWaitForEventsOfTheCallers) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  for (uint32_t seed = 40; seed < 43; ++seed) {
    cl_int result = CL_SUCCESS;
    const Handle<cl_event> event(api_.CreateUserEvent(context_.get(), &result), api_.ReleaseEvent);
    ASSERT_EQ(result, CL_SUCCESS);
    const auto imported = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_OPENCL, Number(event.get()));
    ASSERT_TRUE(imported.ok()) << imported.error().Text();
    const auto output = graph->Run(*imported);
    ASSERT_TRUE(output.ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(*output->IsSignalled());
    const std::vector<float> images = Images(seed);
    std::copy(images.begin(), images.end(), values.begin());
    ASSERT_EQ(api_.SetUserEventStatus(event.get(), CL_COMPLETE), CL_SUCCESS);
    ASSERT_TRUE(output->Wait().ok());
    EXPECT_THAT(results, IsCloseTo(Expected(images)));
  }
}

TEST_P(SharingTest, AnImportedEventOutlivesItsHandles) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(41);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  cl_int result = CL_SUCCESS;
  Handle<cl_event> event(api_.CreateUserEvent(context_.get(), &result), api_.ReleaseEvent);
  auto output = [&] {
    const auto imported = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_OPENCL, Number(event.get()));
    return graph->Run(*imported);
  }();
  ASSERT_TRUE(output.ok());
  ASSERT_EQ(api_.SetUserEventStatus(event.get(), CL_COMPLETE), CL_SUCCESS);
  EXPECT_TRUE(output->Wait().ok());
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, WorkOfTheCallersWaitsForRuns) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values = Images(50);
  const Handle<cl_mem> scores = MakeBuffer(context_.get(), kBatch * kClasses);
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(values.data())},
                          std::vector{ScoreTensor(scores.get(), ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)})
                  .ok());
  auto input = backend.NewEvent();
  const auto output = graph->Run(*input);
  ASSERT_TRUE(output.ok());
  const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_OPENCL);
  ASSERT_TRUE(exported.ok()) << exported.error().Text();
  cl_event wait = reinterpret_cast<cl_event>(static_cast<uintptr_t>(*exported));
  const Handle<cl_event> owned(wait, api_.ReleaseEvent);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_EQ(
      api_.EnqueueReadBuffer(queue_.get(), scores.get(), CL_FALSE, 0,
                             results.size() * sizeof(float), results.data(), 1, &wait, nullptr),
      CL_SUCCESS);
  ASSERT_EQ(api_.Flush(queue_.get()), CL_SUCCESS);
  ASSERT_TRUE(input->Signal().ok());
  ASSERT_EQ(api_.Finish(queue_.get()), CL_SUCCESS);
  EXPECT_THAT(results, IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, TheExportedEventOfARunThatFailsEndsInAnError) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  std::vector<float> values(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(
      graph
          ->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(results.data())})
          .ok());
  Handle<cl_event> owned;
  {
    const auto input = backend.NewEvent();
    const auto output = graph->Run(*input);
    ASSERT_TRUE(output.ok());
    const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_OPENCL);
    ASSERT_TRUE(exported.ok());
    owned = {reinterpret_cast<cl_event>(static_cast<uintptr_t>(*exported)), api_.ReleaseEvent};
    // The input event goes unsignalled.
  }
  cl_int state = CL_SUBMITTED;
  for (int k = 0; k < 1000 && state > CL_COMPLETE; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(api_.GetEventInfo(owned.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                                &state, nullptr),
              CL_SUCCESS);
  }
  EXPECT_LT(state, 0);
}

TEST_P(SharingTest, UnfitEventsAreRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const auto import = device_->FindFunction<onnxImportEventFunction>("onnxImportEvent");
  const auto export_event = device_->FindFunction<onnxExportEventFunction>("onnxExportEvent");
  ASSERT_NE(import, nullptr);
  ASSERT_NE(export_event, nullptr);
  const Handle<cl_context> other = MakeContext();
  cl_int result = CL_SUCCESS;
  const Handle<cl_event> foreign(api_.CreateUserEvent(other.get(), &result), api_.ReleaseEvent);
  onnxNativeEvent native = {};
  native.struct_size = sizeof(native);
  native.kind = ONNXIFI_SDK_NATIVE_EVENT_OPENCL;
  native.handle = Number(foreign.get());
  onnxEvent event = &native;
  EXPECT_EQ(import(backend.handle(), &native, &event), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(event, nullptr);
  native.handle = 0;
  EXPECT_EQ(import(backend.handle(), &native, &event), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(import(backend.handle(), &native, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(import(backend.handle(), nullptr, &event), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(import(nullptr, &native, &event), ONNXIFI_STATUS_INVALID_BACKEND);
  native.kind = 9;
  EXPECT_EQ(import(backend.handle(), &native, &event), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  const auto own = backend.NewEvent();
  EXPECT_EQ(export_event(own->handle(), &native), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  native.kind = ONNXIFI_SDK_NATIVE_EVENT_OPENCL;
  EXPECT_EQ(export_event(nullptr, &native), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(export_event(own->handle(), nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  native.struct_size = sizeof(size_t);
  EXPECT_EQ(import(backend.handle(), &native, &event), ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(export_event(own->handle(), &native), ONNXIFI_STATUS_INVALID_SIZE);
}

TEST_P(SharingTest, SharedMemoryIsTheHostsAndTheDevicesWithoutACopy) {
  const Backend backend = *device_->InitBackend();
  const auto images = backend.AllocateSharedMemory(kBatch * kPixels * sizeof(float));
  if (!images.ok() && images.error().status == ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE) {
    GTEST_SKIP() << images.error().Text();
  }
  ASSERT_TRUE(images.ok()) << images.error().Text();
  const auto scores = backend.AllocateSharedMemory(kBatch * kClasses * sizeof(float));
  ASSERT_TRUE(scores.ok()) << scores.error().Text();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(images->data()) % 64, 0U);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const Outcome bound = graph->SetIO(
      std::vector{images->MakeTensor("image", ONNXIFI_DATATYPE_FLOAT32, {kBatch, 1, 8, 8})},
      std::vector{scores->MakeTensor("scores", ONNXIFI_DATATYPE_FLOAT32, {kBatch, kClasses})});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  for (uint32_t seed = 31; seed <= 34; ++seed) {
    const std::vector<float> values = Images(seed);
    std::ranges::copy(values, static_cast<float*>(images->data()));
    const auto ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    const auto* results = static_cast<const float*>(scores->data());
    EXPECT_THAT(std::vector<float>(results, results + kBatch * kClasses),
                IsCloseTo(Expected(values)));
  }
  EXPECT_EQ(graph->Counters()->copies, 0U);
}

TEST_P(SharingTest, UnfitRequestsForSharedMemoryAreRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const Backend other = InitBackend();
  const auto allocate =
      device_->FindFunction<onnxAllocateSharedMemoryFunction>("onnxAllocateSharedMemory");
  const auto release =
      device_->FindFunction<onnxReleaseSharedMemoryFunction>("onnxReleaseSharedMemory");
  ASSERT_NE(allocate, nullptr);
  ASSERT_NE(release, nullptr);
  onnxSharedMemory memory = {};
  memory.struct_size = sizeof(memory);
  EXPECT_EQ(allocate(nullptr, 64, &memory), ONNXIFI_STATUS_INVALID_BACKEND);
  EXPECT_EQ(allocate(backend.handle(), 64, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(allocate(backend.handle(), 0, &memory), ONNXIFI_STATUS_INVALID_SIZE);
  memory.struct_size = sizeof(size_t);
  EXPECT_EQ(allocate(backend.handle(), 64, &memory), ONNXIFI_STATUS_INVALID_SIZE);
  memory.struct_size = sizeof(memory);
  memory.address = 5;
  // More than there is, in bytes that a number of this size cannot have, and that one can.
  for (const uint64_t size_bytes : {~uint64_t{0}, uint64_t{1} << 50}) {
    EXPECT_NE(allocate(backend.handle(), size_bytes, &memory), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(memory.address, 0U);
  }
  EXPECT_EQ(release(backend.handle(), 0), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(release(nullptr, 64), ONNXIFI_STATUS_INVALID_BACKEND);
  const onnxStatus status = allocate(backend.handle(), 64, &memory);
  if (status == ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE) GTEST_SKIP() << "Nothing is shared.";
  ASSERT_EQ(status, ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(release(other.handle(), memory.address), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(release(backend.handle(), memory.address + 1), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(release(backend.handle(), memory.address), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(release(backend.handle(), memory.address), ONNXIFI_STATUS_INVALID_POINTER);
  // What is not released goes with its backend.
  EXPECT_EQ(allocate(backend.handle(), 64, &memory), ONNXIFI_STATUS_SUCCESS);
}

TEST_P(SharingTest, WaitsForNumbersOfTheDeviceAreCounted) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(NonZeroModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<float> values = {0, 1, 0, 2, 3, 0, 4};
  std::vector<int64_t> positions(7, -1);
  const Tensor x = {"x", ONNXIFI_DATATYPE_FLOAT32, {7}, values.data()};
  const Tensor y = {"y", ONNXIFI_DATATYPE_INT64, {1, 7}, positions.data()};
  ASSERT_TRUE(graph->SetIO(std::vector{x}, std::vector{y}).ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_EQ(positions, (std::vector<int64_t>{1, 3, 4, 6, -1, -1, -1}));
  EXPECT_GT(graph->Counters()->waits, 0U);
}

INSTANTIATE_TEST_SUITE_P(Libraries, SharingTest, BothLibraries(), LibraryName);

// What WithoutADriverThereAreNoDevicesAndOneSentence starts, with a loader that finds no driver.
TEST(NoDriver, DISABLED_SaysWhatThereIs) {
  const auto library = Library::Open(ONNXIFI_TEST_LIBRARY);
  ASSERT_TRUE(library.ok());
  const auto report = library->DiscoveryReport();
  ASSERT_TRUE(report.ok());
  for (const DiscoveryRecord& record : *report) {
    if (record.plugin != "opencl") continue;
    std::printf("verdict %u, devices %u: %s\n", record.verdict, record.device_count,
                record.detail.c_str());
  }
  std::printf("null is %s\n", library->FindDevice("null").ok() ? "there" : "missing");
}

TEST(NoDriver, WithoutADriverThereAreNoDevicesAndOneSentence) {
  const std::string command =
      "OCL_ICD_VENDORS=/nonexistent '" + std::filesystem::read_symlink("/proc/self/exe").string() +
      "' --gtest_also_run_disabled_tests --gtest_filter=NoDriver.DISABLED_SaysWhatThereIs 2>&1";
  FILE* const child = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 256> part{};
  while (fgets(part.data(), static_cast<int>(part.size()), child) != nullptr) output += part.data();
  EXPECT_EQ(pclose(child), 0) << output;
  EXPECT_THAT(output, HasSubstr("verdict 0, devices 0: OpenCL cannot list its platforms: no"
                                " platform.\n"));
  EXPECT_THAT(output, HasSubstr("null is there\n"));
}

}  // namespace
}  // namespace onnxifi::opencl
