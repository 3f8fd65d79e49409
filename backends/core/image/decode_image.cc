// SPDX-License-Identifier: Apache-2.0
//
// DecodeImage: finds the format by the first bytes.

#include "backends/core/image/decode_image.h"

#include <string_view>

#include "backends/core/image/bytes.h"

namespace onnxifi::image {
namespace {

using base::Result;
using tensor::ElementType;
using tensor::Tensor;
using namespace std::string_view_literals;

using Decoder = Decoded (*)(Bytes bytes, const Options& options);

struct Signature {
  std::string_view text;
  Decoder decoder;
};

constexpr Signature kSignatures[] = {
    {"BM"sv, DecodeBmp},
    {"\xFF\xD8\xFF"sv, DecodeJpeg},
    {"\0\0\0\x0CjP  \r\n\x87\n"sv, DecodeJpeg2000},
    {"\xFF\x4F\xFF\x51"sv, DecodeJpeg2000},
    {"\x89PNG\r\n\x1A\n"sv, DecodePng},
    {"II*\0"sv, DecodeTiff},
    {"MM\0*"sv, DecodeTiff},
    {"II+\0"sv, DecodeTiff},  // BigTIFF
    {"MM\0+"sv, DecodeTiff},
};

Decoder FindDecoder(Bytes bytes) {
  const std::string_view text = Text(bytes);
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.text)) return signature.decoder;
  }
  if (text.starts_with("RIFF") &&
      text.substr(std::min<size_t>(8, text.size())).starts_with("WEBP")) {
    return DecodeWebp;
  }
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6' &&
      " \t\n\v\f\r#"sv.find(text[2]) != std::string_view::npos) {
    return DecodePnm;
  }
  return nullptr;
}

}  // namespace

Result<Tensor> DecodeImage(Bytes bytes, PixelFormat pixel_format, const Options& options) {
  if (const Decoder decoder = FindDecoder(bytes)) {
    ONNXIFI_ASSIGN_OR_RETURN(std::optional<Image> image, decoder(bytes, options));
    if (image) return std::move(*image).Take(pixel_format);
  }
  return Tensor::Allocate(ElementType::kUint8,
                          {0, 0, pixel_format == PixelFormat::kGrayscale ? 1 : 3});
}

}  // namespace onnxifi::image
