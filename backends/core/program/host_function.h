// SPDX-License-Identifier: Apache-2.0
//
// HostFunction: the closed list of what Host steps compute: functions of non-tensor values
// (sequences, optionals, maps), of the text of strings and of image files. Each is told by its
// attributes; core/host computes it.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/core/program/value_type.h"

namespace onnxifi::program {

// (elements...) -> sequence. None: the empty sequence.
struct MakeSequence {};

// (sequence of `type`, element, position int64, may be omitted: the end) -> sequence. A position in
// [-n, n].
struct InsertElement {
  ValueType type;
};

// (sequence, position, may be omitted: the last) -> sequence. A position in [-n, n - 1].
struct EraseElement {};

// (sequence, position in [-n, n - 1]) -> its element.
struct TakeElement {};

// (sequence) -> int64 scalar.
struct CountElements {};

// (tensor, lengths of the parts, a scalar for the largest of them, omitted: 1) -> sequence of the
// parts along `axis`, without that axis if `removes_axis`.
struct SplitTensor {
  int axis = 0;
  bool removes_axis = false;
};

// (sequence of tensors) -> one tensor, along an existing axis or a new one. `axis` is as in the
// model: negative from the back.
struct JoinElements {
  int64_t axis = 0;
  bool is_new_axis = false;
};

// (optional, may be omitted) -> bool scalar.
struct TestPresence {};

// (value, may be omitted: nothing) -> the same as an optional, or the element of an optional, which
// must be there where the write is not optional.
struct PassValue {};

// (a, b, strings of one shape) -> each a followed by its b.
struct ConcatStrings {};

// (strings) -> their parts along a new last axis, padded with empty strings; their numbers, int64.
// Split at white space, of which parts have none at their ends, or at a delimiter that is not
// empty; `most_splits` negative: everywhere.
struct SplitStrings {
  std::string delimiter;
  int64_t most_splits = -1;
};

// (strings) -> the tokens of each along a new last axis, padded behind the last one with `padding`.
// Tokens are the characters, what lies between matches of the separators, one pattern after the
// other, or the matches of one pattern. Those of fewer than `shortest` characters are left out.
struct TokenizeStrings {
  enum class Rule : uint8_t { kCharacters, kBetweenMatches, kMatches };
  Rule rule = Rule::kCharacters;
  std::vector<std::string> patterns;  // that host::Pattern takes; of kMatches one
  int64_t shortest = 1;
  // The characters U+0002 in front of the tokens of a string and U+0003 behind them, unless no
  // string has a token.
  bool marks_ends = false;
  std::string padding;
};

// (strings [C] or [1, C]) -> those that are no stop words, in another case. One empty string if
// none is left. Stop words are compared before the case is changed.
struct NormalizeStrings {
  enum class Case : uint8_t { kAsIs, kLower, kUpper };
  Case to = Case::kAsIs;
  bool is_case_sensitive = false;
  std::vector<std::string> stopwords;
  std::string locale;  // that host::LetterCase opens
};

// (strings) -> bool: whether the whole of each matches a pattern that host::Pattern takes.
struct MatchStrings {
  std::string pattern;
};

// (numbers) -> strings, and (strings) -> numbers of type `to`.
struct FormatNumbers {};
struct ParseNumbers {
  tensor::ElementType to = tensor::ElementType::kUndefined;
};

// (strings) -> int64: how many of the distinct ones come before each, by their bytes.
struct RankStrings {};

// (float32 [columns] or [N, columns]) -> sequence of maps, one per row, from each key to the number
// in its column.
struct MakeMaps {
  tensor::Tensor keys;  // one axis, none twice
  std::vector<int64_t> key_columns;
  int64_t columns = 0;
};

// (map) -> its values [1, n], of the type of `fallback`: those of `keys`, with the fallback where
// the map lacks one; all of them by ascending key where `keys` is nothing.
struct ListMap {
  std::optional<tensor::Tensor> keys;
  tensor::Tensor fallback;  // one element
};

// (bytes of an image file, uint8 [n]) -> uint8 [height, width, channels], 3 or for kGrayscale 1;
// [0, 0, channels] where they are none that core/image decodes.
struct DecodeImage {
  enum class Pixels : uint8_t { kRgb, kBgr, kGrayscale };
  Pixels pixels = Pixels::kRgb;
};

// Element `index` of a tensor as the key of a table: equal for equal elements, NaN equal to NaN.
std::string KeyOf(const tensor::Tensor& tensor, int64_t index);

struct HostFunction
    : std::variant<MakeSequence, InsertElement, EraseElement, TakeElement, CountElements,
                   SplitTensor, JoinElements, TestPresence, PassValue, ConcatStrings, SplitStrings,
                   TokenizeStrings, NormalizeStrings, MatchStrings, FormatNumbers, ParseNumbers,
                   RankStrings, MakeMaps, ListMap, DecodeImage> {
  using variant::variant;
};

// "insert element", ... for dumps and reports.
std::string_view Name(const HostFunction& function);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_HOST_FUNCTION_H_
