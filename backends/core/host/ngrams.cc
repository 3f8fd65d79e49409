// SPDX-License-Identifier: Apache-2.0
//
// N-grams.

#include "backends/core/host/ngrams.h"

#include <utility>

namespace onnxifi::host {
namespace {

using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;

}  // namespace

Outputs Run(const program::CountNgrams& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  const int64_t length = x->rank() == 0 ? 1 : x->extents().back();
  const int64_t rows = x->rank() < 2 ? 1 : x->extents()[0];
  Extents extents = {attributes.width};
  if (x->rank() == 2) extents.insert(extents.begin(), rows);
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(ElementType::kFloat32, extents));
  auto* sums = reinterpret_cast<float*>(result.mutable_data());
  using Gram = program::CountNgrams::Gram;
  std::vector<std::string> keys;
  std::vector<int64_t> counts(static_cast<size_t>(attributes.gram_count));
  std::vector<const Gram*> met;  // each once, of a row: few of all
  std::string text;
  for (int64_t row = 0; row < rows; ++row, sums += attributes.width) {
    keys.clear();
    for (int64_t k = 0; k < length; ++k) keys.push_back(program::KeyOf(*x, row * length + k));
    for (int64_t size = attributes.shortest; size <= attributes.longest; ++size) {
      // The items of an n-gram lie `step` apart; of one item the step means nothing.
      const int64_t largest_step = size == 1 ? 1 : attributes.most_skipped + 1;
      for (int64_t step = 1; step <= largest_step && (size - 1) * step < length; ++step) {
        for (int64_t start = 0; start + (size - 1) * step < length; ++start) {
          text.clear();
          for (int64_t item = 0; item < size; ++item) {
            program::AppendToGram(keys[static_cast<size_t>(start + item * step)], text);
          }
          const auto found = attributes.grams.find(text);
          if (found == attributes.grams.end()) continue;
          if (counts[static_cast<size_t>(found->second.number)]++ == 0) {
            met.push_back(&found->second);
          }
        }
      }
    }
    for (const Gram* gram : met) {
      const auto count =
          static_cast<float>(std::exchange(counts[static_cast<size_t>(gram->number)], 0));
      sums[gram->column] += (attributes.counts_once ? 1.0F : count) * gram->weight;
    }
    met.clear();
  }
  return One(std::move(result));
}

}  // namespace onnxifi::host
