// SPDX-License-Identifier: Apache-2.0
//
// Making and releasing, with every status checked.

#include "conformance/suites/interface/scene.h"

#include <algorithm>

namespace onnxifi::suites {

onnxMemoryFenceV1 MakeFence(onnxEvent event) {
  return {ONNXIFI_TAG_MEMORY_FENCE_V1, ONNXIFI_SYNCHRONIZATION_EVENT, {event}};
}

Scene::Scene(Check& check) : check_(check) {
  check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                      check_.library().onnxInitBackend(check_.id(), nullptr, &backend_),
                      "onnxInitBackend with a valid ID");
}

Scene::~Scene() {
  for (const onnxEvent event : events_) {
    check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxReleaseEvent(event),
                        "onnxReleaseEvent at the end of the case");
  }
  for (const onnxGraph graph : graphs_) {
    check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxReleaseGraph(graph),
                        "onnxReleaseGraph at the end of the case");
  }
  if (backend_ != nullptr) ReleaseBackendNow();
}

onnxGraph Scene::InitGraph(const std::string& model) {
  const client::Library& library = check_.library();
  const onnxStatus claim =
      library.onnxGetBackendCompatibility(check_.id(), model.size(), model.data());
  if (client::IsRefusal(claim)) {
    check_.SetNotSupported(claim, library.LastError());
    return nullptr;
  }
  if (!check_.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, claim,
                          "onnxGetBackendCompatibility for a legal model")) {
    return nullptr;
  }
  onnxGraph graph = nullptr;
  const onnxStatus status =
      library.onnxInitGraph(backend_, nullptr, model.size(), model.data(), 0, nullptr, &graph);
  if (!check_.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK}, status,
                          "onnxInitGraph for a legal model")) {
    return nullptr;
  }
  graphs_.push_back(graph);
  return graph;
}

onnxEvent Scene::InitEvent() {
  onnxEvent event = nullptr;
  if (!check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxInitEvent(backend_, &event),
                           "onnxInitEvent on a valid backend")) {
    return nullptr;
  }
  Keep(event);
  return event;
}

void Scene::Keep(onnxEvent event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(event);
}

void Scene::ReleaseNow(onnxEvent event) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(events_, event);
  }
  check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxReleaseEvent(event),
                      "onnxReleaseEvent on a live event");
}

void Scene::ReleaseGraphNow(onnxGraph graph) {
  std::erase(graphs_, graph);
  check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxReleaseGraph(graph),
                      "onnxReleaseGraph on a live graph");
}

void Scene::ReleaseBackendNow() {
  check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxReleaseBackend(backend_),
                      "onnxReleaseBackend on a live backend");
  backend_ = nullptr;
}

onnxEvent Scene::StartRun(onnxGraph graph) {
  const onnxEvent input = InitEvent();
  if (input == nullptr) return nullptr;
  check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxSignalEvent(input),
                      "onnxSignalEvent on a new event");
  const onnxMemoryFenceV1 input_fence = MakeFence(input);
  onnxMemoryFenceV1 output_fence = MakeFence(nullptr);
  if (!check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                           check_.library().onnxRunGraph(graph, &input_fence, &output_fence),
                           "onnxRunGraph on a bound graph")) {
    return nullptr;
  }
  if (!check_.Expect(output_fence.event != nullptr,
                     "onnxRunGraph stores no event in the output fence.")) {
    return nullptr;
  }
  Keep(output_fence.event);
  return output_fence.event;
}

bool Scene::RunAndWait(onnxGraph graph) {
  const onnxEvent output = StartRun(graph);
  return output != nullptr &&
         check_.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check_.library().onnxWaitEvent(output),
                             "onnxWaitEvent on the output event");
}

AddTensors::AddTensors(float seed, std::vector<int64_t> extents) {
  const auto count = static_cast<size_t>(onnx_file::ElementCount(extents).value_or(0));
  for (size_t index = 0; index < count; ++index) {
    x_.push_back(seed + static_cast<float>(index));
    y_.push_back(10 * seed - static_cast<float>(index) / 4);
  }
  z_.assign(count, -1.0f);
  inputs_.Add("x", onnx_file::ElementType::kFloat32, extents, x_.data());
  inputs_.Add("y", onnx_file::ElementType::kFloat32, extents, y_.data());
  outputs_.Add("z", onnx_file::ElementType::kFloat32, extents, z_.data());
}

bool AddTensors::IsSum() const {
  for (size_t index = 0; index < z_.size(); ++index) {
    if (z_[index] != x_[index] + y_[index]) return false;
  }
  return true;
}

onnxStatus AddTensors::Bind(const client::Library& library, onnxGraph graph) const {
  return library.onnxSetGraphIO(graph, inputs_.count(), inputs_.data(), outputs_.count(),
                                outputs_.data());
}

}  // namespace onnxifi::suites
