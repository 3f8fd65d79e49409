// SPDX-License-Identifier: Apache-2.0
//
// NodeQuestions: what is remembered first, then the plugin.

#include "onnxifi/planner/node_questions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/output_shapes.h"

namespace onnxifi::planner {

using base::Code;
using base::Status;
using plugins::ForwardedBackendId;
using plugins::NodeReason;
using plugins::NodeReasons;

namespace {

const NodeReason kEmulated = {Code::kFallback, ""};

std::span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool IsAboutNodes(Code code) {
  return code == Code::kUnsupportedOperator || code == Code::kUnsupportedAttribute ||
         code == Code::kUnsupportedShape || code == Code::kUnsupportedDatatype;
}

// "float[2,?]". Symbols have other names in another model.
std::string TypeOf(const split::FlowingValue& value) {
  if (!value.is_carried()) return "no tensor of known rank";
  std::string text(tensor::Name(value.type));
  text += "[";
  std::string_view comma;
  for (const split::Dimension& dimension : *value.dimensions) {
    text += comma;
    text += dimension.number < 0 ? "?" : std::to_string(dimension.number);
    comma = ",";
  }
  return text + "]";
}

std::string ListOf(const split::WholeModel& whole, const std::vector<int32_t>& values) {
  std::string text;
  for (const int32_t value : values) {
    text += (text.empty() ? "" : ", ") + TypeOf(whole.values()[value]);
  }
  return text.empty() ? "nothing" : text;
}

// What a plugin was asked: the answer of a plain one says nothing of it, and for any other the node
// is the first of its model.
std::string DescribeQuestion(const split::WholeModel& whole, int32_t node,
                             const split::IslandModel& question) {
  return "asked about a model of this " + whole.nodes()[node].operator_type + " alone, from " +
         ListOf(whole, question.inputs) + " to " + ListOf(whole, question.outputs);
}

}  // namespace

NodeQuestions::NodeQuestions(const split::WholeModel& whole) : whole_(whole) {
  for (const split::NodeSignature& signature : whole.Signatures()) {
    alone_.push_back(signature.alone);
    in_model_.push_back(signature.in_model);
  }
}

NodeAnswers NodeQuestions::Ask(const ForwardedBackendId& device) {
  bool was_asked = false;
  NodeAnswers answers =
      device.explains_nodes() ? AskForAll(device, was_asked) : AskOneByOne(device, was_asked);
  asked_count_ += was_asked ? 1 : 0;
  return answers;
}

NodeAnswers NodeQuestions::AskForAll(const ForwardedBackendId& device, bool& was_asked) const {
  const uint64_t losses = device.calls().losses();
  if (auto known = device.claim_memory().FindAll(in_model_, losses)) return *std::move(known);
  was_asked = true;
  auto explanation = device.Explain(BytesOf(whole_.claim_model()));
  std::map<uint32_t, std::vector<Status>> by_node;
  Status unasked(Code::kBackendUnavailable, "It says nothing of the node.");
  if (!explanation.ok()) {
    // A device that is gone claims nothing; the others still may.
    unasked = std::move(explanation).status();
  } else {
    if (explanation->nodes.empty() && !explanation->verdict.ok()) {
      // One node that it cannot even read, which another device may know, is no reason against all.
      if (IsAboutNodes(explanation->verdict.code())) {
        NodeAnswers answers = AskOneByOne(device, was_asked);
        for (size_t node = 0; node < answers.size(); ++node) {
          device.claim_memory().Add(in_model_[node], answers[node], losses);
        }
        return answers;
      }
      unasked = explanation->verdict;
    }
    for (const abi::NodeVerdict& verdict : explanation->nodes) {
      std::vector<Status>& reasons = by_node[verdict.node_index];
      if (verdict.code != Code::kOk) reasons.emplace_back(verdict.code, verdict.sentence);
    }
  }
  const auto nothing =
      std::make_shared<const NodeReasons>(1, NodeReason{unasked.code(), unasked.Text()});
  NodeAnswers answers;
  for (size_t node = 0; node < whole_.nodes().size(); ++node) {
    const auto told = by_node.find(static_cast<uint32_t>(whole_.nodes()[node].graph_index));
    if (told == by_node.end()) {
      answers.push_back(nothing);
      continue;
    }
    NodeReasons reasons;
    if (!told->second.empty()) {
      const std::vector<std::string> names = whole_.NamesOf(static_cast<int32_t>(node));
      for (const Status& reason : told->second) {
        reasons.push_back(reason.code() == Code::kFallback ? kEmulated
                                                           : NodeReason::Make(reason, names));
      }
    }
    answers.push_back(std::make_shared<const NodeReasons>(std::move(reasons)));
    device.claim_memory().Add(in_model_[node], answers.back(), losses);
  }
  return answers;
}

NodeAnswers NodeQuestions::AskOneByOne(const ForwardedBackendId& device, bool& was_asked) const {
  const uint64_t losses = device.calls().losses();
  NodeAnswers answers;
  for (size_t node = 0; node < whole_.nodes().size(); ++node) {
    // One that has gone would say the same of all the rest.
    if (device.calls().losses() != losses) {
      const Status gone(Code::kBackendUnavailable, "The device is no longer there.");
      answers.resize(whole_.nodes().size(),
                     std::make_shared<const NodeReasons>(1, NodeReason::Make(gone, {})));
      break;
    }
    if (auto known = device.claim_memory().Find(alone_[node], losses)) {
      answers.push_back(std::move(known));
      continue;
    }
    answers.push_back(std::make_shared<const NodeReasons>(
        AskAbout(device, static_cast<int32_t>(node), was_asked)));
    device.claim_memory().Add(alone_[node], answers.back(), losses);
  }
  return answers;
}

NodeReasons NodeQuestions::AskAbout(const ForwardedBackendId& device, int32_t node,
                                    bool& was_asked) const {
  const split::IslandModel question = whole_.Extract({&node, 1});
  const std::vector<std::string> names = whole_.NamesOf(node);
  NodeReasons reasons;
  // Where a plugin does not, libonnxifi infers them from the inputs' for it.
  const auto is_fixed = [&](int32_t output) { return whole_.values()[output].has_fixed_shape(); };
  const bool tells_shapes = device.calls().infer_output_shapes != nullptr ||
                            std::ranges::all_of(question.outputs, is_fixed) ||
                            split::FollowFromInputs(question, whole_.values());
  for (const int32_t output : question.outputs) {
    const split::FlowingValue& value = whole_.values()[output];
    // A plain plugin has no way to tell what shape something has.
    if (tells_shapes || value.has_fixed_shape()) continue;
    const Status reason =
        value.is_carried()
            ? Status(Code::kUnsupportedShape,
                     "The shape of '" + value.name +
                         "' is known only after a run, and a plain ONNXIFI 1.0 plugin cannot tell "
                         "it.")
        : value.type == tensor::ElementType::kUndefined
            ? Status(Code::kUnsupportedDatatype,
                     "'" + value.name +
                         "' is not known to be a tensor of numbers, which is all that a plain "
                         "ONNXIFI 1.0 plugin hands over.")
            : Status(Code::kUnsupportedShape, "Not even the rank of '" + value.name +
                                                  "' is known before a run, and a plain ONNXIFI "
                                                  "1.0 plugin cannot tell it.");
    reasons.push_back(NodeReason::Make(reason, names));
  }
  if (!reasons.empty() || question.outputs.empty()) return reasons;
  was_asked = true;
  Status answer = device.CheckCompatibility(BytesOf(question.bytes));
  if (answer.ok()) return reasons;
  if (answer.code() == Code::kFallback) return {kEmulated};
  answer.Context(DescribeQuestion(whole_, node, question));
  reasons.push_back(NodeReason::Make(answer, names));
  return reasons;
}

}  // namespace onnxifi::planner
