// SPDX-License-Identifier: Apache-2.0
//
// ModelMutator: each change is drawn from a short list. Fields are told apart by trying: bytes that
// split into fields to the last one are taken for a message.

#include "backends/core/model/testing/model_mutator.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace onnxifi::model::testing {
namespace {

using namespace std::string_view_literals;

// Varints at the edges: 0, 2^31, 2^32 - 1, 2^63, -1, and one that never ends.
constexpr std::array kEdges = {
    "\x00"sv,
    "\x80\x80\x80\x80\x08"sv,
    "\xff\xff\xff\xff\x0f"sv,
    "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv,
    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv,
};

constexpr size_t kLongestRun = 64;

// One field of a message in wire form; `value` without its length.
struct Field {
  uint64_t tag;
  std::string value;
  bool is_delimited() const { return (tag & 7) == 2; }
};

void AppendVarint(uint64_t number, std::string& text) {
  for (; number > 0x7f; number >>= 7) text += static_cast<char>((number & 0x7f) | 0x80);
  text += static_cast<char>(number);
}

void Append(const Field& field, std::string& text) {
  AppendVarint(field.tag, text);
  if (field.is_delimited()) AppendVarint(field.value.size(), text);
  text += field.value;
}

bool TakeVarint(std::string_view& text, uint64_t& number) {
  number = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(text.front());
    text.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// False if `message` is no message in wire form, which strings and packed numbers mostly are not.
bool Split(std::string_view message, std::vector<Field>& fields) {
  while (!message.empty()) {
    Field field{};
    if (!TakeVarint(message, field.tag) || field.tag >> 3 == 0) return false;
    const char* start = message.data();
    uint64_t size = 0;
    switch (field.tag & 7) {
      case 0:
        if (!TakeVarint(message, size)) return false;
        field.value.assign(start, message.data());
        fields.push_back(std::move(field));
        continue;
      case 1:
        size = 8;
        break;
      case 5:
        size = 4;
        break;
      case 2:
        if (!TakeVarint(message, size)) return false;
        break;
      default:
        return false;
    }
    if (size > message.size()) return false;
    field.value = message.substr(0, size);
    message.remove_prefix(size);
    fields.push_back(std::move(field));
  }
  return true;
}

}  // namespace

std::string ModelMutator::Next() {
  if (Below(64) == 0) {
    std::string noise(Below(256), '\0');
    for (char& byte : noise) byte = static_cast<char>(Below(256));
    return noise;
  }
  std::string bytes = seeds_[Below(seeds_.size())];
  const bool keeps_form = Below(2) == 0;
  const size_t changes = 1 + Below(4);
  for (size_t change = 0; change < changes && !bytes.empty(); ++change) {
    keeps_form ? ChangeField(bytes) : ChangeBytes(bytes);
  }
  return bytes;
}

void ModelMutator::ChangeField(std::string& message) {
  std::vector<Field> fields;
  if (!Split(message, fields) || fields.empty()) {
    if (message.empty()) {
      message = kEdges[Below(kEdges.size())];
    } else {
      message[Below(message.size())] = static_cast<char>(Below(256));
    }
    return;
  }
  Field& field = fields[Below(fields.size())];
  // Mostly down: what is interesting lies deep.
  if (field.is_delimited() && Below(8) != 0) {
    ChangeField(field.value);
  } else {
    switch (Below(5)) {
      case 0:
        fields.erase(fields.begin() + (&field - fields.data()));
        break;
      case 1:
        fields.push_back(field);
        break;
      case 2:
        std::swap(field, fields[Below(fields.size())]);
        break;
      case 3:
        field.tag = (field.tag & 7) | (1 + Below(26)) << 3;
        break;
      default:
        if ((field.tag & 7) == 0) {
          field.value = Below(2) == 0 ? std::string(1, static_cast<char>(Below(32)))
                                      : std::string(kEdges[Below(kEdges.size() - 1)]);
        } else if (!field.value.empty()) {
          field.value[Below(field.value.size())] = static_cast<char>(Below(256));
        }
        break;
    }
  }
  message.clear();
  for (const Field& one : fields) Append(one, message);
}

void ModelMutator::ChangeBytes(std::string& bytes) {
  const size_t at = Below(bytes.size());
  const size_t run = 1 + Below(std::min(kLongestRun, bytes.size() - at));
  switch (Below(8)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(Below(256));
      break;
    case 2:
      bytes.erase(at, run);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, run));
      break;
    case 4: {
      const size_t other = Below(bytes.size());
      std::swap(bytes[at], bytes[other]);
      break;
    }
    case 5:
      bytes.resize(at);
      break;
    case 6: {
      const std::string_view edge = kEdges[Below(kEdges.size())];
      bytes.replace(at, Below(2), edge);
      break;
    }
    default: {
      const std::string& other = seeds_[Below(seeds_.size())];
      const size_t from = Below(other.size());
      bytes.insert(at, other.substr(from, 1 + Below(kLongestRun)));
      break;
    }
  }
}

}  // namespace onnxifi::model::testing
