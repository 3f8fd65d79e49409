// SPDX-License-Identifier: Apache-2.0
//
// AnswerCache: a ring of entries, linked by hash. An entry that is replaced gives its memory to the
// next one, so that a claim about a new model allocates nothing here.

#include "backends/core/plugin/answer_cache.h"

#include <functional>
#include <utility>

namespace onnxifi::plugin {

Question::Question(std::span<const std::byte> bytes)
    : model(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      hash(model.size() > AnswerCache::kMaxModelBytes ? 0 : std::hash<std::string_view>()(model)) {}

const base::Status* AnswerCache::Find(const Question& question) const {
  if (question.model.size() > kMaxModelBytes) return nullptr;
  int32_t position = lists_[question.hash % kMaxAnswers];
  while (position != kNone) {
    const Entry& entry = entries_[static_cast<size_t>(position)];
    if (entry.hash == question.hash && entry.model == question.model) return &entry.answer;
    position = entry.next;
  }
  return nullptr;
}

void AnswerCache::Add(const Question& question, base::Status answer) {
  if (question.model.size() > kMaxModelBytes) return;
  size_t position = entries_.size();
  if (position < kMaxAnswers) {
    entries_.emplace_back();
  } else {
    position = std::exchange(oldest_, (oldest_ + 1) % kMaxAnswers);
    Unlist(static_cast<int32_t>(position));
  }
  Entry& entry = entries_[position];
  entry.model = question.model;
  entry.answer = std::move(answer);
  entry.hash = question.hash;
  entry.next = std::exchange(ListOf(question.hash), static_cast<int32_t>(position));
}

void AnswerCache::Unlist(int32_t position) {
  const Entry& entry = entries_[static_cast<size_t>(position)];
  int32_t* link = &ListOf(entry.hash);
  while (*link != position) link = &entries_[static_cast<size_t>(*link)].next;
  *link = entry.next;
}

}  // namespace onnxifi::plugin
