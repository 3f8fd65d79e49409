// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL plugin's kernels against the limits of the same device, timed in turns: contractions
// against a kernel of nothing but multiply-adds, everything else against a kernel that copies;
// products beside CLBlast too, where it is installed. Prints, per case, the best time, the rate and
// its share of the limit. An argument keeps the cases whose name contains it. With --tune, tries
// tiles instead and writes those that were fastest to the cache folder, where the plugin looks for
// them (backends/opencl/tuning.csv says how to read them); an argument behind it keeps the tiles
// whose line contains it, and nothing is written.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "backends/core/base/result.h"
#include "backends/core/program/program.h"
#include "backends/opencl/device.h"
#include "benchmarks/clblast.h"

namespace onnxifi::opencl {
namespace {

using base::Result;
using base::Status;
using codegen::DeviceLimits;
using codegen::Tuning;
using program::Buffer;
using program::Contract;
using program::Dim;
using program::Expr;
using program::ExprPool;
using program::Shape;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;

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

double Seconds(const std::function<Status()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  if (const Status status = run(); !status.ok()) {
    fmt::print(stderr, "{}\n", status.Text());
    std::exit(1);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What the device can do at most, in a context of its own.
class Limits {
 public:
  static Result<std::unique_ptr<Limits>> Open(const Api& api, const DeviceInfo& info) {
    auto limits = std::make_unique<Limits>();
    ONNXIFI_ASSIGN_OR_RETURN(limits->runtime_, Runtime::Open(api, info));
    const Memory memory(*limits->runtime_);
    KernelDriver driver(*limits->runtime_, memory);
    ONNXIFI_ASSIGN_OR_RETURN(limits->peak_, driver.Compile(kPeakSource));
    ONNXIFI_ASSIGN_OR_RETURN(limits->copy_, driver.Compile(kCopySource));
    return limits;
  }

  // Makes place for copies that read and write `bytes` in all.
  Status Reserve(int64_t bytes) {
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

  Status MultiplyAdd() {
    const int rounds = kPeakRounds;
    const cl_mem out = to_.get();
    const cl_kernel kernel = KernelOf(*peak_);
    api().SetKernelArg(kernel, 0, sizeof(out), &out);
    api().SetKernelArg(kernel, 1, sizeof(rounds), &rounds);
    return Run(kernel, kPeakItems);
  }
  Status Copy() {
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
  Status Run(cl_kernel kernel, size_t items) {
    ONNXIFI_RETURN_IF_ERROR(
        ToStatus(api().EnqueueNDRangeKernel(runtime_->queue().get(), kernel, 1, nullptr, &items,
                                            nullptr, 0, nullptr, nullptr),
                 "start a kernel"));
    return ToStatus(api().Finish(runtime_->queue().get()), "finish a kernel");
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<codegen::DriverKernel> peak_, copy_;
  Handle<cl_mem> from_, to_;
  size_t items_ = 0;
};

// One step over buffers of float32, but for positions among what it writes.
struct Case {
  program::Program program;
  program::Step step;
  double flops = 0;                 // 0: held against copies
  std::optional<GemmExtents> gemm;  // of plain products, which others have too
  int64_t bytes = 0;

  program::View Add(Buffer::Kind kind, const Shape& shape, ElementType type = kFloat) {
    Buffer buffer{.kind = kind, .type = type, .shape = shape};
    bytes += tensor::Product(shape).constant() * tensor::BitWidth(type) / 8;
    if (kind == Buffer::Kind::kConstant) {
      buffer.index = static_cast<int>(program.constants.size());
    }
    return program::DenseView(program.AddBuffer(buffer), type, shape);
  }
  Expr Read(const program::View& view) {
    step.reads.push_back(view);
    return Load(program.exprs, kFloat, static_cast<int>(step.reads.size()) - 1);
  }
  void Write(const Shape& shape) {
    step.domain = shape;
    step.writes = {Add(Buffer::Kind::kTemporary, shape)};
  }
};

Case MakeProduct(int64_t m, int64_t n, int64_t k, bool is_transposed, Buffer::Kind b_kind) {
  Case product;
  Contract contract;
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {k};
  contract.a_prologue = product.Read(product.Add(Buffer::Kind::kTemporary, {m, k})).id();
  program::View b = product.Add(b_kind, is_transposed ? Shape{n, k} : Shape{k, n});
  if (is_transposed) std::swap(b.strides[0], b.strides[1]);
  contract.b_prologue = product.Read(b).id();
  contract.roots = {Accumulator(product.program.exprs, kFloat).id()};
  product.Write({m, n});
  product.step.body = std::move(contract);
  product.flops = 2.0 * static_cast<double>(m * n * k);
  product.gemm = GemmExtents{m, n, k, is_transposed};
  return product;
}

// With bias and Relu, as networks have it.
Case MakeConvolution(int64_t channels, int64_t size, int64_t outputs, int64_t kernel,
                     int64_t stride, int64_t group) {
  Case convolution;
  const int64_t out = (size - 1) / stride + 1;
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.group = group;
  contract.inner = {channels / group, kernel, kernel};
  contract.a_spatial = {size, size};
  contract.strides = {stride, stride};
  contract.dilations = {1, 1};
  contract.pads_begin = {kernel / 2, kernel / 2};
  contract.a_prologue =
      convolution.Read(convolution.Add(Buffer::Kind::kTemporary, {1, channels, size, size})).id();
  contract.b_prologue = convolution
                            .Read(convolution.Add(Buffer::Kind::kConstant,
                                                  {outputs, channels / group, kernel, kernel}))
                            .id();
  program::View bias = convolution.Add(Buffer::Kind::kConstant, {outputs});
  bias.strides = {0, 1, 0, 0};
  const Expr sum = Accumulator(convolution.program.exprs, kFloat) + convolution.Read(bias);
  contract.roots = {Maximum(sum, Like(sum, 0)).id()};
  convolution.Write({1, outputs, out, out});
  const int64_t channels_of_group = channels / group;
  convolution.flops =
      2.0 * static_cast<double>(out * out * outputs * channels_of_group * kernel * kernel);
  convolution.step.body = std::move(contract);
  return convolution;
}

// Twice as large, as decoders have it.
Case MakeTransposed(int64_t channels, int64_t size, int64_t outputs, int64_t kernel) {
  Case transposed;
  Contract contract;
  contract.form = Contract::Form::kConvTranspose;
  contract.inner = {channels, kernel, kernel};
  contract.a_spatial = {size, size};
  contract.strides = {2, 2};
  contract.dilations = {1, 1};
  contract.pads_begin = {(kernel - 1) / 2, (kernel - 1) / 2};
  contract.a_prologue =
      transposed.Read(transposed.Add(Buffer::Kind::kTemporary, {1, channels, size, size})).id();
  contract.b_prologue =
      transposed.Read(transposed.Add(Buffer::Kind::kConstant, {channels, outputs, kernel, kernel}))
          .id();
  contract.roots = {Accumulator(transposed.program.exprs, kFloat).id()};
  transposed.Write({1, outputs, 2 * size, 2 * size});
  transposed.flops = 2.0 * static_cast<double>(size * size * channels * outputs * kernel * kernel);
  transposed.step.body = std::move(contract);
  return transposed;
}

Case MakeMap(const Shape& shape, const std::function<Expr(Expr, Expr)>& formula) {
  Case map;
  const Expr a = map.Read(map.Add(Buffer::Kind::kTemporary, shape));
  const Expr b = map.Read(map.Add(Buffer::Kind::kTemporary, shape));
  const program::ExprId root = formula(a, b).id();
  map.Write(shape);
  map.step.body = program::Map{{root}};
  return map;
}

Case MakeTransposition(int64_t rows, int64_t columns) {
  Case map;
  program::View view = map.Add(Buffer::Kind::kTemporary, {columns, rows});
  std::swap(view.strides[0], view.strides[1]);
  const program::ExprId root = map.Read(view).id();
  map.Write({rows, columns});
  map.step.body = program::Map{{root}};
  return map;
}

program::Reduction::State Sum(ExprPool& pool, Expr element) {
  const Expr state = State(pool, kFloat, 0);
  return {kFloat, Constant(pool, kFloat, 0).id(), (state + element).id(),
          (state + Other(pool, kFloat, 0)).id()};
}

Case MakeRowSums(int64_t rows, int64_t columns) {
  Case sums;
  ExprPool& pool = sums.program.exprs;
  program::Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {
      Sum(pool, sums.Read(sums.Add(Buffer::Kind::kTemporary, {rows, columns})))};
  reduce.roots = {State(pool, kFloat, 0).id()};
  sums.Write({rows});
  sums.step.domain = {rows, columns};
  sums.step.body = std::move(reduce);
  return sums;
}

Case MakeSoftmax(int64_t rows, int64_t columns) {
  Case softmax;
  ExprPool& pool = softmax.program.exprs;
  const Expr x = softmax.Read(softmax.Add(Buffer::Kind::kTemporary, {rows, columns}));
  const Expr state = State(pool, kFloat, 0);
  const Expr low = Like(x, -3e38);
  program::Row row;
  row.axes = 1;
  row.passes.push_back(
      {{{{kFloat, low.id(), Maximum(state, x).id(), Maximum(state, Other(pool, kFloat, 0)).id()}}},
       {state.id()}});
  const Expr power = Unary(program::ExprOp::kExp, x - RowResult(pool, kFloat, 0, 0));
  row.passes.push_back({{{Sum(pool, power)}}, {state.id()}});
  row.roots = {(power / RowResult(pool, kFloat, 1, 0)).id()};
  softmax.Write({rows, columns});
  softmax.step.body = std::move(row);
  return softmax;
}

Case MakePooling(int64_t channels, int64_t size, int64_t kernel, int64_t stride) {
  Case pooling;
  const int64_t out = (size + 2 * (kernel / 2) - kernel) / stride + 1;
  pooling.step.reads = {pooling.Add(Buffer::Kind::kTemporary, {1, channels, size, size})};
  program::Window window;
  window.in_spatial = {size, size};
  window.kernel = {kernel, kernel};
  window.strides = {stride, stride};
  window.dilations = {1, 1};
  window.pads_begin = window.pads_end = {kernel / 2, kernel / 2};
  window.roots = {Accumulator(pooling.program.exprs, kFloat).id()};
  pooling.Write({1, channels, out, out});
  pooling.step.body = std::move(window);
  return pooling;
}

Case MakeTopK(int64_t rows, int64_t columns, int64_t k) {
  Case largest;
  largest.step.reads = {largest.Add(Buffer::Kind::kTemporary, {rows, columns})};
  largest.step.domain = {rows, columns};
  largest.step.writes = {largest.Add(Buffer::Kind::kTemporary, {rows, k}),
                         largest.Add(Buffer::Kind::kTemporary, {rows, k}, ElementType::kInt64)};
  largest.step.body = program::Index{.kind = program::Index::Kind::kTopK, .k = k};
  return largest;
}

Case MakeNonZero(int64_t rows, int64_t columns) {
  Case found;
  found.step.reads = {found.Add(Buffer::Kind::kTemporary, {rows, columns})};
  found.step.domain = {rows, columns};
  found.step.writes = {
      found.Add(Buffer::Kind::kTemporary, {2, rows * columns}, ElementType::kInt64)};
  found.step.body = program::Index{.kind = program::Index::Kind::kNonZero};
  return found;
}

// Ready to run.
class Prepared {
 public:
  static Result<std::unique_ptr<Prepared>> Create(Device& device, const Case& one) {
    auto prepared = std::make_unique<Prepared>();
    ONNXIFI_ASSIGN_OR_RETURN(prepared->queue_, device.NewQueue());
    std::vector<std::byte*> constants;
    for (const Buffer& buffer : one.program.buffers) {
      const int64_t count = tensor::Product(buffer.shape).constant();
      ONNXIFI_ASSIGN_OR_RETURN(auto held,
                               device.memory().Allocate(count * tensor::BitWidth(buffer.type) / 8));
      std::vector<float> values(static_cast<size_t>(count));
      for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 251) / 64 - 2;
      ONNXIFI_RETURN_IF_ERROR(prepared->queue_->Upload(
          reinterpret_cast<const std::byte*>(values.data()), held->data(), count * 4));
      ONNXIFI_RETURN_IF_ERROR(prepared->queue_->Finish());
      const bool is_constant = buffer.kind == Buffer::Kind::kConstant;
      constants.push_back(is_constant ? held->data() : nullptr);
      prepared->addresses_.push_back(held->data());
      prepared->held_.push_back(std::move(held));
    }
    const device::Facts facts{one.program, one.step};
    ONNXIFI_ASSIGN_OR_RETURN(const device::Selection selection, device.Select(facts));
    prepared->implementation_ = selection.recipe->implementation();
    ONNXIFI_ASSIGN_OR_RETURN(prepared->kernel_, device.Build(*selection.recipe));
    ONNXIFI_ASSIGN_OR_RETURN(
        prepared->bound_,
        prepared->kernel_->Bind(device::Bind(one.program, one.step, {}), constants));
    return prepared;
  }

  Status Run() {
    ONNXIFI_RETURN_IF_ERROR(bound_->Enqueue(*queue_, addresses_));
    return queue_->Finish();
  }
  std::string Text() const {
    const std::string detail = bound_->Detail();
    return implementation_ + (detail.empty() ? "" : ", " + detail);
  }

 private:
  std::vector<std::unique_ptr<device::Allocation>> held_;
  std::vector<std::byte*> addresses_;
  std::string implementation_;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<device::Kernel> kernel_;
  std::unique_ptr<device::BoundKernel> bound_;
};

// `clblast`: null where there is none.
Status Measure(Device& device, Limits& limits, Clblast* clblast, std::string_view name,
               const Case& one) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Prepared> prepared, Prepared::Create(device, one));
  ONNXIFI_RETURN_IF_ERROR(limits.Reserve(one.bytes));
  const auto limit = [&] { return one.flops > 0 ? limits.MultiplyAdd() : limits.Copy(); };
  // The first time compiles.
  ONNXIFI_RETURN_IF_ERROR(prepared->Run());
  ONNXIFI_RETURN_IF_ERROR(limit());
  const bool has_peer = clblast != nullptr && one.gemm;
  if (has_peer) {
    ONNXIFI_RETURN_IF_ERROR(clblast->Reserve(*one.gemm));
    ONNXIFI_RETURN_IF_ERROR(clblast->Multiply());
  }
  double best = 1e9;
  double best_peer = 1e9;
  double best_limit = 1e9;
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    best = std::min(best, Seconds([&] { return prepared->Run(); }));
    best_limit = std::min(best_limit, Seconds(limit));
    if (has_peer) best_peer = std::min(best_peer, Seconds([&] { return clblast->Multiply(); }));
  }
  const double work = one.flops > 0 ? one.flops : static_cast<double>(one.bytes);
  const double limit_rate =
      (one.flops > 0 ? kPeakFlops : static_cast<double>(one.bytes)) / best_limit;
  const std::string peer = has_peer ? fmt::format("; CLBlast {:.3f} ms", best_peer * 1e3) : "";
  fmt::print("{:<34} {:>9.3f} ms {:>8.1f} {:<7} {:>5.1f} % of {:.1f}   {}{}\n", name, best * 1e3,
             work / best * 1e-9, one.flops > 0 ? "GFLOP/s" : "GB/s", 100 * work / best / limit_rate,
             limit_rate * 1e-9, prepared->Text(), peer);
  return base::Ok();
}

Status Run(std::string_view wanted) {
  ONNXIFI_ASSIGN_OR_RETURN(const Api api, LoadApi(kLoaderLibrary));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<DeviceInfo> devices, FindDevices(api));
  if (devices.empty()) return Status(base::Code::kBackendUnavailable, "There is no device.");
  fmt::print("{}, {}\n", devices.front().name, devices.front().platform_version);
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Limits> limits,
                           Limits::Open(api, devices.front()));
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                           Device::Open(api, devices.front()));
  const Result<std::unique_ptr<Clblast>> clblast = Clblast::Open(api, devices.front());
  if (!clblast.ok()) fmt::print("Not beside CLBlast: {}\n", clblast.status().Text());
  const auto measure = [&](const std::string& name, const auto& make) -> Status {
    if (name.find(wanted) == std::string::npos) return base::Ok();
    return Measure(*device, *limits, clblast.ok() ? clblast->get() : nullptr, name, make());
  };
  const auto product = [&](int64_t m, int64_t n, int64_t k, bool is_transposed, Buffer::Kind kind) {
    return measure(fmt::format("gemm {}x{}x{}{}{}", m, n, k, is_transposed ? " transposed" : "",
                               kind == Buffer::Kind::kConstant ? " constant" : ""),
                   [&] { return MakeProduct(m, n, k, is_transposed, kind); });
  };
  const auto convolution = [&](int64_t channels, int64_t size, int64_t outputs, int64_t kernel,
                               int64_t stride, int64_t group) {
    return measure(fmt::format("conv {}x{}x{} {}x{} s{} g{} to {}", channels, size, size, kernel,
                               kernel, stride, group, outputs),
                   [&] { return MakeConvolution(channels, size, outputs, kernel, stride, group); });
  };
  constexpr auto kVariable = Buffer::Kind::kTemporary;
  constexpr auto kConstant = Buffer::Kind::kConstant;
  ONNXIFI_RETURN_IF_ERROR(product(1024, 1024, 1024, false, kVariable));
  ONNXIFI_RETURN_IF_ERROR(product(1024, 1024, 1024, true, kVariable));
  ONNXIFI_RETURN_IF_ERROR(product(1024, 1024, 1024, false, kConstant));
  ONNXIFI_RETURN_IF_ERROR(product(128, 768, 768, false, kConstant));
  ONNXIFI_RETURN_IF_ERROR(product(1, 4096, 4096, false, kConstant));
  ONNXIFI_RETURN_IF_ERROR(product(1, 4096, 4096, false, kVariable));
  // Of ResNet-50.
  ONNXIFI_RETURN_IF_ERROR(convolution(3, 224, 64, 7, 2, 1));
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    ONNXIFI_RETURN_IF_ERROR(convolution(channels * 4, size, channels, 1, 1, 1));
    ONNXIFI_RETURN_IF_ERROR(convolution(channels, size, channels, 3, 1, 1));
    ONNXIFI_RETURN_IF_ERROR(convolution(channels, size, channels * 4, 1, 1, 1));
  }
  ONNXIFI_RETURN_IF_ERROR(convolution(256, 56, 128, 1, 2, 1));
  ONNXIFI_RETURN_IF_ERROR(convolution(128, 56, 128, 3, 2, 1));
  // Of MobileNet.
  ONNXIFI_RETURN_IF_ERROR(convolution(32, 112, 32, 3, 1, 32));
  ONNXIFI_RETURN_IF_ERROR(convolution(384, 14, 384, 3, 1, 384));
  ONNXIFI_RETURN_IF_ERROR(convolution(144, 56, 144, 3, 2, 144));
  // Of decoders: a tap per output, and four.
  for (const int64_t kernel : {2, 4}) {
    ONNXIFI_RETURN_IF_ERROR(
        measure(fmt::format("transposed conv 256x28x28 {}x{} s2 to 128", kernel, kernel),
                [&] { return MakeTransposed(256, 28, 128, kernel); }));
  }

  const auto relu = [](Expr a, Expr b) { return Maximum(a * b + Like(a, 1), Like(a, 0)); };
  for (const int64_t count : {int64_t{16} << 20, int64_t{1} << 18}) {
    ONNXIFI_RETURN_IF_ERROR(
        measure(fmt::format("map relu(a*b+1) {}", count), [&] { return MakeMap({count}, relu); }));
  }
  ONNXIFI_RETURN_IF_ERROR(
      measure("transpose 2048x2048", [] { return MakeTransposition(2048, 2048); }));
  ONNXIFI_RETURN_IF_ERROR(measure("sums 4096x1024", [] { return MakeRowSums(4096, 1024); }));
  ONNXIFI_RETURN_IF_ERROR(measure("softmax 4096x1024", [] { return MakeSoftmax(4096, 1024); }));
  ONNXIFI_RETURN_IF_ERROR(measure("softmax 1536x128", [] { return MakeSoftmax(1536, 128); }));
  ONNXIFI_RETURN_IF_ERROR(
      measure("max pool 64x112x112 3x3 s2", [] { return MakePooling(64, 112, 3, 2); }));
  // Of detectors: classes of boxes, and which of them are kept.
  ONNXIFI_RETURN_IF_ERROR(measure("top 200 of 20x8732", [] { return MakeTopK(20, 8732, 200); }));
  return measure("non-zero of 80x8732", [] { return MakeNonZero(80, 8732); });
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
    ONNXIFI_RETURN_IF_ERROR(prepared->Run());
    double best = 1e9;
    for (int round = 0; round < 6; ++round) {
      best = std::min(best, Seconds([&] { return prepared->Run(); }));
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
      argument == "--tune" ? onnxifi::opencl::Tune(tiles) : onnxifi::opencl::Run(argument);
  if (status.ok()) return 0;
  fmt::print(stderr, "opencl_benchmark: {}\n", status.Text());
  return 1;
}
