// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder (opset 20): a host function, as only the bytes of a file tell the extents of the
// image. They tell its format, too, and with it the library that decodes: a run says if one is
// missing.

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status LowerImageDecoder(Lowering& lowering) {
  using Pixels = program::DecodeImage::Pixels;
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  if (lowering.In(0).type() != ElementType::kUint8) return lowering.UnsupportedType(0);
  const size_t rank = lowering.In(0).shape.size();
  if (rank != 1) {
    return lowering.InvalidModel("Input 0 has " + std::to_string(rank) +
                                 " axes; 1 is required, that of the bytes of a file.");
  }
  program::DecodeImage attributes;
  const std::string format = lowering.String("pixel_format", "RGB");
  if (format == "BGR") {
    attributes.pixels = Pixels::kBgr;
  } else if (format == "Grayscale") {
    attributes.pixels = Pixels::kGrayscale;
  } else if (format != "RGB") {
    return lowering.InvalidModel("Attribute pixel_format is '" + format +
                                 "'; it is one of RGB, BGR and Grayscale.");
  }
  HostStep step(lowering, attributes);
  step.Read(lowering.In(0));
  const Dim channels = attributes.pixels == Pixels::kGrayscale ? 1 : 3;
  lowering.Set(0, step.WriteTensor(ElementType::kUint8, {std::nullopt, std::nullopt, channels}));
  step.Emit();
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"ImageDecoder", 20, LowerImageDecoder},
};

}  // namespace

std::span<const Operator> ImageDecoderOperators() { return kOperators; }

}  // namespace onnxifi::ops
