// SPDX-License-Identifier: Apache-2.0
//
// TreeEnsembleRegressor, TreeEnsembleClassifier: random trees of any depth and mode against the
// plain way down each of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;
using Strings = std::vector<std::string>;
using Rows = std::vector<std::vector<double>>;

const double kNan = std::nan("");
const Strings kModes = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};

base::Result<std::vector<Tensor>> RunModel(const std::string& op_type, const Attributes& attributes,
                                           NodeInput x, int version = 3) {
  const std::vector<bool> wanted(op_type == "TreeEnsembleRegressor" ? 1 : 2, true);
  return RunOperator({op_type, version, attributes, {std::move(x)}, wanted, "ai.onnx.ml"});
}

// Trees as the attributes have them, by node in the order of the model.
struct Forest {
  static constexpr int64_t kFeatures = 4;
  Integers tree_ids, node_ids, features, on_true, on_false, missing;
  Strings modes;
  std::vector<double> values;
  Integers weight_trees, weight_nodes, targets;
  std::vector<double> weights;

  // A tree below `depth` levels; `mode` of kModes, or any where it is negative. The weights of its
  // leaves are for `target`, or where that is negative for any of `target_count`.
  void AddTree(std::mt19937& random, int64_t tree, int64_t depth, int mode, int64_t target,
               int64_t target_count, bool has_negative = true) {
    next_id_ = 10 * static_cast<int64_t>(random() % 3);
    AddNode(random, tree, depth, mode, target, target_count, has_negative);
  }

  // Below each node on the way to the deepest leaf, every other node is a leaf.
  int64_t AddNode(std::mt19937& random, int64_t tree, int64_t depth, int mode, int64_t target,
                  int64_t target_count, bool has_negative) {
    const int64_t id = next_id_++;
    const size_t at = tree_ids.size();
    tree_ids.push_back(tree);
    node_ids.push_back(id);
    features.push_back(static_cast<int64_t>(random() % kFeatures));
    missing.push_back(static_cast<int64_t>(random() % 2));
    values.push_back(static_cast<double>(random() % 5) - 2);
    on_true.push_back(0);
    on_false.push_back(0);
    if (depth == 0) {
      modes.push_back("LEAF");
      const int count = target < 0 ? static_cast<int>(random() % 4) : 1;
      for (int k = 0; k < count; ++k) {
        weight_trees.push_back(tree);
        weight_nodes.push_back(id);
        targets.push_back(target < 0 ? static_cast<int64_t>(random() % target_count) : target);
        const double weight = static_cast<double>(random() % 33) / 16;
        weights.push_back(has_negative ? weight - 1 : weight);
      }
      return id;
    }
    modes.push_back(kModes[mode < 0 ? random() % kModes.size() : static_cast<size_t>(mode)]);
    const bool is_bushy = depth < 5;
    const int64_t first = is_bushy || random() % 2 == 0 ? depth - 1 : 0;
    const int64_t second = is_bushy || first == 0 ? depth - 1 : 0;
    const int64_t true_id = AddNode(random, tree, first, mode, target, target_count, has_negative);
    const int64_t false_id =
        AddNode(random, tree, second, mode, target, target_count, has_negative);
    on_true[at] = true_id;
    on_false[at] = false_id;
    return id;
  }

  // Puts the nodes of all trees among each other; a tree's root stays its first.
  void Mix(std::mt19937& random) {
    std::vector<size_t> order(tree_ids.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::map<int64_t, std::pair<size_t, size_t>> first;  // of a tree: where, and which node
    for (size_t at = 0; at < order.size(); ++at) {
      const auto [seen, is_new] = first.try_emplace(tree_ids[order[at]], at, order[at]);
      // Nodes were added from the root down.
      if (!is_new && order[at] < seen->second.second) {
        std::swap(order[seen->second.first], order[at]);
        seen->second.second = order[seen->second.first];
      }
    }
    const auto mix = [&](auto& list) {
      const auto before = list;
      for (size_t at = 0; at < order.size(); ++at) list[at] = before[order[at]];
    };
    mix(tree_ids), mix(node_ids), mix(features), mix(on_true), mix(on_false), mix(missing);
    mix(modes), mix(values);
  }

  Attributes attributes(const std::string& prefix, bool as_tensors, ElementType type) const {
    Attributes result = {{"nodes_treeids", tree_ids},
                         {"nodes_nodeids", node_ids},
                         {"nodes_featureids", features},
                         {"nodes_modes", modes},
                         {"nodes_truenodeids", on_true},
                         {"nodes_falsenodeids", on_false},
                         {"nodes_missing_value_tracks_true", missing},
                         {prefix + "_treeids", weight_trees},
                         {prefix + "_nodeids", weight_nodes},
                         {prefix + "_ids", targets}};
    const auto add = [&](const std::string& name, const std::vector<double>& numbers) {
      if (as_tensors) {
        result[name + "_as_tensor"] =
            MakeTensor(type, {static_cast<int64_t>(numbers.size())}, numbers);
      } else {
        result[name] = Floats(numbers.begin(), numbers.end());
      }
    };
    add("nodes_values", values);
    add(prefix + "_weights", weights);
    return result;
  }

  bool GoesTrue(size_t node, double x) const {
    if (std::isnan(x) && missing[node] != 0) return true;
    const double split = values[node];
    const std::string& mode = modes[node];
    if (mode == "BRANCH_LEQ") return x <= split;
    if (mode == "BRANCH_LT") return x < split;
    if (mode == "BRANCH_GTE") return x >= split;
    if (mode == "BRANCH_GT") return x > split;
    if (mode == "BRANCH_EQ") return x == split;
    return x != split;
  }

  size_t Find(int64_t tree, int64_t node) const {
    for (size_t k = 0; k < tree_ids.size(); ++k) {
      if (tree_ids[k] == tree && node_ids[k] == node) return k;
    }
    ADD_FAILURE() << "no node " << node << " in tree " << tree;
    return 0;
  }

  // Per target what `aggregate` makes of the leaves' weights.
  std::vector<double> Reach(const double* row, const std::string& aggregate, size_t count) const {
    double initial = 0;
    if (aggregate == "MIN") initial = std::numeric_limits<float>::max();
    if (aggregate == "MAX") initial = std::numeric_limits<float>::lowest();
    std::vector<double> sums(count, initial);
    int64_t trees = 0;
    std::set<int64_t> seen;
    for (size_t root = 0; root < tree_ids.size(); ++root) {
      if (!seen.insert(tree_ids[root]).second) continue;
      ++trees;
      size_t at = root;
      while (modes[at] != "LEAF") {
        at = Find(tree_ids[at], GoesTrue(at, row[features[at]]) ? on_true[at] : on_false[at]);
      }
      for (size_t k = 0; k < weights.size(); ++k) {
        if (weight_trees[k] != tree_ids[at] || weight_nodes[k] != node_ids[at]) continue;
        double& sum = sums[static_cast<size_t>(targets[k])];
        if (aggregate == "MIN") {
          sum = std::min(sum, weights[k]);
        } else if (aggregate == "MAX") {
          sum = std::max(sum, weights[k]);
        } else {
          sum += weights[k];
        }
      }
    }
    for (double& sum : sums) {
      if (aggregate == "AVERAGE") sum /= static_cast<double>(trees);
    }
    return sums;
  }

 private:
  int64_t next_id_ = 0;
};

std::vector<double> RandomRows(std::mt19937& random, int64_t rows, bool has_nan) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < rows * Forest::kFeatures; ++k) {
    numbers.push_back(has_nan && random() % 6 == 0 ? kNan : static_cast<double>(random() % 7) - 3);
  }
  return numbers;
}

void ExpectRows(const Tensor& actual, const Rows& expected, int64_t columns) {
  EXPECT_EQ(actual.type(), ElementType::kFloat32);
  ASSERT_EQ(actual.extents(), (Extents{static_cast<int64_t>(expected.size()), columns}));
  for (size_t row = 0; row < expected.size(); ++row) {
    for (size_t k = 0; k < expected[row].size(); ++k) {
      EXPECT_NEAR(actual.AsDouble(static_cast<int64_t>(row) * columns + static_cast<int64_t>(k)),
                  expected[row][k], 1e-5 * (1 + std::abs(expected[row][k])))
          << "row " << row << " column " << k;
    }
  }
}

struct RegressorCase {
  int64_t trees = 1, depth = 1, targets = 1;
  int mode = -1;  // of kModes, -1: each
  bool has_own_targets = false;
  ElementType type = ElementType::kFloat32;
};

class TreeEnsembleRegressorTest : public ::testing::TestWithParam<RegressorCase> {};

TEST_P(TreeEnsembleRegressorTest, ReachesTheLeavesOfEveryTree) {
  const RegressorCase& param = GetParam();
  std::mt19937 random(41);
  for (const std::string aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    Forest forest;
    for (int64_t tree = 0; tree < param.trees; ++tree) {
      const int64_t depth = tree % 3 == 2 ? param.depth / 2 : param.depth;
      const int64_t own = tree % param.targets;
      forest.AddTree(random, 7 * tree, depth, param.mode, param.has_own_targets ? own : -1,
                     param.targets);
    }
    if (aggregate == "MIN") forest.Mix(random);
    const bool is_tensor = aggregate == "AVERAGE";
    Attributes attributes =
        forest.attributes("target", is_tensor,
                          param.type == ElementType::kFloat64 ? param.type : ElementType::kFloat32);
    attributes["n_targets"] = param.targets;
    attributes["aggregate_function"] = aggregate;
    for (const int64_t rows : {0, 1, 33}) {
      const std::vector<double> x = RandomRows(random, rows, tensor::IsFloat(param.type));
      Rows expected;
      for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
        expected.push_back(forest.Reach(&x[row * Forest::kFeatures], aggregate,
                                        static_cast<size_t>(param.targets)));
      }
      const auto result = RunModel("TreeEnsembleRegressor", attributes,
                                   rows == 1 ? Given({1, Forest::kFeatures}, x, param.type)
                                             : Symbolic({rows, Forest::kFeatures}, x, param.type),
                                   is_tensor ? 3 : 1);
      ASSERT_TRUE(result.ok()) << result.status().Text();
      ExpectRows((*result)[0], expected, param.targets);
    }
  }
}

constexpr int kLeq = 0, kLt = 1, kGte = 2, kGt = 3, kNeq = 5;
INSTANTIATE_TEST_SUITE_P(
    Forests, TreeEnsembleRegressorTest,
    ::testing::Values(
        RegressorCase{.trees = 1, .depth = 0}, RegressorCase{.trees = 5, .depth = 3},
        RegressorCase{.trees = 3, .depth = 8, .mode = kLeq},
        RegressorCase{.trees = 3, .depth = 9, .mode = kLt},
        RegressorCase{.trees = 2, .depth = 7, .mode = kGte, .type = ElementType::kFloat64},
        RegressorCase{.trees = 2, .depth = 17, .mode = kGt},
        RegressorCase{.trees = 2, .depth = 33, .mode = kNeq, .type = ElementType::kInt64},
        RegressorCase{.trees = 4, .depth = 40, .type = ElementType::kInt32},
        RegressorCase{.trees = 9, .depth = 4, .targets = 3, .has_own_targets = true},
        RegressorCase{.trees = 7, .depth = 12, .targets = 3, .has_own_targets = true},
        RegressorCase{.trees = 6, .depth = 4, .targets = 5},
        RegressorCase{.trees = 300, .depth = 2, .targets = 2, .mode = kLeq},
        RegressorCase{.trees = 200, .depth = 2, .targets = 1, .has_own_targets = true}));

// Stumps: `x mode split` gives 1, else 0.
Attributes Stump(const std::string& mode, double split, ElementType type, int64_t missing) {
  return {{"nodes_treeids", Integers{0, 0, 0}},
          {"nodes_nodeids", Integers{0, 1, 2}},
          {"nodes_featureids", Integers{0, 0, 0}},
          {"nodes_modes", Strings{mode, "LEAF", "LEAF"}},
          {"nodes_truenodeids", Integers{1, 0, 0}},
          {"nodes_falsenodeids", Integers{2, 0, 0}},
          {"nodes_missing_value_tracks_true", Integers{missing, 0, 0}},
          {"nodes_values_as_tensor", MakeTensor(type, {3}, {split, 0, 0})},
          {"target_treeids", Integers{0}},
          {"target_nodeids", Integers{1}},
          {"target_ids", Integers{0}},
          {"target_weights", Floats{1}},
          {"n_targets", int64_t{1}}};
}

// All modes at all edges: neighbours, zeros of both signs, infinities, NaN; and splits that lie
// between two numbers of the type of the features.
TEST(TreeComparisonTest, IsExactAtTheEdges) {
  const double inf = std::numeric_limits<double>::infinity();
  const double max = std::numeric_limits<float>::max();
  const float one_third = 1.0F / 3;
  const double third = one_third;
  const double above = std::nextafter(one_third, 1.0F), below = std::nextafter(one_third, 0.0F);
  const double least = std::numeric_limits<float>::min();
  const double subnormal = std::numeric_limits<float>::denorm_min();
  const std::vector<double> x = {below, third, above, 0.0,   -0.0,   inf,       -inf,      max,
                                 -max,  kNan,  3,     least, -least, subnormal, -subnormal};
  const std::vector<double> splits = {third,  1.0 / 3, 0.0,    -0.0,      inf,
                                      -inf,   max,     -max,   kNan,      1e300,
                                      -1e300, least,   -least, subnormal, -subnormal};
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
    for (const std::string& mode : kModes) {
      for (const double split : splits) {
        for (const int64_t missing : {0, 1}) {
          const auto result =
              RunModel("TreeEnsembleRegressor", Stump(mode, split, ElementType::kFloat64, missing),
                       Given({static_cast<int64_t>(x.size()), 1}, x, type));
          ASSERT_TRUE(result.ok()) << result.status().Text();
          Forest expected;
          expected.modes = {mode};
          expected.values = {split};
          expected.missing = {missing};
          for (size_t k = 0; k < x.size(); ++k) {
            EXPECT_EQ((*result)[0].AsDouble(static_cast<int64_t>(k)),
                      expected.GoesTrue(0, x[k]) ? 1 : 0)
                << x[k] << " " << mode << " " << split << " missing " << missing;
          }
        }
      }
    }
  }
}

// Two stumps of equality, with 0 and with `split`: 1 and 2 for those that hold.
Attributes TwoEqualities(double split) {
  Attributes attributes = Stump("BRANCH_EQ", 0, ElementType::kFloat64, 0);
  attributes["nodes_treeids"] = Integers{0, 0, 0, 1, 1, 1};
  for (const char* const name : {"nodes_nodeids", "nodes_truenodeids", "nodes_falsenodeids"}) {
    Integers numbers = std::get<Integers>(attributes[name]);
    numbers.insert(numbers.end(), numbers.begin(), numbers.begin() + 3);
    attributes[name] = numbers;
  }
  attributes["nodes_featureids"] = attributes["nodes_missing_value_tracks_true"] =
      Integers{0, 0, 0, 0, 0, 0};
  attributes["nodes_modes"] = Strings{"BRANCH_EQ", "LEAF", "LEAF", "BRANCH_EQ", "LEAF", "LEAF"};
  attributes["nodes_values_as_tensor"] =
      MakeTensor(ElementType::kFloat64, {6}, {0, 0, 0, split, 0, 0});
  attributes["target_treeids"] = Integers{0, 1};
  attributes["target_nodeids"] = Integers{1, 1};
  attributes["target_ids"] = Integers{0, 0};
  attributes["target_weights"] = Floats{1, 2};
  return attributes;
}

// Devices may take subnormal numbers for zeros, so that no table needs them to tell 0 from others.
template <typename T>
void ExpectNormalSplits(ElementType type) {
  using Limits = std::numeric_limits<T>;
  for (const double split :
       std::initializer_list<double>{5, -0x1p-100, Limits::min(), -Limits::min(),
                                     Limits::denorm_min(), -Limits::denorm_min()}) {
    const bool is_apart = std::fabs(split) > Limits::min();
    const std::vector<double> x = {0,
                                   -0.0,
                                   5,
                                   -0x1p-100,
                                   Limits::min(),
                                   -Limits::min(),
                                   Limits::denorm_min(),
                                   -Limits::denorm_min(),
                                   kNan};
    OneNode node{"TreeEnsembleRegressor",
                 3,
                 TwoEqualities(split),
                 {Given({static_cast<int64_t>(x.size()), 1}, x, type)},
                 {true},
                 "ai.onnx.ml"};
    bool has_subnormals = false;
    node.rewrite = [&](program::Program& program) {
      for (const Tensor& constant : program.constants) {
        if (!tensor::IsFloat(constant.type())) continue;
        for (int64_t k = 0; k < constant.element_count(); ++k) {
          const auto value = static_cast<T>(constant.AsDouble(k));
          has_subnormals = has_subnormals || std::fpclassify(value) == FP_SUBNORMAL;
        }
      }
    };
    const auto result = RunOperator(node);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ(has_subnormals, !is_apart) << split;
    for (size_t k = 0; k < x.size(); ++k) {
      const auto feature = static_cast<T>(x[k]);
      const int expected = (feature == T{0} ? 1 : 0) + (feature == static_cast<T>(split) ? 2 : 0);
      EXPECT_EQ((*result)[0].AsDouble(static_cast<int64_t>(k)), expected)
          << x[k] << " beside " << split;
    }
  }
}

TEST(TreeComparisonTest, NeedsNoSubnormalNumbersToFindZeros) {
  ExpectNormalSplits<float>(ElementType::kFloat32);
  ExpectNormalSplits<double>(ElementType::kFloat64);
}

TEST(TreeEnsembleRegressorTest, ComparesLargeIntegersAsTheyAre) {
  for (const ElementType type : {ElementType::kInt32, ElementType::kInt64}) {
    const auto result =
        RunModel("TreeEnsembleRegressor", Stump("BRANCH_LEQ", 16777216, ElementType::kFloat32, 0),
                 Given({2, 1}, {16777216, 16777217}, type));
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_THAT(Numbers((*result)[0]), ElementsAre(1, 0));
  }
}

TEST(TreeEnsembleRegressorTest, AddsBaseValuesAndTransforms) {
  Attributes attributes = Stump("BRANCH_LEQ", 0, ElementType::kFloat32, 0);
  attributes["n_targets"] = int64_t{2};
  attributes["base_values"] = Floats{-0.5F, 2};
  const auto sums = RunModel("TreeEnsembleRegressor", attributes, Given({2, 1}, {-1, 1}));
  ASSERT_TRUE(sums.ok()) << sums.status().Text();
  EXPECT_THAT(Numbers((*sums)[0]), ElementsAre(0.5, 2, -0.5, 2));
  attributes["base_values_as_tensor"] = MakeTensor(ElementType::kFloat64, {1}, {0.25});
  attributes["post_transform"] = std::string("LOGISTIC");
  const auto shares = RunModel("TreeEnsembleRegressor", attributes, Given({1}, {-1}));
  ASSERT_TRUE(shares.ok()) << shares.status().Text();
  ExpectRows((*shares)[0], {{1 / (1 + std::exp(-1.25)), 1 / (1 + std::exp(-0.25))}}, 2);
}

TEST(TreeEnsembleRegressorTest, RefusesWhatDoesNotFit) {
  const auto run = [](const std::string& name, graph::Attribute value, int64_t features = 1) {
    Attributes attributes = Stump("BRANCH_LEQ", 0, ElementType::kFloat32, 0);
    if (!name.empty()) attributes[name] = std::move(value);
    return RunModel("TreeEnsembleRegressor", attributes,
                    Symbolic({1, features}, std::vector<double>(static_cast<size_t>(features), 0)))
        .status()
        .code();
  };
  EXPECT_EQ(run("", {}), Code::kOk);
  EXPECT_EQ(run("nodes_truenodeids", Integers{0, 0, 0}), Code::kInvalidModel) << "below itself";
  EXPECT_EQ(run("nodes_truenodeids", Integers{3, 0, 0}), Code::kInvalidModel) << "not there";
  EXPECT_EQ(run("nodes_truenodeids", Integers{1, 0}), Code::kInvalidModel);
  EXPECT_EQ(run("nodes_nodeids", Integers{0, 1, 1}), Code::kInvalidModel) << "twice";
  EXPECT_EQ(run("nodes_modes", Strings{"BRANCH", "LEAF", "LEAF"}), Code::kInvalidModel);
  EXPECT_EQ(run("nodes_featureids", Integers{-1, 0, 0}), Code::kInvalidModel);
  EXPECT_EQ(run("nodes_featureids", Integers{1, 0, 0}), Code::kMismatchingShape);
  EXPECT_EQ(run("target_nodeids", Integers{5}), Code::kInvalidModel);
  EXPECT_EQ(run("target_ids", Integers{1}), Code::kInvalidModel) << "n_targets is 1";
  EXPECT_EQ(run("target_ids", Integers{-1}), Code::kInvalidModel);
  EXPECT_EQ(run("n_targets", int64_t{0}), Code::kInvalidModel);
  EXPECT_EQ(run("aggregate_function", std::string("MEDIAN")), Code::kInvalidModel);
  EXPECT_EQ(run("base_values", Floats{1, 2}), Code::kMismatchingShape);
}

TEST(TreeEnsembleClassifierTest, ChoosesTheLargestSum) {
  std::mt19937 random(43);
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX"}) {
    for (const int64_t classes : {2, 4}) {
      for (const bool has_own_targets : {false, true}) {
        Forest forest;
        for (int64_t tree = 0; tree < 11; ++tree) {
          forest.AddTree(random, tree, 4, 0, has_own_targets ? tree % classes : -1, classes);
        }
        const bool has_texts = has_own_targets;
        Attributes attributes = forest.attributes("class", false, ElementType::kFloat32);
        attributes["post_transform"] = transform;
        Integers numbers;
        Strings texts;
        Floats base;
        for (int64_t k = 0; k < classes; ++k) {
          numbers.push_back(50 - k);
          texts.push_back("class " + std::to_string(k));
          base.push_back(static_cast<float>(k) / 4);
        }
        attributes["base_values"] = base;
        if (has_texts) {
          attributes["classlabels_strings"] = texts;
        } else {
          attributes["classlabels_int64s"] = numbers;
        }
        const std::vector<double> x = RandomRows(random, 19, true);
        const auto result = RunModel("TreeEnsembleClassifier", attributes, Symbolic({19, 4}, x));
        ASSERT_TRUE(result.ok()) << result.status().Text();
        Rows expected;
        for (size_t row = 0; row < 19; ++row) {
          std::vector<double> sums = forest.Reach(&x[row * 4], "SUM", static_cast<size_t>(classes));
          for (size_t k = 0; k < sums.size(); ++k) sums[k] += base[k];
          const auto chosen =
              static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
          if (has_texts) {
            EXPECT_EQ((*result)[0].strings()[row], texts[chosen]);
          } else {
            EXPECT_EQ((*result)[0].AsInt(static_cast<int64_t>(row)), numbers[chosen]);
          }
          double total = 0;
          for (const double sum : sums) total += std::exp(sum);
          for (double& sum : sums) {
            if (transform == "LOGISTIC") sum = 1 / (1 + std::exp(-sum));
            if (transform == "SOFTMAX") sum = std::exp(sum) / total;
          }
          expected.push_back(std::move(sums));
        }
        ExpectRows((*result)[1], expected, classes);
      }
    }
  }
}

// All weights are for class 0: they score the second of two classes.
TEST(TreeEnsembleClassifierTest, DecidesBetweenTwoClassesByOneScore) {
  std::mt19937 random(47);
  for (const std::string transform : {"NONE", "LOGISTIC", "SOFTMAX"}) {
    for (const bool has_negative : {false, true}) {
      Forest forest;
      for (int64_t tree = 0; tree < 2; ++tree) {
        forest.AddTree(random, tree, 3, 0, 0, 1, has_negative);
      }
      if (!has_negative) {
        for (double& weight : forest.weights) weight /= 4;
      }
      Attributes attributes = forest.attributes("class", false, ElementType::kFloat32);
      attributes["post_transform"] = transform;
      attributes["classlabels_strings"] = Strings{"no", "yes"};
      attributes["base_values"] = Floats{0.125F};
      const std::vector<double> x = RandomRows(random, 25, false);
      const auto result = RunModel("TreeEnsembleClassifier", attributes, Symbolic({25, 4}, x));
      ASSERT_TRUE(result.ok()) << result.status().Text();
      Rows expected;
      for (size_t row = 0; row < 25; ++row) {
        const double score = forest.Reach(&x[row * 4], "SUM", 1)[0] + 0.125;
        const bool is_share = transform == "NONE" && !has_negative;
        EXPECT_EQ((*result)[0].strings()[row], score > (is_share ? 0.5 : 0) ? "yes" : "no");
        const double other = is_share ? 1 - score : -score;
        if (transform == "NONE") {
          expected.push_back({other, score});
        } else {
          const double odds = transform == "SOFTMAX" ? 2 * score : score;
          expected.push_back({1 / (1 + std::exp(odds)), 1 / (1 + std::exp(-odds))});
        }
      }
      ExpectRows((*result)[1], expected, 2);
    }
  }
}

TEST(TreeEnsembleClassifierTest, LabelsASingleClass) {
  Attributes attributes = Stump("BRANCH_LEQ", 0, ElementType::kFloat32, 0);
  for (const std::string name : {"_treeids", "_nodeids", "_ids", "_weights"}) {
    attributes["class" + name] = attributes["target" + name];
    attributes.erase("target" + name);
  }
  attributes.erase("n_targets");
  const auto none = RunModel("TreeEnsembleClassifier", attributes, Given({2, 1}, {-1, 1}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kInvalidModel);
  attributes["classlabels_int64s"] = Integers{8};
  const auto one = RunModel("TreeEnsembleClassifier", attributes, Given({2, 1}, {-1, 1}));
  ASSERT_TRUE(one.ok()) << one.status().Text();
  EXPECT_THAT(Numbers((*one)[0]), ElementsAre(8, 0));
  EXPECT_THAT(Numbers((*one)[1]), ElementsAre(0, 1, 1, 0));
}

}  // namespace
}  // namespace onnxifi::ops
