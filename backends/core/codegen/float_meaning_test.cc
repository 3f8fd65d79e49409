// SPDX-License-Identifier: Apache-2.0
//
// What operations on floats mean on the device: every triple of telling numbers, zeros of both
// signs, infinities, NaN and subnormals among them, compared bit by bit with what the host computes
// one rounding at a time.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Expr;
using program::ExprOp;
using program::Shape;

class FloatMeaningTest : public TiledTest {};

INSTANTIATE_TEST_SUITE_P(Tunings, FloatMeaningTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) {
                           return info.param ? "Gpu" : "Processor";
                         });

template <typename T>
constexpr ElementType kTypeOf =
    std::is_same_v<T, float> ? ElementType::kFloat32 : ElementType::kFloat64;

template <typename T>
std::vector<T> TellingNumbers() {
  using Limits = std::numeric_limits<T>;
  // The square of 1 + half rounds to 1 + 2 half, and so loses what a fused addition keeps.
  const T half = std::ldexp(T{1}, -(Limits::digits + 1) / 2);
  std::vector<T> numbers = {0,
                            1,
                            Limits::denorm_min(),
                            3 * Limits::denorm_min(),
                            Limits::min() / 2,
                            Limits::min(),
                            Limits::max(),
                            Limits::infinity(),
                            1 + half,
                            1 + 2 * half,
                            T{1} / 3,
                            T{1} / 10,
                            T{3} / 2,
                            T{7} / 2,
                            T{7}};
  const size_t count = numbers.size();
  for (size_t k = 0; k < count; ++k) numbers.push_back(-numbers[k]);
  numbers.push_back(Limits::quiet_NaN());
  return numbers;
}

// One rounding: the host's compiler may not join what passes through here.
template <typename T>
T Rounded(T value) {
  const volatile T rounded = value;
  return rounded;
}

enum class Bound : uint8_t { kExact, kZerosAreEqual, kQuotient, kRoot };

template <typename T>
struct Operation {
  const char* name;
  Bound bound;
  std::function<Expr(Expr a, Expr b, Expr c)> write;
  std::function<T(T a, T b, T c)> compute;
};

template <typename T>
std::vector<Operation<T>> Operations() {
  return {
      {"-a", Bound::kExact, [](Expr a, Expr, Expr) { return -a; }, [](T a, T, T) { return -a; }},
      {"|a|", Bound::kExact, [](Expr a, Expr, Expr) { return Unary(ExprOp::kAbs, a); },
       [](T a, T, T) { return std::fabs(a); }},
      {"a + b", Bound::kExact, [](Expr a, Expr b, Expr) { return a + b; },
       [](T a, T b, T) { return Rounded(a + b); }},
      {"a - b", Bound::kExact, [](Expr a, Expr b, Expr) { return a - b; },
       [](T a, T b, T) { return Rounded(a - b); }},
      {"a * b", Bound::kExact, [](Expr a, Expr b, Expr) { return a * b; },
       [](T a, T b, T) { return Rounded(a * b); }},
      {"a * b + c", Bound::kExact, [](Expr a, Expr b, Expr c) { return a * b + c; },
       [](T a, T b, T c) { return Rounded(Rounded(a * b) + c); }},
      {"c - a * b", Bound::kExact, [](Expr a, Expr b, Expr c) { return c - a * b; },
       [](T a, T b, T c) { return Rounded(c - Rounded(a * b)); }},
      {"max(a, b)", Bound::kZerosAreEqual, [](Expr a, Expr b, Expr) { return Maximum(a, b); },
       [](T a, T b, T) { return std::isnan(a) || a > b ? a : b; }},
      {"round(a)", Bound::kExact, [](Expr a, Expr, Expr) { return Unary(ExprOp::kRoundEven, a); },
       [](T a, T, T) { return std::nearbyint(a); }},
      {"a / b", Bound::kQuotient, [](Expr a, Expr b, Expr) { return a / b; },
       [](T a, T b, T) { return Rounded(a / b); }},
      {"sqrt(a)", Bound::kRoot, [](Expr a, Expr, Expr) { return Unary(ExprOp::kSqrt, a); },
       [](T a, T, T) { return std::sqrt(a); }},
  };
}

template <typename T>
struct Comparison {
  const char* name;
  std::function<Expr(Expr a, Expr b)> write;
  std::function<bool(T a, T b)> compute;
};

// Ordered ones are false of NaN, and unordered ones, which their negations are, true.
template <typename T>
std::vector<Comparison<T>> Comparisons() {
  return {
      {"a < b", [](Expr a, Expr b) { return a < b; }, [](T a, T b) { return std::isless(a, b); }},
      {"a <= b", [](Expr a, Expr b) { return a <= b; },
       [](T a, T b) { return std::islessequal(a, b); }},
      {"a == b", [](Expr a, Expr b) { return a == b; },
       [](T a, T b) { return !std::isunordered(a, b) && !std::islessgreater(a, b); }},
      {"not a < b", [](Expr a, Expr b) { return !(a < b); },
       [](T a, T b) { return !std::isless(a, b); }},
      {"not a <= b", [](Expr a, Expr b) { return !(a <= b); },
       [](T a, T b) { return !std::islessequal(a, b); }},
      {"not a == b", [](Expr a, Expr b) { return !(a == b); },
       [](T a, T b) { return std::isunordered(a, b) || std::islessgreater(a, b); }},
      {"a == a", [](Expr a, Expr) { return a == a; }, [](T a, T) { return !std::isnan(a); }},
      {"is_nan(a)", [](Expr a, Expr) { return Unary(ExprOp::kIsNan, a); },
       [](T a, T) { return std::isnan(a); }},
  };
}

// Every triple, as three reads of a step; the writes are the caller's.
template <typename T>
struct Triples {
  StepMaker make{1};
  std::vector<T> numbers = TellingNumbers<T>();
  int64_t count = static_cast<int64_t>(numbers.size() * numbers.size() * numbers.size());
  std::vector<Expr> reads;

  Triples() {
    for (int k = 0; k < 3; ++k) {
      reads.push_back(make.Read(make.Buffer({count}, kTypeOf<T>)));
      auto* elements = reinterpret_cast<T*>(make.made.buffers.back().mutable_data());
      for (int64_t element = 0; element < count; ++element) elements[element] = At(element)[k];
    }
    make.step.domain = {count};
  }
  std::array<T, 3> At(int64_t element) const {
    const auto at = static_cast<size_t>(element);
    const size_t size = numbers.size();
    return {numbers[at % size], numbers[at / size % size], numbers[at / size / size]};
  }
};

template <typename T>
bool IsSubnormal(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL;
}
template <typename T>
bool IsSpecial(T value) {
  return value == 0 || !std::isfinite(value);
}

// Whether the device may make something else of these operands than the host.
template <typename T>
bool IsFree(const FloatMeaning& meaning, const std::array<T, 3>& of, T product, T expected) {
  const auto any = [&](bool (*is)(T)) {
    return std::ranges::any_of(of, is) || is(product) || is(expected);
  };
  return (!meaning.keeps_subnormals && any(IsSubnormal<T>)) ||
         (!meaning.keeps_specials && any(IsSpecial<T>));
}

// By how many units of the last place `actual` may be off.
double UnitsOf(Bound bound, const FloatMeaning& meaning) {
  if (bound == Bound::kQuotient && !meaning.has_exact_quotients) return 2.5;
  if (bound == Bound::kRoot && !meaning.has_exact_quotients) return 5;
  return 0;
}

template <typename T>
bool IsRight(T actual, T expected, long double exact, Bound bound, double units) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (expected == 0 && bound == Bound::kZerosAreEqual) return actual == 0;
  if (actual == expected) return std::signbit(actual) == std::signbit(expected);
  if (units == 0 || !std::isnormal(expected)) return false;
  const int exponent = std::ilogb(expected) - std::numeric_limits<T>::digits + 1;
  return std::fabs(static_cast<long double>(actual) - exact) <=
         static_cast<long double>(units) * std::ldexp(1.0L, exponent);
}

template <typename T>
void ExpectHostsOperations(device::Device& device, const FloatMeaning& meaning) {
  Triples<T> triples;
  program::Map map;
  std::vector<size_t> outputs;
  const std::vector<Operation<T>> operations = Operations<T>();
  for (const Operation<T>& operation : operations) {
    map.roots.push_back(operation.write(triples.reads[0], triples.reads[1], triples.reads[2]).id());
    triples.make.step.writes.push_back(triples.make.Buffer({triples.count}, kTypeOf<T>));
    outputs.push_back(triples.make.made.buffers.size() - 1);
  }
  triples.make.step.body = std::move(map);
  triples.make.FinishStep(0);
  const auto buffers = RunStep(device, triples.make.made);
  ASSERT_TRUE(buffers.ok()) << buffers.status().Text();
  bool fusing_shows = false;
  for (int64_t element = 0; element < triples.count; ++element) {
    const std::array<T, 3> of = triples.At(element);
    const auto [a, b, c] = of;
    const T product = Rounded(a * b);
    fusing_shows = fusing_shows || std::isless(Rounded(product + c), std::fma(a, b, c));
    for (size_t k = 0; k < operations.size(); ++k) {
      const Operation<T>& operation = operations[k];
      const T expected = operation.compute(a, b, c);
      if (IsFree(meaning, of, product, expected)) continue;
      const T actual = reinterpret_cast<const T*>((*buffers)[outputs[k]].bytes().data())[element];
      const long double exact = operation.bound == Bound::kQuotient
                                    ? static_cast<long double>(a) / static_cast<long double>(b)
                                    : std::sqrt(static_cast<long double>(a));
      ASSERT_TRUE(
          IsRight(actual, expected, exact, operation.bound, UnitsOf(operation.bound, meaning)))
          << operation.name << " is " << actual << " in place of " << expected << " for a = " << a
          << ", b = " << b << ", c = " << c;
    }
  }
  EXPECT_TRUE(fusing_shows);
}

template <typename T>
void ExpectHostsComparisons(device::Device& device, const FloatMeaning& meaning) {
  Triples<T> triples;
  program::Map map;
  std::vector<size_t> outputs;
  const std::vector<Comparison<T>> comparisons = Comparisons<T>();
  for (const Comparison<T>& comparison : comparisons) {
    map.roots.push_back(comparison.write(triples.reads[0], triples.reads[1]).id());
    triples.make.step.writes.push_back(triples.make.Buffer({triples.count}, ElementType::kBool));
    outputs.push_back(triples.make.made.buffers.size() - 1);
  }
  triples.make.step.body = std::move(map);
  triples.make.FinishStep(0);
  const auto buffers = RunStep(device, triples.make.made);
  ASSERT_TRUE(buffers.ok()) << buffers.status().Text();
  for (int64_t element = 0; element < triples.count; ++element) {
    const std::array<T, 3> of = triples.At(element);
    if (IsFree(meaning, of, T{1}, T{1})) continue;
    for (size_t k = 0; k < comparisons.size(); ++k) {
      const auto actual = (*buffers)[outputs[k]].bytes()[static_cast<size_t>(element)];
      ASSERT_EQ(static_cast<int>(actual), comparisons[k].compute(of[0], of[1]) ? 1 : 0)
          << comparisons[k].name << " for a = " << of[0] << ", b = " << of[1];
    }
  }
}

TEST_P(FloatMeaningTest, OperationsOfFloat32RoundOneByOne) {
  ExpectHostsOperations<float>(*device_, tested_->Meaning());
}

TEST_P(FloatMeaningTest, OperationsOfFloat64RoundOneByOne) {
  if (!has_float64_) GTEST_SKIP() << "The device does not compute in float64.";
  ExpectHostsOperations<double>(*device_, tested_->Meaning());
}

TEST_P(FloatMeaningTest, ComparisonsOfFloat32AreOrdered) {
  ExpectHostsComparisons<float>(*device_, tested_->Meaning());
}

TEST_P(FloatMeaningTest, ComparisonsOfFloat64AreOrdered) {
  if (!has_float64_) GTEST_SKIP() << "The device does not compute in float64.";
  ExpectHostsComparisons<double>(*device_, tested_->Meaning());
}

}  // namespace
}  // namespace onnxifi::codegen
