// SPDX-License-Identifier: Apache-2.0
//
// TfIdfVectorizer: counts of n-grams with gaps, of numbers or strings.

#include <algorithm>
#include <limits>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using Strings = std::vector<std::string>;

// The items of all n-grams of the pool as keys.
Result<Strings> PoolKeys(const Lowering& lowering) {
  const auto* texts = lowering.node().FindAttribute<Strings>("pool_strings");
  const auto* numbers = lowering.Ints("pool_int64s");
  const bool has_texts = texts != nullptr && !texts->empty();
  const bool has_numbers = numbers != nullptr && !numbers->empty();
  if (has_texts == has_numbers) {
    return lowering.InvalidModel("One of pool_strings and pool_int64s must be given, not both.");
  }
  const ElementType type = lowering.In(0).type();
  if (has_texts != (type == ElementType::kString)) {
    return Status(Code::kMismatchingDatatype, "TfIdfVectorizer: Input 0 is of " +
                                                  std::string(Name(type)) + ", its pool of " +
                                                  (has_texts ? "string" : "int64") + ".");
  }
  Strings keys;
  if (has_texts) {
    for (const std::string& text : *texts) keys.push_back(text);
    return keys;
  }
  for (const int64_t number : *numbers) {
    // As the input has it: a number that its type cannot hold is never met.
    keys.push_back(program::KeyOf(
        tensor::Tensor::FromValues<int64_t>(ElementType::kInt64, {}, std::span(&number, 1)), 0));
  }
  return keys;
}

Status LowerTfIdfVectorizer(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  const Operand& x = lowering.In(0);
  if (x.type() != ElementType::kString && x.type() != ElementType::kInt32 &&
      x.type() != ElementType::kInt64) {
    return lowering.UnsupportedType(0);
  }
  if (x.rank() < 1 || x.rank() > 2) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(x.rank()) +
                                 " axes; one or two are required.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Strings keys, PoolKeys(lowering));
  const auto* starts = lowering.Ints("ngram_counts");
  const auto* columns = lowering.Ints("ngram_indexes");
  const auto* weights = lowering.Floats("weights");
  if (starts == nullptr || columns == nullptr || columns->empty()) {
    return lowering.InvalidModel("Attribute ngram_counts or ngram_indexes is missing.");
  }
  if (weights != nullptr && weights->size() != columns->size()) {
    return lowering.InvalidModel("There are " + std::to_string(weights->size()) + " weights for " +
                                 std::to_string(columns->size()) + " n-grams.");
  }
  program::CountNgrams attributes;
  attributes.shortest = lowering.Int("min_gram_length", 1);
  attributes.longest =
      std::min(lowering.Int("max_gram_length", 1), static_cast<int64_t>(starts->size()));
  attributes.most_skipped =
      std::min<int64_t>(lowering.Int("max_skip_count", 0), std::numeric_limits<int32_t>::max());
  if (attributes.shortest < 1 || lowering.Int("max_gram_length", 1) < attributes.shortest ||
      attributes.most_skipped < 0) {
    return lowering.InvalidModel("N-grams of " + std::to_string(attributes.shortest) + " to " +
                                 std::to_string(lowering.Int("max_gram_length", 1)) +
                                 " items with gaps of up to " +
                                 std::to_string(attributes.most_skipped) + " are none.");
  }
  const std::string mode = lowering.String("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return lowering.InvalidModel("Attribute mode is '" + mode +
                                 "'; it is one of TF, IDF and TFIDF.");
  }
  attributes.counts_once = mode == "IDF";
  const auto [lowest, highest] = std::minmax_element(columns->begin(), columns->end());
  constexpr int64_t kMaxColumns = int64_t{1} << 24;
  if (*lowest < 0 || *highest >= kMaxColumns) {
    return lowering.InvalidModel("Attribute ngram_indexes goes from " + std::to_string(*lowest) +
                                 " to " + std::to_string(*highest) + ", outside [0, " +
                                 std::to_string(kMaxColumns - 1) + "].");
  }
  attributes.width = *highest + 1;

  // The pool lists all of one item, then all of two, ...; ngram_counts says where each begins.
  const auto total = static_cast<int64_t>(keys.size());
  int64_t number = 0;
  for (size_t k = 0; k < starts->size(); ++k) {
    const auto size = static_cast<int64_t>(k) + 1;
    const int64_t begin = (*starts)[k];
    const int64_t end = k + 1 < starts->size() ? (*starts)[k + 1] : total;
    if (begin < 0 || begin > end || end > total || (end - begin) % size != 0) {
      return lowering.InvalidModel("Attribute ngram_counts gives items " + std::to_string(begin) +
                                   " to " + std::to_string(end) + " of " + std::to_string(total) +
                                   " to n-grams of " + std::to_string(size) + ".");
    }
    for (int64_t at = begin; at < end; at += size, ++number) {
      if (number >= static_cast<int64_t>(columns->size())) {
        return lowering.InvalidModel("There are " + std::to_string(columns->size()) +
                                     " ngram_indexes for more n-grams.");
      }
      std::string gram;
      for (int64_t item = 0; item < size; ++item) {
        program::AppendToGram(keys[static_cast<size_t>(at + item)], gram);
      }
      const auto position = static_cast<size_t>(number);
      attributes.grams[gram] = {number, (*columns)[position],
                                weights != nullptr && mode != "TF" ? (*weights)[position] : 1.0F};
    }
  }
  attributes.gram_count = number;

  Operand items = x;
  if (x.type() == ElementType::kInt32) items = lowering.CastTo(x, ElementType::kInt64);
  HostStep step(lowering, std::move(attributes));
  step.Read(items);
  std::vector<std::optional<Dim>> extents = {Dim(*highest + 1)};
  if (x.rank() == 2) extents.insert(extents.begin(), x.shape[0]);
  lowering.Set(0, step.WriteTensor(ElementType::kFloat32, extents));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TfIdfVectorizer", 9, LowerTfIdfVectorizer, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> TfIdfOperators() { return kOperators; }

}  // namespace onnxifi::ops
