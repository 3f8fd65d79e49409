// SPDX-License-Identifier: Apache-2.0
//
// Digest: two words that take in a word at a time, by odd factors and rotations, and mix each other
// in.

#include "onnxifi/split/digest.h"

#include <bit>

namespace onnxifi::split {
namespace {

constexpr uint64_t kFirstFactor = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kSecondFactor = 0xd6e8feb86659fd93ULL;

// The finisher of splitmix64 (Steele, Lea and Flood, 2014): every bit of the result depends on
// every bit of the word.
uint64_t Scatter(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

// Eight bytes, the first the lowest; those that are not there are 0.
uint64_t Word(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t position = 0; position < bytes.size(); ++position) {
    word |= uint64_t{static_cast<uint8_t>(bytes[position])} << (8 * position);
  }
  return word;
}

}  // namespace

std::string Digest::Text() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t word : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text.push_back(kDigits[word >> shift & 15]);
  }
  return text;
}

Digester& Digester::Add(uint64_t number) {
  high_ = std::rotl(high_ ^ (number * kFirstFactor), 29) * kSecondFactor + low_;
  low_ = std::rotl(low_ ^ (number * kSecondFactor), 37) * kFirstFactor + high_;
  return *this;
}

Digester& Digester::Add(std::string_view bytes) {
  constexpr size_t kWordBytes = sizeof(uint64_t);
  Add(uint64_t{bytes.size()});
  for (; bytes.size() >= kWordBytes; bytes.remove_prefix(kWordBytes)) {
    Add(Word(bytes.substr(0, kWordBytes)));
  }
  return bytes.empty() ? *this : Add(Word(bytes));
}

Digest Digester::Get() const {
  return {Scatter(high_ + std::rotl(low_, 32)), Scatter(low_ ^ std::rotl(high_, 17))};
}

}  // namespace onnxifi::split
