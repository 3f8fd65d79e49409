// SPDX-License-Identifier: Apache-2.0
//
// Specialisations: a graph with symbols, compiled again with numbers in their place, for shapes
// that come more than once. The passes decide orders in memory and algorithms by extents, which
// they do not know of symbols.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_SPECIALISATIONS_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_SPECIALISATIONS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/execution/executor.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/plan/plan.h"
#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::plugin {

// A graph for the numbers of one shape, ready to run.
struct Specialisation {
  std::unique_ptr<program::Program> program;
  std::unique_ptr<plan::Plan> plan;
  std::unique_ptr<execution::Executor> executor;
  std::unique_ptr<execution::HostBoundary> boundary;
};

// Threads: any.
class Specialisations {
 public:
  // The program of the graph for inputs of these extents. Any thread, one at a time.
  using Compile = std::function<base::Result<std::unique_ptr<program::Program>>(
      std::span<const tensor::Extents> inputs)>;

  // `general` is the plan for all shapes; it and `counters` outlive this. What it keeps for a shape
  // that has a plan of its own is given up.
  Specialisations(Compile compile, const plan::Plan& general, plan::Counters& counters);

  // To be asked for each run: what to run instead of the plan for all shapes, or null. Makes it
  // when a shape comes for the second time; when as many were made as are kept, shapes have to come
  // twice as often, and so on, so that shapes that take turns are not compiled without end. Where
  // the plan for numbers has the kernels and orders of that for symbols, no other is made. Shared
  // with the runs that use it.
  std::shared_ptr<const Specialisation> ForRun(const std::vector<int64_t>& symbols,
                                               std::span<const tensor::Extents> inputs);
  // To be asked before the general plan is bound to a shape: what runs the shape instead, or null.
  // Makes it for the first shape of all, which most likely comes again, where the graph has
  // convolutions, whose kernels depend on extents most. Whoever binds that shape meanwhile waits.
  std::shared_ptr<const Specialisation> ForBinding(const std::vector<int64_t>& symbols,
                                                   std::span<const tensor::Extents> inputs);
  // Gives up what is kept for a shape whose runs the general plan does.
  void Discard(const std::vector<int64_t>& symbols);

 private:
  struct Shape {
    std::vector<int64_t> symbols;
    int64_t runs = 0;
    std::shared_ptr<const Specialisation> specialisation;  // null: none is kept
  };

  // Ends what the caller of Keep began, by an exception too.
  class Making;
  // Makes what is kept for the shape; `is_making_` is set by the caller.
  std::shared_ptr<const Specialisation> Keep(const std::vector<int64_t>& symbols,
                                             std::span<const tensor::Extents> inputs);
  std::list<Shape>::iterator Find(const std::vector<int64_t>& symbols);
  // The entry of a shape, the first of all from now on; made if there is none.
  Shape& Touch(const std::vector<int64_t>& symbols);
  base::Result<std::shared_ptr<const Specialisation>> Make(std::span<const tensor::Extents> inputs);
  // Whether it differs from the general plan in what its steps are done by, or in the order in
  // memory of what products and windows write.
  bool IsUseful(const plan::Plan& plan) const;
  void DropOldest();
  void Drop(Shape& shape);

  Compile compile_;
  const plan::Plan& general_;
  plan::Counters& counters_;
  size_t max_kept_;
  std::mutex mutex_;
  std::list<Shape> shapes_;  // newest first
  size_t kept_ = 0;
  int64_t least_runs_ = 2;
  size_t made_ = 0;  // since least_runs_ last grew
  bool is_making_ = false;
  std::optional<std::vector<int64_t>> first_;  // symbols of the first binding while it is made
  std::condition_variable is_made_;
  bool has_begun_ = false;  // there was a binding, or a run
  bool is_useless_ = false;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_SPECIALISATIONS_H_
