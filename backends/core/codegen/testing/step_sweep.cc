// SPDX-License-Identifier: Apache-2.0
//
// The step sweep of a backend: random steps of every family on its tested device, compared with the
// reference, each structure on many extents and data: counts how many kernels that takes. Kernels
// do not have extents in them, so it is few. Without a device it says so and compares nothing.
//
//   <backend>_step_sweep --runs N --sources N [--seed N] [--first N] [--last N]
//
// --first and --last: of the structures that this makes, only those from one number to another, to
// go on where a sweep was ended. The last line is "N passed, N failed"; more kernels than --sources
// are one failure.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "backends/core/base/cache_folder.h"
#include "backends/core/codegen/testing/tested_device.h"
#include "backends/core/reference/random_step.h"
#include "backends/core/reference/testing/step_comparison.h"

namespace onnxifi::codegen {
namespace {

using reference::Comparison;
using reference::Family;

struct Options {
  int64_t runs = 0;
  int64_t sources = 0;
  uint64_t seed = 1;
  int64_t first = 0;
  int64_t last = INT64_MAX;
};

// What the sources are enough for: a structure has a kernel for each form that extents can give it
// (which axes are one, which views have padding, whether a reduction is long): of a thousand
// variations two to forty, and of one structure in thirty more than a hundred.
constexpr int64_t kSourcesPerStructure = 25;

int Sweep(TestedDevice& tested, const Options& options) {
  const int64_t structures = std::max<int64_t>(1, options.sources / kSourcesPerStructure);
  const int64_t variations = (options.runs + structures - 1) / structures;
  std::printf("%lld structures from seed %llu, %lld variations each, on %s\n",
              static_cast<long long>(structures), static_cast<unsigned long long>(options.seed),
              static_cast<long long>(variations), tested.name().c_str());
  int64_t passed = 0;
  int64_t failed = 0;
  const auto start = std::chrono::steady_clock::now();
  auto last_told = start;
  const int64_t end = options.last < structures ? options.last + 1 : structures;
  for (int64_t k = options.first; k < end; ++k) {
    const Family family =
        reference::kFamilies[static_cast<size_t>(k) % std::size(reference::kFamilies)];
    const uint64_t seed = options.seed + static_cast<uint64_t>(k);
    const Comparison comparison = reference::CompareVariations(tested.device(), family, seed,
                                                               /*first_variation=*/1, variations);
    passed += comparison.compared - comparison.different;
    failed += comparison.different + comparison.refused;
    if (comparison.different > 0) {
      std::printf("%lld of %lld differ; the first is %s\n",
                  static_cast<long long>(comparison.different),
                  static_cast<long long>(comparison.compared), comparison.first_difference.c_str());
    }
    if (comparison.refused > 0) {
      std::printf("%lld variations of the %s step of seed %llu are refused.\n",
                  static_cast<long long>(comparison.refused), std::string(Name(family)).c_str(),
                  static_cast<unsigned long long>(seed));
    }
    const auto now = std::chrono::steady_clock::now();
    constexpr std::chrono::seconds kInterval(10);
    if (now - last_told < kInterval && k + 1 < end) continue;
    last_told = now;
    const int64_t done = k + 1;
    const int64_t runs = passed + failed;
    std::printf("%lld of %lld structures, %lld runs, %lld sources, %lld failed, %.0f s\n",
                static_cast<long long>(done), static_cast<long long>(structures),
                static_cast<long long>(runs), static_cast<long long>(tested.kernel_count()),
                static_cast<long long>(failed), std::chrono::duration<double>(now - start).count());
    std::fflush(stdout);
  }
  if (tested.kernel_count() > options.sources) {
    std::printf("%lld sources are more than the %lld allowed.\n",
                static_cast<long long>(tested.kernel_count()),
                static_cast<long long>(options.sources));
    ++failed;
  }
  std::printf("%lld passed, %lld failed\n", static_cast<long long>(passed),
              static_cast<long long>(failed));
  return failed == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  for (int k = 1; k + 1 < argc; k += 2) {
    const int64_t number = std::atoll(argv[k + 1]);
    if (std::strcmp(argv[k], "--runs") == 0) options.runs = number;
    if (std::strcmp(argv[k], "--sources") == 0) options.sources = number;
    if (std::strcmp(argv[k], "--first") == 0) options.first = number;
    if (std::strcmp(argv[k], "--last") == 0) options.last = number;
    if (std::strcmp(argv[k], "--seed") == 0) options.seed = static_cast<uint64_t>(number);
  }
  if (options.runs < 1 || options.sources < 1 || options.first < 0) {
    std::fprintf(
        stderr,
        "usage: <backend>_step_sweep --runs N --sources N [--seed N] [--first N] [--last N]\n");
    return 2;
  }
  const auto tested = OpenTestedDevice(base::CacheFolder());
  if (!tested.ok()) {
    std::printf("%s\n", tested.status().Text().c_str());
    return 1;
  }
  return Sweep(**tested, options);
}

}  // namespace
}  // namespace onnxifi::codegen

int main(int argc, char** argv) { return onnxifi::codegen::Main(argc, argv); }
