// SPDX-License-Identifier: Apache-2.0
//
// ClaimMemory: a map under a mutex. A sentence may quote names, which are others in another model:
// they are kept as numbers among the names of the node.

#include "onnxifi/plugins/claim_memory.h"

#include <algorithm>
#include <utility>

namespace onnxifi::plugins {
namespace {

// No text of a model has it.
constexpr char kMark = '\x1f';

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, found + to.size())) {
    text.replace(found, from.size(), to);
  }
}

std::string Quote(const std::string& text) { return "'" + text + "'"; }

bool IsAboutTheNode(const NodeReason& reason) {
  switch (reason.code) {
    case base::Code::kFallback:
    case base::Code::kUnsupportedVersion:
    case base::Code::kUnsupportedOperator:
    case base::Code::kUnsupportedAttribute:
    case base::Code::kUnsupportedShape:
    case base::Code::kUnsupportedDatatype:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IsClaimed(const NodeReasons& reasons) {
  return std::all_of(reasons.begin(), reasons.end(),
                     [](const NodeReason& reason) { return reason.code == base::Code::kFallback; });
}

bool IsEmulated(const NodeReasons& reasons) { return !reasons.empty() && IsClaimed(reasons); }

NodeReason NodeReason::Make(const base::Status& status, std::span<const std::string> names) {
  NodeReason reason{status.code(), status.Text()};
  for (size_t index = 0; index < names.size(); ++index) {
    if (names[index].empty()) continue;
    ReplaceAll(reason.sentence, Quote(names[index]), Quote(kMark + std::to_string(index)));
  }
  return reason;
}

base::Status NodeReason::ToStatus(std::span<const std::string> names) const {
  std::string text = sentence;
  for (size_t index = 0; index < names.size(); ++index) {
    ReplaceAll(text, Quote(kMark + std::to_string(index)), Quote(names[index]));
  }
  return {code, std::move(text)};
}

void ClaimMemory::ForgetBefore(uint64_t losses) {
  if (losses <= losses_) return;
  answers_.clear();
  losses_ = losses;
}

std::optional<std::vector<std::shared_ptr<const NodeReasons>>> ClaimMemory::FindAll(
    std::span<const split::Digest> questions, uint64_t losses) {
  std::vector<std::shared_ptr<const NodeReasons>> answers;
  answers.reserve(questions.size());
  const std::lock_guard lock(mutex_);
  ForgetBefore(losses);
  for (const split::Digest& question : questions) {
    const auto found = answers_.find(question);
    if (found == answers_.end()) return std::nullopt;
    answers.push_back(found->second);
  }
  return answers;
}

std::shared_ptr<const NodeReasons> ClaimMemory::Find(const split::Digest& question,
                                                     uint64_t losses) {
  const std::lock_guard lock(mutex_);
  ForgetBefore(losses);
  const auto found = answers_.find(question);
  return found == answers_.end() ? nullptr : found->second;
}

void ClaimMemory::Add(const split::Digest& question, std::shared_ptr<const NodeReasons> answer,
                      uint64_t losses) {
  if (!std::all_of(answer->begin(), answer->end(), IsAboutTheNode)) return;
  const std::lock_guard lock(mutex_);
  ForgetBefore(losses);
  // It was gone since it said so.
  if (losses < losses_) return;
  if (answers_.size() >= kMaxAnswers) answers_.clear();
  answers_.insert_or_assign(question, std::move(answer));
}

}  // namespace onnxifi::plugins
