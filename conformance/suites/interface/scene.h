// SPDX-License-Identifier: Apache-2.0
//
// Scene: a backend with the graphs and events that a case makes on it, released in the proper order
// at its end; and the tensors of the suite's small models.

#ifndef ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SCENE_H_
#define ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SCENE_H_

#include <string>
#include <vector>

#include "client/execution.h"
#include "conformance/suites/interface/check.h"

namespace onnxifi::suites {

// A fence of type EVENT.
onnxMemoryFenceV1 MakeFence(onnxEvent event);

// Threads: InitEvent, Signal and RunAndWait may be called from any thread; the rest from one.
class Scene {
 public:
  // Initialises a backend of the case's device.
  explicit Scene(Check& check);
  // Releases what is left: events, graphs, then the backend; a release that fails is a failure of
  // the case.
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  bool is_ready() const { return backend_ != nullptr; }
  onnxBackend backend() const { return backend_; }

  // A graph that the scene releases; nullptr when the device does not support the model, which ends
  // the case as not supported, or fails to initialise it.
  onnxGraph InitGraph(const std::string& model);
  // Hands a graph to the scene to be released.
  void KeepGraph(onnxGraph graph) { graphs_.push_back(graph); }
  // An event that the scene releases.
  onnxEvent InitEvent();
  // Hands an event to the scene to be released, or takes it back.
  void Keep(onnxEvent event);
  void ReleaseNow(onnxEvent event);
  void ReleaseGraphNow(onnxGraph graph);
  void ReleaseBackendNow();

  // Starts a run whose input is complete; the output event is the scene's to release. nullptr after
  // a failure.
  onnxEvent StartRun(onnxGraph graph);
  // The same, and waits for its end.
  bool RunAndWait(onnxGraph graph);

 private:
  Check& check_;
  onnxBackend backend_ = nullptr;
  std::mutex mutex_;  // Guards the lists.
  std::vector<onnxGraph> graphs_;
  std::vector<onnxEvent> events_;
};

// Tensors of z = x + y float32, with values that depend on `seed`.
class AddTensors {
 public:
  explicit AddTensors(float seed = 1, std::vector<int64_t> extents = {2, 3});
  AddTensors(const AddTensors&) = delete;
  AddTensors& operator=(const AddTensors&) = delete;

  client::DescriptorList& inputs() { return inputs_; }
  client::DescriptorList& outputs() { return outputs_; }
  std::vector<float>& x() { return x_; }
  std::vector<float>& y() { return y_; }
  std::vector<float>& z() { return z_; }

  // Whether z holds x + y.
  bool IsSum() const;
  // Binds these tensors to the graph.
  onnxStatus Bind(const client::Library& library, onnxGraph graph) const;

 private:
  std::vector<float> x_;
  std::vector<float> y_;
  std::vector<float> z_;
  client::DescriptorList inputs_;
  client::DescriptorList outputs_;
};

}  // namespace onnxifi::suites

#endif  // ONNXIFI_CONFORMANCE_SUITES_INTERFACE_SCENE_H_
