// SPDX-License-Identifier: Apache-2.0
//
// ModelMutator: each change is drawn from a short list.

#include "backends/core/model/model_mutator.h"

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

}  // namespace

std::string ModelMutator::Next() {
  if (Below(64) == 0) {
    std::string noise(Below(256), '\0');
    for (char& byte : noise) byte = static_cast<char>(Below(256));
    return noise;
  }
  std::string bytes = seeds_[Below(seeds_.size())];
  const size_t changes = 1 + Below(8);
  for (size_t change = 0; change < changes && !bytes.empty(); ++change) Change(bytes);
  return bytes;
}

void ModelMutator::Change(std::string& bytes) {
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
