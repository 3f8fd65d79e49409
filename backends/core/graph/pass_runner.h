// SPDX-License-Identifier: Apache-2.0
//
// PassRunner: the one wrapper through which every graph pass runs. It can disable, time, dump and
// verify each, and takes it down into subgraphs. core/plugin's pipeline is a list of calls to it.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_PASS_RUNNER_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_PASS_RUNNER_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/graph/pass.h"

namespace onnxifi::graph {

struct PassOptions {
  std::vector<std::string> disabled;  // names of passes to leave out
  bool verify = false;                // check the graph's invariants after each pass
  // Called after each pass that changed something; empty: no dumps.
  std::function<void(std::string_view pass, const Graph& graph)> dump;
};

// What one call of Run did.
struct PassRecord {
  std::string pass;
  std::chrono::nanoseconds duration{};
  bool is_disabled = false;
  bool is_changed = false;
  int nodes_before = 0;  // of the outermost graph
  int nodes_after = 0;
};

// Threads: one runner per thread.
class PassRunner {
 public:
  explicit PassRunner(PassOptions options) : options_(std::move(options)) {}

  // Runs the pass over the graph, then over its subgraphs, outermost first. Errors: the pass's own,
  // or INTERNAL_ERROR when verification finds that it broke the graph; both name the pass.
  base::Status Run(Pass& pass, Graph& graph);

  const std::vector<PassRecord>& records() const { return records_; }

 private:
  base::Result<bool> RunNested(Pass& pass, Graph& graph);

  PassOptions options_;
  std::vector<PassRecord> records_;
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_PASS_RUNNER_H_
