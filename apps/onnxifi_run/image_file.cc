// SPDX-License-Identifier: Apache-2.0
//
// libpng's simplified interface: it converts every kind of PNG to 8-bit grey or RGB.

#include "apps/onnxifi_run/image_file.h"

#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <vector>

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::ValueOutline;

// An image that libpng has opened.
class PngImage {
 public:
  PngImage() {
    std::memset(&image_, 0, sizeof(image_));
    image_.version = PNG_IMAGE_VERSION;
  }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  png_image* get() { return &image_; }

 private:
  png_image image_;
};

base::Status Unfit(const ValueOutline& wanted, std::string sentence) {
  return base::Status(base::Code::kInvalidModel,
                      fmt::format("Input '{}' takes no such image: {}", wanted.name, sentence));
}

// Whether a declared extent allows this number; a symbol allows any.
bool Allows(const onnx_file::DimensionOutline& dimension, int64_t extent) {
  return !dimension.extent || *dimension.extent == extent;
}

// 1 or 3; 0 when the input is no image.
int ChannelsOf(const ValueOutline& wanted) {
  if (!wanted.shape) return 0;
  if (wanted.shape->size() == 2) return 1;
  if (wanted.shape->size() != 4) return 0;
  const std::optional<int64_t> channels = (*wanted.shape)[1].extent;
  return channels == 1 || channels == 3 ? static_cast<int>(*channels) : 0;
}

}  // namespace

base::Result<DenseTensor> ReadImage(const std::filesystem::path& path, const ValueOutline& wanted) {
  const int channels = ChannelsOf(wanted);
  if (channels == 0 || wanted.type != ElementType::kFloat32) {
    return Unfit(wanted, "it is not float32 of shape [N, 1, H, W], [N, 3, H, W] or [H, W].");
  }
  PngImage image;
  if (png_image_begin_read_from_file(image.get(), path.c_str()) == 0) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("File '{}' is no PNG that can be read: {}.", path.string(),
                                    image.get()->message));
  }
  const auto width = static_cast<int64_t>(image.get()->width);
  const auto height = static_cast<int64_t>(image.get()->height);
  const auto& shape = *wanted.shape;
  const size_t rank = shape.size();
  if (!Allows(shape[rank - 2], height) || !Allows(shape[rank - 1], width) ||
      (rank == 4 && !Allows(shape[0], 1))) {
    return Unfit(wanted, fmt::format("it is {} pixels wide and {} high.", width, height));
  }
  image.get()->format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(*image.get()));
  if (png_image_finish_read(image.get(), nullptr, pixels.data(), 0, nullptr) == 0) {
    return base::Status(base::Code::kInvalidName, fmt::format("File '{}' is a damaged PNG: {}.",
                                                              path.string(), image.get()->message));
  }
  std::vector<float> values(pixels.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t at = 0; at < height * width; ++at) {
      values[static_cast<size_t>(c * height * width + at)] =
          static_cast<float>(pixels[static_cast<size_t>(at * channels + c)]) / 255.0f;
    }
  }
  DenseTensor tensor;
  tensor.name = wanted.name;
  tensor.type = ElementType::kFloat32;
  if (rank == 4) {
    tensor.extents = {1, channels, height, width};
  } else {
    tensor.extents = {height, width};
  }
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

}  // namespace onnxifi::run
