// SPDX-License-Identifier: Apache-2.0
//
// ClaimMemory: what a device answered about nodes, by their signatures, so that it is asked once
// for all nodes of a kind, in whatever models they stand.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_CLAIM_MEMORY_H_
#define ONNXIFI_ONNXIFI_PLUGINS_CLAIM_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/core/base/status.h"
#include "onnxifi/split/digest.h"

namespace onnxifi::plugins {

// Names of this node's stand in for those of the node that was asked about.
struct NodeReason {
  base::Code code = base::Code::kOk;
  std::string sentence;

  static NodeReason Make(const base::Status& status, std::span<const std::string> names);
  base::Status ToStatus(std::span<const std::string> names) const;
};

// Why a node is not claimed, every reason by itself; none where it is claimed. One of FALLBACK,
// without a sentence, where it is claimed by emulation.
using NodeReasons = std::vector<NodeReason>;

bool IsClaimed(const NodeReasons& reasons);
bool IsEmulated(const NodeReasons& reasons);

// Of one device. `losses` is how often it had been found gone (PluginCalls::losses) before it was
// asked; what it said before it went is forgotten.
// Threads: any.
class ClaimMemory {
 public:
  // Beyond, everything is forgotten.
  static constexpr size_t kMaxAnswers = size_t{1} << 16;

  // The answers to all of the questions, or nothing where one was never asked.
  std::optional<std::vector<std::shared_ptr<const NodeReasons>>> FindAll(
      std::span<const split::Digest> questions, uint64_t losses);
  std::shared_ptr<const NodeReasons> Find(const split::Digest& question, uint64_t losses);

  // Answers that say something of the device as it is now, not of the node, are not kept.
  void Add(const split::Digest& question, std::shared_ptr<const NodeReasons> answer,
           uint64_t losses);

 private:
  void ForgetBefore(uint64_t losses);  // with the mutex held

  std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t losses_ = 0;
  std::unordered_map<split::Digest, std::shared_ptr<const NodeReasons>, split::DigestHash> answers_;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_CLAIM_MEMORY_H_
