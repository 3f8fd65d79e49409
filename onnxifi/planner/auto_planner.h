// SPDX-License-Identifier: Apache-2.0
//
// AutoPlanner: one model before several devices: what each claims of it, what its caller wants, and
// which of them runs what.

#ifndef ONNXIFI_ONNXIFI_PLANNER_AUTO_PLANNER_H_
#define ONNXIFI_ONNXIFI_PLANNER_AUTO_PLANNER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "onnxifi/partition/given_plan.h"
#include "onnxifi/partition/plan.h"
#include "onnxifi/partition/twins.h"
#include "onnxifi/planner/auto_costs.h"
#include "onnxifi/planner/auto_options.h"
#include "onnxifi/plugins/claim_memory.h"
#include "onnxifi/plugins/forwarded_backend_id.h"
#include "onnxifi/split/model_problem.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::planner {

class AutoPlanner {
 public:
  // Reads the model and asks every device that may have nodes about each of them. `devices`,
  // `model` and the data of `weights` outlive it. A model that cannot be cut is refused with
  // UNSUPPORTED_*, a placement that fits neither model nor devices with INVALID_PROPERTY, and a
  // plan to which a device does not agree with that device's status.
  static base::Result<std::unique_ptr<AutoPlanner>> Ask(
      std::span<const plugins::ForwardedBackendId* const> devices, std::span<const std::byte> model,
      std::vector<split::GivenWeight> weights, const PlacementRequest& placement = {});

  // What is known of how long the devices take, by device; without it they are taken to be equally
  // fast.
  void UseCosts(std::vector<KnownCosts> costs) { costs_ = std::move(costs); }

  // The plan for the claims as they stand: of the candidates that which takes least time, as
  // measured or expected; one that cuts the model has to be a tenth faster than one that does not
  // where any of them was measured, and one that cuts it between twins to have been measured so
  // much faster than any other. UNSUPPORTED_* with the reasons of every device where some nodes are
  // claimed by none.
  base::Result<partition::Plan> Plan() const;
  // The plan that is expected to take least time by what is known of single nodes, and those with
  // all nodes on one device that claims them. Where the first would cut the model between twins, it
  // comes last, and first comes the best that does so only for what nobody else takes. Where nodes
  // are placed, the one plan in which they are there and every other node is where it would be if
  // none were placed. UNSUPPORTED_* as above.
  base::Result<std::vector<partition::Plan>> Candidates() const;
  // Plan() answers this one until a claim is taken back.
  void Pin(partition::Plan plan) { pinned_ = std::move(plan); }
  void Unpin() { pinned_.reset(); }
  bool IsPinned() const { return pinned_.has_value(); }
  // Whether the plan is the caller's, who wants no other: no claim is to be taken back.
  bool has_given_plan() const { return has_given_plan_; }
  // What stands for runs by this plan in the table of its first island's device.
  split::Digest DigestOf(const partition::Plan& plan) const;

  // "node 3 'conv1' (Conv)".
  std::string DescribeNode(partition::NodeIndex node) const;

  // Why the device does not claim the node; none where it does.
  std::vector<base::Status> ReasonsOf(partition::DeviceIndex device,
                                      partition::NodeIndex node) const;

  // Takes back a device's claim of these nodes: it did not keep it, for this reason.
  void Withdraw(partition::DeviceIndex device, std::span<const partition::NodeIndex> nodes,
                const base::Status& reason);

  // Whether a device of the plan emulates a node of it.
  bool Emulates(const partition::Plan& plan) const;

  // Whether each of the nodes is claimed by another device than this.
  bool IsClaimedElsewhere(partition::DeviceIndex device,
                          std::span<const partition::NodeIndex> nodes) const;

  // Every node of the model as one that runs: what there is to say once there is a plan. Empty
  // where no device tells of nodes.
  std::vector<abi::NodeVerdict> AcceptingVerdicts() const;

  // Processor time of the calling thread: to read the model, and to find what devices claim of it,
  // asking where that was not known.
  struct Times {
    std::chrono::nanoseconds read{0};
    std::chrono::nanoseconds claims{0};
  };
  const Times& times() const { return times_; }
  // How many devices had to be asked.
  int asked_count() const { return asked_count_; }

  bool Claims(partition::DeviceIndex device, partition::NodeIndex node) const {
    return claims_[static_cast<size_t>(device)][static_cast<size_t>(node)];
  }
  // Whether the device, which claims the node, has no kernels of its own for it.
  bool Emulates(partition::DeviceIndex device, partition::NodeIndex node) const {
    return is_emulated_[static_cast<size_t>(device)][static_cast<size_t>(node)];
  }
  // By node, alone.
  std::span<const split::Digest> signatures() const { return signatures_; }
  const split::WholeModel& whole() const { return *whole_; }
  std::span<const plugins::ForwardedBackendId* const> devices() const { return devices_; }
  const plugins::ForwardedBackendId& device(partition::DeviceIndex device) const {
    return *devices_[static_cast<size_t>(device)];
  }

 private:
  explicit AutoPlanner(std::span<const plugins::ForwardedBackendId* const> devices)
      : devices_(devices.begin(), devices.end()) {}

  // Answers by node; empty pointers where there are none.
  using Answers = std::vector<std::shared_ptr<const plugins::NodeReasons>>;

  Answers AskDevice(const plugins::ForwardedBackendId& device,
                    std::span<const split::Digest> questions);
  Answers AskPlainDevice(const plugins::ForwardedBackendId& device,
                         std::span<const split::Digest> questions);
  // The devices of nodes that the model or the caller places, by node; empty for all others.
  base::Result<std::vector<std::string>> FindPlaces(const PlacementRequest& placement) const;
  // Leaves nodes to the devices that may have them.
  void KeepPlacement(const PlacementRequest& placement, const std::vector<std::string>& places);
  void Forbid(size_t device, size_t node, std::string reason);
  base::Status KeepPlan(const PlacementRequest& placement);
  base::Status FaultOf(const partition::PlanFault& fault, const PlacementRequest& placement,
                       const std::vector<int32_t>& island_of) const;
  std::map<uint32_t, partition::NodeIndex> NodesByPosition() const;
  base::Result<partition::DeviceIndex> FindDevice(const std::string& key) const;

  partition::Problem MakeProblem(const split::Claims& claims) const;
  // The same with what the caller prefers, and without emulation where it is not needed.
  partition::Problem MakeRankedProblem(const split::Claims& claims) const;
  // Leaves what a preferred device takes to the first that does.
  void ApplyPreference(partition::Problem& problem) const;
  // Leaves to nobody by emulation what a device has kernels of its own for.
  void DropEmulation(partition::Problem& problem) const;
  // Candidates for these claims as if no node were placed; each unit is claimed by a device.
  base::Result<std::vector<partition::Plan>> FreeCandidates(
      const partition::Problem& problem) const;
  // The one of them that is expected to take least time.
  partition::Plan Choose(std::vector<partition::Plan> plans) const;
  base::Result<partition::Plan> MakePlacedPlan() const;
  // By node, the device that would have it if none were placed; of no meaning for what is.
  base::Result<std::vector<partition::DeviceIndex>> FindFreeDevices(
      const std::vector<std::vector<partition::NodeIndex>>& units) const;
  bool IsPlaced(std::span<const partition::NodeIndex> unit) const;
  bool HasMeasuredCosts() const;
  void ReplaceMeasured(partition::Problem& problem) const;
  // `gaps`: nodes that have to stay together and that no device takes all of.
  base::Status RefusalOf(const std::vector<std::vector<partition::NodeIndex>>& gaps) const;
  std::optional<int64_t> MeasuredNs(const partition::Plan& plan) const;

  const std::vector<const plugins::ForwardedBackendId*> devices_;
  partition::Twins twins_;  // of them
  std::vector<split::GivenWeight> weights_;
  std::unique_ptr<split::WholeModel> whole_;
  split::Claims claims_;
  // As `claims_`, as if no node were placed; empty where none is.
  split::Claims free_claims_;
  // By node, whether it is placed; empty where none is.
  std::vector<bool> is_placed_;
  // is_emulated_[device][node]: by what the device answered.
  std::vector<std::vector<bool>> is_emulated_;
  // Whether the first device that claims all of the model has it where nothing is measured.
  bool goes_by_order_ = false;
  // reasons_[device][node]: why it is not claimed.
  std::vector<Answers> reasons_;
  std::vector<split::Digest> signatures_;
  std::vector<KnownCosts> costs_;
  std::optional<partition::Plan> pinned_;
  bool has_given_plan_ = false;
  // To have what they take, the first first.
  std::vector<partition::DeviceIndex> preferred_;
  Times times_;
  int asked_count_ = 0;
};

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_AUTO_PLANNER_H_
