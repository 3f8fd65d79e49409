// SPDX-License-Identifier: Apache-2.0
//
// MaxFlow: the cheapest way to tell the nodes of a network apart into those on the side of the
// source and those on the side of the sink (Dinic's algorithm).

#ifndef ONNXIFI_ONNXIFI_PARTITION_MAX_FLOW_H_
#define ONNXIFI_ONNXIFI_PARTITION_MAX_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onnxifi::partition {

class MaxFlow {
 public:
  // More than any sum of times; an edge of this capacity is never cut.
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  explicit MaxFlow(int32_t node_count)
      : from_source_(static_cast<size_t>(node_count), 0),
        to_sink_(static_cast<size_t>(node_count), 0) {}

  int32_t AddNode() {
    from_source_.push_back(0);
    to_sink_.push_back(0);
    return static_cast<int32_t>(from_source_.size()) - 1;
  }
  // Paid when `from` is on the source's side and `to` on the sink's.
  void AddEdge(int32_t from, int32_t to, int64_t capacity) {
    if (capacity > 0 && from != to) arcs_.push_back({from, to, capacity});
  }
  // Paid when the node is on the source's side, or on the sink's.
  void PayAtSource(int32_t node, int64_t price) { to_sink_[node] += price; }
  void PayAtSink(int32_t node, int64_t price) { from_source_[node] += price; }

  // For every node whether it is on the source's side of a cheapest cut; of all cheapest cuts the
  // one with the fewest nodes there, which does not depend on the order in which edges were added.
  std::vector<bool> SourceSide();

 private:
  struct Arc {
    int32_t from;
    int32_t to;
    int64_t capacity;
  };
  struct Half {
    int32_t to;
    int32_t back;  // the half in the other direction
    int64_t left;
  };

  // Where a node stands before the search.
  enum class Side : uint8_t { kOpen, kSource, kSink };

  void DecideWithoutSearch();
  void Build();
  bool Layer();
  int64_t Augment();

  std::vector<int64_t> from_source_;
  std::vector<int64_t> to_sink_;
  std::vector<Arc> arcs_;
  std::vector<Side> places_;
  std::vector<int64_t> excess_;  // what a node gets from the source less what it gives to the sink

  // Of the search, over the open nodes, then the source, then the sink.
  std::vector<int32_t> open_;    // the node
  std::vector<int32_t> number_;  // of an open node
  std::vector<int32_t> first_;   // halves of node n: [first_[n], first_[n + 1])
  std::vector<Half> halves_;
  std::vector<int32_t> level_;
  std::vector<int32_t> next_;
  std::vector<int32_t> path_;
  std::vector<int32_t> queue_;
};

}  // namespace onnxifi::partition

#endif  // ONNXIFI_ONNXIFI_PARTITION_MAX_FLOW_H_
