// SPDX-License-Identifier: Apache-2.0
//
// ExportsFixture: the objects that the tests of the exported functions start from, all of the fake
// provider, and the shortest way to write a descriptor or a fence.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_TESTING_EXPORTS_FIXTURE_H_
#define ONNXIFI_BACKENDS_CORE_ABI_TESTING_EXPORTS_FIXTURE_H_

#include <gtest/gtest.h>
#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/abi/fake_provider.h"

namespace onnxifi::abi {

inline std::vector<onnxBackendID> ListIds() {
  size_t count = 0;
  EXPECT_EQ(onnxGetBackendIDs(nullptr, &count), ONNXIFI_STATUS_FALLBACK);
  std::vector<onnxBackendID> ids(count);
  EXPECT_EQ(onnxGetBackendIDs(ids.data(), &count), ONNXIFI_STATUS_SUCCESS);
  return ids;
}

inline std::string LastErrorText() {
  onnxExtensionFunctionPointer address = nullptr;
  EXPECT_EQ(onnxGetExtensionFunctionAddress(nullptr, "onnxGetLastErrorMessage", &address),
            ONNXIFI_STATUS_SUCCESS);
  const auto get =
      reinterpret_cast<onnxGetLastErrorMessageFunction>(reinterpret_cast<void (*)()>(address));
  size_t size_bytes = 0;
  EXPECT_EQ(get(nullptr, &size_bytes), ONNXIFI_STATUS_FALLBACK);
  std::string text(size_bytes, '\0');
  EXPECT_EQ(get(text.data(), &size_bytes), ONNXIFI_STATUS_SUCCESS);
  text.resize(size_bytes - 1);
  return text;
}

template <typename F>
F FindExtensionOf(onnxBackendID id, const char* name) {
  onnxExtensionFunctionPointer address = nullptr;
  EXPECT_EQ(onnxGetExtensionFunctionAddress(id, name, &address), ONNXIFI_STATUS_SUCCESS) << name;
  return reinterpret_cast<F>(reinterpret_cast<void (*)()>(address));
}

// A float32 vector in CPU memory and its descriptor. Stays where it is made.
struct Vector {
  explicit Vector(const char* name, std::vector<float> values)
      : data(std::move(values)), shape{data.size()} {
    descriptor.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
    descriptor.name = name;
    descriptor.dataType = ONNXIFI_DATATYPE_FLOAT32;
    descriptor.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
    descriptor.dimensions = 1;
    descriptor.shape = shape.data();
    descriptor.buffer = reinterpret_cast<uintptr_t>(data.data());
  }
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;

  std::vector<float> data;
  std::vector<uint64_t> shape;
  onnxTensorDescriptorV1 descriptor = {};
};

inline onnxMemoryFenceV1 EventFence(onnxEvent event) {
  onnxMemoryFenceV1 fence = {};
  fence.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
  fence.type = ONNXIFI_SYNCHRONIZATION_EVENT;
  fence.event = event;
  return fence;
}

// A backend of the first ID, with a graph and an unsignalled event.
struct Objects {
  explicit Objects(std::string_view model = "double") {
    id = ListIds().front();
    EXPECT_EQ(onnxInitBackend(id, nullptr, &backend), ONNXIFI_STATUS_SUCCESS);
    const onnxStatus status =
        onnxInitGraph(backend, nullptr, model.size(), model.data(), 0, nullptr, &graph);
    EXPECT_TRUE(status == ONNXIFI_STATUS_SUCCESS || status == ONNXIFI_STATUS_FALLBACK) << status;
    EXPECT_EQ(onnxInitEvent(backend, &event), ONNXIFI_STATUS_SUCCESS);
  }
  // What a test has released already answers INVALID_*, which is fine here.
  ~Objects() {
    onnxReleaseEvent(event);
    onnxReleaseGraph(graph);
    onnxReleaseBackend(backend);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  onnxStatus SetIo() { return onnxSetGraphIO(graph, 1, &x.descriptor, 1, &y.descriptor); }
  onnxStatus SetInput(const onnxTensorDescriptorV1& input) {
    return onnxSetGraphIO(graph, 1, &input, 1, &y.descriptor);
  }
  // Runs with `event` as input; the output event is the caller's.
  onnxStatus Run(onnxEvent* output) {
    const onnxMemoryFenceV1 input_fence = EventFence(event);
    onnxMemoryFenceV1 output_fence = EventFence(nullptr);
    const onnxStatus status = onnxRunGraph(graph, &input_fence, &output_fence);
    *output = output_fence.event;
    return status;
  }

  onnxBackendID id = nullptr;
  onnxBackend backend = nullptr;
  onnxGraph graph = nullptr;
  onnxEvent event = nullptr;
  Vector x{"x", {1, 2, 3, 4}};
  Vector y{"y", {0, 0, 0, 0}};
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_TESTING_EXPORTS_FIXTURE_H_
