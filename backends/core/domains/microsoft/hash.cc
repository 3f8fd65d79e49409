// SPDX-License-Identifier: Apache-2.0
//
// MurmurHash3 of numbers, as ML.NET hashes features: MurmurHash3_x86_32 of the bytes of each
// element, which are one or two blocks of 32 bits and leave no tail.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

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

constexpr model::DomainOperator kOperators[] = {
    {R"(MurmurHash3(X: T1) -> (Y: T2)
        positive: int = 1
        seed: int = 0
        T1 = uint32 | int32 | uint64 | int64 | float | double | string
        T2 = uint32 | int32)",
     DefineMurmurHash3},
};

}  // namespace

std::span<const model::DomainOperator> HashOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
