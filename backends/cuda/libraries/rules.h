// SPDX-License-Identifier: Apache-2.0
//
// LibraryRules: which steps a library computes in place of our own kernels. A line per rule, its
// fields between commas; the table is that of measured devices (rules.cc), before it the lines of
// cuda-libraries.csv in the cache folder:
//
//   device, cublaslt, type, rows from, up to, columns from, up to, depth from, up to
//       products of that many rows, columns and products per sum, 0 for any. The type is that of
//       what is multiplied: float32, tf32 (float32 that the caller lets be rounded), float16,
//       bfloat16 or int8. Of a convolution rows are channels and columns pixels.

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

struct ProductExtents {
  int64_t rows = 0, columns = 0, depth = 0;
};

struct LibraryRules {
  // kAlways: wherever the library can; rules do not count.
  enum class Use : uint8_t { kByRule, kAlways, kNever };
  struct Rule {
    std::string type;
    ProductExtents least;
    ProductExtents most;  // 0: any
  };
  Use use = Use::kByRule;
  std::vector<Rule> products;

  // Whether some product of the type is the library's.
  bool TakesSome(std::string_view type) const;
  bool Takes(std::string_view type, const ProductExtents& extents) const;
};

// The rules of `table` for a device; those for a whole GPU serve its instances. INVALID_PROPERTY
// with the line that says nothing.
base::Result<std::vector<LibraryRules::Rule>> ParseLibraryRules(std::string_view table,
                                                                std::string_view device);

// As ONNXIFI_CUDA_LIBRARIES says, "always" or "never", else the rules of `file`, which may be
// absent, and of the table. A file that says nothing is as good as absent.
LibraryRules FindLibraryRules(std::string_view device, const std::filesystem::path& file);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_RULES_H_
