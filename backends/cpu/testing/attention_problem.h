// SPDX-License-Identifier: Apache-2.0
//
// AttentionProblem: for tests: a step of the family Attention on the CPU device beside sums in
// float64 that keep every score.

#ifndef ONNXIFI_BACKENDS_CPU_TESTING_ATTENTION_PROBLEM_H_
#define ONNXIFI_BACKENDS_CPU_TESTING_ATTENTION_PROBLEM_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/tensor/float_format.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {

// Heads of queries lie [batch, queries, groups * members, width], those of keys and values
// [batch, keys, groups, width]; `members` heads of queries share one of keys.
struct AttentionSize {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t members = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t width = 1;
  int64_t values = 1;
};

// Where keys lie.
enum class KeyLayout : uint8_t { kInRows, kInColumns, kApart };

class AttentionProblem {
 public:
  using Expr = program::Expr;
  // The score of a sum of products, at these coordinates.
  using Score =
      std::function<double(double sum, int64_t batch, int64_t head, int64_t query, int64_t key)>;

  AttentionSize size;
  std::vector<float> q, k, v;
  KeyLayout layout = KeyLayout::kInRows;

  AttentionProblem(const AttentionSize& of, uint32_t seed) : size(of), random_(seed) {
    q = Floats(size.batch * size.queries * Heads() * size.width);
    k = Floats(size.batch * size.keys * size.groups * size.width);
    v = Floats(size.batch * size.keys * size.groups * size.values);
  }

  int64_t Heads() const { return size.groups * size.members; }
  std::vector<float> Floats(int64_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = uniform(random_);
    return values;
  }
  // Queries, keys, values and results are of a type of 16 bits.
  void Narrow(tensor::ElementType type) {
    type_ = type;
    for (std::vector<float>* numbers : {&q, &k, &v}) *numbers = Decoded(Encoded(*numbers));
  }
  program::ExprPool& pool() { return program_.exprs; }
  Expr sum() { return program::Accumulator(pool(), tensor::ElementType::kFloat32); }
  Expr query() { return program::Coordinate(pool(), 3); }
  Expr key() { return program::Coordinate(pool(), 4); }
  Expr number(int64_t value) {
    return program::IntConstant(pool(), tensor::ElementType::kInt64, value);
  }

  // Another read over [batch, groups, members, queries, keys]: elements and strides.
  template <typename T>
  Expr Read(tensor::ElementType type, const std::vector<T>& values, program::Dims strides) {
    others_.push_back({AddBuffer(type, values), type, program::Dim(0), std::move(strides), {}, {}});
    return program::Load(pool(), type, 2 + static_cast<int>(others_.size()));
  }

  // The results with this score, [batch, queries, groups * members, values].
  std::vector<float> Run(const Expr& score, int threads = 2) {
    score_ = score;
    return RunBound(threads);
  }
  const std::string& detail() const { return detail_; }

  void Check(const Expr& score, const Score& expected, double factor = 1) {
    const std::vector<float> actual = Run(score);
    Compare(actual, expected, factor);
  }

  // `factor` is what a sum of products is multiplied by at most.
  void Compare(const std::vector<float>& actual, const Score& score, double factor) const {
    constexpr double kUnit = 0x1p-24;
    std::vector<double> weights(static_cast<size_t>(size.keys));
    for (int64_t b = 0; b < size.batch; ++b) {
      for (int64_t head = 0; head < Heads(); ++head) {
        for (int64_t query = 0; query < size.queries; ++query) {
          double largest = -INFINITY, most_products = 0, total = 0;
          for (int64_t key = 0; key < size.keys; ++key) {
            double products = 0;
            const double dot = Dot(b, head, query, key, products);
            most_products = std::max(most_products, products);
            weights[static_cast<size_t>(key)] = score(dot, b, head, query, key);
            largest = std::max(largest, weights[static_cast<size_t>(key)]);
          }
          for (double& weight : weights) {
            weight = std::exp(weight - largest);
            total += weight;
          }
          // A score is off by its sum's roundings, a weight by as much of itself; sums of weights
          // and of weighted values by their own.
          const double bound =
              kUnit * (2 * most_products * factor * (static_cast<double>(size.width) / 4 + 8) +
                       static_cast<double>(size.keys) / 4 + 32);
          for (int64_t value = 0; value < size.values; ++value) {
            double sum = 0, sizes = 0;
            for (int64_t key = 0; key < size.keys; ++key) {
              const double part =
                  weights[static_cast<size_t>(key)] * At(v, VIndex(b, key, head, value));
              sum += part;
              sizes += std::fabs(part);
            }
            const double expected = size.keys == 0 ? 0 : sum / total;
            const double found = At(actual, OutIndex(b, query, head, value));
            if (std::isnan(expected)) {
              ASSERT_TRUE(std::isnan(found)) << found << Place(b, head, query, value);
            } else {
              // Weights of bfloat16 are rounded where the processor multiplies such.
              const bool has_narrow_weights = type_ == tensor::ElementType::kBfloat16;
              const double rounding = std::fabs(expected) * HalfUnit() +
                                      (has_narrow_weights ? HalfUnit() * sizes / total : 0);
              ASSERT_NEAR(found, expected, size.keys == 0 ? 0 : bound * sizes / total + rounding)
                  << Place(b, head, query, value);
            }
          }
        }
      }
    }
  }

  size_t VIndex(int64_t b, int64_t key, int64_t head, int64_t value) const {
    return static_cast<size_t>(
        ((b * size.keys + key) * size.groups + head / size.members) * size.values + value);
  }
  size_t KIndex(int64_t b, int64_t key, int64_t head, int64_t c) const {
    return static_cast<size_t>(
        ((b * size.keys + key) * size.groups + head / size.members) * size.width + c);
  }
  size_t QIndex(int64_t b, int64_t query, int64_t head, int64_t c) const {
    return static_cast<size_t>(((b * size.queries + query) * Heads() + head) * size.width + c);
  }
  size_t OutIndex(int64_t b, int64_t query, int64_t head, int64_t value) const {
    return static_cast<size_t>(((b * size.queries + query) * Heads() + head) * size.values + value);
  }

 private:
  static double At(const std::vector<float>& values, size_t index) {
    return static_cast<double>(values[index]);
  }
  static std::string Place(int64_t b, int64_t head, int64_t query, int64_t value) {
    return " at batch " + std::to_string(b) + ", head " + std::to_string(head) + ", query " +
           std::to_string(query) + ", value " + std::to_string(value);
  }
  double Dot(int64_t b, int64_t head, int64_t query, int64_t key, double& products) const {
    double sum = 0;
    for (int64_t c = 0; c < size.width; ++c) {
      const double product = At(q, QIndex(b, query, head, c)) * At(k, KIndex(b, key, head, c));
      sum += product;
      products += std::fabs(product);
    }
    return sum;
  }

  bool IsNarrow() const { return type_ != tensor::ElementType::kFloat32; }
  // By which a result is off where it is rounded.
  double HalfUnit() const {
    if (!IsNarrow()) return 0;
    return type_ == tensor::ElementType::kFloat16 ? 0x1p-11 : 0x1p-8;
  }
  std::vector<uint16_t> Encoded(const std::vector<float>& numbers) const {
    std::vector<uint16_t> codes;
    for (const float number : numbers) {
      codes.push_back(static_cast<uint16_t>(type_ == tensor::ElementType::kFloat16
                                                ? tensor::Float16Format::Encode(number, true)
                                                : tensor::Bfloat16Format::Encode(number)));
    }
    return codes;
  }
  std::vector<float> Decoded(const std::vector<uint16_t>& codes) const {
    std::vector<float> numbers;
    for (const uint16_t code : codes) {
      numbers.push_back(type_ == tensor::ElementType::kFloat16
                            ? tensor::Float16Format::Decode(code)
                            : tensor::Bfloat16Format::Decode(code));
    }
    return numbers;
  }
  program::BufferId AddNumbers(const std::vector<float>& numbers) {
    return IsNarrow() ? AddBuffer(type_, Encoded(numbers)) : AddBuffer(type_, numbers);
  }

  template <typename T>
  program::BufferId AddBuffer(tensor::ElementType type, const std::vector<T>& values) {
    program::Buffer buffer;
    buffer.type = type;
    buffer.shape = {static_cast<int64_t>(values.size())};
    std::vector<std::byte> bytes(std::max<size_t>(1, values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
    data_.push_back(std::move(bytes));
    return program_.AddBuffer(std::move(buffer));
  }

  // Keys as they lie for the step, and their strides over [batch, groups, members, width, keys].
  std::pair<std::vector<float>, program::Dims> LaidOutKeys() const {
    const auto& [batch, groups, members, queries, keys, width, values] = size;
    if (layout == KeyLayout::kInRows) {
      return {k, {keys * groups * width, width, 0, 1, groups * width}};
    }
    // [batch, groups, width, keys], with an element between two keys if they are apart.
    const int64_t step = layout == KeyLayout::kApart ? 2 : 1;
    std::vector<float> laid_out(k.size() * static_cast<size_t>(step), -5.0F);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t g = 0; g < groups; ++g) {
        for (int64_t c = 0; c < width; ++c) {
          for (int64_t key = 0; key < keys; ++key) {
            laid_out[static_cast<size_t>((((b * groups + g) * width + c) * keys + key) * step)] =
                k[KIndex(b, key, g * members, c)];
          }
        }
      }
    }
    return {laid_out, {groups * width * keys * step, width * keys * step, 0, keys * step, step}};
  }

  std::vector<float> RunBound(int threads) {
    using tensor::ElementType;
    const auto& [batch, groups, members, queries, keys, width, values] = size;
    program::Step step;
    const auto view = [this](program::BufferId buffer, program::Dims strides) {
      return program::View{buffer, type_, program::Dim(0), std::move(strides), {}, {}};
    };
    const int64_t heads = Heads();
    step.reads.push_back(
        view(AddNumbers(q), {queries * heads * width, members * width, width, heads * width, 1}));
    auto [laid_out, strides] = LaidOutKeys();
    step.reads.push_back(view(AddNumbers(laid_out), std::move(strides)));
    step.reads.push_back(
        view(AddNumbers(v), {keys * groups * values, values, 0, groups * values, 1}));
    for (const program::View& other : others_) step.reads.push_back(other);
    const std::vector<float> untouched(static_cast<size_t>(batch * queries * heads * values), -7);
    step.writes.push_back(view(AddNumbers(untouched), {queries * heads * values, members * values,
                                                       values, heads * values, 1}));
    step.domain = {batch, groups, members, queries, values};
    program::Attention attention;
    attention.keys = keys;
    attention.width = width;
    attention.query_prologue = Cast(Load(pool(), type_, 0), ElementType::kFloat32).id();
    attention.key_prologue = Cast(Load(pool(), type_, 1), ElementType::kFloat32).id();
    attention.value_prologue = Cast(Load(pool(), type_, 2), ElementType::kFloat32).id();
    attention.score = score_.id();
    attention.roots = {Cast(sum(), type_).id()};
    step.body = std::move(attention);

    base::Result<std::unique_ptr<Device>> device = Device::Create(
        std::make_shared<threads::ThreadPool>(threads), base::Log(base::LogLevel::kWarning));
    EXPECT_TRUE(device.ok()) << device.status().Text();
    base::Result<device::Selection> selection = (*device)->Select({program_, step});
    EXPECT_TRUE(selection.ok()) << selection.status().Text();
    EXPECT_EQ(selection->recipe->implementation(), "attention");
    base::Result<std::unique_ptr<device::Kernel>> kernel = (*device)->Build(*selection->recipe);
    EXPECT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> addresses;
    for (std::vector<std::byte>& buffer : data_) addresses.push_back(buffer.data());
    const std::vector<std::byte*> constants(addresses.size(), nullptr);
    const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
    base::Result<std::unique_ptr<device::BoundKernel>> bound =
        (*kernel)->Bind(device::Bind(program_, step, dims), constants);
    EXPECT_TRUE(bound.ok()) << bound.status().Text();
    detail_ = (*bound)->Detail();
    // The second run finds memory that the first one left.
    for (int run = 0; run < 2; ++run) {
      const base::Status status = (*bound)->Run(addresses);
      EXPECT_TRUE(status.ok()) << status.Text();
    }
    const std::byte* const results = data_[static_cast<size_t>(step.writes[0].buffer)].data();
    if (IsNarrow()) {
      std::vector<uint16_t> codes(untouched.size());
      if (!codes.empty()) std::memcpy(codes.data(), results, codes.size() * sizeof(uint16_t));
      return Decoded(codes);
    }
    std::vector<float> out(untouched.size());
    if (!out.empty()) std::memcpy(out.data(), results, out.size() * sizeof(float));
    return out;
  }

  tensor::ElementType type_ = tensor::ElementType::kFloat32;
  std::mt19937 random_;
  program::Program program_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<program::View> others_;
  Expr score_;
  std::string detail_;
};

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_TESTING_ATTENTION_PROBLEM_H_
