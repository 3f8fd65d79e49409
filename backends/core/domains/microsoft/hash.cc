// SPDX-License-Identifier: Apache-2.0
//
// Hashes. MurmurHash3 of numbers, as ML.NET hashes features: MurmurHash3_x86_32 of the bytes of
// each element, which are one or two blocks of 32 bits and leave no tail. NGramHashMapping of
// tokens with those before them, as an Engram looks its memory up.

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

constexpr ElementType kWord = ElementType::kUint32;

// int64 says numbers up to 2^32 exactly.
Value Word(Definition& d, int64_t number) { return d.Cast(d.Int0D(number), kWord); }

Value BitCast(Definition& d, Value value, ElementType type) {
  return d.Apply("BitCast", {std::move(value)}, {{"to", static_cast<int64_t>(type)}});
}

Value Shift(Definition& d, const Value& value, int64_t bits, const char* direction) {
  return d.Apply("BitShift", {value, Word(d, bits)}, {{"direction", std::string(direction)}});
}

Value Xor(Definition& d, Value a, Value b) {
  return d.Apply("BitwiseXor", {std::move(a), std::move(b)});
}

Value Rotate(Definition& d, const Value& value, int64_t bits) {
  constexpr int64_t kBits = 32;
  return d.Apply("BitwiseOr",
                 {Shift(d, value, bits, "LEFT"), Shift(d, value, kBits - bits, "RIGHT")});
}

// The bytes of input 0 as blocks, the first of them first.
std::vector<Value> Blocks(Definition& d) {
  const ElementType type = d.Type(0);
  const bool is_long =
      type == ElementType::kInt64 || type == ElementType::kUint64 || type == ElementType::kFloat64;
  if (!is_long) return {type == kWord ? d.In(0) : BitCast(d, d.In(0), kWord)};
  const ElementType wide = ElementType::kUint64;
  const Value bits = type == wide ? d.In(0) : BitCast(d, d.In(0), wide);
  const Value low =
      d.Apply("BitwiseAnd", {bits, d.Cast(d.Int0D(std::numeric_limits<uint32_t>::max()), wide)});
  const Value high =
      d.Apply("BitShift", {bits, d.Cast(d.Int0D(32), wide)}, {{"direction", std::string("RIGHT")}});
  return {d.Cast(low, kWord), d.Cast(high, kWord)};
}

Status DefineMurmurHash3(Definition& d) {
  const ElementType type = d.Type(0);
  if (type == ElementType::kUndefined) {
    return d.UnsupportedShape("The element type of input 0 is not known.");
  }
  if (type == ElementType::kString) {
    return d.Unsupported("Input 0 is text; numbers alone are hashed.");
  }
  const int64_t seed = d.Int("seed");
  if (seed < 0 || seed > std::numeric_limits<uint32_t>::max()) {
    return d.Invalid("Attribute seed is " + std::to_string(seed) + "; a seed is a uint32.");
  }
  // The factors and the finalization of the published algorithm, which is in the public domain.
  const Value first = Word(d, 0xcc9e2d51), second = Word(d, 0x1b873593);
  const std::vector<Value> blocks = Blocks(d);
  Value hash = Word(d, seed);
  for (const Value& block : blocks) {
    const Value mixed = d.Mul(Rotate(d, d.Mul(block, first), 15), second);
    hash = Rotate(d, Xor(d, hash, mixed), 13);
    hash = d.Add(d.Mul(hash, Word(d, 5)), Word(d, 0xe6546b64));
  }
  hash = Xor(d, hash, Word(d, 4 * static_cast<int64_t>(blocks.size())));
  hash = d.Mul(Xor(d, hash, Shift(d, hash, 16, "RIGHT")), Word(d, 0x85ebca6b));
  hash = d.Mul(Xor(d, hash, Shift(d, hash, 13, "RIGHT")), Word(d, 0xc2b2ae35));
  hash = Xor(d, hash, Shift(d, hash, 16, "RIGHT"));
  d.Return(0, d.Int("positive") != 0 ? hash : BitCast(d, hash, ElementType::kInt32));
  return base::Ok();
}

// NGramHashMapping. Input 0 is [batch, sequence]. A token and those before it are multiplied with a
// factor each and joined by exclusive or, once for 2 tokens, once for 3, up to max_ngram_size; each
// of these is divided by the sizes of its heads, and the remainders are the output.
enum NGramInput { kTokens, kFactors, kSizes, kPastTokens, kOffsets, kEndToken, kSegments };

// Whether each token is of the segment of the one before it, [batch, lead + sequence]; so are the
// first token and the `lead` before it.
Value IsOfSegmentBefore(Definition& d, const Value& segments, int64_t lead) {
  const Value begin = d.Ints1D({0}), second = d.Ints1D({1});
  const Value end = d.ExtentOf(segments, 1);
  const Value is_same = d.Apply(
      "Equal", {d.Slice(segments, 1, second, end), d.Slice(segments, 1, begin, d.Ints1D({-1}))});
  const Value yes = d.Cast(d.Int0D(1), ElementType::kBool);
  return d.Apply("Pad", {is_same, d.Ints1D({lead + 1, 0}), yes, d.Ints1D({1})});
}

// Input `input` as an operand of exactly this shape, -1 an extent of the tokens. Extents that are
// symbols are compared by a run, since a Reshape keeps the number of elements; without it they
// would be broadcast or cut.
base::Result<Value> OfShape(Definition& d, int input, const std::vector<int64_t>& shape) {
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(input, static_cast<int>(shape.size())));
  bool is_known = true;
  std::vector<Value> extents;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const int64_t number = shape[static_cast<size_t>(axis)];
    const bool is_of_tokens = number < 0;
    const std::optional<int64_t> wanted =
        is_of_tokens ? d.Extent(kTokens, axis) : std::optional(number);
    const std::optional<int64_t> given = d.Extent(input, axis);
    if (wanted && given && *wanted != *given) {
      return d.Invalid("Axis " + std::to_string(axis) + " of input " + std::to_string(input) +
                       " has " + std::to_string(*given) + " elements instead of " +
                       std::to_string(*wanted) + ".");
    }
    is_known = is_known && wanted && given;
    extents.push_back(is_of_tokens ? d.ExtentOf(d.In(kTokens), axis) : d.Ints1D({number}));
  }
  if (is_known) return d.In(input);
  return d.ReshapeTo(d.In(input),
                     extents.size() == 1 ? extents.front() : d.Concat(std::move(extents), 0));
}

Status DefineNGramHashMapping(Definition& d) {
  const int64_t size = d.Int("max_ngram_size"), heads = d.Int("n_head_per_ngram");
  if (size < 2 || heads < 1) {
    return d.Invalid("Attribute max_ngram_size is " + std::to_string(size) +
                     " and n_head_per_ngram is " + std::to_string(heads) +
                     "; at least 2 tokens and 1 head are required.");
  }
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kTokens, 2));
  ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kFactors, 1));
  if (const std::optional<int64_t> factors = d.Extent(kFactors, 0); factors && *factors < size) {
    return d.Invalid("Input 1 has " + std::to_string(*factors) + " factors for " +
                     std::to_string(size) + " tokens.");
  }
  const int64_t all_heads = (size - 1) * heads;
  ONNXIFI_ASSIGN_OR_RETURN(const Value sizes, OfShape(d, kSizes, {all_heads}));
  const ElementType type = d.Type(kTokens);
  // Products wrap around.
  const ElementType bits = type == ElementType::kInt64 ? ElementType::kUint64 : kWord;
  const Value tokens = d.In(kTokens), count = d.ExtentOf(tokens, 1);
  if (d.Has(kEndToken)) ONNXIFI_RETURN_IF_ERROR(d.NeedRank(kEndToken, 0));
  const Value missing = d.Has(kEndToken) ? d.Reshape(d.In(kEndToken), {1, 1})
                                         : d.Cast(d.Ints1D({d.Int("pad_id")}), type);
  Value past;
  if (d.Has(kPastTokens)) {
    ONNXIFI_ASSIGN_OR_RETURN(past, OfShape(d, kPastTokens, {-1, size - 1}));
  } else {
    const Value extents = d.Concat({d.ExtentOf(tokens, 0), d.Ints1D({size - 1})}, 0);
    past = d.Apply("Expand", {missing, extents});
  }
  const Value all = d.Concat({past, tokens}, 1);
  const auto from = [&](const Value& value, int64_t start) {
    return d.Slice(value, 1, d.Ints1D({start}), d.Add(count, d.Ints1D({start})));
  };
  const bool has_end = d.Has(kEndToken) && d.Int("reset_on_eos") != 0;
  Value is_same;
  if (d.Has(kSegments)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Value segments, OfShape(d, kSegments, {-1, -1}));
    is_same = IsOfSegmentBefore(d, segments, size - 1);
  }
  Value joined, is_reached;
  std::vector<Value> remainders;
  for (int64_t back = 0; back < size; ++back) {
    Value token = from(all, size - 1 - back);
    std::vector<Value> conditions;
    if (!is_reached.empty()) conditions.push_back(is_reached);
    if (back != 0 && has_end) {
      conditions.push_back(d.Apply("Not", {d.Apply("Equal", {token, missing})}));
    }
    if (back != 0 && !is_same.empty()) conditions.push_back(from(is_same, size - back));
    for (size_t k = 0; k < conditions.size(); ++k) {
      is_reached = k == 0 ? conditions[0] : d.Apply("And", {is_reached, conditions[k]});
    }
    if (!is_reached.empty()) token = d.Apply("Where", {is_reached, token, missing});
    const Value factor = d.Slice(d.In(kFactors), 0, back, back + 1);
    const Value mixed = d.Mul(BitCast(d, token, bits), BitCast(d, factor, bits));
    joined = back == 0 ? mixed : Xor(d, joined, mixed);
    if (back == 0) continue;
    const Value divisors = d.Slice(sizes, 0, (back - 1) * heads, back * heads);
    remainders.push_back(d.Apply("Mod", {d.Unsqueeze(BitCast(d, joined, type), {2}), divisors}));
  }
  Value hashes = size == 2 ? remainders.front() : d.Concat(std::move(remainders), 2);
  if (d.Has(kOffsets)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Value offsets, OfShape(d, kOffsets, {all_heads}));
    hashes = d.Add(hashes, offsets);
  }
  d.Return(0, hashes);
  if (d.Wants(1)) d.Return(1, d.Slice(all, 1, count, d.Add(count, d.Ints1D({size - 1}))));
  return base::Ok();
}

// Sizes that the model computes, or is bound, are not looked at: below 1 their remainders are
// those of Mod.
Status CheckNGramConstant(int input, const tensor::Tensor& constant) {
  const bool is_integral =
      constant.type() == ElementType::kInt32 || constant.type() == ElementType::kInt64;
  if (input != kSizes || !is_integral) return base::Ok();  // other types are refused as such
  for (int64_t k = 0; k < constant.element_count(); ++k) {
    const int64_t size = constant.AsInt(k);
    if (size >= 1) continue;
    return {base::Code::kInvalidModel, "Element " + std::to_string(k) + " of input 2 is " +
                                           std::to_string(size) + "; a size is at least 1."};
  }
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(MurmurHash3(X: T1) -> (Y: T2)
        positive: int = 1
        seed: int = 0
        T1 = uint32 | int32 | uint64 | int64 | float | double | string
        T2 = uint32 | int32)",
     DefineMurmurHash3},
    {R"(NGramHashMapping(input_ids: M, multipliers: M, vocab_sizes: M, past_ids?: M,
                         head_offsets?: M, eos_token_id?: M, segment_ids?: int32)
            -> (hash_ids: M, present_ids?: M)
        max_ngram_size: int required
        n_head_per_ngram: int required
        pad_id: int required
        reset_on_eos: int = 0
        M = int32 | int64)",
     DefineNGramHashMapping, /*since_version=*/1, /*infer=*/nullptr, CheckNGramConstant},
};

}  // namespace

std::span<const model::DomainOperator> HashOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
