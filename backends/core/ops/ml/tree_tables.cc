// SPDX-License-Identifier: Apache-2.0
//
// TreeTables: comparisons of all modes made one, by other splits, exchanged children and, for
// equality, several entries.

#include "backends/core/ops/ml/tree_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace onnxifi::ops {
namespace {

using Mode = Trees::Mode;

// Numbers of a float type next to any number.
class Neighbours {
 public:
  explicit Neighbours(ElementType type) : is_narrow_(type == ElementType::kFloat32) {}

  // The largest number that is not above x, which is not NaN.
  double AtMost(double x) const {
    if (!is_narrow_ || std::isinf(x)) return x;
    constexpr double kMax = std::numeric_limits<float>::max();
    if (x > kMax) return kMax;
    if (x < -kMax) return -std::numeric_limits<double>::infinity();
    const auto rounded = static_cast<float>(x);
    return static_cast<double>(rounded) <= x ? rounded : Previous(rounded);
  }
  // The smallest number that is not below x.
  double AtLeast(double x) const { return -AtMost(-x); }
  // The largest number below x; nothing if there is none.
  std::optional<double> Below(double x) const {
    const double rounded = AtMost(x);
    if (rounded != x) return rounded;
    if (std::isinf(x) && x < 0) return std::nullopt;
    return is_narrow_ ? Previous(static_cast<float>(x))
                      : std::nextafter(x, -std::numeric_limits<double>::infinity());
  }
  double LeastNormal() const {
    return is_narrow_ ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  }

 private:
  static double Previous(float x) {
    return std::nextafter(x, -std::numeric_limits<float>::infinity());
  }
  const bool is_narrow_;
};

class TableMaker {
 public:
  TableMaker(const Trees& trees, ElementType type) : trees_(trees), neighbours_(type) {}

  TreeTables Make() {
    const auto is_strict = [](const Trees::Node& node) {
      return (node.mode == Mode::kLess || node.mode == Mode::kGreaterEqual) &&
             !std::isnan(node.split);
    };
    tables_.is_strict =
        !trees_.nodes.empty() && std::all_of(trees_.nodes.begin(), trees_.nodes.end(), is_strict);
    Resize(static_cast<size_t>(trees_.leaf_count) + trees_.nodes.size());
    for (int32_t leaf = 0; leaf < trees_.leaf_count; ++leaf) SetChildren(leaf, leaf, leaf);
    for (size_t k = 0; k < trees_.nodes.size(); ++k) {
      const Trees::Node& node = trees_.nodes[k];
      tables_.feature_count = std::max(tables_.feature_count, node.feature + 1);
      AddNode(static_cast<int32_t>(trees_.leaf_count + static_cast<int64_t>(k)), node);
    }
    for (const Trees::Branch& root : trees_.roots) tables_.roots.push_back(EntryOf(root));
    AvoidSubnormalSplits();
    return std::move(tables_);
  }

 private:
  void Resize(size_t count) {
    tables_.features.resize(count, 0);
    tables_.splits.resize(count, 0);
    tables_.children.resize(2 * count, 0);
    tables_.nan_is_first.resize(count, 0);
  }

  int32_t EntryOf(const Trees::Branch& branch) const {
    return static_cast<int32_t>(branch.is_leaf ? branch.index : trees_.leaf_count + branch.index);
  }

  void SetChildren(int32_t entry, int32_t first, int32_t second) {
    tables_.children[2 * static_cast<size_t>(entry)] = second;
    tables_.children[2 * static_cast<size_t>(entry) + 1] = first;
  }

  void Set(int32_t entry, const Trees::Node& node, double split, int32_t first, int32_t second,
           bool nan_is_first) {
    const auto at = static_cast<size_t>(entry);
    tables_.features[at] = static_cast<int32_t>(node.feature);
    tables_.splits[at] = split;
    tables_.nan_is_first[at] = nan_is_first ? 1 : 0;
    SetChildren(entry, first, second);
  }

  int32_t NewEntry() {
    Resize(tables_.features.size() + 1);
    return static_cast<int32_t>(tables_.features.size() - 1);
  }

  // All numbers go to `numbers`, NaN to `nan`.
  void SetConstant(int32_t entry, const Trees::Node& node, int32_t numbers, int32_t nan) {
    Set(entry, node, std::numeric_limits<double>::infinity(), numbers, nan, false);
  }

  void AddNode(int32_t entry, const Trees::Node& node) {
    const int32_t on_true = EntryOf(node.on_true);
    const int32_t on_false = EntryOf(node.on_false);
    const bool nan_is_true = node.missing_is_true || node.mode == Mode::kNotEqual;
    const int32_t nan = nan_is_true ? on_true : on_false;
    if (node.mode == Mode::kMember) {
      return AddMembers(entry, node, node.members, on_true, on_false, nan_is_true);
    }
    if (node.mode == Mode::kEqual) {
      return AddMembers(entry, node, {node.split}, on_true, on_false, nan_is_true);
    }
    if (node.mode == Mode::kNotEqual) {
      return AddMembers(entry, node, {node.split}, on_false, on_true, !nan_is_true);
    }
    // Comparisons with NaN are false.
    if (std::isnan(node.split)) return SetConstant(entry, node, on_false, nan);
    const bool is_exchanged = node.mode == Mode::kGreaterEqual || node.mode == Mode::kGreater;
    const int32_t first = is_exchanged ? on_false : on_true;
    const int32_t second = is_exchanged ? on_true : on_false;
    const bool nan_is_first = nan_is_true != is_exchanged;
    if (tables_.is_strict) {
      return Set(entry, node, neighbours_.AtLeast(node.split), first, second, nan_is_first);
    }
    if (node.mode == Mode::kLessEqual || node.mode == Mode::kGreater) {
      return Set(entry, node, neighbours_.AtMost(node.split), first, second, nan_is_first);
    }
    if (const std::optional<double> below = neighbours_.Below(node.split)) {
      return Set(entry, node, *below, first, second, nan_is_first);
    }
    SetConstant(entry, node, second, nan);
  }

  // The number below 0 is subnormal, and on a device that flushes such numbers equal to it. So the
  // split before 0 becomes the largest negative normal number, and features go with it, where no
  // other split tells apart what becomes equal.
  void AvoidSubnormalSplits() {
    const double least = neighbours_.LeastNormal();
    const double before_zero = *neighbours_.Below(0);
    const auto is_apart = [&](double split) {
      return split == 0 || split == before_zero || split >= least || split < -least;
    };
    if (tables_.is_strict || std::ranges::count(tables_.splits, before_zero) == 0 ||
        !std::ranges::all_of(tables_.splits, is_apart)) {
      return;
    }
    tables_.needs_normal_features = true;
    std::ranges::replace(tables_.splits, before_zero, -least);
  }

  // Members that features can be equal to, halved until one is left.
  void AddMembers(int32_t entry, const Trees::Node& node, std::vector<double> members,
                  int32_t on_true, int32_t on_false, bool nan_is_true) {
    const auto is_unknown = [&](double member) {
      return std::isnan(member) || neighbours_.AtMost(member) != member;
    };
    members.erase(std::remove_if(members.begin(), members.end(), is_unknown), members.end());
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.empty()) {
      return SetConstant(entry, node, on_false, nan_is_true ? on_true : on_false);
    }
    struct Part {
      int32_t entry;
      size_t begin, end;
    };
    std::vector<Part> parts = {{entry, 0, members.size()}};
    while (!parts.empty()) {
      const Part part = parts.back();
      parts.pop_back();
      if (part.end - part.begin > 1) {
        // NaN goes on to the part that ends with the last member.
        const size_t middle = part.begin + (part.end - part.begin) / 2;
        const int32_t lower = NewEntry();
        const int32_t upper = NewEntry();
        Set(part.entry, node, members[middle - 1], lower, upper, false);
        parts.push_back({lower, part.begin, middle});
        parts.push_back({upper, middle, part.end});
        continue;
      }
      const double member = members[part.begin];
      const std::optional<double> below = neighbours_.Below(member);
      if (!below) {
        Set(part.entry, node, member, on_true, on_false, nan_is_true);
        continue;
      }
      // At most the member, and not at most the number below it.
      const int32_t rest = NewEntry();
      Set(part.entry, node, member, rest, on_false, nan_is_true);
      Set(rest, node, *below, on_false, on_true, false);
    }
  }

  const Trees& trees_;
  const Neighbours neighbours_;
  TreeTables tables_;
};

// How many comparisons the longest way makes; -1 if one comes back to where it was, at `entry`.
int64_t LongestWay(const TreeTables& tables, int64_t leaf_count, int32_t& entry) {
  constexpr int64_t kUnknown = -1, kOnTheWay = -2;
  std::vector<int64_t> longest(tables.features.size(), kUnknown);
  std::fill_n(longest.begin(), leaf_count, 0);
  int64_t depth = 0;
  std::vector<int32_t> way;
  for (const int32_t root : tables.roots) {
    way.push_back(root);
    while (!way.empty()) {
      const auto at = static_cast<size_t>(way.back());
      if (longest[at] >= 0) {
        way.pop_back();
        continue;
      }
      const bool is_second_visit = longest[at] == kOnTheWay;
      longest[at] = kOnTheWay;
      int64_t below = 0;
      for (const size_t k : {2 * at, 2 * at + 1}) {
        const int32_t child = tables.children[k];
        const int64_t way_below = longest[static_cast<size_t>(child)];
        below = std::max(below, way_below);
        if (way_below >= 0) continue;
        if (way_below == kOnTheWay) {
          entry = child;
          return -1;
        }
        if (!is_second_visit) way.push_back(child);
      }
      if (way.back() == static_cast<int32_t>(at)) {
        longest[at] = below + 1;
        way.pop_back();
      }
    }
    depth = std::max(depth, longest[static_cast<size_t>(root)]);
  }
  return depth;
}

}  // namespace

base::Result<TreeTables> MakeTreeTables(const Lowering& lowering, const Trees& trees,
                                        ElementType type) {
  // A member takes three entries at most.
  int64_t entries = trees.leaf_count;
  for (const Trees::Node& node : trees.nodes) {
    entries += 2 + 3 * static_cast<int64_t>(node.members.size());
  }
  constexpr int64_t kMaxEntries = int64_t{1} << 30;
  if (entries > kMaxEntries) {
    return lowering.UnsupportedAttribute("The trees have more than " + std::to_string(kMaxEntries) +
                                         " nodes.");
  }
  TreeTables tables = TableMaker(trees, type).Make();
  int32_t entry = 0;
  tables.depth = LongestWay(tables, trees.leaf_count, entry);
  if (tables.depth < 0) {
    return lowering.InvalidModel("Node " + std::to_string(entry - trees.leaf_count) +
                                 " of a tree is below itself.");
  }
  return tables;
}

std::vector<int64_t> FindOwnTargets(const TreeTables& tables, const Trees& trees) {
  constexpr int64_t kNone = -1, kSeveral = -2;
  std::vector<int64_t> target_of_leaf(static_cast<size_t>(trees.leaf_count), kNone);
  for (const Trees::Weight& weight : trees.weights) {
    int64_t& target = target_of_leaf[static_cast<size_t>(weight.leaf)];
    target = target == kNone || target == weight.target ? weight.target : kSeveral;
  }
  std::vector<int64_t> targets;
  size_t visits_left = 4 * tables.features.size() + tables.roots.size();
  std::vector<int32_t> pending;
  for (const int32_t root : tables.roots) {
    int64_t own = kNone;
    pending.push_back(root);
    while (!pending.empty()) {
      const int32_t entry = pending.back();
      pending.pop_back();
      if (visits_left-- == 0) return {};
      if (entry >= trees.leaf_count) {
        pending.push_back(tables.children[2 * static_cast<size_t>(entry)]);
        pending.push_back(tables.children[2 * static_cast<size_t>(entry) + 1]);
        continue;
      }
      const int64_t target = target_of_leaf[static_cast<size_t>(entry)];
      if (target == kNone) continue;
      if (target == kSeveral || (own != kNone && own != target)) return {};
      own = target;
    }
    targets.push_back(own);
  }
  return targets;
}

}  // namespace onnxifi::ops
