// SPDX-License-Identifier: Apache-2.0
//
// Which cases there are, the turns, and the table.

#include "benchmarks/kernel_benchmark.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "backends/core/device/timed_queue.h"

namespace onnxifi::benchmarks {
namespace {

using base::Result;
using base::Status;

struct NamedCase {
  std::string name;
  std::function<Case()> make;
};

NamedCase Product(int64_t m, int64_t n, int64_t k, bool is_transposed, Buffer::Kind kind) {
  return {fmt::format("gemm {}x{}x{}{}{}", m, n, k, is_transposed ? " transposed" : "",
                      kind == Buffer::Kind::kConstant ? " constant" : ""),
          [=] { return MakeProduct(m, n, k, is_transposed, kind); }};
}

NamedCase Convolution(int64_t channels, int64_t size, int64_t outputs, int64_t kernel,
                      int64_t stride, int64_t group) {
  return {fmt::format("conv {}x{}x{} {}x{} s{} g{} to {}", channels, size, size, kernel, kernel,
                      stride, group, outputs),
          [=] { return MakeConvolution(channels, size, outputs, kernel, stride, group); }};
}

Expr ReluOfProduct(Expr a, Expr b) { return Maximum(a * b + Like(a, 1), Like(a, 0)); }

// Matrices of 2048 `times` 2048 elements, and what networks do: channels last and first again, and
// the heads of attention.
void AddPermutations(std::vector<NamedCase>& cases, int64_t times) {
  using enum tensor::ElementType;
  const int64_t size = 2048 * times;
  for (const tensor::ElementType type : {kFloat32, kInt8, kFloat16, kInt64}) {
    // As many bytes as float32 has.
    const int64_t rows = size * 32 / tensor::BitWidth(type);
    cases.push_back({fmt::format("transpose {}x{} {}", rows, size, tensor::Name(type)), [=] {
                       return MakePermutation({rows, size}, {1, 0}, type);
                     }});
  }
  const int64_t images = 5 * times * times;
  cases.push_back({fmt::format("channels last {}x256x56x56", images), [=] {
                     return MakePermutation({images, 256, 56, 56}, {0, 2, 3, 1});
                   }});
  cases.push_back({fmt::format("channels first {}x56x56x256", images), [=] {
                     return MakePermutation({images, 56, 56, 256}, {0, 3, 1, 2});
                   }});
  const int64_t tokens = 512 * times * times;
  cases.push_back({fmt::format("heads 8x{}x16x64", tokens), [=] {
                     return MakePermutation({8, tokens, 16, 64}, {0, 2, 1, 3});
                   }});
  cases.push_back({fmt::format("keys 8x{}x16x64", tokens), [=] {
                     return MakePermutation({8, tokens, 16, 64}, {0, 2, 3, 1});
                   }});
}

// Of many queries, of a decoder's steps of one token and of several, and of heads that share
// theirs.
void AddAttention(std::vector<NamedCase>& cases) {
  using tensor::ElementType;
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat16}) {
    const auto add = [&](const AttentionExtents& extents) {
      const auto& [heads, sharing, queries, keys, width] = extents;
      cases.push_back({fmt::format("attention {}{} of {}x{} {}", heads * sharing,
                                   sharing == 1 ? "" : fmt::format("/{}", heads), keys, width,
                                   tensor::Name(type)) +
                           fmt::format(" {} queries", queries),
                       [=] { return MakeAttention(extents, type); }});
    };
    for (const int64_t tokens : {1024, 4096}) {
      add({.heads = 16, .queries = tokens, .keys = tokens});
    }
    add({.heads = 16, .queries = 1024, .keys = 1024, .width = 128});
    for (const int64_t keys : {1024, 4096}) {
      for (const int64_t queries : {1, 8}) {
        add({.heads = 16, .queries = queries, .keys = keys});
        add({.heads = 8, .sharing = 4, .queries = queries, .keys = keys, .width = 128});
      }
    }
  }
}

// Of data that are several times as large as the caches of GPUs.
void AddLargeCases(std::vector<NamedCase>& cases) {
  constexpr int64_t kElements = int64_t{64} << 20;
  for (const bool is_transposed : {false, true}) {
    cases.push_back(Product(4096, 4096, 4096, is_transposed, Buffer::Kind::kTemporary));
  }
  using tensor::ElementType;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat16, ElementType::kBfloat16}) {
    for (const auto& [batch, m, n, k] : {std::array<int64_t, 4>{1, 1024, 1024, 1024},
                                         {1, 4096, 4096, 4096},
                                         {1, 128, 768, 768},
                                         {1, 512, 768, 3072},
                                         {1, 1, 4096, 4096},
                                         {16, 512, 64, 512},
                                         {16, 512, 512, 64}}) {
      cases.push_back({fmt::format("{} gemm {} of {}x{}x{}", tensor::Name(type), batch, m, n, k),
                       [=, batch = batch, m = m, n = n, k = k] {
                         return MakeBatchedProduct(type, batch, m, n, k);
                       }});
    }
  }
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    for (const auto& [in, out] : {std::pair{channels * 4, channels}, {channels, channels * 4}}) {
      cases.push_back({fmt::format("float16 conv {}x{}x{} 1x1 to {}", in, size, size, out),
                       [=, in = in, size = size, out = out] {
                         return MakeConvolution(in, size, out, 1, 1, 1, ElementType::kFloat16);
                       }});
    }
  }
  cases.push_back({fmt::format("map relu(a*b+1) {}", kElements),
                   [] { return MakeMap({kElements}, ReluOfProduct); }});
  cases.push_back({"copy 8192x8192", [] { return MakeCopy(8192, 8192); }});
  AddPermutations(cases, 4);
  for (const int64_t columns : {768, 1024, 4096}) {
    const int64_t rows = kElements / columns;
    const std::string shape = fmt::format("{}x{}", rows, columns);
    cases.push_back({"sums " + shape, [=] { return MakeRowSums(rows, columns); }});
    cases.push_back({"softmax " + shape, [=] { return MakeSoftmax(rows, columns); }});
    cases.push_back({"layer norm " + shape, [=] { return MakeLayerNorm(rows, columns); }});
  }
  cases.push_back({fmt::format("sum of {}", kElements), [] { return MakeRowSums(1, kElements); }});
  AddAttention(cases);
  cases.push_back({"scatter 1000000 to 4000000", [] { return MakeScatter(1000000, 4000000); }});
}

std::vector<NamedCase> ListCases(bool has_large) {
  constexpr auto kVariable = Buffer::Kind::kTemporary;
  constexpr auto kConstant = Buffer::Kind::kConstant;
  std::vector<NamedCase> cases = {
      Product(1024, 1024, 1024, false, kVariable), Product(1024, 1024, 1024, true, kVariable),
      Product(1024, 1024, 1024, false, kConstant), Product(128, 768, 768, false, kConstant),
      Product(256, 16, 256, false, kVariable),     Product(1, 4096, 4096, false, kConstant),
      Product(1, 4096, 4096, false, kVariable)};
  // Of ResNet-50.
  cases.push_back(Convolution(3, 224, 64, 7, 2, 1));
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    cases.push_back(Convolution(channels * 4, size, channels, 1, 1, 1));
    cases.push_back(Convolution(channels, size, channels, 3, 1, 1));
    cases.push_back(Convolution(channels, size, channels * 4, 1, 1, 1));
  }
  cases.push_back(Convolution(256, 56, 128, 1, 2, 1));
  cases.push_back(Convolution(128, 56, 128, 3, 2, 1));
  // Of MobileNet.
  cases.push_back(Convolution(32, 112, 32, 3, 1, 32));
  cases.push_back(Convolution(384, 14, 384, 3, 1, 384));
  cases.push_back(Convolution(144, 56, 144, 3, 2, 144));
  // Of decoders: a tap per output, and four.
  for (const int64_t kernel : {2, 4}) {
    cases.push_back({fmt::format("transposed conv 256x28x28 {}x{} s2 to 128", kernel, kernel),
                     [=] { return MakeTransposed(256, 28, 128, kernel); }});
  }
  for (const int64_t count : {int64_t{16} << 20, int64_t{1} << 18}) {
    cases.push_back({fmt::format("map relu(a*b+1) {}", count),
                     [=] { return MakeMap({count}, ReluOfProduct); }});
  }
  cases.push_back({"copy 2048x2048", [] { return MakeCopy(2048, 2048); }});
  AddPermutations(cases, 1);
  cases.push_back({"sums 4096x1024", [] { return MakeRowSums(4096, 1024); }});
  cases.push_back({"softmax 4096x1024", [] { return MakeSoftmax(4096, 1024); }});
  cases.push_back({"softmax 1536x128", [] { return MakeSoftmax(1536, 128); }});
  cases.push_back({"layer norm 1024x768", [] { return MakeLayerNorm(1024, 768); }});
  cases.push_back({"max pool 64x112x112 3x3 s2", [] { return MakePooling(64, 112, 3, 2); }});
  // Of detectors: classes of boxes, and which of them are kept.
  cases.push_back({"top 200 of 20x8732", [] { return MakeTopK(20, 8732, 200); }});
  cases.push_back({"non-zero of 80x8732", [] { return MakeNonZero(80, 8732); }});
  if (has_large) AddLargeCases(cases);
  return cases;
}

std::vector<float> Values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k % 251) / 64 - 2;
  return values;
}

std::vector<std::byte> Encode(tensor::ElementType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(tensor::BitWidth(type)) / 8);
  for (size_t k = 0; k < values.size(); ++k) {
    tensor::StoreScalar(type, bytes.data(), static_cast<int64_t>(k), {.f = values[k]});
  }
  return bytes;
}

// In no order, most of them twice.
std::vector<int64_t> Positions(int64_t count) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  for (size_t k = 0; k < positions.size(); ++k) {
    positions[k] = static_cast<int64_t>(k) * 48271 % (count / 2 + 1);
  }
  return positions;
}

// Of the turns of one kernel, in seconds.
class Times {
 public:
  Status Add(const Result<double>& seconds) {
    if (!seconds.ok()) return seconds.status();
    seconds_.push_back(*seconds);
    return base::Ok();
  }
  double best() const { return *std::ranges::min_element(seconds_); }
  double median() const {
    std::vector<double> sorted = seconds_;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
  bool empty() const { return seconds_.empty(); }

 private:
  std::vector<double> seconds_;
};

struct VariantFigures {
  std::string name;
  std::unique_ptr<Prepared> prepared;
  Times times;
};

struct Figures {
  Times own, limit, peer;
  double last_multiply_add = 0;  // seconds, behind the last turn
  std::vector<VariantFigures> variants;
  std::string text;
};

// Devices lower their clocks where they idle, and some raise them only after tenths of a second of
// work: works until that has become no faster for a while. On processors that is soon.
Status WarmUp(Limits& limits) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kSteady = std::chrono::milliseconds(250);
  constexpr auto kLongest = std::chrono::seconds(4);
  constexpr double kFaster = 0.99;
  const auto begin = Clock::now();
  auto best_at = begin;
  double best = std::numeric_limits<double>::infinity();
  while (Clock::now() - best_at < kSteady && Clock::now() - begin < kLongest) {
    ONNXIFI_ASSIGN_OR_RETURN(const double seconds, limits.MultiplyAdd());
    if (seconds < kFaster * best) {
      best = seconds;
      best_at = Clock::now();
    }
  }
  return base::Ok();
}

Result<Figures> Measure(const Subject& subject, const Case& one, int rounds) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Prepared> prepared,
                           Prepared::Create(subject.device, one));
  ONNXIFI_RETURN_IF_ERROR(subject.limits.Reserve(one.bytes));
  ProductPeer* const peer = one.gemm ? subject.peer : nullptr;
  if (peer != nullptr) ONNXIFI_RETURN_IF_ERROR(peer->Reserve(*one.gemm));
  Figures figures;
  figures.text = prepared->Text();
  for (const Variant& variant : subject.variants) {
    if (one.flops == 0) break;
    ONNXIFI_ASSIGN_OR_RETURN(auto other, Prepared::Create(variant.device, one));
    if (other->Text() == figures.text) continue;
    figures.variants.push_back({variant.name, std::move(other), {}});
  }
  // The first turn compiles.
  for (int round = -1; round < rounds; ++round) {
    if (round == 0) {
      ONNXIFI_RETURN_IF_ERROR(WarmUp(subject.limits));
      figures.own = figures.limit = figures.peer = {};
      for (VariantFigures& variant : figures.variants) variant.times = {};
    }
    ONNXIFI_RETURN_IF_ERROR(figures.own.Add(prepared->Run(subject.clock)));
    ONNXIFI_RETURN_IF_ERROR(
        figures.limit.Add(one.flops > 0 ? subject.limits.MultiplyAdd() : subject.limits.Copy()));
    if (peer != nullptr) ONNXIFI_RETURN_IF_ERROR(figures.peer.Add(peer->Multiply()));
    for (VariantFigures& variant : figures.variants) {
      ONNXIFI_RETURN_IF_ERROR(variant.times.Add(variant.prepared->Run(subject.clock)));
    }
  }
  ONNXIFI_ASSIGN_OR_RETURN(figures.last_multiply_add, subject.limits.MultiplyAdd());
  return figures;
}

}  // namespace

Result<double> SecondsOf(const std::function<Status()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  ONNXIFI_RETURN_IF_ERROR(run());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<double> SecondsOn(device::Queue& queue, Clock clock, const std::function<Status()>& put) {
  if (auto* timed = dynamic_cast<device::TimedQueue*>(&queue);
      clock == Clock::kDevice && timed != nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_times, timed->StartTiming());
    if (has_times) {
      timed->OpenInterval();
      const Status status = put();
      timed->CloseInterval();
      ONNXIFI_ASSIGN_OR_RETURN(const auto intervals, timed->TakeIntervals());
      ONNXIFI_RETURN_IF_ERROR(status);
      return std::chrono::duration<double>(intervals.front().duration).count();
    }
  }
  return SecondsOf([&]() -> Status {
    ONNXIFI_RETURN_IF_ERROR(put());
    return queue.Finish();
  });
}

Result<std::unique_ptr<Prepared>> Prepared::Create(device::Device& device, const Case& one) {
  auto prepared = std::make_unique<Prepared>();
  ONNXIFI_ASSIGN_OR_RETURN(prepared->queue_, device.NewQueue());
  std::vector<std::byte*> constants;
  for (const Buffer& buffer : one.program.buffers) {
    const int64_t count = tensor::Product(buffer.shape).constant();
    ONNXIFI_ASSIGN_OR_RETURN(auto held,
                             device.memory().Allocate(count * tensor::BitWidth(buffer.type) / 8));
    const auto fill = [&](const auto& values) -> Status {
      const auto bytes = std::as_bytes(std::span(values));
      ONNXIFI_RETURN_IF_ERROR(
          prepared->queue_->Upload(bytes.data(), held->data(), static_cast<int64_t>(bytes.size())));
      return prepared->queue_->Finish();
    };
    if (buffer.type == tensor::ElementType::kInt64) {
      ONNXIFI_RETURN_IF_ERROR(fill(Positions(count)));
    } else if (tensor::IsFloat(buffer.type)) {
      ONNXIFI_RETURN_IF_ERROR(fill(Encode(buffer.type, Values(count))));
    } else {
      ONNXIFI_RETURN_IF_ERROR(fill(
          std::vector<std::byte>(static_cast<size_t>(count * tensor::BitWidth(buffer.type) / 8))));
    }
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

Result<double> Prepared::Run(Clock clock) {
  return SecondsOn(*queue_, clock, [&] { return bound_->Enqueue(*queue_, addresses_); });
}

std::string Prepared::Text() const {
  const std::string detail = bound_->Detail();
  return implementation_ + (detail.empty() ? "" : ", " + detail);
}

Status RunBenchmark(const Subject& subject, const BenchmarkOptions& options) {
  fmt::print("{}, {}\n", subject.device_name, subject.driver);
  nlohmann::json report = {{"device", subject.device_name},
                           {"driver", subject.driver},
                           {"rounds", options.rounds},
                           {"cases", nlohmann::json::array()}};
  // The clock as multiply-adds show it behind a case, against the fastest so far.
  constexpr double kFullClock = 0.9;
  double fastest_multiply_add = std::numeric_limits<double>::infinity();
  for (const NamedCase& named : ListCases(options.has_large)) {
    if (named.name.find(options.wanted) == std::string::npos) continue;
    const Case one = named.make();
    ONNXIFI_ASSIGN_OR_RETURN(const Figures figures, Measure(subject, one, options.rounds));
    const bool is_of_sums = one.flops > 0;
    const auto bytes = static_cast<double>(one.bytes);
    const double rate = (is_of_sums ? one.flops : bytes) / figures.own.best();
    const double limit = (is_of_sums ? subject.limits.flops() : bytes) / figures.limit.best();
    const bool has_peer = !figures.peer.empty();
    std::string others =
        has_peer ? fmt::format("; {} {:.3f} ms", subject.peer->name(), figures.peer.best() * 1e3)
                 : "";
    for (const VariantFigures& variant : figures.variants) {
      others += fmt::format("; {} {:.3f} ms", variant.name, variant.times.best() * 1e3);
    }
    fastest_multiply_add = std::min(fastest_multiply_add, figures.last_multiply_add);
    const double clock = fastest_multiply_add / figures.last_multiply_add;
    if (clock < kFullClock) others += fmt::format("; clock at {:.0f} %", 100 * clock);
    fmt::print("{:<34} {:>9.3f} ms (median {:.3f}) {:>8.1f} {:<7} {:>5.1f} % of {:.1f}   {}{}\n",
               named.name, figures.own.best() * 1e3, figures.own.median() * 1e3, rate * 1e-9,
               is_of_sums ? "GFLOP/s" : "GB/s", 100 * rate / limit, limit * 1e-9, figures.text,
               others);
    std::fflush(stdout);
    nlohmann::json row = {
        {"case", named.name},
        {"best_ms", figures.own.best() * 1e3},
        {"median_ms", figures.own.median() * 1e3},
        {"bound", is_of_sums ? "multiply-adds" : "copy"},
        {is_of_sums ? "gflops" : "gigabytes_per_s", rate * 1e-9},
        {is_of_sums ? "limit_gflops" : "limit_gigabytes_per_s", limit * 1e-9},
        {"share_of_limit", rate / limit},
        {"median_share_of_limit", rate * figures.own.best() / figures.own.median() *
                                      figures.limit.median() / figures.limit.best() / limit},
        {"implementation", figures.text},
        {"share_of_fastest_clock", clock}};
    if (has_peer) {
      row["peer"] = subject.peer->name();
      row["peer_ms"] = figures.peer.best() * 1e3;
      row["median_peer_ms"] = figures.peer.median() * 1e3;
    }
    for (const VariantFigures& variant : figures.variants) {
      row["variants"].push_back({{"name", variant.name},
                                 {"best_ms", variant.times.best() * 1e3},
                                 {"median_ms", variant.times.median() * 1e3},
                                 {"implementation", variant.prepared->Text()}});
    }
    report["cases"].push_back(std::move(row));
  }
  if (options.json_path.empty()) return base::Ok();
  std::ofstream file(options.json_path);
  file << report.dump(1) << "\n";
  if (!file.flush()) {
    return Status(base::Code::kNoSystemResources, options.json_path + " cannot be written.");
  }
  return base::Ok();
}

BenchmarkOptions ParseOptions(int argument_count, char** arguments, std::string_view description) {
  BenchmarkOptions options;
  CLI::App app{std::string(description)};
  app.add_option("case", options.wanted, "only the cases whose names contain this");
  app.add_flag("--large", options.has_large,
               "also cases whose data no cache holds; seconds each on a processor");
  app.add_option("--rounds", options.rounds, "turns of each kernel")->check(CLI::Range(1, 1000));
  app.add_option("--json", options.json_path, "file for all figures");
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace onnxifi::benchmarks
