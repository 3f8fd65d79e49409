// SPDX-License-Identifier: Apache-2.0
//
// The exported functions beyond their status table: lifetimes, order of checks, runs and fences,
// and the extensions, with the fake provider behind them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/core/abi/testing/exports_fixture.h"

namespace onnxifi::abi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- IDs and handles ----

TEST(BackendIds, AreTheSameAtEveryEnumerationAndAfterRelease) {
  const std::vector<onnxBackendID> first = ListIds();
  for (onnxBackendID id : first) EXPECT_EQ(onnxReleaseBackendID(id), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(ListIds(), first);
  EXPECT_NE(first[0], first[1]);
}

TEST(BackendIds, AcceptAnyCountWithoutAnArray) {
  size_t count = std::numeric_limits<size_t>::max();
  EXPECT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
  EXPECT_EQ(count, 2u);
}

TEST(BackendIds, StoreNothingInAnArrayThatIsTooSmall) {
  onnxBackendID id = nullptr;
  size_t count = 1;
  EXPECT_EQ(onnxGetBackendIDs(&id, &count), ONNXIFI_STATUS_FALLBACK);
  EXPECT_EQ(id, nullptr);
  EXPECT_EQ(count, 2u);
}

TEST(Handles, OfAnotherKindAreInvalid) {
  Objects objects;
  EXPECT_EQ(onnxReleaseBackend(objects.id), ONNXIFI_STATUS_INVALID_BACKEND);
  EXPECT_EQ(onnxReleaseGraph(objects.backend), ONNXIFI_STATUS_INVALID_GRAPH);
  EXPECT_EQ(onnxReleaseEvent(objects.graph), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(onnxReleaseBackendID(objects.event), ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
}

TEST(Handles, AreNeverUsedAgain) {
  Objects objects;
  std::set<onnxEvent> seen = {objects.event};
  for (int count = 0; count < 100; ++count) {
    onnxEvent event = nullptr;
    ASSERT_EQ(onnxInitEvent(objects.backend, &event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_TRUE(seen.insert(event).second);
    ASSERT_EQ(onnxReleaseEvent(event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxWaitEvent(event), ONNXIFI_STATUS_INVALID_EVENT);
  }
}

TEST(Handles, OfARandomValueAreInvalid) {
  for (uintptr_t value = 1; value != 0; value <<= 1) {
    void* handle = reinterpret_cast<void*>(value);
    EXPECT_EQ(onnxReleaseBackendID(handle), ONNXIFI_STATUS_INVALID_ID);
    EXPECT_EQ(onnxReleaseBackend(handle), ONNXIFI_STATUS_INVALID_BACKEND);
    EXPECT_EQ(onnxReleaseGraph(handle), ONNXIFI_STATUS_INVALID_GRAPH);
    EXPECT_EQ(onnxReleaseEvent(handle), ONNXIFI_STATUS_INVALID_EVENT);
  }
}

TEST(Backends, OfOneIdAreDistinct) {
  Objects objects;
  onnxBackend other = nullptr;
  ASSERT_EQ(onnxInitBackend(objects.id, nullptr, &other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_NE(other, objects.backend);
  EXPECT_EQ(onnxReleaseBackend(other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
}

TEST(Backends, LiveOnInTheirChildrenAfterRelease) {
  Objects objects;
  ASSERT_EQ(onnxReleaseBackend(objects.backend), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(objects.y.data, ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

// ---- Information ----

TEST(Info, CountsTheNulOfAString) {
  char text[16] = {};
  size_t size_bytes = sizeof(text);
  ASSERT_EQ(onnxGetBackendInfo(ListIds()[0], ONNXIFI_BACKEND_NAME, text, &size_bytes),
            ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(size_bytes, 5u);
  EXPECT_STREQ(text, "Fake");
}

TEST(Info, AnswersTheVersionOfTheInterface) {
  uint64_t version = 0;
  size_t size_bytes = sizeof(version);
  ASSERT_EQ(
      onnxGetBackendInfo(ListIds()[0], ONNXIFI_BACKEND_ONNXIFI_VERSION, &version, &size_bytes),
      ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(version, 0x0000000100000000u);
}

TEST(Info, ListsBothSpellingsOfExtensionsAndThoseOfTheProvider) {
  std::string text(1024, '\0');
  size_t size_bytes = text.size();
  ASSERT_EQ(onnxGetBackendInfo(ListIds()[0], ONNXIFI_BACKEND_EXTENSIONS, text.data(), &size_bytes),
            ONNXIFI_STATUS_SUCCESS);
  text = " " + std::string(text.c_str()) + " ";
  for (const char* name :
       {" onnx_extension_function ", " onnxSetIOAndRunGraph ", " onnxSetIOAndRunGraphFunction ",
        " onnxWaitEventFor ", " onnxifi_sdk ", " fake_extension "}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST(Info, AnnouncesThePropertiesOfTheSdk) {
  uint64_t bits = 0;
  size_t size_bytes = sizeof(bits);
  ASSERT_EQ(
      onnxGetBackendInfo(ListIds()[0], ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES, &bits, &size_bytes),
      ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(bits,
            ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER | ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE |
                ONNXIFI_SDK_GRAPH_PROPERTY_VALUES | ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS |
                ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION |
                ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION |
                ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL | ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL |
                ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS | ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE);
  EXPECT_EQ(bits & 0xFFFFFFFF, 0u);
}

// ---- Order of checks ----

TEST(OrderOfChecks, InfoChecksTheQueryBeforeTheCapacity) {
  size_t size_bytes = 0;
  EXPECT_EQ(onnxGetBackendInfo(ListIds()[0], 9, nullptr, &size_bytes),
            ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
}

TEST(OrderOfChecks, InitGraphChecksPropertiesBeforeWeightsBeforeTheModel) {
  Objects objects;
  onnxTensorDescriptorV1 weight = objects.x.descriptor;
  weight.tag = 0;
  onnxGraph graph = nullptr;
  const uint64_t unknown[] = {77};
  EXPECT_EQ(onnxInitGraph(objects.backend, unknown, 1, "\x01", 1, &weight, &graph),
            ONNXIFI_STATUS_UNSUPPORTED_PROPERTY);
  EXPECT_EQ(onnxInitGraph(objects.backend, nullptr, 1, "\x01", 1, &weight, &graph),
            ONNXIFI_STATUS_UNSUPPORTED_TAG);
  EXPECT_EQ(onnxInitGraph(objects.backend, nullptr, 1, "\x01", 0, &weight, &graph),
            ONNXIFI_STATUS_INVALID_PROTOBUF);
}

TEST(OrderOfChecks, SetGraphIoChecksEveryDescriptorBeforeNames) {
  Objects objects;
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.name = "unknown";
  onnxTensorDescriptorV1 output = objects.y.descriptor;
  output.buffer = 0;
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 1, &input, 1, &output),
            ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 1, &input, 1, &objects.y.descriptor),
            ONNXIFI_STATUS_INVALID_NAME);
}

TEST(OrderOfChecks, OneDescriptorIsCheckedFieldByField) {
  Objects objects;
  onnxTensorDescriptorV1 input = {};
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  input.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  input.dataType = 8;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_NAME);
  input.name = "x";
  input.memoryType = 3;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_DATATYPE);
  input.dataType = ONNXIFI_DATATYPE_FLOAT32;
  input.dimensions = 1;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_MEMORY_TYPE);
  input.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_POINTER);
  input.shape = objects.x.shape.data();
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
  input.buffer = objects.x.descriptor.buffer;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_SUCCESS);
}

TEST(OrderOfChecks, RunGraphChecksTagsThenTypesThenEventThenBinding) {
  Objects objects;
  onnxMemoryFenceV1 input = EventFence(nullptr);
  onnxMemoryFenceV1 output = EventFence(nullptr);
  input.type = 1;
  output.tag = 0;
  EXPECT_EQ(onnxRunGraph(objects.graph, &input, &output), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  output.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  EXPECT_EQ(onnxRunGraph(objects.graph, &input, &output), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  input.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  EXPECT_EQ(onnxRunGraph(objects.graph, &input, &output), ONNXIFI_STATUS_INVALID_EVENT);
  input.event = objects.event;
  EXPECT_EQ(onnxRunGraph(objects.graph, &input, &output), ONNXIFI_STATUS_UNIDENTIFIED_NAME);
}

// ---- Descriptors ----

TEST(Descriptors, OfTheForkAreRecognised) {
  // The fork's layout: 96 bytes, the same tag.
  struct Foxi {
    alignas(8) unsigned char bytes[96];
  };
  Objects objects;
  Foxi descriptors[2] = {};
  for (Foxi& descriptor : descriptors) {
    std::memcpy(descriptor.bytes, &objects.x.descriptor, sizeof(onnxTensorDescriptorV1));
    std::memset(descriptor.bytes + 48, 0, 48);
    std::memcpy(descriptor.bytes + 88, &objects.x.descriptor.buffer, 8);
  }
  // The first one's buffer is at another place too; give it one, so that the second is reached.
  std::memcpy(descriptors[0].bytes + 48, &objects.x.descriptor.buffer, 8);
  EXPECT_EQ(
      onnxSetGraphIO(objects.graph, 2, reinterpret_cast<const onnxTensorDescriptorV1*>(descriptors),
                     1, &objects.y.descriptor),
      ONNXIFI_STATUS_UNSUPPORTED_TAG);
  EXPECT_THAT(LastErrorText(), HasSubstr("foxi"));
}

TEST(Descriptors, AreCopied) {
  Objects objects;
  {
    std::string name = "x";
    std::vector<uint64_t> shape = {4};
    onnxTensorDescriptorV1 input = objects.x.descriptor;
    input.name = name.c_str();
    input.shape = shape.data();
    ASSERT_EQ(objects.SetInput(input), ONNXIFI_STATUS_SUCCESS);
    name = "?";
    shape[0] = 99;
  }
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(objects.y.data, ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(Descriptors, WithOneNameTwiceAreRefused) {
  Objects objects;
  const onnxTensorDescriptorV1 twice[] = {objects.x.descriptor, objects.x.descriptor};
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 2, twice, 1, &objects.y.descriptor),
            ONNXIFI_STATUS_INVALID_NAME);
  EXPECT_THAT(LastErrorText(), HasSubstr("Input 'x' has two descriptors."));
}

TEST(Descriptors, GiveEachSymbolOneNumber) {
  Objects objects("matrix");
  const uint64_t two_by_three[] = {2, 3};
  const uint64_t three[] = {3};
  onnxTensorDescriptorV1 inputs[] = {objects.x.descriptor, objects.x.descriptor};
  inputs[0].dimensions = 2;
  inputs[0].shape = two_by_three;
  inputs[1].name = "w";
  inputs[1].shape = three;
  onnxTensorDescriptorV1 output = inputs[0];
  output.name = "y";
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 2, inputs, 1, &output), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("Dimension 0 of input 'w' gives the symbol 'N' the "
                                         "number 3, but input 'x' gives it 2."));
  const uint64_t two[] = {2};
  inputs[1].shape = two;
  std::swap(inputs[0], inputs[1]);
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 2, inputs, 1, &output), ONNXIFI_STATUS_SUCCESS);
}

TEST(Descriptors, MustHaveTheDeclaredRankAndNumbers) {
  Objects objects("fixed");
  const uint64_t shape[] = {2, 2};
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.dimensions = 2;
  input.shape = shape;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("rank 2 (shape [2, 2]); the model declares rank 1."));
  input.dimensions = 1;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("is 2; the model declares 4."));
}

TEST(Descriptors, NameTheElementTypes) {
  Objects objects("fixed");
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.dataType = ONNXIFI_DATATYPE_INT64;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_MISMATCHING_DATATYPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("Input 'x' has element type int64 (7); the model declares "
                                         "float (1)."));
  input.dataType = ONNXIFI_DATATYPE_FLOAT64;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_UNSUPPORTED_DATATYPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("element type double (11), which this backend"));
  input.dataType = 99;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_DATATYPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("element type 99, which is no element type"));
}

TEST(Descriptors, MayHaveNoElementsWhereTheModelLeavesItOpen) {
  const uint64_t zero[] = {0};
  for (const char* model : {"double", "zero"}) {
    Objects objects(model);
    onnxTensorDescriptorV1 input = objects.x.descriptor;
    input.shape = zero;
    input.buffer = 0;
    onnxTensorDescriptorV1 output = input;
    output.name = "y";
    EXPECT_EQ(onnxSetGraphIO(objects.graph, 1, &input, 1, &output), ONNXIFI_STATUS_SUCCESS)
        << model;
  }
}

TEST(Descriptors, OfAnImpossibleRankAreRefusedUnread) {
  Objects objects;
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.dimensions = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_SHAPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("rank 4294967295; the largest one taken is 64."));
}

TEST(Descriptors, OfTooManyElementsAreRefusedWithTheLimit) {
  Objects objects("matrix");
  const uint64_t shape[] = {std::numeric_limits<uint64_t>::max(), 3};
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.dimensions = 2;
  input.shape = shape;
  EXPECT_EQ(objects.SetInput(input), ONNXIFI_STATUS_INVALID_SHAPE);
  EXPECT_THAT(LastErrorText(), HasSubstr("576460752303423487"));
}

// ---- Runs ----

TEST(Runs, WaitForTheirInputEvent) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  objects.x.data = {10, 20, 30, 40};
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  EXPECT_EQ(onnxGetEventState(output, &state), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxGetEventState(output, &state), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
  EXPECT_THAT(objects.y.data, ElementsAre(20, 40, 60, 80));
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(Runs, OverwriteWhateverTheOutputFenceHolds) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  onnxEvent live = nullptr;
  ASSERT_EQ(onnxInitEvent(objects.backend, &live), ONNXIFI_STATUS_SUCCESS);
  for (onnxEvent before : {live, reinterpret_cast<onnxEvent>(uintptr_t{0xDEADBEEF})}) {
    const onnxMemoryFenceV1 input_fence = EventFence(objects.event);
    onnxMemoryFenceV1 output_fence = EventFence(before);
    ASSERT_EQ(onnxRunGraph(objects.graph, &input_fence, &output_fence), ONNXIFI_STATUS_SUCCESS);
    EXPECT_NE(output_fence.event, before);
    EXPECT_EQ(onnxWaitEvent(output_fence.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(output_fence.event), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(onnxReleaseEvent(live), ONNXIFI_STATUS_SUCCESS);
}

TEST(Runs, InFlightKeepTheBindingOfTheirCall) {
  Objects objects;
  Vector other_output("y", {0, 0, 0, 0});
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent first = nullptr;
  ASSERT_EQ(objects.Run(&first), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSetGraphIO(objects.graph, 1, &objects.x.descriptor, 1, &other_output.descriptor),
            ONNXIFI_STATUS_SUCCESS);
  onnxEvent second = nullptr;
  ASSERT_EQ(objects.Run(&second), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(second), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(first), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(objects.y.data, ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(other_output.data, ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(onnxReleaseEvent(first), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(second), ONNXIFI_STATUS_SUCCESS);
}

TEST(Runs, NeedABindingAfterAFailedOne) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxSetGraphIO(objects.graph, 1, &objects.x.descriptor, 0, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  onnxEvent output = nullptr;
  EXPECT_EQ(objects.Run(&output), ONNXIFI_STATUS_UNIDENTIFIED_NAME);
}

TEST(Runs, CarryTheirFailureInTheOutputEvent) {
  Objects objects("fail");
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_INTERNAL_ERROR);
  EXPECT_THAT(LastErrorText(), HasSubstr("The fake has 0 bytes of device memory."));
  EXPECT_THAT(LastErrorText(), HasSubstr("NO_DEVICE_MEMORY"));
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  EXPECT_EQ(onnxGetEventState(output, &state), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);

  const auto wait_for =
      FindExtensionOf<onnxWaitEventForFunction>(objects.id, "onnxWaitEventForFunction");
  onnxStatus work = ONNXIFI_STATUS_SUCCESS;
  char message[20];
  size_t length = sizeof(message);
  EXPECT_EQ(wait_for(output, 0, &state, &work, message, &length), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(work, ONNXIFI_STATUS_NO_DEVICE_MEMORY);
  EXPECT_EQ(length, sizeof(message));
  EXPECT_STREQ(message, "The fake has 0 byte");
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(Runs, FinishAsFailedWhenTheirInputEventIsReleasedUnsignalled) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxReleaseEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(objects.graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(Runs, OutliveTheirOutputEvent) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxReleaseGraph(objects.graph), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(objects.y.data, ElementsAre(2, 4, 6, 8));
}

TEST(Runs, RefuseTheEventOfAnotherBackend) {
  Objects objects;
  Objects others;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  const onnxMemoryFenceV1 input_fence = EventFence(others.event);
  onnxMemoryFenceV1 output_fence = EventFence(nullptr);
  EXPECT_EQ(onnxRunGraph(objects.graph, &input_fence, &output_fence), ONNXIFI_STATUS_INVALID_EVENT);
}

TEST(Runs, MayStartFromTheOutputEventOfAnother) {
  Objects first;
  ASSERT_EQ(first.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent between = nullptr;
  ASSERT_EQ(first.Run(&between), ONNXIFI_STATUS_SUCCESS);

  onnxGraph graph = nullptr;
  ASSERT_EQ(onnxInitGraph(first.backend, nullptr, 6, "double", 0, nullptr, &graph),
            ONNXIFI_STATUS_SUCCESS);
  Vector result("y", {0, 0, 0, 0});
  onnxTensorDescriptorV1 input = first.y.descriptor;
  input.name = "x";
  ASSERT_EQ(onnxSetGraphIO(graph, 1, &input, 1, &result.descriptor), ONNXIFI_STATUS_SUCCESS);
  const onnxMemoryFenceV1 input_fence = EventFence(between);
  onnxMemoryFenceV1 output_fence = EventFence(nullptr);
  ASSERT_EQ(onnxRunGraph(graph, &input_fence, &output_fence), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(first.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output_fence.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(result.data, ElementsAre(4, 8, 12, 16));
  EXPECT_EQ(onnxReleaseEvent(between), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(output_fence.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
}

// ---- Events ----

TEST(Events, WakeTheirWaitersWhenReleasedUnsignalled) {
  Objects objects;
  onnxStatus answer = ONNXIFI_STATUS_SUCCESS;
  std::thread waiter([&] { answer = onnxWaitEvent(objects.event); });
  // Long enough that the waiter is usually inside the call; either order must end the same way.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(onnxReleaseEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  waiter.join();
  EXPECT_EQ(answer, ONNXIFI_STATUS_INVALID_EVENT);
}

TEST(Events, SignalledReleaseAllWaiters) {
  Objects objects;
  std::vector<std::thread> waiters;
  for (int count = 0; count < 4; ++count) {
    waiters.emplace_back([&] { EXPECT_EQ(onnxWaitEvent(objects.event), ONNXIFI_STATUS_SUCCESS); });
  }
  EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(WaitEventFor, TellsTimeOutFromSignal) {
  Objects objects;
  const auto wait_for = FindExtensionOf<onnxWaitEventForFunction>(objects.id, "onnxWaitEventFor");
  onnxEventState state = ONNXIFI_EVENT_STATE_INVALID;
  onnxStatus work = ONNXIFI_STATUS_SUCCESS;
  char message[8] = "?";
  size_t length = sizeof(message);
  EXPECT_EQ(wait_for(objects.event, 1, &state, &work, message, &length), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
  EXPECT_EQ(length, 0u);
  EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(wait_for(objects.event, 1, &state, &work, nullptr, nullptr), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(state, ONNXIFI_EVENT_STATE_SIGNALLED);
  EXPECT_EQ(work, ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(wait_for(nullptr, 1, &state, &work, nullptr, nullptr), ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_EQ(wait_for(objects.event, 1, nullptr, &work, nullptr, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
}

// ---- Extensions ----

TEST(ExtensionLookup, TakesBothSpellings) {
  const onnxBackendID id = ListIds()[0];
  for (const std::string name :
       {"onnxSetIOAndRunGraph", "onnxWaitEventFor", "onnxGetExtensionFunctionAddress",
        "onnxGetLastErrorMessage", "onnxExplainModel", "onnxInferOutputShapes",
        "onnxGetRunOutputShapes", "onnxGetGraphCounters", "onnxGetGraphProfile",
        "onnxGetGraphLoadProfile", "onnxGetBackendKey"}) {
    onnxExtensionFunctionPointer plain = nullptr;
    onnxExtensionFunctionPointer suffixed = nullptr;
    EXPECT_EQ(onnxGetExtensionFunctionAddress(id, name.c_str(), &plain), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxGetExtensionFunctionAddress(id, (name + "Function").c_str(), &suffixed),
              ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(plain, suffixed) << name;
  }
}

TEST(ExtensionLookup, FindsFunctionsOfTheLibraryWithoutAnId) {
  onnxExtensionFunctionPointer function = nullptr;
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "onnxGetLastErrorMessage", &function),
            ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "onnxSetIOAndRunGraph", &function),
            ONNXIFI_STATUS_INVALID_ID);
  EXPECT_EQ(function, nullptr);
}

TEST(ExtensionLookup, RefusesBadArguments) {
  const onnxBackendID id = ListIds()[0];
  onnxExtensionFunctionPointer function = nullptr;
  EXPECT_EQ(onnxGetExtensionFunctionAddress(id, "onnxNothing", &function),
            ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(id, nullptr, &function),
            ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(id, "onnxWaitEventFor", nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(onnxGetExtensionFunctionAddress(&function, "onnxWaitEventFor", &function),
            ONNXIFI_STATUS_INVALID_ID);
}

TEST(SetIoAndRunGraph, LeavesTheStandingBindingAlone) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  Vector other("y", {0, 0, 0, 0});
  onnxMemoryFenceV1 output = EventFence(nullptr);
  ASSERT_EQ(
      onnxSetIOAndRunGraph(objects.graph, 1, &objects.x.descriptor, 1, &other.descriptor, &output),
      ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(output.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxReleaseEvent(output.event), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(other.data, ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(objects.y.data, ElementsAre(0, 0, 0, 0));

  EXPECT_EQ(onnxSetIOAndRunGraph(objects.graph, 0, nullptr, 1, &other.descriptor, &output),
            ONNXIFI_STATUS_UNIDENTIFIED_NAME);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  onnxEvent standing = nullptr;
  ASSERT_EQ(objects.Run(&standing), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(onnxWaitEvent(standing), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(objects.y.data, ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(onnxReleaseEvent(standing), ONNXIFI_STATUS_SUCCESS);
}

// What differs in anything is bound anew, and what is wrong is found although it was right before.
TEST(SetIoAndRunGraph, BindsTheSameDescriptorsOnce) {
  Objects objects;
  const auto count = [&] {
    onnxGraphCounters counters = {};
    counters.struct_size = sizeof(counters);
    const auto get =
        FindExtensionOf<onnxGetGraphCountersFunction>(objects.id, "onnxGetGraphCounters");
    EXPECT_EQ(get(objects.graph, &counters), ONNXIFI_STATUS_SUCCESS);
    return counters.bindings;
  };
  const auto run = [&](Vector& x, Vector& y) {
    onnxMemoryFenceV1 output = EventFence(nullptr);
    const onnxStatus status =
        onnxSetIOAndRunGraph(objects.graph, 1, &x.descriptor, 1, &y.descriptor, &output);
    if (status != ONNXIFI_STATUS_SUCCESS) return status;
    EXPECT_EQ(onnxWaitEvent(output.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(output.event), ONNXIFI_STATUS_SUCCESS);
    for (size_t k = 0; k < x.data.size(); ++k) EXPECT_EQ(y.data[k], 2 * x.data[k]);
    return status;
  };
  for (int k = 0; k < 3; ++k) {
    objects.x.data[0] = static_cast<float>(k);
    EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_SUCCESS);
  }
  EXPECT_EQ(count(), 1u);
  Vector other("y", {0, 0, 0, 0});
  EXPECT_EQ(run(objects.x, other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count(), 2u);
  // In turn, as several callers do.
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(run(objects.x, other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count(), 2u);
  // Other inputs with the same outputs take the place of the first.
  Vector input("x", {5, 6, 7, 8});
  EXPECT_EQ(run(input, other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(run(objects.x, other), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count(), 4u);
  // Of many the oldest goes.
  std::deque<Vector> many;
  for (int k = 0; k < 16; ++k) many.emplace_back("y", std::vector<float>(4));
  for (Vector& y : many) EXPECT_EQ(run(objects.x, y), ONNXIFI_STATUS_SUCCESS);
  for (Vector& y : many) EXPECT_EQ(run(objects.x, y), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count(), 20u);
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(count(), 21u);
  const onnxTensorDescriptorV1 right = objects.x.descriptor;
  const uint64_t shorter[] = {3};
  objects.x.descriptor.shape = shorter;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  objects.x.descriptor = right;
  objects.x.descriptor.dataType = ONNXIFI_DATATYPE_INT32;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_UNSUPPORTED_DATATYPE);
  objects.x.descriptor = right;
  objects.x.descriptor.name = "z";
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_INVALID_NAME);
  objects.x.descriptor.name = nullptr;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_INVALID_NAME);
  objects.x.descriptor = right;
  objects.x.descriptor.shape = nullptr;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_INVALID_POINTER);
  objects.x.descriptor = right;
  objects.x.descriptor.tag = 0;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  objects.x.descriptor = right;
  objects.x.descriptor.memoryType = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  EXPECT_NE(run(objects.x, objects.y), ONNXIFI_STATUS_SUCCESS);
  objects.x.descriptor = right;
  EXPECT_EQ(run(objects.x, objects.y), ONNXIFI_STATUS_SUCCESS);
}

TEST(SetIoAndRunGraph, ChecksItsFence) {
  Objects objects;
  onnxMemoryFenceV1 output = EventFence(nullptr);
  const auto run = [&](onnxMemoryFenceV1* fence) {
    return onnxSetIOAndRunGraph(objects.graph, 1, &objects.x.descriptor, 1, &objects.y.descriptor,
                                fence);
  };
  EXPECT_EQ(run(nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  output.tag = 0;
  EXPECT_EQ(run(&output), ONNXIFI_STATUS_UNSUPPORTED_TAG);
  output = EventFence(nullptr);
  output.type = 1;
  EXPECT_EQ(run(&output), ONNXIFI_STATUS_INVALID_FENCE_TYPE);
  output.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  EXPECT_EQ(run(&output), ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
}

void ONNXIFI_ABI KeepVerdict(void* context, const onnxNodeVerdict* verdict) {
  static_cast<std::vector<std::string>*>(context)->push_back(
      std::to_string(verdict->node_index) + " " + std::to_string(verdict->status) + " " +
      verdict->operator_type + " " + verdict->subject + " " + verdict->limit + " " +
      verdict->sentence);
}

TEST(ExplainModel, ReportsEveryNode) {
  const onnxBackendID id = ListIds()[0];
  const auto explain = FindExtensionOf<onnxExplainModelFunction>(id, "onnxExplainModel");
  const std::string model =
      "double status=" + std::to_string(ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE) + " claims=9";
  std::vector<std::string> nodes;
  EXPECT_EQ(explain(id, model.size(), model.data(), KeepVerdict, &nodes),
            ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE);
  ASSERT_EQ(nodes.size(), 10u);
  EXPECT_EQ(nodes[8], "8 0 Double   ");
  EXPECT_EQ(nodes[9], "9 516 Double axis 3 fake:0 refuses node 9.");
  EXPECT_EQ(explain(id, model.size(), model.data(), nullptr, nullptr),
            ONNXIFI_STATUS_INVALID_POINTER);
}

void ONNXIFI_ABI KeepShape(void* context, const onnxTensorShape* shape) {
  auto* extents = static_cast<std::vector<int64_t>*>(context);
  extents->assign(shape->extents, shape->extents + shape->rank);
}

TEST(OutputShapes, AreKnownBeforeAndAfterARun) {
  Objects objects("half");
  const auto infer =
      FindExtensionOf<onnxInferOutputShapesFunction>(objects.id, "onnxInferOutputShapes");
  const auto of_run =
      FindExtensionOf<onnxGetRunOutputShapesFunction>(objects.id, "onnxGetRunOutputShapes");
  std::vector<int64_t> extents;
  onnxTensorDescriptorV1 input = objects.x.descriptor;
  input.buffer = 0;
  EXPECT_EQ(infer(objects.graph, 1, &input, KeepShape, &extents), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(extents, ElementsAre(ONNXIFI_SDK_UNKNOWN));

  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(of_run(output, KeepShape, &extents), ONNXIFI_STATUS_INVALID_STATE);
  EXPECT_EQ(of_run(objects.event, KeepShape, &extents), ONNXIFI_STATUS_INVALID_EVENT);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(of_run(output, KeepShape, &extents), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(extents, ElementsAre(2));
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(OutputShapes, OfARunAreThoseOfItsDescriptorsUnlessTheRunSaysOtherwise) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  const auto of_run =
      FindExtensionOf<onnxGetRunOutputShapesFunction>(objects.id, "onnxGetRunOutputShapes");
  std::vector<int64_t> extents;
  EXPECT_EQ(of_run(output, KeepShape, &extents), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(extents, ElementsAre(4));
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(GraphCounters, FillOnlyWhatTheCallerHasRoomFor) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  const auto get =
      FindExtensionOf<onnxGetGraphCountersFunction>(objects.id, "onnxGetGraphCounters");
  onnxGraphCounters counters;
  std::memset(&counters, 0xFF, sizeof(counters));
  counters.struct_size = offsetof(onnxGraphCounters, bindings);
  EXPECT_EQ(get(objects.graph, &counters), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(counters.lowerings, 1u);
  EXPECT_EQ(counters.bindings, ~uint64_t{0});
  counters.struct_size = sizeof(counters);
  EXPECT_EQ(get(objects.graph, &counters), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(counters.bindings, 1u);
  EXPECT_EQ(counters.control_steps, ~uint64_t{0}) << "this provider does not tell";
  EXPECT_EQ(counters.submissions, 11u);
  EXPECT_EQ(counters.recordings, 12u);
  EXPECT_EQ(counters.struct_size, sizeof(counters));
  counters.struct_size = 1;
  EXPECT_EQ(get(objects.graph, &counters), ONNXIFI_STATUS_INVALID_SIZE);
  EXPECT_EQ(get(objects.graph, nullptr), ONNXIFI_STATUS_INVALID_POINTER);
  EXPECT_EQ(get(nullptr, &counters), ONNXIFI_STATUS_INVALID_GRAPH);
}

void KeepStep(void* steps, const onnxStepRecord* record) {
  std::string text = std::to_string(record->step_index) + " " + std::to_string(record->node_index) +
                     " " + record->family + " " + record->implementation + " " + record->detail +
                     " " + std::to_string(record->data_type);
  for (uint32_t axis = 0; axis < record->rank; ++axis) {
    text += " x" + std::to_string(record->extents[axis]);
  }
  for (uint32_t k = 0; k < record->rejected_count; ++k) {
    text += std::string(" (") + record->rejected[k] + ")";
  }
  for (const uint64_t number :
       {record->start_ns, record->duration_ns, record->flops, record->read_bytes,
        record->written_bytes, uint64_t{record->precision}}) {
    text += " " + std::to_string(number);
  }
  EXPECT_EQ(record->struct_size, sizeof(onnxStepRecord));
  static_cast<std::vector<std::string>*>(steps)->push_back(text);
}

TEST(GraphProfile, TellsEveryFieldOfEveryStepAfterARun) {
  Objects objects;
  const uint64_t properties[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 1,
                                 ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION,
                                 ONNXIFI_SDK_PRECISION_BFLOAT16, 0};
  ASSERT_EQ(onnxReleaseGraph(objects.graph), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxInitGraph(objects.backend, properties, 6, "double", 0, nullptr, &objects.graph),
            ONNXIFI_STATUS_SUCCESS);
  const auto get = FindExtensionOf<onnxGetGraphProfileFunction>(objects.id, "onnxGetGraphProfile");
  std::vector<std::string> steps;
  EXPECT_EQ(get(objects.graph, KeepStep, &steps), ONNXIFI_STATUS_INVALID_STATE);
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(get(objects.graph, KeepStep, &steps), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(steps, ElementsAre("0 3 Map fake one thread 1 x4 x5 (Faster is busy.) (Fastest is "
                                 "broken.) 6 7 8 9 10 2",
                                 "1 -1    0 0 0 0 0 0 0"));
  EXPECT_EQ(get(nullptr, KeepStep, &steps), ONNXIFI_STATUS_INVALID_GRAPH);
  EXPECT_EQ(get(objects.graph, nullptr, &steps), ONNXIFI_STATUS_INVALID_POINTER);
  FailNext(FakeStep::kProfile, FakeFault::kStatus, base::Status(base::Code::kNoDeviceMemory, "-"));
  EXPECT_EQ(get(objects.graph, KeepStep, &steps), ONNXIFI_STATUS_INTERNAL_ERROR);
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
}

TEST(GraphProfile, IsKeptOnlyWhereThePropertyAsksForIt) {
  Objects objects;
  ASSERT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxEvent output = nullptr;
  ASSERT_EQ(objects.Run(&output), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
  ASSERT_EQ(onnxWaitEvent(output), ONNXIFI_STATUS_SUCCESS);
  const auto get = FindExtensionOf<onnxGetGraphProfileFunction>(objects.id, "onnxGetGraphProfile");
  std::vector<std::string> steps;
  EXPECT_EQ(get(objects.graph, KeepStep, &steps), ONNXIFI_STATUS_INVALID_STATE);
  EXPECT_EQ(onnxReleaseEvent(output), ONNXIFI_STATUS_SUCCESS);
  const uint64_t two[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 2, 0};
  onnxGraph graph = nullptr;
  EXPECT_EQ(onnxInitGraph(objects.backend, two, 6, "double", 0, nullptr, &graph),
            ONNXIFI_STATUS_INVALID_PROPERTY);
  const uint64_t zero[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 0, 0};
  ASSERT_EQ(onnxInitGraph(objects.backend, zero, 6, "double", 0, nullptr, &graph),
            ONNXIFI_STATUS_SUCCESS);
  EXPECT_EQ(get(graph, KeepStep, &steps), ONNXIFI_STATUS_INVALID_STATE);
  EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
}

void ONNXIFI_ABI KeepStage(void* stages, const onnxLoadRecord* record) {
  EXPECT_EQ(record->struct_size, sizeof(onnxLoadRecord));
  static_cast<std::vector<std::string>*>(stages)->push_back(std::string(record->stage) + " " +
                                                            std::to_string(record->count) + " " +
                                                            std::to_string(record->duration_ns));
}

TEST(GraphLoadProfile, TellsEveryStageBeforeAnyRun) {
  Objects objects;
  const auto get =
      FindExtensionOf<onnxGetGraphLoadProfileFunction>(objects.id, "onnxGetGraphLoadProfile");
  std::vector<std::string> stages;
  EXPECT_EQ(get(objects.graph, KeepStage, &stages), ONNXIFI_STATUS_SUCCESS);
  EXPECT_THAT(stages, ElementsAre("parse 1 23", "double 4 567"));
  EXPECT_EQ(get(nullptr, KeepStage, &stages), ONNXIFI_STATUS_INVALID_GRAPH);
  EXPECT_EQ(get(objects.graph, nullptr, &stages), ONNXIFI_STATUS_INVALID_POINTER);
  FailNext(FakeStep::kLoadProfile, FakeFault::kOutOfMemory);
  EXPECT_EQ(get(objects.graph, KeepStage, &stages), ONNXIFI_STATUS_NO_SYSTEM_MEMORY);
  EXPECT_EQ(stages.size(), 2u);
}

TEST(Switches, ArePropertiesOfAGraphAndTakeTwoValues) {
  Objects objects;
  for (const uint64_t key :
       {ONNXIFI_SDK_GRAPH_PROPERTY_FAST_ALGORITHMS, ONNXIFI_SDK_GRAPH_PROPERTY_DYNAMIC_QUANTIZATION,
        ONNXIFI_SDK_GRAPH_PROPERTY_MAPPED_MODEL, ONNXIFI_SDK_GRAPH_PROPERTY_LASTING_MODEL,
        ONNXIFI_SDK_GRAPH_PROPERTY_CALLER_RUNS, ONNXIFI_SDK_GRAPH_PROPERTY_MEASURE}) {
    for (const uint64_t value : {0, 1, 2}) {
      const uint64_t list[] = {key, value, 0};
      onnxGraph graph = nullptr;
      EXPECT_EQ(onnxInitGraph(objects.backend, list, 6, "double", 0, nullptr, &graph),
                value > 1 ? ONNXIFI_STATUS_INVALID_PROPERTY : ONNXIFI_STATUS_SUCCESS);
      if (graph != nullptr) {
        EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
      }
    }
  }
}

TEST(Precision, IsAPropertyOfAGraphThatTakesFourValues) {
  Objects objects;
  for (const uint64_t value :
       {uint64_t{ONNXIFI_SDK_PRECISION_FLOAT32}, uint64_t{ONNXIFI_SDK_PRECISION_TF32},
        uint64_t{ONNXIFI_SDK_PRECISION_BFLOAT16}, uint64_t{ONNXIFI_SDK_PRECISION_FLOAT16}}) {
    const uint64_t list[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION, value, 0};
    onnxGraph graph = nullptr;
    ASSERT_EQ(onnxInitGraph(objects.backend, list, 6, "double", 0, nullptr, &graph),
              ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  }
  // Of a number with more bits than an enumeration all count.
  for (const uint64_t value : {uint64_t{4}, uint64_t{256}, uint64_t{1} << 32, ~uint64_t{0}}) {
    const uint64_t list[] = {ONNXIFI_SDK_GRAPH_PROPERTY_PRECISION, value, 0};
    onnxGraph graph = nullptr;
    EXPECT_EQ(onnxInitGraph(objects.backend, list, 6, "double", 0, nullptr, &graph),
              ONNXIFI_STATUS_INVALID_PROPERTY);
    EXPECT_EQ(graph, nullptr);
    EXPECT_THAT(
        LastErrorText(),
        HasSubstr("The precision property is " + std::to_string(value) +
                  "; the precisions are 0 (float32), 1 (tf32), 2 (bfloat16), 3 (float16)."));
  }
}

TEST(BackendKey, NamesTheDevice) {
  const std::vector<onnxBackendID> ids = ListIds();
  const auto get_key = FindExtensionOf<onnxGetBackendKeyFunction>(ids[1], "onnxGetBackendKey");
  char key[16];
  size_t size_bytes = sizeof(key);
  EXPECT_EQ(get_key(ids[1], key, &size_bytes), ONNXIFI_STATUS_SUCCESS);
  EXPECT_STREQ(key, "fake:1");
  EXPECT_EQ(size_bytes, 7u);
  size_bytes = 2;
  EXPECT_EQ(get_key(ids[1], key, &size_bytes), ONNXIFI_STATUS_FALLBACK);
  EXPECT_EQ(size_bytes, 7u);
}

TEST(LastError, BelongsToItsThread) {
  EXPECT_EQ(onnxReleaseBackend(nullptr), ONNXIFI_STATUS_INVALID_BACKEND);
  const std::string here = LastErrorText();
  std::thread([] {
    EXPECT_EQ(LastErrorText(), "");
    EXPECT_EQ(onnxReleaseGraph(nullptr), ONNXIFI_STATUS_INVALID_GRAPH);
  }).join();
  EXPECT_EQ(LastErrorText(), here);
}

}  // namespace
}  // namespace onnxifi::abi
