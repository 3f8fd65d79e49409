// SPDX-License-Identifier: Apache-2.0
//
// What the capability THREAD_SAFE promises.

#include <onnx/onnxifi.h>

#include <memory>
#include <thread>
#include <vector>

#include "client/device_list.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

constexpr int kThreads = 4;

bool NeedsThreadSafety(Check& check) {
  const uint64_t capabilities =
      client::QueryNumber(check.library(), check.id(), ONNXIFI_BACKEND_CAPABILITIES).value_or(0);
  if ((capabilities & ONNXIFI_CAPABILITY_THREAD_SAFE) != 0) return true;
  check.SetNotSupported(ONNXIFI_STATUS_SUCCESS, "The device does not promise thread safety.");
  return false;
}

void GraphsInSeveralThreads(Check& check) {
  if (!NeedsThreadSafety(check)) return;
  Scene scene(check);
  std::vector<onnxGraph> graphs;
  for (int thread = 0; thread < kThreads; ++thread) {
    graphs.push_back(scene.InitGraph(MakeAddModel()));
    if (graphs.back() == nullptr) return;
  }
  std::vector<std::jthread> threads;
  for (const onnxGraph graph : graphs) {
    threads.emplace_back([&check, &scene, graph] {
      for (int run = 0; run < 50; ++run) {
        AddTensors tensors(static_cast<float>(run));
        check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                           "onnxSetGraphIO in a thread of its own");
        if (!scene.RunAndWait(graph)) return;
        check.Expect(tensors.IsSum(), "A graph in a thread of its own computes a wrong sum.");
      }
    });
  }
}

void BackendsInSeveralThreads(Check& check) {
  if (!NeedsThreadSafety(check)) return;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&check] {
      for (int time = 0; time < 10; ++time) {
        Scene scene(check);
        const onnxGraph graph = scene.InitGraph(MakeAddModel());
        if (graph == nullptr) return;
        AddTensors tensors(static_cast<float>(time));
        check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                           "onnxSetGraphIO in a thread of its own");
        if (!scene.RunAndWait(graph)) return;
        check.Expect(tensors.IsSum(), "A backend in a thread of its own computes a wrong sum.");
      }
    });
  }
}

void DiscoveryInSeveralThreads(Check& check) {
  // Holds without the capability too: these functions come before any backend exists.
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&check] {
      for (int time = 0; time < 100; ++time) {
        size_t count = 0;
        check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                           check.library().onnxGetBackendIDs(nullptr, &count),
                           "onnxGetBackendIDs in several threads");
        uint64_t type = 0;
        size_t size_bytes = sizeof(type);
        check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                           check.library().onnxGetBackendInfo(
                               check.id(), ONNXIFI_BACKEND_DEVICE_TYPE, &type, &size_bytes),
                           "onnxGetBackendInfo in several threads");
      }
    });
  }
}

void ClaimsInSeveralThreads(Check& check) {
  const std::string good = MakeAddModel();
  const std::string bad = ModelWriter()
                              .Input("x", ElementType::kFloat32, {kRows})
                              .Node("NoSuchOperator", {"x"}, {"y"})
                              .Output("y", ElementType::kFloat32, {kRows})
                              .Build();
  const auto claim = [&check](const std::string& model) {
    return check.library().onnxGetBackendCompatibility(check.id(), model.size(), model.data());
  };
  const onnxStatus good_answer = claim(good);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int time = 0; time < 50; ++time) {
        check.Expect(claim(good) == good_answer, "Answers differ between threads.");
        // The last error is the thread's own.
        check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_OPERATOR, claim(bad),
                           "onnxGetBackendCompatibility for an unknown operator");
      }
    });
  }
}

// Binds and runs one graph from several threads at once, which the extension is for.
void SetIoAndRunFromSeveralThreads(Check& check) {
  const onnxSetIOAndRunGraphFunction run = check.extensions().set_io_and_run_graph;
  if (run == nullptr) {
    return check.SetNotSupported(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                                 "The library does not offer onnxSetIOAndRunGraph.");
  }
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int time = 0; time < 100; ++time) {
        AddTensors tensors(static_cast<float>(1000 * thread + time));
        onnxMemoryFenceV1 output = MakeFence(nullptr);
        if (!check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                                run(graph, tensors.inputs().count(), tensors.inputs().data(),
                                    tensors.outputs().count(), tensors.outputs().data(), &output),
                                "onnxSetIOAndRunGraph from one of several threads")) {
          return;
        }
        check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                           "onnxWaitEvent on its event");
        check.Expect(tensors.IsSum(), "Concurrent runs of one graph mix their tensors up.");
        check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseEvent(output.event),
                           "onnxReleaseEvent on its event");
      }
    });
  }
}

constexpr InterfaceCase kCases[] = {
    {"threads", "graphs_in_several_threads", GraphsInSeveralThreads},
    {"threads", "backends_in_several_threads", BackendsInSeveralThreads},
    {"threads", "discovery_in_several_threads", DiscoveryInSeveralThreads},
    {"threads", "claims_in_several_threads", ClaimsInSeveralThreads},
    {"threads", "set_io_and_run_from_several_threads", SetIoAndRunFromSeveralThreads},
};

}  // namespace

std::span<const InterfaceCase> ThreadCases() { return kCases; }

}  // namespace onnxifi::suites
