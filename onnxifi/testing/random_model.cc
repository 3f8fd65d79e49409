// SPDX-License-Identifier: Apache-2.0
//
// RandomModel: every line keeps numbers between -64 and 64, in which float32 is exact.

#include "onnxifi/testing/random_model.h"

#include <random>
#include <set>

namespace onnxifi {
namespace {

struct Line {
  const char* text;
  int reads;
  int makes;
  std::vector<std::string> operators;
};

// Local names end in the number of the line's first value, #.
const std::vector<Line>& Lines() {
  static const std::vector<Line> lines = {
      {"@0 = Abs(%0)", 1, 1, {"Abs"}},
      {"@0 = Neg(%0)", 1, 1, {"Neg"}},
      {"@0 = Relu(%0)", 1, 1, {"Relu"}},
      {"@0 = Identity(%0)", 1, 1, {"Identity"}},
      {"@0 = Min(%0, %1)", 2, 1, {"Min"}},
      {"@0 = Max(%0, %1)", 2, 1, {"Max"}},
      {"a# = Add(%0, %1)  @0 = Clip(a#, low, high)", 2, 1, {"Add", "Clip"}},
      {"a# = Sub(%0, %1)  @0 = Clip(a#, low, high)", 2, 1, {"Sub", "Clip"}},
      {"a# = Mul(%0, %1)  @0 = Clip(a#, low, high)", 2, 1, {"Mul", "Clip"}},
      {"a# = MatMul(%0, w)  @0 = Clip(a#, low, high)", 1, 1, {"MatMul", "Clip"}},
      {"a#, b# = Split<axis = 1, num_outputs = 2>(%0)  @0 = Concat<axis = 1>(b#, a#)",
       1,
       1,
       {"Split", "Concat"}},
      {"a#, b# = Split<axis = 1, num_outputs = 2>(%0)  c#, d# = Split<axis = 1, num_outputs = "
       "2>(%1)  @0 = Concat<axis = 1>(a#, d#)  @1 = Concat<axis = 1>(c#, b#)",
       2,
       2,
       {"Split", "Concat"}},
      {"a# = Transpose<perm = [1, 0]>(%0)  b# = Neg(a#)  @0 = Transpose<perm = [1, 0]>(b#)",
       1,
       1,
       {"Transpose", "Neg"}},
      {"a# = Shape(%1)  b# = Reshape(%0, flat)  @0 = Reshape(b#, a#)", 2, 1, {"Shape", "Reshape"}},
      {"a# = ReduceMax<keepdims = 1>(%0, one)  b# = Add(%0, a#)  @0 = Clip(b#, low, high)",
       1,
       1,
       {"ReduceMax", "Add", "Clip"}},
      {"a# = Greater(%0, %1)  @0 = Where(a#, %1, %0)", 2, 1, {"Greater", "Where"}},
      {"a# = Cast<to = 7>(%0)  b# = Mod(a#, three)  @0 = Cast<to = 1>(b#)", 1, 1, {"Cast", "Mod"}},
      {"a# = ReduceSum<keepdims = 0>(%0)  b# = Greater(a#, zero)  @0 = If (b#) <"
       "then_branch = then# () => (float[N, 4] t#) { u# = Max(%0, %1)  t# = Neg(u#) },"
       "else_branch = else# () => (float[N, 4] e#) { e# = Min(%1, %0) }>",
       2,
       1,
       {"ReduceSum", "Greater", "If"}},
      {"a# = NonZero(%0)  b# = Cast<to = 1>(a#)  c# = ReduceMax<keepdims = 0>(b#)"
       "  d# = Add(%1, c#)  @0 = Clip(d#, low, high)",
       2,
       1,
       {"NonZero", "Cast", "ReduceMax", "Add", "Clip"}},
      // The last, which not every model may have.
      {"@0 = Loop (three_scalar, yes, %0) <"
       "body = body# (int64 i#, bool c#, float[N, 4] x#) => (bool d#, float[N, 4] y#) {"
       " d# = Identity(c#)  s# = Sub(x#, %1)  y# = Clip(s#, low, high) }>",
       2,
       1,
       {"Loop"}},
  };
  return lines;
}

std::string Spell(int value) {
  if (value == 0) return "x";
  if (value == 1) return "z";
  return "v" + std::to_string(value);
}

std::string Spell(const RandomNode& node) {
  std::string text;
  for (size_t k = 0; k < node.text.size(); ++k) {
    const char mark = node.text[k];
    if (mark == '#') {
      text += std::to_string(node.makes[0]);
    } else if (mark == '%' || mark == '@') {
      const auto index = static_cast<size_t>(node.text[++k] - '0');
      text += Spell(mark == '%' ? node.reads[index] : node.makes[index]);
    } else {
      text += mark;
    }
  }
  return text;
}

}  // namespace

std::string RandomModel::Text() const {
  std::string text = "graph (float[N, 4] x, float[N, 4] z) => (";
  for (size_t k = 0; k < outputs.size(); ++k) {
    text += (k > 0 ? ", " : "") + ("float[N, 4] " + Spell(outputs[k]));
  }
  if (has_anchor) text += ", float[N, 4] anchor";
  text +=
      ")\n<float low = {-64}, float high = {64}, float zero = {0}, int64[1] flat = {-1},"
      " int64[1] one = {1}, int64 three = {3}, int64 three_scalar = {3}, bool yes = {1},"
      " float[4, 4] w = {1, 0, 2, 0, 0, 1, 0, -1, 1, 1, 0, 0, 0, 0, 1, 2}> {\n";
  for (const RandomNode& node : nodes) text += "  " + Spell(node) + "\n";
  if (has_anchor) text += std::string("  anchor = ") + kAnchorOperator + "(z)\n";
  return text + "}";
}

void RandomModel::Prune() {
  std::set<int> needed(outputs.begin(), outputs.end());
  std::vector<RandomNode> kept;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool is_needed = false;
    for (const int value : node->makes) is_needed = is_needed || needed.contains(value);
    if (!is_needed) continue;
    needed.insert(node->reads.begin(), node->reads.end());
    kept.push_back(*node);
  }
  nodes.assign(kept.rbegin(), kept.rend());
}

const std::vector<std::string>& RandomOperators() {
  static const std::vector<std::string> operators = [] {
    std::set<std::string> names;
    for (const Line& line : Lines()) names.insert(line.operators.begin(), line.operators.end());
    return std::vector<std::string>(names.begin(), names.end());
  }();
  return operators;
}

RandomModel MakeRandomModel(uint32_t seed, int node_count, bool has_loops) {
  std::mt19937 random(seed);
  const auto below = [&](size_t bound) { return static_cast<int>(random() % bound); };
  RandomModel model;
  for (int index = 0; index < node_count; ++index) {
    const Line& line = Lines()[below(Lines().size() - (has_loops ? 0 : 1))];
    RandomNode& node = model.nodes.emplace_back();
    node.text = line.text;
    node.operators = line.operators;
    for (int read = 0; read < line.reads; ++read) {
      // Mostly what was made last: chains; sometimes anything: branches that join far below.
      const int reach = below(4) == 0 ? model.value_count : std::min(model.value_count, 4);
      node.reads.push_back(model.value_count - 1 - below(static_cast<size_t>(reach)));
    }
    for (int made = 0; made < line.makes; ++made) node.makes.push_back(model.value_count++);
  }
  model.outputs.push_back(model.value_count - 1);
  while (below(3) == 0) {
    const int output = 2 + below(static_cast<size_t>(model.value_count - 2));
    std::set<int> known(model.outputs.begin(), model.outputs.end());
    if (known.insert(output).second) model.outputs.push_back(output);
  }
  model.Prune();
  return model;
}

}  // namespace onnxifi
