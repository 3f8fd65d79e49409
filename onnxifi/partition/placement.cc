// SPDX-License-Identifier: Apache-2.0
//
// Placement: two devices are told apart by a cheapest cut, which is exact; more of them pair by
// pair until no pair gains (the swap moves of Boykov, Veksler and Zabih, "Fast approximate energy
// minimization via graph cuts", 2001).

#include "onnxifi/partition/placement.h"

#include <algorithm>
#include <optional>

#include "onnxifi/partition/max_flow.h"

namespace onnxifi::partition {

int64_t EnterNs(const Problem& problem, const Value& value, DeviceIndex device) {
  const DeviceCost& cost = problem.devices[device];
  return cost.enter.TimeNs(value.size_bytes) + (value.producer == kCaller ? 0 : cost.launch_ns);
}

int64_t LeaveNs(const Problem& problem, const Value& value, DeviceIndex device) {
  return problem.devices[device].leave.TimeNs(value.size_bytes);
}

int64_t TotalNs(const Problem& problem, const Placement& placement) {
  int64_t total = 0;
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    total += problem.TimeNs(node, placement[node]);
  }
  std::vector<size_t> seen(problem.devices.size(), 0);
  for (size_t index = 0; index < problem.values.size(); ++index) {
    const Value& value = problem.values[index];
    const DeviceIndex home = value.producer == kCaller ? -1 : placement[value.producer];
    bool leaves = value.is_output;
    for (const NodeIndex consumer : value.consumers) {
      const DeviceIndex device = placement[consumer];
      if (device == home) continue;
      leaves = true;
      if (seen[device] == index + 1) continue;
      seen[device] = index + 1;
      total += EnterNs(problem, value, device);
    }
    if (leaves && home >= 0) total += LeaveNs(problem, value, home);
  }
  return total;
}

namespace {

// Where a node stands while two devices are told apart.
enum class Side : uint8_t { kFree, kFirst, kSecond, kElsewhere };

// Tells the nodes of two devices apart anew. The second is the source's side, of which the cut
// takes as few nodes as it can.
class PairSwap {
 public:
  PairSwap(const Problem& problem, const Placement& placement, DeviceIndex first,
           DeviceIndex second)
      : problem_(problem), placement_(placement), first_(first), second_(second) {}

  // The better placement, or nothing where this one is as good.
  std::optional<Placement> Run() {
    sides_.assign(static_cast<size_t>(problem_.node_count), Side::kElsewhere);
    variable_.assign(static_cast<size_t>(problem_.node_count), -1);
    std::vector<NodeIndex> free_nodes;
    for (NodeIndex node = 0; node < problem_.node_count; ++node) {
      if (placement_[node] != first_ && placement_[node] != second_) continue;
      if (!problem_.Claims(second_, node)) {
        sides_[node] = Side::kFirst;
      } else if (!problem_.Claims(first_, node)) {
        sides_[node] = Side::kSecond;
      } else {
        sides_[node] = Side::kFree;
        variable_[node] = static_cast<int32_t>(free_nodes.size());
        free_nodes.push_back(node);
      }
    }
    if (free_nodes.empty()) return std::nullopt;
    MaxFlow flow(static_cast<int32_t>(free_nodes.size()));
    for (const NodeIndex node : free_nodes) {
      flow.PayAtSink(variable_[node], problem_.TimeNs(node, first_));
      flow.PayAtSource(variable_[node], problem_.TimeNs(node, second_));
    }
    for (const Value& value : problem_.values) AddValue(value, flow);
    const std::vector<bool> is_second = flow.SourceSide();
    Placement swapped = placement_;
    for (const NodeIndex node : free_nodes) {
      swapped[node] = is_second[variable_[node]] ? second_ : first_;
    }
    if (swapped == placement_) return std::nullopt;
    return swapped;
  }

 private:
  // Paid when `node` is on that side.
  void Pay(MaxFlow& flow, NodeIndex node, Side side, int64_t price) const {
    if (side == Side::kSecond) {
      flow.PayAtSource(variable_[node], price);
    } else {
      flow.PayAtSink(variable_[node], price);
    }
  }

  // Paid once when any of the free nodes of `group` is on `side` and, where there is one, the
  // producer on the other.
  void PayForAny(MaxFlow& flow, const std::vector<NodeIndex>& group, Side side,
                 std::optional<NodeIndex> producer, int64_t price) const {
    if (group.empty() || price == 0) return;
    if (group.size() == 1 && !producer) return Pay(flow, group[0], side, price);
    int32_t joint = -1;
    if (group.size() == 1) {
      joint = variable_[group[0]];
    } else {
      joint = flow.AddNode();
      for (const NodeIndex node : group) {
        if (side == Side::kSecond) {
          flow.AddEdge(variable_[node], joint, MaxFlow::kInfinite);
        } else {
          flow.AddEdge(joint, variable_[node], MaxFlow::kInfinite);
        }
      }
    }
    if (side == Side::kSecond) {
      if (producer) {
        flow.AddEdge(joint, variable_[*producer], price);
      } else {
        flow.PayAtSource(joint, price);
      }
    } else if (producer) {
      flow.AddEdge(variable_[*producer], joint, price);
    } else {
      flow.PayAtSink(joint, price);
    }
  }

  void AddValue(const Value& value, MaxFlow& flow) {
    group_.clear();
    bool has_first = false;
    bool has_second = false;
    bool has_elsewhere = false;
    for (const NodeIndex consumer : value.consumers) {
      switch (sides_[consumer]) {
        case Side::kFree:
          group_.push_back(consumer);
          break;
        case Side::kFirst:
          has_first = true;
          break;
        case Side::kSecond:
          has_second = true;
          break;
        case Side::kElsewhere:
          has_elsewhere = true;
          break;
      }
    }
    const Side home = value.producer == kCaller ? Side::kElsewhere : sides_[value.producer];
    if (group_.empty() && home != Side::kFree) return;
    AddSide(value, flow, home, Side::kFirst, first_, second_, has_first,
            value.is_output || has_elsewhere);
    AddSide(value, flow, home, Side::kSecond, second_, first_, has_second,
            value.is_output || has_elsewhere);
  }

  // What it costs that the value enters the device of `side`, and that it leaves the `other` device
  // for it. `is_there`: a node that stays on `side` reads it. `leaves`: it leaves its own device
  // whatever these two do.
  void AddSide(const Value& value, MaxFlow& flow, Side home, Side side, DeviceIndex device,
               DeviceIndex other_device, bool is_there, bool leaves) const {
    const Side other = side == Side::kFirst ? Side::kSecond : Side::kFirst;
    const int64_t enter = EnterNs(problem_, value, device);
    if (home == Side::kFree) {
      const int64_t leave = LeaveNs(problem_, value, other_device);
      // With the producer on the other side.
      if (leaves || is_there) Pay(flow, value.producer, other, leave);
      if (is_there) return Pay(flow, value.producer, other, enter);
      return PayForAny(flow, group_, side, value.producer, leaves ? enter : enter + leave);
    }
    if (home == side || is_there) return;
    const int64_t leave = home == other && !leaves ? LeaveNs(problem_, value, other_device) : 0;
    PayForAny(flow, group_, side, std::nullopt, enter + leave);
  }

  const Problem& problem_;
  const Placement& placement_;
  const DeviceIndex first_;
  const DeviceIndex second_;
  std::vector<Side> sides_;
  std::vector<int32_t> variable_;  // of free nodes
  std::vector<NodeIndex> group_;
};

// Each node where it is fastest.
Placement PlaceAlone(const Problem& problem) {
  Placement placement;
  for (NodeIndex node = 0; node < problem.node_count; ++node) {
    DeviceIndex best = -1;
    for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
      if (!problem.Claims(device, node)) continue;
      if (best < 0 || problem.TimeNs(node, device) < problem.TimeNs(node, best)) best = device;
    }
    placement.push_back(best);
  }
  return placement;
}

// Everything on the device on which that costs least, if any claims all.
std::optional<Placement> PlaceTogether(const Problem& problem) {
  std::optional<Placement> best;
  int64_t least = 0;
  for (DeviceIndex device = 0; device < problem.device_count(); ++device) {
    bool claims_all = true;
    for (NodeIndex node = 0; claims_all && node < problem.node_count; ++node) {
      claims_all = problem.Claims(device, node);
    }
    if (!claims_all) continue;
    Placement together(static_cast<size_t>(problem.node_count), device);
    const int64_t total = TotalNs(problem, together);
    if (best && total >= least) continue;
    least = total;
    best = std::move(together);
  }
  return best;
}

void Improve(const Problem& problem, Placement& placement) {
  // Each round lowers the total; a few rounds reach nearly all of it.
  constexpr int kMaxRounds = 4;
  int64_t total = TotalNs(problem, placement);
  const DeviceIndex count = problem.device_count();
  // A pair has to be looked at again only once the nodes of one of the two have changed.
  std::vector<int> changed_at(static_cast<size_t>(count), 0);
  std::vector<int> seen_at(static_cast<size_t>(count * count), -1);
  int step = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    bool has_improved = false;
    for (DeviceIndex first = 0; first < count; ++first) {
      for (DeviceIndex second = first + 1; second < count; ++second) {
        int& seen = seen_at[first * count + second];
        if (seen >= std::max(changed_at[first], changed_at[second])) continue;
        seen = ++step;
        auto swapped = PairSwap(problem, placement, first, second).Run();
        if (!swapped) continue;
        const int64_t better = TotalNs(problem, *swapped);
        if (better > total) continue;
        has_improved = has_improved || better < total;
        total = better;
        placement = *std::move(swapped);
        // Seen as it is now.
        changed_at[first] = changed_at[second] = step;
      }
    }
    if (!has_improved) break;
  }
}

}  // namespace

Placement AssignDevices(const Problem& problem) {
  Placement placement = PlaceAlone(problem);
  Improve(problem, placement);
  // With two devices the cut has found the best there is, wherever it started.
  if (problem.device_count() <= 2) return placement;
  std::optional<Placement> together = PlaceTogether(problem);
  if (!together || TotalNs(problem, *together) > TotalNs(problem, placement)) return placement;
  Improve(problem, *together);
  return *std::move(together);
}

}  // namespace onnxifi::partition
