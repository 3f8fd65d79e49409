// SPDX-License-Identifier: Apache-2.0
//
// The CPU plugin's tile engine against a plain copy of as many bytes on the same threads, timed in
// turns: chains of Map operators, transposition, shuffles, reductions, rows, pooling. `of_copy` is
// the share of the copy's bandwidth that the engine reaches; ONNXIFI_NUM_THREADS says how many
// threads.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/device/usable_cpus.h"
#include "backends/core/program/program.h"
#include "backends/core/reference/host_memory.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/pooling/pooling.h"
#include "backends/cpu/threads/environment.h"
#include "backends/cpu/threads/thread_pool.h"

namespace onnxifi::engine {
namespace {

using program::Expr;
using program::ExprOp;
using program::Operand;
using program::Shape;
using tensor::ElementType;

constexpr ElementType kFloat32 = ElementType::kFloat32;

threads::ThreadPool& Pool() {
  static threads::ThreadPool pool(
      threads::ReadEnvironment().thread_count.value_or(device::CountUsableCpus()));
  return pool;
}

double Seconds(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One step over float32 buffers, ready to run.
class Prepared {
 public:
  program::Program program;
  program::Step step;

  program::ExprPool& pool() { return program.exprs; }

  Operand Buffer(const Shape& shape) {
    program::Buffer buffer;
    buffer.type = kFloat32;
    buffer.shape = shape;
    const program::BufferId id = program.AddBuffer(buffer);
    int64_t count = 1;
    for (const program::Dim& extent : shape) count *= extent.constant();
    reference::HostMemory memory;
    allocations_.push_back(*memory.Allocate(count * 4));
    auto* data = reinterpret_cast<float*>(allocations_.back()->data());
    for (int64_t k = 0; k < count; ++k) data[k] = static_cast<float>(k % 251) / 64 - 2;
    addresses_.push_back(allocations_.back()->data());
    bytes_ += count * 4;
    return {program::DenseView(id, kFloat32, shape), shape};
  }
  int Read(const Operand& operand) {
    step.reads.push_back(operand.view);
    return static_cast<int>(step.reads.size()) - 1;
  }
  void Write(const Operand& operand) { step.writes.push_back(operand.view); }

  // Of all buffers.
  int64_t bytes() const { return bytes_; }

  void Bind(const Settings& settings = {}) {
    program.steps.push_back(std::move(step));
    const device::Facts facts{program, program.steps[0]};
    runtime_ = std::make_unique<Runtime>(Pool(), settings);
    recipe_ = program.steps[0].As<program::Window>() != nullptr ? *pooling::SelectPooling(facts)
                                                                : *Select(facts);
    kernel_ = *static_cast<const Recipe&>(*recipe_).BuildKernel(*runtime_);
    const std::vector<int64_t> dims;
    bound_ = *kernel_->Bind(device::Bind(program, program.steps[0], dims), addresses_);
  }
  void Run() {
    if (!bound_->Run(addresses_).ok()) std::abort();
  }

 private:
  std::vector<std::unique_ptr<device::Allocation>> allocations_;
  std::vector<std::byte*> addresses_;
  int64_t bytes_ = 0;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<const device::Recipe> recipe_;
  std::unique_ptr<device::Kernel> kernel_;
  std::unique_ptr<device::BoundKernel> bound_;
};

// A plain loop that copies half of `bytes` on the pool, so that as many are moved.
class PlainCopy {
 public:
  explicit PlainCopy(int64_t bytes)
      : source_(static_cast<size_t>(bytes / 8), 1.0f), target_(source_.size(), 0.0f) {}
  void Run() {
    const float* source = source_.data();
    float* target = target_.data();
    Pool().For(static_cast<int64_t>(source_.size()), 16384, [=](int64_t begin, int64_t end) {
      const float* __restrict from = source;
      float* __restrict to = target;
      for (int64_t k = begin; k < end; ++k) to[k] = from[k];
    });
    benchmark::ClobberMemory();
  }

 private:
  std::vector<float> source_;
  std::vector<float> target_;
};

// Runs step and copy in turns; what is reported is the best of each.
void Measure(benchmark::State& state, Prepared& prepared, const Settings& settings = {}) {
  prepared.Bind(settings);
  PlainCopy copy(prepared.bytes());
  prepared.Run();
  copy.Run();
  double best = 1e9;
  double best_copy = 1e9;
  for (auto _ : state) {
    const double seconds = Seconds([&] { prepared.Run(); });
    best = std::min(best, seconds);
    best_copy = std::min(best_copy, Seconds([&] { copy.Run(); }));
    state.SetIterationTime(seconds);
  }
  const auto bytes = static_cast<double>(prepared.bytes());
  state.counters["GB/s"] = bytes / best * 1e-9;
  state.counters["copy_GB/s"] = bytes / best_copy * 1e-9;
  state.counters["of_copy"] = best_copy / best;
}

// Stores past the caches always, or never.
Settings Streaming(int64_t streams) {
  Settings settings;
  settings.streamed_bytes = streams != 0 ? 0 : int64_t{1} << 62;
  settings.streamed_transposed_bytes = settings.streamed_bytes;
  return settings;
}

void MapChain(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(1)};
  const Operand in = step.Buffer(shape);
  Expr x = Load(step.pool(), kFloat32, step.Read(in));
  for (int64_t k = 0; k < state.range(0); ++k) {
    switch (k % 6) {
      case 0:
        x = x * Like(x, 1.5);
        break;
      case 1:
        x = x + Like(x, 0.25);
        break;
      case 2:
        x = Maximum(x, Like(x, 0));
        break;
      case 3:
        x = Minimum(x, Like(x, 6));
        break;
      case 4:
        x = x - Like(x, 3);
        break;
      default:
        x = Unary(ExprOp::kAbs, x);
        break;
    }
  }
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{x.id()}};
  Measure(state, step, Streaming(state.range(2)));
}
BENCHMARK(MapChain)
    ->ArgsProduct({{0, 1, 2, 3, 4, 5, 6}, {1 << 18, 1 << 21, 1 << 24}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void Gelu(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(0)};
  const Expr x = Load(step.pool(), kFloat32, step.Read(step.Buffer(shape)));
  const Expr y = x * (Unary(ExprOp::kErf, x / Like(x, 1.41421356)) + Like(x, 1)) * Like(x, 0.5);
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{y.id()}};
  Measure(state, step);
}
BENCHMARK(Gelu)->Arg(1 << 18)->Arg(1 << 24)->UseManualTime()->Unit(benchmark::kMicrosecond);

void BiasPerChannel(benchmark::State& state) {
  Prepared step;
  const Shape shape = {1, state.range(0), state.range(1)};
  const Expr x = Load(step.pool(), kFloat32, step.Read(step.Buffer(shape)));
  Operand bias = InsertAxis(InsertAxis(step.Buffer({state.range(0)}), 0), 2);
  bias.view = BroadcastTo(bias, shape);
  const Expr y = Maximum(x + Load(step.pool(), kFloat32, step.Read(bias)), Like(x, 0));
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{y.id()}};
  Measure(state, step);
}
BENCHMARK(BiasPerChannel)
    ->Args({256, 56 * 56})
    ->Args({2048, 49})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// The same with channels innermost: what is added repeats with every pixel.
void BiasPerChannelLast(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(1), state.range(0)};
  const Expr x = Load(step.pool(), kFloat32, step.Read(step.Buffer(shape)));
  auto per_channel = [&] {
    Operand operand = InsertAxis(step.Buffer({state.range(0)}), 0);
    operand.view = BroadcastTo(operand, shape);
    return Load(step.pool(), kFloat32, step.Read(operand));
  };
  const Expr scaled = x * per_channel();
  const Expr y = Maximum(scaled + per_channel(), Like(x, 0));
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{y.id()}};
  Measure(state, step);
}
BENCHMARK(BiasPerChannelLast)
    ->Args({256, 56 * 56})
    ->Args({256, 14 * 14})
    ->Args({64, 112 * 112})
    ->Args({24, 56 * 56})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Groups and channels within a group change places, with channels innermost.
void ChannelShuffle(benchmark::State& state) {
  Prepared step;
  const Operand in =
      Permute(step.Buffer({state.range(2), state.range(0), state.range(1)}), {0, 2, 1});
  const Expr x = Load(step.pool(), kFloat32, step.Read(in));
  step.step.domain = in.shape;
  step.Write(step.Buffer(in.shape));
  step.step.body = program::Map{{x.id()}};
  Measure(state, step);
}
BENCHMARK(ChannelShuffle)
    ->Args({3, 20, 56 * 56})
    ->Args({3, 80, 14 * 14})
    ->Args({2, 24, 56 * 56})
    ->Args({4, 68, 28 * 28})
    ->Args({8, 48, 28 * 28})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void Transposed(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(0), state.range(1)};
  const Operand in = Permute(step.Buffer({state.range(1), state.range(0)}), {1, 0});
  const Expr x = Load(step.pool(), kFloat32, step.Read(in));
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{x.id()}};
  Measure(state, step, Streaming(state.range(2)));
}
BENCHMARK(Transposed)
    ->ArgsProduct({{4096}, {4096}, {0, 1}})
    ->ArgsProduct({{4000}, {4100}, {0, 1}})
    ->ArgsProduct({{128}, {128}, {0, 1}})
    ->ArgsProduct({{256}, {384}, {0, 1}})
    ->ArgsProduct({{500}, {500}, {0, 1}})
    ->ArgsProduct({{720}, {720}, {0, 1}})
    ->ArgsProduct({{1000}, {1000}, {0, 1}})
    ->ArgsProduct({{1500}, {1500}, {0, 1}})
    ->ArgsProduct({{64}, {1 << 18}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Sums over the last of three axes, the first, or the middle one.
void Sum(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(1), state.range(2), state.range(3)};
  std::vector<int> order = {0, 1, 2};
  const auto axis = static_cast<size_t>(state.range(0));
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(axis));
  order.push_back(static_cast<int>(axis));
  const Operand in = Permute(step.Buffer(shape), order);
  const Expr x = Load(step.pool(), kFloat32, step.Read(in));
  program::Reduce reduce;
  reduce.axes = 1;
  const Expr sum = State(step.pool(), kFloat32, 0);
  reduce.reduction.states.push_back(
      {kFloat32, Like(x, 0).id(), (sum + x).id(), (sum + Other(step.pool(), kFloat32, 0)).id()});
  reduce.roots = {sum.id()};
  step.step.domain = in.shape;
  step.Write(step.Buffer({in.shape[0], in.shape[1]}));
  step.step.body = std::move(reduce);
  Measure(state, step);
}
BENCHMARK(Sum)
    ->Args({2, 64, 128, 2048})
    ->Args({2, 64, 256, 100})
    ->Args({2, 4096, 64, 49})
    ->Args({2, 4096, 256, 10})
    ->Args({0, 2048, 64, 128})
    ->Args({1, 64, 1000, 256})
    ->Args({1, 16, 256, 3136})
    ->Args({2, 1, 1, 1 << 24})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void Softmax(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(0), state.range(1)};
  program::ExprPool& pool = step.pool();
  const Expr x = Load(pool, kFloat32, step.Read(step.Buffer(shape)));
  program::Row row;
  row.axes = 1;
  const Expr held = State(pool, kFloat32, 0);
  const Expr other = Other(pool, kFloat32, 0);
  row.passes.push_back({{{{kFloat32, Constant(pool, kFloat32, -1e30).id(), Maximum(held, x).id(),
                           Maximum(held, other).id()}}},
                        {held.id()}});
  const Expr power = Unary(ExprOp::kExp, x - RowResult(pool, kFloat32, 0, 0));
  row.passes.push_back(
      {{{{kFloat32, Like(x, 0).id(), (held + power).id(), (held + other).id()}}}, {held.id()}});
  row.roots = {(power / RowResult(pool, kFloat32, 1, 0)).id()};
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = std::move(row);
  Measure(state, step);
}
BENCHMARK(Softmax)
    ->Args({960, 40})
    ->Args({24, 12})
    ->Args({4096, 128})
    ->Args({4096, 1024})
    ->Args({65536, 16})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Rows, elements of a row: a residual is added, then the row normalised, scaled and shifted.
void LayerNormalization(benchmark::State& state) {
  Prepared step;
  const Shape shape = {state.range(0), state.range(1)};
  program::ExprPool& pool = step.pool();
  const Expr x = Load(pool, kFloat32, step.Read(step.Buffer(shape))) +
                 Load(pool, kFloat32, step.Read(step.Buffer(shape)));
  auto read_per_element = [&] {
    Operand operand = InsertAxis(step.Buffer({shape[1]}), 0);
    operand.view = BroadcastTo(operand, shape);
    return Load(pool, kFloat32, step.Read(operand));
  };
  const Expr scale = read_per_element();
  const Expr shift = read_per_element();
  const Expr held = State(pool, kFloat32, 0);
  const Expr other = Other(pool, kFloat32, 0);
  const Expr count = Like(x, static_cast<double>(state.range(1)));
  program::Row row;
  row.axes = 1;
  auto add_mean = [&](Expr element) {
    const int pass = static_cast<int>(row.passes.size());
    row.passes.push_back(
        {{{{kFloat32, Like(x, 0).id(), (held + element).id(), (held + other).id()}}},
         {(held / count).id()}});
    return RowResult(pool, kFloat32, pass, 0);
  };
  const Expr distance = x - add_mean(x);
  const Expr variance = add_mean(distance * distance);
  const Expr inverse = Like(x, 1) / Unary(ExprOp::kSqrt, variance + Like(x, 1e-5));
  row.roots = {(distance * inverse * scale + shift).id()};
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = std::move(row);
  Measure(state, step);
}
BENCHMARK(LayerNormalization)
    ->Args({3, 256})
    ->Args({120, 256})
    ->Args({1000, 1000})
    ->Args({4096, 64})
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

// Channels, rows and columns of the input, extent and stride of a square window.
void Pool(benchmark::State& state, program::Window::Kind kind) {
  Prepared step;
  const int64_t channels = state.range(0);
  const int64_t extent = state.range(1);
  const int64_t kernel = state.range(2);
  const int64_t stride = state.range(3);
  const int64_t out = (extent - kernel) / stride + 1;
  const Operand in = Permute(step.Buffer({1, extent, extent, channels}), {0, 3, 1, 2});
  const Operand result = Permute(step.Buffer({1, out, out, channels}), {0, 3, 1, 2});
  step.Read(in);
  step.Write(result);
  step.step.domain = result.shape;
  program::Window window;
  window.kind = kind;
  window.in_spatial = {extent, extent};
  window.kernel = {kernel, kernel};
  window.strides = {stride, stride};
  window.dilations = {1, 1};
  window.pads_begin = window.pads_end = {0, 0};
  window.roots = {program::Accumulator(step.pool(), kFloat32).id()};
  step.step.body = std::move(window);
  Measure(state, step);
}
void PoolCases(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({24, 112, 3, 2})
      ->Args({64, 112, 3, 2})
      ->Args({240, 28, 3, 2})
      ->Args({192, 28, 3, 1})
      ->Args({1024, 7, 7, 1})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK_CAPTURE(Pool, Max, program::Window::Kind::kMax)->Apply(PoolCases);
BENCHMARK_CAPTURE(Pool, Average, program::Window::Kind::kAverage)->Apply(PoolCases);

// What a run of four elements costs beside the work.
void SmallMap(benchmark::State& state) {
  Prepared step;
  const Shape shape = {4};
  const Expr x = Load(step.pool(), kFloat32, step.Read(step.Buffer(shape)));
  step.step.domain = shape;
  step.Write(step.Buffer(shape));
  step.step.body = program::Map{{(x + Like(x, 1)).id()}};
  step.Bind();
  for (auto _ : state) step.Run();
}
BENCHMARK(SmallMap);

}  // namespace
}  // namespace onnxifi::engine

BENCHMARK_MAIN();
