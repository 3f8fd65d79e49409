// SPDX-License-Identifier: Apache-2.0
//
// AnswerCache: the newest answers to claims, by the exact bytes of the question. Callers ask about
// the same one-node models by the thousand.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_ANSWER_CACHE_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_ANSWER_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/status.h"

namespace onnxifi::plugin {

// A model that is asked about; borrows its bytes. Made once for all that a claim looks up.
struct Question {
  explicit Question(std::span<const std::byte> bytes);

  std::string_view model;
  size_t hash;  // 0 for a model that is too large to be kept: hashing weights takes its time
};

// Find and Add are called with the mutex held.
class AnswerCache {
 public:
  static constexpr size_t kMaxAnswers = 1024;
  // Larger models are not kept.
  static constexpr size_t kMaxModelBytes = 4096;

  AnswerCache() { lists_.fill(kNone); }

  // Null: not asked yet, or too many questions ago. Valid until the next Add.
  const base::Status* Find(const Question& question) const;
  // In place of the oldest answer where there are kMaxAnswers. The question has no answer here.
  void Add(const Question& question, base::Status answer);

  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr int32_t kNone = -1;
  struct Entry {
    std::string model;
    base::Status answer;
    size_t hash = 0;
    int32_t next = kNone;  // in the list of its hash
  };

  int32_t& ListOf(size_t hash) { return lists_[hash % kMaxAnswers]; }
  void Unlist(int32_t position);

  std::mutex mutex_;
  std::vector<Entry> entries_;  // in the order in which they came, from oldest_ on and around
  size_t oldest_ = 0;
  std::array<int32_t, kMaxAnswers> lists_;  // by hash: the newest entry
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_ANSWER_CACHE_H_
