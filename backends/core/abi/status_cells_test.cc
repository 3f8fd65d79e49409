// SPDX-License-Identifier: Apache-2.0
//
// Every cell of the interface's status table: for each function and each code that it may answer,
// one call that gets it, or the reason why no call can.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/core/abi/function.h"
#include "backends/core/abi/testing/exports_fixture.h"
#include "backends/core/base/status.h"

namespace onnxifi::abi {
namespace {

using base::Code;
using base::Status;

struct Cell {
  Function function;
  Code code;
  std::function<onnxStatus()> call;
};

Status Planned(Code code) { return Status(code, "The test planned this."); }

// A value that is no handle of this library: an address, as a foreign library may use.
onnxBackendID Foreign() {
  static int object = 0;
  return &object;
}

onnxStatus Compatibility(std::string_view model) {
  return onnxGetBackendCompatibility(ListIds().front(), model.size(), model.data());
}

onnxStatus InitBackend(std::vector<uint64_t> properties) {
  onnxBackend backend = nullptr;
  const onnxStatus status = onnxInitBackend(ListIds().front(), properties.data(), &backend);
  if (status == ONNXIFI_STATUS_SUCCESS) onnxReleaseBackend(backend);
  EXPECT_TRUE(status == ONNXIFI_STATUS_SUCCESS || backend == nullptr);
  return status;
}

struct GraphCall {
  std::string model = "double";
  std::vector<uint64_t> properties = {0};
  std::vector<onnxTensorDescriptorV1> weights;
};

onnxStatus InitGraph(const GraphCall& call) {
  Objects objects;
  onnxGraph graph = &objects;
  const onnxStatus status =
      onnxInitGraph(objects.backend, call.properties.data(), call.model.size(), call.model.data(),
                    static_cast<uint32_t>(call.weights.size()), call.weights.data(), &graph);
  if (status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK) {
    EXPECT_EQ(onnxReleaseGraph(graph), ONNXIFI_STATUS_SUCCESS);
  } else {
    EXPECT_EQ(graph, nullptr);
  }
  return status;
}

// onnxInitGraph with one weight, changed by `change`.
onnxStatus InitGraphWithWeight(const std::function<void(onnxTensorDescriptorV1&)>& change) {
  const Vector weight("w", {1, 2});
  onnxTensorDescriptorV1 descriptor = weight.descriptor;
  change(descriptor);
  return InitGraph({.weights = {descriptor}});
}

// onnxSetGraphIO with the input changed by `change`.
onnxStatus SetIoWithInput(const std::function<void(onnxTensorDescriptorV1&)>& change,
                          std::string_view model = "double") {
  Objects objects(model);
  onnxTensorDescriptorV1 descriptor = objects.x.descriptor;
  change(descriptor);
  return objects.SetInput(descriptor);
}

// onnxRunGraph with fences changed by `change`.
onnxStatus RunWithFences(
    const std::function<void(onnxMemoryFenceV1& input, onnxMemoryFenceV1& output)>& change) {
  Objects objects;
  EXPECT_EQ(objects.SetIo(), ONNXIFI_STATUS_SUCCESS);
  onnxMemoryFenceV1 input = EventFence(objects.event);
  onnxMemoryFenceV1 output = EventFence(nullptr);
  change(input, output);
  const onnxEvent before = output.event;
  const onnxStatus status = onnxRunGraph(objects.graph, &input, &output);
  if (status == ONNXIFI_STATUS_SUCCESS) {
    EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxWaitEvent(output.event), ONNXIFI_STATUS_SUCCESS);
    EXPECT_EQ(onnxReleaseEvent(output.event), ONNXIFI_STATUS_SUCCESS);
  } else {
    EXPECT_EQ(output.event, before);
  }
  return status;
}

void Resources(Function function, FakeStep step, const std::function<onnxStatus()>& call,
               std::vector<Cell>* cells) {
  for (const Code code : {Code::kNoSystemMemory, Code::kNoDeviceMemory, Code::kNoSystemResources,
                          Code::kNoDeviceResources, Code::kBackendUnavailable}) {
    cells->push_back({function, code, [=] {
                        FailNext(step, FakeFault::kStatus, Planned(code));
                        return call();
                      }});
  }
  cells->push_back({function, Code::kInternalError, [=] {
                      FailNext(step, FakeFault::kException);
                      return call();
                    }});
}

std::vector<Cell> DiscoveryCells() {
  std::vector<Cell> cells;
  Function f = Function::kGetBackendIDs;
  const auto list = [] {
    size_t count = 7;
    const onnxStatus status = onnxGetBackendIDs(nullptr, &count);
    EXPECT_EQ(count, status == ONNXIFI_STATUS_FALLBACK ? 2u : 7u);
    return status;
  };
  cells.push_back({f, Code::kOk, [] {
                     std::vector<onnxBackendID> ids(5);
                     size_t count = ids.size();
                     const onnxStatus status = onnxGetBackendIDs(ids.data(), &count);
                     EXPECT_EQ(count, 2u);
                     return status;
                   }});
  cells.push_back({f, Code::kFallback, list});
  cells.push_back({f, Code::kInvalidPointer, [] { return onnxGetBackendIDs(nullptr, nullptr); }});
  cells.push_back({f, Code::kNoSystemMemory, [=] {
                     FailNext(FakeStep::kEnumerate, FakeFault::kOutOfMemory);
                     return list();
                   }});
  cells.push_back({f, Code::kInternalError, [=] {
                     FailNext(FakeStep::kEnumerate, FakeFault::kException);
                     return list();
                   }});

  f = Function::kReleaseBackendID;
  cells.push_back({f, Code::kOk, [] { return onnxReleaseBackendID(ListIds().front()); }});
  cells.push_back({f, Code::kInvalidId, [] { return onnxReleaseBackendID(nullptr); }});

  f = Function::kGetBackendInfo;
  const auto info = [](onnxBackendInfo query) {
    char text[64];
    size_t size_bytes = sizeof(text);
    return onnxGetBackendInfo(ListIds().front(), query, text, &size_bytes);
  };
  cells.push_back({f, Code::kOk, [=] { return info(ONNXIFI_BACKEND_NAME); }});
  cells.push_back({f, Code::kFallback, [] {
                     char text[2] = "?";
                     size_t size_bytes = sizeof(text);
                     const onnxStatus status = onnxGetBackendInfo(
                         ListIds().front(), ONNXIFI_BACKEND_NAME, text, &size_bytes);
                     EXPECT_EQ(size_bytes, sizeof("Fake"));
                     EXPECT_EQ(text[0], '?');
                     return status;
                   }});
  cells.push_back({f, Code::kInvalidId, [] {
                     return onnxGetBackendInfo(Foreign(), ONNXIFI_BACKEND_NAME, nullptr, nullptr);
                   }});
  cells.push_back({f, Code::kInvalidPointer,
                   [] { return onnxGetBackendInfo(ListIds().front(), 99, nullptr, nullptr); }});
  cells.push_back({f, Code::kUnsupportedAttribute, [] {
                     size_t size_bytes = 0;
                     return onnxGetBackendInfo(ListIds().front(), 99, nullptr, &size_bytes);
                   }});
  // The function has no code of its own for running out of memory or for faults.
  cells.push_back({f, Code::kBackendUnavailable, [=] {
                     FailNext(FakeStep::kInfo, FakeFault::kOutOfMemory);
                     return info(ONNXIFI_BACKEND_NAME);
                   }});

  f = Function::kGetBackendCompatibility;
  cells.push_back({f, Code::kOk, [] { return Compatibility("double"); }});
  cells.push_back(
      {f, Code::kInvalidId, [] { return onnxGetBackendCompatibility(nullptr, 0, nullptr); }});
  cells.push_back({f, Code::kInvalidPointer,
                   [] { return onnxGetBackendCompatibility(ListIds().front(), 0, nullptr); }});
  cells.push_back({f, Code::kInvalidSize,
                   [] { return onnxGetBackendCompatibility(ListIds().front(), 0, "double"); }});
  cells.push_back({f, Code::kInvalidProtobuf, [] { return Compatibility("\x01"); }});
  for (const Code code :
       {Code::kFallback, Code::kInvalidModel, Code::kUnsupportedVersion, Code::kUnsupportedOperator,
        Code::kUnsupportedAttribute, Code::kUnsupportedShape, Code::kUnsupportedDatatype,
        Code::kMismatchingShape, Code::kMismatchingDatatype, Code::kBackendUnavailable}) {
    cells.push_back(
        {f, code,
         [=] { return Compatibility("double status=" + std::to_string(static_cast<int>(code))); }});
  }
  cells.push_back({f, Code::kNoSystemMemory, [] {
                     FailNext(FakeStep::kCheckCompatibility, FakeFault::kOutOfMemory);
                     return Compatibility("double");
                   }});
  cells.push_back({f, Code::kInternalError, [] {
                     FailNext(FakeStep::kCheckCompatibility, FakeFault::kException);
                     return Compatibility("double");
                   }});
  return cells;
}

std::vector<Cell> BackendCells() {
  std::vector<Cell> cells;
  Function f = Function::kInitBackend;
  cells.push_back({f, Code::kOk, [] {
                     return InitBackend({ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION,
                                         ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT,
                                         ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL,
                                         ONNXIFI_LOG_LEVEL_ERROR, 0});
                   }});
  cells.push_back(
      {f, Code::kInvalidPointer, [] { return onnxInitBackend(nullptr, nullptr, nullptr); }});
  cells.push_back({f, Code::kInvalidId, [] {
                     onnxBackend backend = Foreign();
                     const onnxStatus status = onnxInitBackend(Foreign(), nullptr, &backend);
                     EXPECT_EQ(backend, nullptr);
                     return status;
                   }});
  cells.push_back({f, Code::kInvalidProperty, [] {
                     return InitBackend({ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, 9, 0});
                   }});
  // The unknown key is the last entry: reading on would leave the list.
  cells.push_back({f, Code::kUnsupportedProperty, [] { return InitBackend({1234}); }});
  Resources(
      f, FakeStep::kInitBackend, [] { return InitBackend({0}); }, &cells);

  f = Function::kReleaseBackend;
  cells.push_back({f, Code::kOk, [] {
                     Objects objects;
                     return onnxReleaseBackend(objects.backend);
                   }});
  cells.push_back({f, Code::kInvalidBackend, [] { return onnxReleaseBackend(nullptr); }});

  f = Function::kInitEvent;
  const auto init_event = [] {
    Objects objects;
    onnxEvent event = &objects;
    const onnxStatus status = onnxInitEvent(objects.backend, &event);
    if (status == ONNXIFI_STATUS_SUCCESS) {
      EXPECT_EQ(onnxReleaseEvent(event), ONNXIFI_STATUS_SUCCESS);
    } else {
      EXPECT_EQ(event, nullptr);
    }
    return status;
  };
  cells.push_back({f, Code::kOk, init_event});
  cells.push_back({f, Code::kInvalidPointer, [] { return onnxInitEvent(nullptr, nullptr); }});
  cells.push_back({f, Code::kInvalidBackend, [] {
                     onnxEvent event = Foreign();
                     const onnxStatus status = onnxInitEvent(nullptr, &event);
                     EXPECT_EQ(event, nullptr);
                     return status;
                   }});
  for (const Code code :
       {Code::kNoSystemMemory, Code::kNoDeviceMemory, Code::kNoSystemResources,
        Code::kNoDeviceResources, Code::kBackendUnavailable, Code::kInternalError}) {
    cells.push_back({f, code, [=] {
                       Objects objects;
                       FailNext(FakeStep::kNewEvent, FakeFault::kStatus, Planned(code));
                       onnxEvent event = nullptr;
                       return onnxInitEvent(objects.backend, &event);
                     }});
  }
  return cells;
}

std::vector<Cell> EventCells() {
  std::vector<Cell> cells;
  using EventCall = onnxStatus (*)(onnxEvent);
  const EventCall get_state = [](onnxEvent event) {
    onnxEventState state = 1;
    const onnxStatus status = onnxGetEventState(event, &state);
    EXPECT_EQ(state, status == ONNXIFI_STATUS_SUCCESS ? ONNXIFI_EVENT_STATE_NONSIGNALLED
                                                      : ONNXIFI_EVENT_STATE_INVALID);
    return status;
  };
  const auto add = [&](Function f, EventCall call, FakeStep step) {
    cells.push_back({f, Code::kInvalidEvent, [=] { return call(nullptr); }});
    for (const Code code : {Code::kBackendUnavailable, Code::kInternalError}) {
      cells.push_back({f, code, [=] {
                         Objects objects;
                         FailNext(step, FakeFault::kStatus, Planned(code));
                         return call(objects.event);
                       }});
    }
  };
  add(Function::kSignalEvent, onnxSignalEvent, FakeStep::kSignal);
  add(Function::kGetEventState, get_state, FakeStep::kIsSignalled);
  add(Function::kWaitEvent, onnxWaitEvent, FakeStep::kWait);
  cells.push_back({Function::kSignalEvent, Code::kOk, [] {
                     Objects objects;
                     return onnxSignalEvent(objects.event);
                   }});
  cells.push_back({Function::kSignalEvent, Code::kInvalidState, [] {
                     Objects objects;
                     EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
                     return onnxSignalEvent(objects.event);
                   }});
  cells.push_back({Function::kGetEventState, Code::kOk, [=] {
                     Objects objects;
                     return get_state(objects.event);
                   }});
  cells.push_back({Function::kGetEventState, Code::kInvalidPointer,
                   [] { return onnxGetEventState(nullptr, nullptr); }});
  cells.push_back({Function::kWaitEvent, Code::kOk, [] {
                     Objects objects;
                     EXPECT_EQ(onnxSignalEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
                     EXPECT_EQ(onnxWaitEvent(objects.event), ONNXIFI_STATUS_SUCCESS);
                     return onnxWaitEvent(objects.event);
                   }});
  cells.push_back({Function::kReleaseEvent, Code::kOk, [] {
                     Objects objects;
                     return onnxReleaseEvent(objects.event);
                   }});
  cells.push_back(
      {Function::kReleaseEvent, Code::kInvalidEvent, [] { return onnxReleaseEvent(nullptr); }});
  return cells;
}

std::vector<Cell> InitGraphCells() {
  std::vector<Cell> cells;
  const Function f = Function::kInitGraph;
  cells.push_back(
      {f, Code::kOk, [] { return InitGraphWithWeight([](onnxTensorDescriptorV1&) {}); }});
  cells.push_back({f, Code::kFallback, [] { return InitGraph({.model = "emulated"}); }});
  cells.push_back({f, Code::kInvalidPointer, [] {
                     return onnxInitGraph(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr);
                   }});
  cells.push_back({f, Code::kInvalidBackend, [] {
                     onnxGraph graph = Foreign();
                     const onnxStatus status =
                         onnxInitGraph(Foreign(), nullptr, 0, nullptr, 0, nullptr, &graph);
                     EXPECT_EQ(graph, nullptr);
                     return status;
                   }});
  cells.push_back({f, Code::kInvalidSize, [] { return InitGraph({.model = ""}); }});
  cells.push_back(
      {f, Code::kInvalidProperty, [] {
         return InitGraph({.properties = {ONNXIFI_SDK_GRAPH_PROPERTY_BASE_FOLDER, 0, 0}});
       }});
  // The bare flag of the foxi fork: the list ends right behind it.
  cells.push_back({f, Code::kUnsupportedProperty, [] {
                     return InitGraph({.properties = {4, 0}});
                   }});
  cells.push_back({f, Code::kUnsupportedTag, [] {
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) { w.tag = 1; });
                   }});
  cells.push_back(
      {f, Code::kInvalidName,
       [] { return InitGraphWithWeight([](onnxTensorDescriptorV1& w) { w.name = nullptr; }); }});
  cells.push_back({f, Code::kInvalidDatatype, [] {
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) { w.dataType = 8; });
                   }});
  cells.push_back({f, Code::kUnsupportedDatatype, [] {
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) {
                       w.dataType = ONNXIFI_DATATYPE_COMPLEX128;
                     });
                   }});
  cells.push_back(
      {f, Code::kInvalidMemoryType,
       [] { return InitGraphWithWeight([](onnxTensorDescriptorV1& w) { w.memoryType = 3; }); }});
  cells.push_back({f, Code::kUnsupportedMemoryType, [] {
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) {
                       w.memoryType = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER;
                     });
                   }});
  cells.push_back({f, Code::kInvalidShape, [] {
                     static constexpr uint64_t kHuge[] = {uint64_t{1} << 62, 8};
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) {
                       w.dimensions = 2;
                       w.shape = kHuge;
                     });
                   }});
  cells.push_back({f, Code::kInvalidMemoryLocation, [] {
                     return InitGraphWithWeight([](onnxTensorDescriptorV1& w) { w.buffer = 0; });
                   }});
  cells.push_back({f, Code::kInvalidProtobuf, [] { return InitGraph({.model = "\x01"}); }});
  for (const Code code :
       {Code::kInvalidModel, Code::kUnsupportedVersion, Code::kUnsupportedOperator,
        Code::kUnsupportedAttribute, Code::kUnsupportedShape, Code::kMismatchingShape,
        Code::kMismatchingDatatype}) {
    cells.push_back({f, code, [=] {
                       return InitGraph(
                           {.model = "double status=" + std::to_string(static_cast<int>(code))});
                     }});
  }
  for (const Code code :
       {Code::kNoSystemMemory, Code::kNoDeviceMemory, Code::kNoSystemResources,
        Code::kNoDeviceResources, Code::kBackendUnavailable, Code::kInternalError}) {
    cells.push_back({f, code, [=] {
                       return InitGraph(
                           {.model = "double status=" + std::to_string(static_cast<int>(code))});
                     }});
  }
  return cells;
}

std::vector<Cell> SetGraphIoCells() {
  std::vector<Cell> cells;
  const Function f = Function::kSetGraphIO;
  cells.push_back({f, Code::kOk, [] {
                     Objects objects;
                     return objects.SetIo();
                   }});
  cells.push_back(
      {f, Code::kInvalidGraph, [] { return onnxSetGraphIO(nullptr, 0, nullptr, 0, nullptr); }});
  cells.push_back({f, Code::kInvalidPointer, [] {
                     Objects objects;
                     return onnxSetGraphIO(objects.graph, 1, &objects.x.descriptor, 0, nullptr);
                   }});
  cells.push_back({f, Code::kInvalidSize, [] {
                     Objects objects;
                     return onnxSetGraphIO(objects.graph, 1, &objects.x.descriptor, 0,
                                           &objects.y.descriptor);
                   }});
  cells.push_back({f, Code::kUnsupportedTag,
                   [] { return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.tag = 0; }); }});
  cells.push_back({f, Code::kInvalidName,
                   [] { return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.name = "X"; }); }});
  cells.push_back({f, Code::kInvalidDatatype, [] {
                     return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.dataType = 0; });
                   }});
  cells.push_back({f, Code::kUnsupportedDatatype, [] {
                     return SetIoWithInput(
                         [](onnxTensorDescriptorV1& x) { x.dataType = ONNXIFI_DATATYPE_FLOAT16; });
                   }});
  cells.push_back({f, Code::kInvalidMemoryType, [] {
                     return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.memoryType = 5; });
                   }});
  cells.push_back({f, Code::kUnsupportedMemoryType, [] {
                     return SetIoWithInput([](onnxTensorDescriptorV1& x) {
                       x.memoryType = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
                     });
                   }});
  cells.push_back({f, Code::kInvalidShape, [] {
                     static constexpr uint64_t kZero[] = {0};
                     return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.shape = kZero; },
                                           "fixed");
                   }});
  cells.push_back({f, Code::kInvalidMemoryLocation,
                   [] { return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.buffer = 0; }); }});
  cells.push_back({f, Code::kUnidentifiedName, [] {
                     Objects objects;
                     return onnxSetGraphIO(objects.graph, 0, nullptr, 1, &objects.y.descriptor);
                   }});
  cells.push_back({f, Code::kMismatchingDatatype, [] {
                     return SetIoWithInput(
                         [](onnxTensorDescriptorV1& x) { x.dataType = ONNXIFI_DATATYPE_INT64; });
                   }});
  cells.push_back({f, Code::kMismatchingShape, [] {
                     static constexpr uint64_t kThree[] = {3};
                     return SetIoWithInput([](onnxTensorDescriptorV1& x) { x.shape = kThree; });
                   }});
  const auto bind = [] {
    Objects objects;
    return objects.SetIo();
  };
  cells.push_back({f, Code::kUnsupportedShape, [=] {
                     FailNext(FakeStep::kBind, FakeFault::kStatus,
                              Planned(Code::kUnsupportedShape));
                     return bind();
                   }});
  Resources(f, FakeStep::kBind, bind, &cells);
  return cells;
}

std::vector<Cell> RunGraphCells() {
  std::vector<Cell> cells;
  Function f = Function::kRunGraph;
  using Fence = onnxMemoryFenceV1;
  cells.push_back({f, Code::kOk, [] { return RunWithFences([](Fence&, Fence&) {}); }});
  cells.push_back({f, Code::kInvalidGraph, [] { return onnxRunGraph(nullptr, nullptr, nullptr); }});
  cells.push_back({f, Code::kInvalidPointer, [] {
                     Objects objects;
                     return onnxRunGraph(objects.graph, nullptr, nullptr);
                   }});
  cells.push_back({f, Code::kUnsupportedTag,
                   [] { return RunWithFences([](Fence&, Fence& output) { output.tag = 7; }); }});
  cells.push_back({f, Code::kInvalidFenceType,
                   [] { return RunWithFences([](Fence& input, Fence&) { input.type = 1; }); }});
  cells.push_back({f, Code::kUnsupportedFenceType, [] {
                     return RunWithFences([](Fence&, Fence& output) {
                       output.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
                     });
                   }});
  cells.push_back({f, Code::kInvalidEvent, [] {
                     return RunWithFences([](Fence& input, Fence&) { input.event = nullptr; });
                   }});
  cells.push_back({f, Code::kUnidentifiedName, [] {
                     Objects objects;
                     onnxEvent output = nullptr;
                     return objects.Run(&output);
                   }});
  Resources(
      f, FakeStep::kRun, [] { return RunWithFences([](Fence&, Fence&) {}); }, &cells);

  f = Function::kReleaseGraph;
  cells.push_back({f, Code::kOk, [] {
                     Objects objects;
                     return onnxReleaseGraph(objects.graph);
                   }});
  cells.push_back({f, Code::kInvalidGraph, [] { return onnxReleaseGraph(Foreign()); }});
  cells.push_back({f, Code::kInternalError, [] {
                     Objects objects;
                     FailNext(FakeStep::kClose, FakeFault::kException);
                     return onnxReleaseGraph(objects.graph);
                   }});
  return cells;
}

const std::vector<Cell>& Cells() {
  static const std::vector<Cell> cells = [] {
    std::vector<Cell> all;
    for (const auto& part : {DiscoveryCells(), BackendCells(), EventCells(), InitGraphCells(),
                             SetGraphIoCells(), RunGraphCells()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return cells;
}

// Cells that the interface lists and no call can reach, with the reason.
const std::map<std::pair<Function, Code>, std::string>& Unreachable() {
  static const std::map<std::pair<Function, Code>, std::string> cells = {
      {{Function::kReleaseBackendID, Code::kInternalError}, "Releasing an ID only looks it up."},
      {{Function::kReleaseBackend, Code::kInternalError}, "Releasing runs destructors only."},
      {{Function::kReleaseEvent, Code::kInternalError}, "Releasing runs destructors only."},
  };
  return cells;
}

class StatusCell : public testing::TestWithParam<size_t> {};

TEST_P(StatusCell, IsAnsweredWithASentence) {
  const Cell& cell = Cells()[GetParam()];
  EXPECT_EQ(cell.call(), static_cast<onnxStatus>(cell.code));
  if (cell.code != Code::kOk && cell.code != Code::kFallback) {
    EXPECT_FALSE(LastErrorText().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, StatusCell, testing::Range<size_t>(0, Cells().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           const Cell& cell = Cells()[info.param];
                           return std::string(FunctionName(cell.function)) + "_" +
                                  std::string(base::CodeName(cell.code)) + "_" +
                                  std::to_string(info.param);
                         });

TEST(StatusTable, EveryCellIsTestedOrUnreachable) {
  std::map<std::pair<Function, Code>, int> tested;
  for (const Cell& cell : Cells()) ++tested[{cell.function, cell.code}];
  for (int column = 0; column <= static_cast<int>(Function::kReleaseGraph); ++column) {
    const Function function = static_cast<Function>(column);
    for (int number = 0; number <= static_cast<int>(Code::kInternalError); ++number) {
      const Code code = static_cast<Code>(number);
      const bool is_accounted =
          tested.contains({function, code}) || Unreachable().contains({function, code});
      EXPECT_EQ(is_accounted, MayAnswer(function, code))
          << FunctionName(function) << " " << base::CodeName(code);
    }
  }
}

TEST(StatusTable, CountsTheCellsOfTheInterface) {
  // Counted in the interface's table of 15 functions, SUCCESS and the 4 cells that it forgets
  // (onnxInitGraph: UNSUPPORTED_TAG, INVALID_NAME; onnxSetGraphIO: INVALID_SIZE,
  // UNSUPPORTED_DATATYPE) included.
  constexpr int kListed = 135;
  constexpr int kForgotten = 4;
  int count = 0;
  for (int column = 0; column <= static_cast<int>(Function::kReleaseGraph); ++column) {
    for (int number = 0; number <= static_cast<int>(Code::kInternalError); ++number) {
      if (MayAnswer(static_cast<Function>(column), static_cast<Code>(number))) ++count;
    }
  }
  EXPECT_EQ(count, kListed + kForgotten);
}

TEST(StatusTable, TurnsOtherCodesIntoTheFaultCodeOfTheFunction) {
  EXPECT_EQ(PermittedCode(Function::kWaitEvent, Code::kNoDeviceMemory), Code::kInternalError);
  EXPECT_EQ(PermittedCode(Function::kGetBackendInfo, Code::kNoSystemMemory),
            Code::kBackendUnavailable);
  EXPECT_EQ(PermittedCode(Function::kInitGraph, Code::kInvalidState), Code::kInternalError);
}

}  // namespace
}  // namespace onnxifi::abi
