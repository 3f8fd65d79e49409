// SPDX-License-Identifier: Apache-2.0
//
// StringTable: strings under numbers. A program holds a tensor of strings as one of these numbers,
// so that whatever moves or compares elements moves and compares strings too, on any device; only
// host functions look at the text.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_STRING_TABLE_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_STRING_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::tensor {

// Equal strings have equal numbers; the empty string has number 0.
// Threads: one at a time; const functions any number.
class StringTable {
 public:
  // Continues the numbers of `base`, which then stays as it is and outlives this: the constants of
  // a program under the strings of one of its runs.
  explicit StringTable(const StringTable* base = nullptr);
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;

  uint64_t NumberOf(std::string_view text);
  // The empty string for a number that was never given.
  const std::string& Text(uint64_t number) const;

  // A tensor of strings as uint64 numbers of the same extents, and back.
  base::Result<Tensor> NumbersOf(const Tensor& strings);
  Tensor StringsOf(const uint64_t* numbers, Extents extents) const;

 private:
  const uint64_t* Find(std::string_view text) const;

  const StringTable* const base_;
  const uint64_t first_;
  // Of the numbers from first_ on. Pointers, so that addresses stay; nothing is allocated for a
  // table that stays empty.
  std::vector<std::unique_ptr<const std::string>> texts_;
  std::unordered_map<std::string_view, uint64_t> numbers_;
};

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_STRING_TABLE_H_
