// SPDX-License-Identifier: Apache-2.0
//
// Tiling: which extents, and the elements one by one.

#include "conformance/suites/tiling.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "client/comparison/float_format.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;

// More than a vector of bytes, of 16-bit and of 32-bit elements on the widest vectors, each with a
// tail; the last where tensors have many such axes.
constexpr std::array<int64_t, 4> kExtents = {131, 67, 37, 19};
constexpr int64_t kMaxListed = 8;

std::vector<int64_t> EnlargedExtents(const DenseTensor& tensor, int64_t from, int64_t to) {
  std::vector<int64_t> extents = tensor.extents;
  std::ranges::replace(extents, from, to);
  return extents;
}

void CopyElement(const DenseTensor& source, int64_t from, DenseTensor& target, int64_t to) {
  const int bits = onnx_file::FactsOf(source.type).bits;
  if (bits >= 8) {
    const size_t size_bytes = static_cast<size_t>(bits) / 8;
    std::memcpy(target.bytes.data() + static_cast<size_t>(to) * size_bytes,
                source.bytes.data() + static_cast<size_t>(from) * size_bytes, size_bytes);
    return;
  }
  // Into bytes of zeros; an element of 6 bits may lie in two.
  const int64_t bit = to * bits;
  const uint64_t placed = comparison::LoadBits(source.type, source.bytes, from) << bit % 8;
  std::byte* const place = target.bytes.data() + bit / 8;
  place[0] |= static_cast<std::byte>(placed);
  if (placed >> 8 != 0) place[1] |= static_cast<std::byte>(placed >> 8);
}

template <typename Float>
void Scale(DenseTensor& tensor, int64_t index, double factor) {
  std::byte* const place = tensor.bytes.data() + static_cast<size_t>(index) * sizeof(Float);
  Float value;
  std::memcpy(&value, place, sizeof(value));
  value = static_cast<Float>(value * factor);
  std::memcpy(place, &value, sizeof(value));
}

DenseTensor Tile(const DenseTensor& source, int64_t from, int64_t to) {
  DenseTensor tiled;
  tiled.name = source.name;
  tiled.type = source.type;
  tiled.extents = EnlargedExtents(source, from, to);
  const int64_t count = tiled.element_count();
  tiled.bytes.resize(static_cast<size_t>(*onnx_file::SizeBytes(tiled.type, count)));
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index;
    int64_t position = 0;
    int64_t stride = 1;
    int64_t tile = 0;
    for (size_t axis = tiled.extents.size(); axis-- > 0;) {
      int64_t coordinate = rest % tiled.extents[axis];
      rest /= tiled.extents[axis];
      if (source.extents[axis] == from) {
        tile += coordinate / from;
        coordinate = (coordinate + coordinate / from) % from;
      }
      position += coordinate * stride;
      stride *= source.extents[axis];
    }
    CopyElement(source, position, tiled, index);
    const double factor = 1.0 / (1.0 + static_cast<double>(tile));
    if (tiled.type == ElementType::kFloat32) Scale<float>(tiled, index, factor);
    if (tiled.type == ElementType::kFloat64) Scale<double>(tiled, index, factor);
  }
  return tiled;
}

bool Fits(std::span<const DenseTensor> inputs, int64_t from, int64_t to) {
  return std::ranges::all_of(inputs, [&](const DenseTensor& input) {
    const auto count = onnx_file::ElementCount(EnlargedExtents(input, from, to));
    return count && *count <= kMaxTiledElements;
  });
}

// The new extents for `from`: a prime number, and a multiple for axes that are divided into groups.
std::vector<int64_t> NewExtents(std::span<const DenseTensor> inputs, int64_t from) {
  std::vector<int64_t> extents;
  for (const int64_t prime : kExtents) {
    if (prime <= from || !Fits(inputs, from, prime)) continue;
    extents.push_back(prime);
    break;
  }
  for (const int64_t prime : kExtents) {
    const int64_t multiple = from * ((prime / from) | 1);
    if (multiple <= from || !Fits(inputs, from, multiple)) continue;
    extents.push_back(multiple);
    break;
  }
  return extents;
}

// The extents of axes, of the first input's last axis first.
std::vector<int64_t> ListExtents(std::span<const DenseTensor> inputs) {
  std::vector<int64_t> extents;
  for (const DenseTensor& input : inputs) {
    for (size_t axis = input.extents.size(); axis-- > 0;) {
      const int64_t extent = input.extents[axis];
      if (extent > 1 && std::ranges::find(extents, extent) == extents.end()) {
        extents.push_back(extent);
      }
    }
  }
  return extents;
}

// Nothing when no input has an axis that is to be enlarged.
std::optional<Enlargement> Enlarge(std::span<const DenseTensor> inputs, int64_t from, int64_t to,
                                   bool with_lists) {
  Enlargement enlargement = {.from = from, .to = to, .inputs = {}, .lists = {}};
  bool is_changed = false;
  for (size_t position = 0; position < inputs.size(); ++position) {
    const DenseTensor& input = inputs[position];
    const bool is_kept = std::ranges::find(input.extents, from) == input.extents.end() ||
                         (!with_lists && MayBeList(input, position));
    is_changed = is_changed || !is_kept;
    if (is_kept && MayBeList(input, position)) {
      enlargement.lists.push_back(input);
    } else {
      enlargement.inputs.push_back(is_kept ? input : Tile(input, from, to));
    }
  }
  if (!is_changed) return std::nullopt;
  return enlargement;
}

}  // namespace

bool MayBeList(const DenseTensor& tensor, size_t position) {
  return position > 0 && tensor.extents.size() <= 1 && tensor.element_count() <= kMaxListed;
}

std::vector<Enlargement> ListEnlargements(std::span<const DenseTensor> inputs) {
  std::vector<Enlargement> list;
  const std::vector<int64_t> extents = ListExtents(inputs);
  for (const bool with_lists : {false, true}) {
    for (const int64_t from : extents) {
      const bool has_list =
          std::ranges::any_of(inputs, [&, position = size_t{0}](const DenseTensor& input) mutable {
            return MayBeList(input, position++) && input.extents == std::vector{from};
          });
      if (with_lists && !has_list) continue;
      for (const int64_t to : NewExtents(inputs, from)) {
        if (auto enlargement = Enlarge(inputs, from, to, with_lists)) {
          list.push_back(*std::move(enlargement));
        }
      }
    }
  }
  return list;
}

}  // namespace onnxifi::suites
