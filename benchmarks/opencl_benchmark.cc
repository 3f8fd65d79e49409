// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL plugin's kernels against the limits of the same device (kernel_benchmark.h), products
// beside CLBlast too, where it is installed. With --tune, tries tiles instead and writes those that
// were fastest to the cache folder, where the plugin looks for them (backends/opencl/tuning.csv
// says how to read them); an argument behind it keeps the tiles whose line contains it, and nothing
// is written.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/base/result.h"
#include "backends/opencl/device.h"
#include "benchmarks/clblast.h"
#include "benchmarks/kernel_benchmark.h"
#include "benchmarks/kernel_cases.h"

namespace onnxifi::opencl {
namespace {

using base::Result;
using base::Status;
using benchmarks::Buffer;
using benchmarks::Case;
using benchmarks::GemmExtents;
using benchmarks::MakeConvolution;
using benchmarks::MakeProduct;
using benchmarks::Prepared;
using benchmarks::SecondsOf;
using codegen::DeviceLimits;
using codegen::Tuning;

// Ten sums per item, each of vectors, so that no one waits for another.
constexpr const char* kPeakSource = R"source(
__kernel void run(__global float* out, int rounds) {
  float16 a = (float16)(get_global_id(0)), b = a * 0.001f, c = a * 0.5f;
  float16 s0 = a, s1 = a + 1, s2 = a + 2, s3 = a + 3, s4 = a + 4;
  float16 s5 = a + 5, s6 = a + 6, s7 = a + 7, s8 = a + 8, s9 = a + 9;
  for (int k = 0; k < rounds; ++k) {
    s0 = fma(s0, b, c); s1 = fma(s1, b, c); s2 = fma(s2, b, c); s3 = fma(s3, b, c);
    s4 = fma(s4, b, c); s5 = fma(s5, b, c); s6 = fma(s6, b, c); s7 = fma(s7, b, c);
    s8 = fma(s8, b, c); s9 = fma(s9, b, c);
  }
  vstore16(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9, get_global_id(0), out);
}
)source";
constexpr int kPeakRounds = 20'000;
constexpr size_t kPeakItems = 64;
constexpr double kPeakFlops = 10.0 * 16 * 2 * kPeakRounds * kPeakItems;

constexpr const char* kCopySource = R"source(
__kernel void run(__global float* restrict out, __global const float* restrict in) {
  vstore16(vload16(get_global_id(0), in), get_global_id(0), out);
}
)source";

// What the device can do at most, in a context of its own.
class ClLimits final : public benchmarks::Limits {
 public:
  static Result<std::unique_ptr<ClLimits>> Open(const Api& api, const DeviceInfo& info) {
    auto limits = std::make_unique<ClLimits>();
    ONNXIFI_ASSIGN_OR_RETURN(limits->runtime_, Runtime::Open(api, info));
    const Memory memory(*limits->runtime_);
    KernelDriver driver(*limits->runtime_, memory);
    ONNXIFI_ASSIGN_OR_RETURN(limits->peak_, driver.Compile(kPeakSource));
    ONNXIFI_ASSIGN_OR_RETURN(limits->copy_, driver.Compile(kCopySource));
    return limits;
  }

  double flops() const override { return kPeakFlops; }

  Status Reserve(int64_t bytes) override {
    items_ = static_cast<size_t>(std::max(bytes / 128, int64_t{kPeakItems}));
    for (Handle<cl_mem>* buffer : {&from_, &to_}) {
      cl_int result = CL_SUCCESS;
      *buffer = {
          api().CreateBuffer(runtime_->context(), CL_MEM_READ_WRITE, items_ * 64, nullptr, &result),
          api().ReleaseMemObject};
      ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate memory to copy"));
    }
    return base::Ok();
  }

  Result<double> MultiplyAdd() override {
    const int rounds = kPeakRounds;
    const cl_mem out = to_.get();
    const cl_kernel kernel = KernelOf(*peak_);
    api().SetKernelArg(kernel, 0, sizeof(out), &out);
    api().SetKernelArg(kernel, 1, sizeof(rounds), &rounds);
    return Run(kernel, kPeakItems);
  }
  Result<double> Copy() override {
    const cl_mem out = to_.get();
    const cl_mem in = from_.get();
    const cl_kernel kernel = KernelOf(*copy_);
    api().SetKernelArg(kernel, 0, sizeof(out), &out);
    api().SetKernelArg(kernel, 1, sizeof(in), &in);
    return Run(kernel, items_);
  }

 private:
  const Api& api() const { return runtime_->api(); }
  static cl_kernel KernelOf(const codegen::DriverKernel& kernel) {
    return static_cast<const CompiledKernel&>(kernel).kernel.get();
  }
  Result<double> Run(cl_kernel kernel, size_t items) {
    return SecondsOf([&]() -> Status {
      ONNXIFI_RETURN_IF_ERROR(
          ToStatus(api().EnqueueNDRangeKernel(runtime_->queue().get(), kernel, 1, nullptr, &items,
                                              nullptr, 0, nullptr, nullptr),
                   "start a kernel"));
      return ToStatus(api().Finish(runtime_->queue().get()), "finish a kernel");
    });
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<codegen::DriverKernel> peak_, copy_;
  Handle<cl_mem> from_, to_;
  size_t items_ = 0;
};

// CLBlast beside our products.
class ClblastPeer final : public benchmarks::ProductPeer {
 public:
  explicit ClblastPeer(Clblast& clblast) : clblast_(clblast) {}
  std::string_view name() const override { return "CLBlast"; }
  Status Reserve(const GemmExtents& extents) override { return clblast_.Reserve(extents); }
  Result<double> Multiply() override {
    return SecondsOf([this] { return clblast_.Multiply(); });
  }

 private:
  Clblast& clblast_;
};

Status Run(const benchmarks::BenchmarkOptions& options) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, FindDevices(api));
  if (devices.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  const DeviceInfo& info = devices.front();
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<ClLimits> limits, ClLimits::Open(api, info));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(api, info));
  const Result<std::unique_ptr<Clblast>> clblast = Clblast::Open(api, info);
  std::optional<ClblastPeer> peer;
  if (clblast.ok()) {
    peer.emplace(**clblast);
  } else {
    fmt::print("Not beside CLBlast: {}\n", clblast.status().Text());
  }
  return RunBenchmark({*device, *limits, peer ? &*peer : nullptr, benchmarks::Clock::kHost,
                       info.name, info.platform_version},
                      options);
}

// --- tuning ---

// Products of some number of rows, and the tiles that may suit them.
struct RowClass {
  int64_t most_rows;  // 0: any
  std::vector<Case> cases;
  std::vector<Tuning::Tile> candidates;
};

// On a processor vectors of its own length and of half that, each item a group; elsewhere lanes are
// items.
std::vector<RowClass> MakeRowClasses(const DeviceLimits& limits) {
  constexpr auto kConstant = Buffer::Kind::kConstant;
  std::vector<RowClass> classes(3);
  classes[0].most_rows = 1;
  classes[0].cases.push_back(MakeProduct(1, 4096, 4096, false, kConstant));
  classes[0].cases.push_back(MakeConvolution(384, 14, 384, 3, 1, 384));
  classes[0].cases.push_back(MakeConvolution(32, 112, 32, 3, 1, 32));
  classes[1].most_rows = 4;
  classes[1].cases.push_back(MakeProduct(4, 2048, 2048, false, kConstant));
  classes[1].cases.push_back(MakeConvolution(128, 28, 128, 3, 1, 32));
  classes[2].most_rows = 0;
  classes[2].cases.push_back(MakeProduct(1024, 1024, 1024, false, Buffer::Kind::kTemporary));
  classes[2].cases.push_back(MakeConvolution(64, 56, 64, 3, 1, 1));
  classes[2].cases.push_back(MakeConvolution(256, 14, 1024, 1, 1, 1));
  classes[2].cases.push_back(MakeConvolution(512, 7, 512, 3, 1, 1));
  const std::vector<int> vector_bits = limits.is_processor
                                           ? std::vector{limits.vector_bits / 2, limits.vector_bits}
                                           : std::vector{32, 64, 128};
  const std::vector<int> group_sizes =
      limits.is_processor ? std::vector{1, 4} : std::vector{32, 64, 128, 256};
  for (RowClass& one : classes) {
    for (const int rows : {1, 2, 4, 6, 8, 12}) {
      if (one.most_rows != 0 && rows > one.most_rows) continue;
      if (one.most_rows != 1 && rows < (one.most_rows == 0 ? 4 : 2)) continue;
      for (const int vectors : {1, 2, 3, 4}) {
        // More sums than any processor has registers are no tile.
        if (rows * vectors > 28 || rows * vectors < 2) continue;
        for (const int bits : vector_bits) {
          for (const int group_size : group_sizes) {
            // Groups of several blocks pay where a block is little work.
            if (limits.is_processor && group_size > 1 && rows > 1) continue;
            one.candidates.push_back({one.most_rows, rows, vectors, bits, group_size});
          }
        }
      }
    }
  }
  return classes;
}

// The product of the cases' best times, in seconds.
Result<double> TimeCases(const Api& api, const DeviceInfo& info, const Tuning::Tile& tile,
                         const std::vector<Case>& cases) {
  DeviceInfo with_tile = info;
  with_tile.tuning.tiles = {tile};
  with_tile.tuning.tiles[0].most_rows = 0;
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(api, with_tile));
  double product = 1;
  for (const Case& one : cases) {
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Prepared> prepared,
                             Prepared::Create(*device, one));
    // The first run compiles.
    double best = 1e9;
    for (int round = -1; round < 6; ++round) {
      ONNXIFI_ASSIGN_OR_RETURN(const double seconds, prepared->Run());
      if (round >= 0) best = std::min(best, seconds);
    }
    product *= best;
  }
  return product;
}

// Those whose line contains `wanted`; unless that is empty, nothing is written.
Status Tune(std::string_view wanted) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, FindDevices(api));
  if (devices.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  const DeviceInfo& info = devices.front();
  std::string lines;
  for (const RowClass& one : MakeRowClasses(info.limits)) {
    double best = 1e300;
    std::string best_line;
    for (const Tuning::Tile& tile : one.candidates) {
      const std::string line =
          fmt::format("{}, tile, {}, {}, {}, {}, {}\n", info.name, tile.most_rows, tile.rows,
                      tile.vectors, tile.vector_bits, tile.group_size);
      if (line.find(wanted) == std::string::npos) continue;
      ONNXIFI_ASSIGN_OR_RETURN(const double seconds, TimeCases(api, info, tile, one.cases));
      const double mean = std::pow(seconds, 1.0 / static_cast<double>(one.cases.size()));
      fmt::print("{:9.3f} ms  {}", mean * 1e3, line);
      if (mean < best) {
        best = mean;
        best_line = line;
      }
    }
    lines += best_line;
  }
  if (!wanted.empty()) return base::Ok();
  const std::filesystem::path folder = base::CacheFolder();
  fmt::print("\n{}", lines);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string others;
  {
    std::ifstream file(folder / kTuningFile);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(info.name + ",")) others += line + "\n";
    }
  }
  std::ofstream file(folder / kTuningFile);
  file << others << lines;
  if (!file.flush()) {
    return Status(base::Code::kNoSystemResources,
                  "The tiles cannot be written to " + (folder / kTuningFile).string() + ".");
  }
  return base::Ok();
}

}  // namespace
}  // namespace onnxifi::opencl

int main(int argument_count, char** arguments) {
  const std::string_view argument = argument_count > 1 ? arguments[1] : "";
  const std::string_view tiles = argument_count > 2 ? arguments[2] : "";
  const onnxifi::base::Status status =
      argument == "--tune" ? onnxifi::opencl::Tune(tiles)
                           : onnxifi::opencl::Run(onnxifi::benchmarks::ParseOptions(
                                 argument_count, arguments,
                                 "Times the OpenCL plugin's kernels beside kernels that only "
                                 "multiply and add, or only copy. --tune [TILE] as the only "
                                 "arguments tries tiles instead."));
  if (status.ok()) return 0;
  fmt::print(stderr, "opencl_benchmark: {}\n", status.Text());
  return 1;
}
