// SPDX-License-Identifier: Apache-2.0
//
// TfIdfVectorizer: counts of n-grams with gaps, of numbers or strings. Items become numbers of a
// vocabulary; an n-gram is found item by item in tables of the prefixes that the pool has, each
// looked up in every window at once, and what is found is scattered into counts.

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "backends/core/ops/index/find_key.h"
#include "backends/core/ops/index/positions.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

using program::Index;
using Strings = std::vector<std::string>;

constexpr ElementType kInt = ElementType::kInt64;

// The items of all n-grams of the pool, strings by their numbers.
Result<std::vector<int64_t>> PoolItems(Lowering& lowering) {
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
  if (has_numbers) return *numbers;
  std::vector<int64_t> items;
  for (const std::string& text : *texts) {
    items.push_back(static_cast<int64_t>(lowering.program().strings->NumberOf(text)));
  }
  return items;
}

struct Settings {
  int64_t shortest = 1, longest = 1;
  int64_t most_skipped = 0;
  bool counts_once = false;  // any number of occurrences as one
  bool has_weights = false;  // else each n-gram counts as much
  int64_t width = 0;         // columns of the result
  // No two n-grams have the same column, so that they are counted there.
  bool counts_in_columns = false;
};

// Counts of 32 bits: a row of more items is larger than any memory.
constexpr ElementType kCount = ElementType::kInt32;

Result<Settings> ReadSettings(const Lowering& lowering, const std::vector<int64_t>& starts,
                              const std::vector<int64_t>& columns) {
  const std::vector<float>* weights = lowering.Floats("weights");
  if (weights != nullptr && weights->size() != columns.size()) {
    return lowering.InvalidModel("There are " + std::to_string(weights->size()) + " weights for " +
                                 std::to_string(columns.size()) + " n-grams.");
  }
  Settings settings;
  settings.shortest = lowering.Int("min_gram_length", 1);
  settings.longest =
      std::min(lowering.Int("max_gram_length", 1), static_cast<int64_t>(starts.size()));
  settings.most_skipped =
      std::min<int64_t>(lowering.Int("max_skip_count", 0), std::numeric_limits<int32_t>::max());
  if (settings.shortest < 1 || lowering.Int("max_gram_length", 1) < settings.shortest ||
      settings.most_skipped < 0) {
    return lowering.InvalidModel("N-grams of " + std::to_string(settings.shortest) + " to " +
                                 std::to_string(lowering.Int("max_gram_length", 1)) +
                                 " items with gaps of up to " +
                                 std::to_string(settings.most_skipped) + " are none.");
  }
  const std::string mode = lowering.String("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return lowering.InvalidModel("Attribute mode is '" + mode +
                                 "'; it is one of TF, IDF and TFIDF.");
  }
  settings.counts_once = mode == "IDF";
  settings.has_weights = weights != nullptr && mode != "TF";
  const auto [lowest, highest] = std::minmax_element(columns.begin(), columns.end());
  constexpr int64_t kMaxColumns = int64_t{1} << 24;
  if (*lowest < 0 || *highest >= kMaxColumns) {
    return lowering.InvalidModel("Attribute ngram_indexes goes from " + std::to_string(*lowest) +
                                 " to " + std::to_string(*highest) + ", outside [0, " +
                                 std::to_string(kMaxColumns - 1) + "].");
  }
  settings.width = *highest + 1;
  settings.counts_in_columns = std::set(columns.begin(), columns.end()).size() == columns.size();
  return settings;
}

// The prefixes of some length that n-grams of the pool have: the number of the prefix that is one
// item shorter, times `stride`, plus that of the item, both from 1 on and 0 for what is in no
// n-gram. The number of a prefix is its place here, from 1 on.
struct Prefixes {
  std::vector<int64_t> keys;   // ascending
  std::vector<int64_t> grams;  // by number, so that 0 has none: the n-gram that it is; -1: none
};

// The pool as tables: of items, and by length of prefixes from 2 on.
struct Pool {
  std::vector<int64_t> vocabulary;  // ascending
  std::vector<Prefixes> prefixes;   // of length k + 1; keys of length 1 are those of the vocabulary
  int64_t gram_count = 0;
  // Larger than the number of any item.
  int64_t stride() const { return static_cast<int64_t>(vocabulary.size()) + 1; }
};

int64_t NumberOf(const std::vector<int64_t>& sorted, int64_t key) {
  return std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin() + 1;
}

// The pool lists all of one item, then all of two, ...; `starts` says where each begins.
Result<Pool> ReadPool(const Lowering& lowering, const std::vector<int64_t>& items,
                      const std::vector<int64_t>& starts, size_t column_count,
                      const Settings& settings) {
  Pool pool;
  const std::set<int64_t> distinct(items.begin(), items.end());
  pool.vocabulary.assign(distinct.begin(), distinct.end());
  struct Gram {
    std::vector<int64_t> items;  // by their numbers
    int64_t number;
  };
  std::vector<Gram> grams;  // of the lengths that are counted
  const auto total = static_cast<int64_t>(items.size());
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto size = static_cast<int64_t>(k) + 1;
    const int64_t begin = starts[k];
    const int64_t end = k + 1 < starts.size() ? starts[k + 1] : total;
    if (begin < 0 || begin > end || end > total || (end - begin) % size != 0) {
      return lowering.InvalidModel("Attribute ngram_counts gives items " + std::to_string(begin) +
                                   " to " + std::to_string(end) + " of " + std::to_string(total) +
                                   " to n-grams of " + std::to_string(size) + ".");
    }
    for (int64_t at = begin; at < end; at += size, ++pool.gram_count) {
      if (pool.gram_count >= static_cast<int64_t>(column_count)) {
        return lowering.InvalidModel("There are " + std::to_string(column_count) +
                                     " ngram_indexes for more n-grams.");
      }
      if (size < settings.shortest || size > settings.longest) continue;
      Gram& gram = grams.emplace_back();
      gram.number = pool.gram_count;
      for (int64_t item = 0; item < size; ++item) {
        gram.items.push_back(NumberOf(pool.vocabulary, items[static_cast<size_t>(at + item)]));
      }
    }
  }
  for (int64_t length = 1; length <= settings.longest; ++length) {
    Prefixes& prefixes = pool.prefixes.emplace_back();
    // The prefix of each n-gram that is as long; all of one item are the vocabulary's.
    std::map<int64_t, int64_t> found;  // the n-gram of each key; of equal ones the last
    for (int64_t item = 1; length == 1 && item < pool.stride(); ++item) found[item] = -1;
    for (Gram& gram : grams) {
      const auto size = static_cast<int64_t>(gram.items.size());
      if (size < length) continue;
      int64_t& first = gram.items.front();
      if (length > 1) first = first * pool.stride() + gram.items[static_cast<size_t>(length) - 1];
      int64_t& number = found.try_emplace(first, -1).first->second;
      if (size == length) number = gram.number;
    }
    prefixes.grams.push_back(-1);
    for (const auto& [key, number] : found) {
      prefixes.keys.push_back(key);
      prefixes.grams.push_back(number);
    }
    for (Gram& gram : grams) {
      if (static_cast<int64_t>(gram.items.size()) < length) continue;
      gram.items.front() = NumberOf(prefixes.keys, gram.items.front());
    }
  }
  return pool;
}

Operand ConstantNumbers(Lowering& lowering, const std::vector<int64_t>& numbers) {
  return lowering.ConstantTensor(
      tensor::Tensor::FromValues<int64_t>(kInt, {static_cast<int64_t>(numbers.size())}, numbers));
}

// The number of a key from 1 on; 0 where it is none of `keys`.
Expr NumberOfKey(Lowering& lowering, StepBuilder& map, Expr key, const std::vector<int64_t>& keys) {
  if (keys.empty()) return map.Extent(0);
  const FoundKey found = FindKey(lowering, map, key, kInt, keys);
  return Select(found.is_there, found.at + map.Extent(1), map.Extent(0));
}

Operand Filled(Lowering& lowering, const Shape& shape, ElementType type) {
  StepBuilder map(lowering, shape);
  return map.WriteMap(map.Extent(0), type);
}

// target[row, at] += updates, all over the same domain, whose first axis is the row; positions
// outside the target are left out.
void AddAt(Lowering& lowering, const Operand& target, const Operand& updates, const Operand& at) {
  const Shape& domain = at.shape;
  StepBuilder rows(lowering, domain);
  const Operand row = rows.WriteMap(rows.Coordinate(0), kInt);
  Index scatter;
  scatter.combine = Index::Combine::kAdd;
  scatter.target = target.shape;
  StepBuilder step(lowering, domain);
  step.AddRead(program::BroadcastTo(updates, domain));
  step.AddRead(row.view);
  step.AddRead(at.view);
  step.Finish(std::move(scatter), {target.view});
}

// How often each n-gram of the pool occurs in each row of `items` [N, C]: [N, width] where they are
// counted in their columns, else [N, grams].
Operand CountGrams(Lowering& lowering, const Operand& items, const Pool& pool,
                   const Settings& settings, const std::vector<int64_t>& columns) {
  const Dim rows = items.shape[0], length = items.shape[1];
  StepBuilder map(lowering, items.shape);
  const Operand words =
      map.WriteMap(NumberOfKey(lowering, map, Cast(map.Read(items), kInt), pool.vocabulary), kInt);
  const int64_t width = settings.counts_in_columns ? settings.width : pool.gram_count;
  const Operand counts = Filled(lowering, {rows, Dim(width)}, kCount);
  StepBuilder ones(lowering, {Dim(1)});
  const Operand one = ones.WriteMap(ones.Extent(1), kCount);
  // Items of an n-gram lie `gap` + 1 apart; of one item the gap means nothing.
  const Dim gaps = Min(Dim(settings.most_skipped + 1), length);
  Operand prefixes = words;  // of the windows: [N, 1, C] or [N, gaps, C], the number of each
  for (int64_t size = 1; size <= settings.longest; ++size) {
    const Prefixes& table = pool.prefixes[static_cast<size_t>(size) - 1];
    if (size == 1) {
      prefixes = program::InsertAxis(words, 1);
    } else {
      StepBuilder step(lowering, {rows, gaps, length});
      const Expr place =
          step.Coordinate(2) + (step.Coordinate(1) + step.Extent(1)) * step.Extent(size - 1);
      const Expr item = ReadGuarded(step, words, {step.Coordinate(0), place}, {1});
      const Expr key = step.Read(prefixes) * step.Extent(pool.stride()) + item;
      prefixes = step.WriteMap(NumberOfKey(lowering, step, key, table.keys), kInt);
    }
    if (size < settings.shortest) continue;
    std::vector<int64_t> places = table.grams;
    for (int64_t& place : places) {
      if (settings.counts_in_columns && place >= 0) place = columns[static_cast<size_t>(place)];
    }
    StepBuilder grams(lowering, prefixes.shape);
    const Expr gram =
        grams.ReadAtUnchecked(ConstantNumbers(lowering, places), {grams.Read(prefixes)});
    const Operand at = grams.WriteMap(gram, kInt);
    AddAt(lowering, counts, one, at);
  }
  return counts;
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
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> items, PoolItems(lowering));
  const auto* starts = lowering.Ints("ngram_counts");
  const auto* columns = lowering.Ints("ngram_indexes");
  if (starts == nullptr || columns == nullptr || columns->empty()) {
    return lowering.InvalidModel("Attribute ngram_counts or ngram_indexes is missing.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(lowering, *starts, *columns));
  ONNXIFI_ASSIGN_OR_RETURN(const Pool pool,
                           ReadPool(lowering, items, *starts, columns->size(), settings));

  const Operand rows = x.rank() == 2 ? x : program::InsertAxis(x, 0);
  const Operand counts = CountGrams(lowering, rows, pool, settings, *columns);
  StepBuilder weigh(lowering, counts.shape);
  Expr value = weigh.Read(counts);
  if (settings.counts_once) value = Minimum(value, Like(value, 1));
  value = Cast(value, ElementType::kFloat32);
  if (settings.has_weights) {
    const std::vector<float>& of_grams = *lowering.Floats("weights");
    std::vector<float> weights(static_cast<size_t>(counts.shape[1].constant()));
    for (size_t gram = 0; gram < static_cast<size_t>(pool.gram_count); ++gram) {
      const auto column = static_cast<size_t>((*columns)[gram]);
      weights[settings.counts_in_columns ? column : gram] = of_grams[gram];
    }
    value = value * weigh.Read(lowering.ConstantTensor(tensor::Tensor::FromValues<float>(
                        ElementType::kFloat32, {static_cast<int64_t>(weights.size())}, weights)));
  }
  Operand sums = weigh.WriteMap(value, ElementType::kFloat32);
  if (!settings.counts_in_columns) {
    StepBuilder place(lowering, counts.shape);
    std::vector<int64_t> column_of_gram = *columns;
    column_of_gram.resize(static_cast<size_t>(pool.gram_count));
    const Operand at = place.WriteMap(place.Read(ConstantNumbers(lowering, column_of_gram)), kInt);
    const Operand weighed = sums;
    sums = Filled(lowering, {rows.shape[0], Dim(settings.width)}, ElementType::kFloat32);
    AddAt(lowering, sums, weighed, at);
  }
  lowering.Set(0, x.rank() == 2 ? sums : program::RemoveAxis(sums, 0));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"TfIdfVectorizer", 9, LowerTfIdfVectorizer, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> TfIdfOperators() { return kOperators; }

}  // namespace onnxifi::ops
