// SPDX-License-Identifier: Apache-2.0
//
// Tables and n-grams.

#include "backends/core/host/table.h"

#include <algorithm>
#include <cstring>

namespace onnxifi::host {
namespace {

using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;

}  // namespace

Outputs Run(const program::LookUp& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  if (x->type() != attributes.key_type) {
    return WrongInput(inputs, 0, "a tensor of " + std::string(Name(attributes.key_type)));
  }
  const int64_t count = x->element_count();
  // The position of the value of each element; -1 for the fallback.
  std::vector<int64_t> found;
  for (int64_t k = 0; k < count; ++k) {
    const auto entry = attributes.positions.find(program::KeyOf(*x, k));
    found.push_back(entry == attributes.positions.end() ? -1 : entry->second);
  }
  const Tensor& values = attributes.values;
  const Tensor& fallback = attributes.fallback;
  if (values.type() == ElementType::kString) {
    std::vector<std::string> texts;
    for (const int64_t at : found) {
      texts.push_back(at < 0 ? fallback.strings()[0] : values.strings()[static_cast<size_t>(at)]);
    }
    return One(Tensor::FromStrings(x->extents(), std::move(texts)));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(values.type(), x->extents()));
  const auto width = static_cast<size_t>(tensor::BitWidth(values.type()) / 8);
  std::byte* place = result.mutable_data();
  for (const int64_t at : found) {
    std::memcpy(place, at < 0 ? fallback.data() : values.data() + static_cast<size_t>(at) * width,
                width);
    place += width;
  }
  return One(std::move(result));
}

Outputs Run(const program::CountNgrams& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* x, TensorInput(inputs, 0));
  const int64_t length = x->rank() == 0 ? 1 : x->extents().back();
  const int64_t rows = x->rank() < 2 ? 1 : x->extents()[0];
  Extents extents = {attributes.width};
  if (x->rank() == 2) extents.insert(extents.begin(), rows);
  ONNXIFI_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(ElementType::kFloat32, extents));
  auto* sums = reinterpret_cast<float*>(result.mutable_data());
  std::vector<std::string> keys;
  std::vector<int64_t> counts(static_cast<size_t>(attributes.gram_count));
  for (int64_t row = 0; row < rows; ++row, sums += attributes.width) {
    keys.clear();
    for (int64_t k = 0; k < length; ++k) keys.push_back(program::KeyOf(*x, row * length + k));
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t size = attributes.shortest; size <= attributes.longest; ++size) {
      // The items of an n-gram lie `step` apart; of one item the step means nothing.
      const int64_t largest_step = size == 1 ? 1 : attributes.most_skipped + 1;
      for (int64_t step = 1; step <= largest_step && (size - 1) * step < length; ++step) {
        for (int64_t start = 0; start + (size - 1) * step < length; ++start) {
          std::string gram;
          for (int64_t item = 0; item < size; ++item) {
            program::AppendToGram(keys[static_cast<size_t>(start + item * step)], gram);
          }
          const auto found = attributes.grams.find(gram);
          if (found != attributes.grams.end()) ++counts[static_cast<size_t>(found->second.number)];
        }
      }
    }
    for (const auto& [text, gram] : attributes.grams) {
      const auto count = static_cast<float>(counts[static_cast<size_t>(gram.number)]);
      const float term = attributes.counts_once ? std::min(count, 1.0F) : count;
      sums[gram.column] += term * gram.weight;
    }
  }
  return One(std::move(result));
}

}  // namespace onnxifi::host
