// SPDX-License-Identifier: Apache-2.0
//
// Classifies images of digits with the model in samples/digits: reads grey PNGs, runs them one by
// one on a device of libonnxifi and prints the digit, its probability and the time of the run.
//
//   classify_image MODEL IMAGE.png... [--device auto|PLUGIN|PLUGIN:INDEX] [--scores]

#include <png.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <string>
#include <vector>

namespace {

constexpr int kSide = 8;
constexpr int kClasses = 10;

std::vector<std::byte> ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

// Grey levels 0..1, row by row; empty when the file is no PNG of 8 x 8 pixels.
std::vector<float> ReadImage(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) return {};
  image.format = PNG_FORMAT_GRAY;
  std::vector<png_byte> pixels(PNG_IMAGE_SIZE(image));
  if (image.width != kSide || image.height != kSide ||
      png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) == 0) {
    png_image_free(&image);
    return {};
  }
  std::vector<float> levels(pixels.size());
  std::transform(pixels.begin(), pixels.end(), levels.begin(),
                 [](png_byte level) { return static_cast<float>(level) / 255.0F; });
  return levels;
}

int Fail(const std::string& what, const onnxifi::Error& error) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), error.Text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name = "auto";
  bool prints_scores = false;
  std::vector<std::string> files;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--device") == 0 && k + 1 < argc) {
      device_name = argv[++k];
    } else if (std::strcmp(argv[k], "--scores") == 0) {
      prints_scores = true;
    } else {
      files.emplace_back(argv[k]);
    }
  }
  if (files.size() < 2 || files[0] == "--help") {
    std::fprintf(stderr,
                 "usage: classify_image MODEL IMAGE.png... [--device auto|PLUGIN|PLUGIN:INDEX] "
                 "[--scores]\n");
    return 2;
  }

  const onnxifi::Library library = onnxifi::Library::Linked();
  auto device = library.FindDevice(device_name);
  if (!device) return Fail("No such device", device.error());
  auto backend = device->InitBackend();
  if (!backend) return Fail("The device does not start", backend.error());
  const std::vector<std::byte> model = ReadBytes(files[0]);
  if (model.empty()) {
    std::fprintf(stderr, "The model %s cannot be read.\n", files[0].c_str());
    return 1;
  }
  auto graph = backend->InitGraph(model);
  if (!graph) return Fail("The model does not run here", graph.error());

  std::vector<float> image(kSide * kSide);
  std::array<float, kClasses> scores{};
  const onnxifi::Tensor input{
      "image", ONNXIFI_DATATYPE_FLOAT32, {1, 1, kSide, kSide}, image.data()};
  const onnxifi::Tensor output{"scores", ONNXIFI_DATATYPE_FLOAT32, {1, kClasses}, scores.data()};
  if (auto bound = graph->SetIO({&input, 1}, {&output, 1}); !bound) {
    return Fail("Binding", bound.error());
  }
  for (size_t k = 1; k < files.size(); ++k) {
    const std::vector<float> levels = ReadImage(files[k]);
    if (levels.empty()) {
      std::fprintf(stderr, "%s is no PNG of %d x %d pixels.\n", files[k].c_str(), kSide, kSide);
      return 1;
    }
    std::copy(levels.begin(), levels.end(), image.begin());
    const auto begin = std::chrono::steady_clock::now();
    if (auto run = graph->RunAndWait(); !run) return Fail("The run failed", run.error());
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;

    const auto best = std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (float score : scores) sum += std::exp(static_cast<double>(score) - *best);
    std::printf("%s: %d (%.1f %%), %.0f us\n", files[k].c_str(),
                static_cast<int>(best - scores.begin()), 100 / sum, time.count());
    if (prints_scores) {
      for (float score : scores) std::printf(" %.9g", static_cast<double>(score));
      std::printf("\n");
    }
  }
  return 0;
}
