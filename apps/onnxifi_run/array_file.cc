// SPDX-License-Identifier: Apache-2.0
//
// The format: "\x93NUMPY", two bytes of version, the length of the header, the header (a Python
// dictionary as text), the data.

#include "apps/onnxifi_run/array_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;

base::Status BadArray(std::string sentence) {
  return base::Status(base::Code::kInvalidModel, std::move(sentence));
}

// The text behind "'key':", without leading spaces; empty if the key is missing.
std::string_view Behind(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + key.size() + 3);
  const size_t start = rest.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view() : rest.substr(start);
}

struct NamedType {
  std::string_view descriptor;
  ElementType type;
};

constexpr std::array<NamedType, 14> kTypes = {{{"<f4", ElementType::kFloat32},
                                               {"<f8", ElementType::kFloat64},
                                               {"<f2", ElementType::kFloat16},
                                               {"|b1", ElementType::kBool},
                                               {"|i1", ElementType::kInt8},
                                               {"|u1", ElementType::kUint8},
                                               {"<i2", ElementType::kInt16},
                                               {"<u2", ElementType::kUint16},
                                               {"<i4", ElementType::kInt32},
                                               {"<u4", ElementType::kUint32},
                                               {"<i8", ElementType::kInt64},
                                               {"<u8", ElementType::kUint64},
                                               {"<c8", ElementType::kComplex64},
                                               {"<c16", ElementType::kComplex128}}};

base::Result<ElementType> ReadType(std::string_view header) {
  std::string_view text = Behind(header, "descr");
  if (text.empty() || text[0] != '\'') return BadArray("The array's header names no simple type.");
  text.remove_prefix(1);
  text = text.substr(0, text.find('\''));
  for (const NamedType& named : kTypes) {
    if (named.descriptor == text) return named.type;
  }
  return BadArray(
      fmt::format("The array's type '{}' is none that ONNX has, or is big-endian.", text));
}

base::Result<std::vector<int64_t>> ReadShape(std::string_view header) {
  std::string_view text = Behind(header, "shape");
  if (text.empty() || text[0] != '(') return BadArray("The array's header has no shape.");
  text.remove_prefix(1);
  text = text.substr(0, text.find(')'));
  std::vector<int64_t> extents;
  while (true) {
    const size_t start = text.find_first_not_of(" ,");
    if (start == std::string_view::npos) return extents;
    text.remove_prefix(start);
    int64_t extent = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc())
      return BadArray("The array's shape holds something else than numbers.");
    extents.push_back(extent);
    text.remove_prefix(static_cast<size_t>(last - text.data()));
  }
}

}  // namespace

base::Result<DenseTensor> ParseArray(std::span<const std::byte> content) {
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!text.starts_with(kMagic) || text.size() < 12) {
    return BadArray("The file does not start as a numpy array does.");
  }
  const auto byte = [&](size_t index) { return std::to_integer<size_t>(content[index]); };
  const size_t version = byte(6);
  // The length has two bytes in version 1 and four later.
  const size_t header_start = version == 1 ? 10 : 12;
  size_t header_size = byte(8) | byte(9) << 8;
  if (version != 1) header_size |= byte(10) << 16 | byte(11) << 24;
  if (version < 1 || version > 3 || header_size > text.size() - header_start) {
    return BadArray(
        fmt::format("The array has format version {} and a header of {} bytes in a file of {}.",
                    version, header_size, text.size()));
  }
  const std::string_view header = text.substr(header_start, header_size);
  if (!Behind(header, "fortran_order").starts_with("False")) {
    return BadArray("The array is in column-major order; only row-major order is read.");
  }
  DenseTensor tensor;
  ONNXIFI_ASSIGN_OR_RETURN(tensor.type, ReadType(header));
  ONNXIFI_ASSIGN_OR_RETURN(tensor.extents, ReadShape(header));
  const auto data = content.subspan(header_start + header_size);
  const std::optional<int64_t> count = onnx_file::ElementCount(tensor.extents);
  const std::optional<int64_t> size_bytes =
      count ? onnx_file::SizeBytes(tensor.type, *count) : std::nullopt;
  if (!size_bytes || static_cast<uint64_t>(*size_bytes) != data.size()) {
    return BadArray(fmt::format("The array's shape {} does not go with {} bytes of data.",
                                onnx_file::ToString(tensor.extents), data.size()));
  }
  tensor.bytes.assign(data.begin(), data.end());
  return tensor;
}

}  // namespace onnxifi::run
