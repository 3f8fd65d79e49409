// SPDX-License-Identifier: Apache-2.0
//
// LibraryRules: which steps a library computes in place of our own kernels. A line per rule, its
// fields between commas; the table is that of measured devices (tuning.csv), before it the lines of
// cuda-libraries.csv in the cache folder:
//
//   device, library, type, rows from, up to, columns from, up to, depth from, up to
//       products of that many rows, columns and products per sum, 0 for any. The library is
//       cublaslt or cudnn, which has convolutions alone. The type is that of what is multiplied:
//       float32, tf32 (float32 that the caller lets be rounded), float16, bfloat16 or int8. Of a
//       convolution rows are a group's output channels, columns pixels, and of cudnn pixels of all
//       images.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_RULES_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_RULES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::cuda {

// In a cache folder.
inline constexpr const char kLibrariesFile[] = "cuda-libraries.csv";
// tuning.csv.
extern const std::string_view kMeasuredRules;

enum class Library : uint8_t { kCublasLt, kCudnn };
// As rules name it.
std::string_view Name(Library library);

struct ProductExtents {
  int64_t rows = 0, columns = 0, depth = 0;
};

struct LibraryRules {
  // kAlways: wherever the library can; rules do not count.
  enum class Use : uint8_t { kByRule, kAlways, kNever };
  struct Rule {
    Library library = Library::kCublasLt;
    std::string type;
    ProductExtents least;
    ProductExtents most;  // 0: any
  };
  Use cublaslt = Use::kByRule;
  Use cudnn = Use::kByRule;
  std::vector<Rule> rules;

  Use UseOf(Library library) const { return library == Library::kCudnn ? cudnn : cublaslt; }
  // Whether some product of the type is the library's.
  bool TakesSome(Library library, std::string_view type) const;
  bool Takes(Library library, std::string_view type, const ProductExtents& extents) const;
};

// The rules of `table` for a device; those for a whole GPU serve its instances. INVALID_PROPERTY
// with the line that says nothing.
base::Result<std::vector<LibraryRules::Rule>> ParseLibraryRules(std::string_view table,
                                                                std::string_view device);

// As ONNXIFI_CUDA_LIBRARIES says: "always" or "never", or the name of a library, which is used
// wherever it can be and the other one never. Else the rules of `file`, which may be absent, and of
// the table. A file with a line that says nothing is as good as absent, which a warning tells.
LibraryRules FindLibraryRules(std::string_view device, const std::filesystem::path& file);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_RULES_H_
