// SPDX-License-Identifier: Apache-2.0
//
// NodeQuestions: asks devices which nodes of a model they claim, and why not the others. One
// question for all nodes where the plugin explains; a plain ONNXIFI 1.0 plugin, which answers for
// whole models only, is asked about models of one node, and so is one that cannot read the model
// for an operator that it does not know. What a device said before is not asked again.

#ifndef ONNXIFI_ONNXIFI_PLANNER_NODE_QUESTIONS_H_
#define ONNXIFI_ONNXIFI_PLANNER_NODE_QUESTIONS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "onnxifi/plugins/claim_memory.h"
#include "onnxifi/plugins/forwarded_backend_id.h"
#include "onnxifi/split/digest.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::planner {

// By node: why it is not claimed; never null.
using NodeAnswers = std::vector<std::shared_ptr<const plugins::NodeReasons>>;

class NodeQuestions {
 public:
  // `whole` outlives it.
  explicit NodeQuestions(const split::WholeModel& whole);
  // The same where the nodes' signatures are known: alone, and in the model, which may be left out
  // where only plain plugins are asked.
  NodeQuestions(const split::WholeModel& whole, std::vector<split::Digest> alone,
                std::vector<split::Digest> in_model)
      : whole_(whole), alone_(std::move(alone)), in_model_(std::move(in_model)) {}

  // A device that cannot be asked claims nothing, with that for a reason.
  NodeAnswers Ask(const plugins::ForwardedBackendId& device);

  // How many devices had to be asked, because they had not been before.
  int asked_count() const { return asked_count_; }

 private:
  // `was_asked` becomes true where not all was remembered.
  NodeAnswers AskForAll(const plugins::ForwardedBackendId& device, bool& was_asked) const;
  NodeAnswers AskOneByOne(const plugins::ForwardedBackendId& device, bool& was_asked) const;
  plugins::NodeReasons AskAbout(const plugins::ForwardedBackendId& device, int32_t node,
                                bool& was_asked) const;

  const split::WholeModel& whole_;
  std::vector<split::Digest> alone_;
  std::vector<split::Digest> in_model_;
  int asked_count_ = 0;
};

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_NODE_QUESTIONS_H_
