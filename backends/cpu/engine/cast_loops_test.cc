// SPDX-License-Identifier: Apache-2.0
//
// Loops to and from bfloat16 and narrower floats and from floats to integers give what the scalar
// conversion gives, bit for bit, for every number of lanes around a vector, on every instruction
// set of the processor. The scalar conversion is held against the formats' specifications in
// core/tensor/convert_test.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/core/tensor/convert.h"
#include "backends/core/tensor/float_format.h"
#include "backends/core/tensor/truncation.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/loop.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using tensor::Bfloat16Format;
using tensor::ElementType;
using tensor::Float16Format;

constexpr int64_t kMaxLanes = 67;

// Numbers around ties, infinities, the largest ones and NaN, whose only bits may be low, then
// random bits.
std::vector<uint32_t> Codes() {
  std::vector<uint32_t> codes;
  for (const uint32_t upper : {0x0000u, 0x0001u, 0x007fu, 0x3f80u, 0x3f81u, 0x7f7fu, 0x7f80u}) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      for (const uint32_t sign : {0u, 0x80000000u}) codes.push_back(sign | upper << 16 | lower);
    }
  }
  std::mt19937 random(1);
  for (int k = 0; k < 1000; ++k) codes.push_back(static_cast<uint32_t>(random()));
  return codes;
}

template <typename To, typename From>
std::vector<To> Converted(ElementType from_type, ElementType to_type, const From* from,
                          int64_t lanes, bool saturate = true) {
  std::vector<To> result(static_cast<size_t>(lanes) + 1, To(77));
  const Loop loop = FindCastLoop(from_type, to_type);
  EXPECT_NE(loop, nullptr);
  loop({reinterpret_cast<std::byte*>(result.data()),
        {reinterpret_cast<const std::byte*>(from), nullptr, nullptr},
        lanes,
        saturate ? uint64_t{1} : uint64_t{0},
        to_type,
        from_type});
  EXPECT_EQ(result.back(), To(77)) << "written beyond " << lanes << " lanes";
  result.pop_back();
  return result;
}

TEST(CastLoopsTest, ToAndFromBfloat16AsOneByOne) {
  const std::vector<uint32_t> codes = Codes();
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    for (const uint32_t code : codes) {
      wide.push_back(std::bit_cast<float>(code));
      narrow.push_back(static_cast<uint16_t>(code >> 16));
    }
    for (int64_t lanes = 0; lanes <= kMaxLanes; ++lanes) {
      for (size_t first = 0; first + kMaxLanes <= codes.size(); first += 29) {
        const auto rounded = Converted<uint16_t>(ElementType::kFloat32, ElementType::kBfloat16,
                                                 wide.data() + first, lanes);
        const auto widened = Converted<float>(ElementType::kBfloat16, ElementType::kFloat32,
                                              narrow.data() + first, lanes);
        for (size_t k = 0; k < static_cast<size_t>(lanes); ++k) {
          ASSERT_EQ(rounded[k], Bfloat16Format::Encode(wide[first + k])) << codes[first + k];
          ASSERT_EQ(std::bit_cast<uint32_t>(widened[k]), uint32_t{narrow[first + k]} << 16);
        }
      }
    }
  });
}

// Whole vectors of numbers that int32 holds, and others with one that it does not hold.
template <typename From>
std::vector<From> Numbers(size_t count) {
  std::vector<From> numbers;
  std::mt19937 random(2);
  const std::vector<double> rare = {-0.0,
                                    0x1p31,
                                    -0x1p31,
                                    2147483520.0,
                                    -2147483520.0,
                                    0x1p32,
                                    -0x1p40,
                                    0x1.8p63,
                                    0x1p64,
                                    -0x1p70,
                                    std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::quiet_NaN()};
  while (numbers.size() < count) {
    const bool is_rare = random() % 97 == 0;
    const double wide = std::uniform_real_distribution<double>(-2e9, 2e9)(random);
    const double number = is_rare             ? rare[random() % rare.size()]
                          : random() % 2 == 0 ? wide
                                              : wide / 1e7;
    numbers.push_back(static_cast<From>(number));
  }
  return numbers;
}

template <typename From, typename To>
void ExpectTruncated(ElementType from_type, ElementType to_type) {
  const std::vector<From> numbers = Numbers<From>(4000);
  for (int64_t lanes = 0; lanes <= kMaxLanes; ++lanes) {
    for (size_t first = 0; first + kMaxLanes <= numbers.size(); first += 61) {
      const auto found = Converted<To>(from_type, to_type, numbers.data() + first, lanes);
      for (size_t k = 0; k < static_cast<size_t>(lanes); ++k) {
        const auto number = static_cast<double>(numbers[first + k]);
        const To expected = to_type == ElementType::kUint64
                                ? static_cast<To>(tensor::TruncateToUint64(number))
                                : static_cast<To>(tensor::TruncateToInt64(number));
        ASSERT_EQ(found[k], expected) << number;
      }
    }
  }
}

TEST(CastLoopsTest, FloatsAreTruncatedAsOneByOne) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ExpectTruncated<float, int8_t>(ElementType::kFloat32, ElementType::kInt8);
    ExpectTruncated<float, uint16_t>(ElementType::kFloat32, ElementType::kUint16);
    ExpectTruncated<float, int32_t>(ElementType::kFloat32, ElementType::kInt32);
    ExpectTruncated<float, int64_t>(ElementType::kFloat32, ElementType::kInt64);
    ExpectTruncated<float, uint64_t>(ElementType::kFloat32, ElementType::kUint64);
    ExpectTruncated<double, uint8_t>(ElementType::kFloat64, ElementType::kUint8);
    ExpectTruncated<double, int16_t>(ElementType::kFloat64, ElementType::kInt16);
    ExpectTruncated<double, uint32_t>(ElementType::kFloat64, ElementType::kUint32);
    ExpectTruncated<double, int64_t>(ElementType::kFloat64, ElementType::kInt64);
    ExpectTruncated<double, uint64_t>(ElementType::kFloat64, ElementType::kUint64);
  });
}

// Around each number of the format and each midpoint, and Codes(): bit for bit the scalar
// conversion.
template <class Format>
void ExpectNarrowed(ElementType type) {
  std::vector<float> wide;
  for (const uint32_t code : Codes()) wide.push_back(std::bit_cast<float>(code));
  std::vector<uint8_t> codes;
  for (uint32_t code = 0; code < 2 * Format::kSignBit; ++code) {
    codes.push_back(static_cast<uint8_t>(code));
    const float value = Format::Decode(code);
    const float next = Format::Decode(code + 1);
    for (const float x : {value, value * 0.5F + next * 0.5F}) {
      for (const float end :
           {-std::numeric_limits<float>::infinity(), x, std::numeric_limits<float>::infinity()}) {
        wide.push_back(std::nextafter(x, end));
      }
    }
  }
  for (int64_t lanes = 0; lanes <= static_cast<int64_t>(wide.size());
       lanes = lanes < kMaxLanes ? lanes + 1 : lanes * 2) {
    for (const bool saturate : {false, true}) {
      const auto found = Converted<uint8_t>(ElementType::kFloat32, type,
                                            wide.data() + wide.size() - lanes, lanes, saturate);
      for (size_t k = 0; k < found.size(); ++k) {
        const float x = wide[wide.size() - found.size() + k];
        ASSERT_EQ(found[k], Format::Encode(x, saturate)) << x << ", saturate " << saturate;
      }
    }
  }
  const auto back = Converted<float>(type, ElementType::kFloat32, codes.data(),
                                     static_cast<int64_t>(codes.size()));
  for (size_t k = 0; k < codes.size(); ++k) {
    ASSERT_EQ(std::bit_cast<uint32_t>(back[k]), std::bit_cast<uint32_t>(Format::Decode(codes[k])));
  }
}

TEST(CastLoopsTest, ToAndFromFloatsOfEightBitsAndLessAsOneByOne) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ExpectNarrowed<tensor::Float8E4M3FnFormat>(ElementType::kFloat8E4M3Fn);
    ExpectNarrowed<tensor::Float8E4M3FnuzFormat>(ElementType::kFloat8E4M3Fnuz);
    ExpectNarrowed<tensor::Float8E5M2Format>(ElementType::kFloat8E5M2);
    ExpectNarrowed<tensor::Float8E5M2FnuzFormat>(ElementType::kFloat8E5M2Fnuz);
    ExpectNarrowed<tensor::Float6E2M3Format>(ElementType::kFloat6E2M3);
    ExpectNarrowed<tensor::Float6E3M2Format>(ElementType::kFloat6E3M2);
    ExpectNarrowed<tensor::Float4E2M1Format>(ElementType::kFloat4E2M1);
  });
}

// Any bits of the type; of wide ones also those that the first of two roundings would put on a tie
// of the second.
template <typename From>
std::vector<From> BitsOf() {
  std::vector<From> all;
  std::mt19937_64 random(3);
  for (int k = 0; k < 3000; ++k) {
    uint64_t bits = random();
    // Small numbers, too.
    if (k % 3 == 1) bits >>= random() % 60;
    From number;
    std::memcpy(&number, &bits, sizeof(number));
    if constexpr (sizeof(From) == sizeof(double)) {
      if (k % 3 == 2) {
        const double tie = (1 + static_cast<double>(2 * (k % 64) + 1) / (k % 2 == 0 ? 256 : 2048)) *
                           std::ldexp(1.0, k % 40 - 20);
        const double beside = std::is_integral_v<From> ? std::ldexp(tie, 40) : tie;
        number = static_cast<From>(beside + std::ldexp(beside, -45) * (k % 5 - 2));
      }
    }
    all.push_back(number);
  }
  return all;
}

// As tensor::CastScalar, element by element.
template <typename From, typename To>
void ExpectAsScalars(ElementType from_type, ElementType to_type) {
  SCOPED_TRACE(std::string(tensor::Name(from_type)) + " to " + std::string(tensor::Name(to_type)));
  std::vector<From> numbers = BitsOf<From>();
  if constexpr (std::is_same_v<From, uint8_t>) {
    if (from_type == ElementType::kBool) {
      for (From& number : numbers) number = number % 2;
    }
  }
  if (FindCastLoop(from_type, to_type) == nullptr) {
    // What Highway would have to compute.
    EXPECT_TRUE(from_type == ElementType::kFloat16 || to_type == ElementType::kFloat16);
    EXPECT_EQ(FindCastLoop(ElementType::kFloat16, ElementType::kFloat32), nullptr)
        << "The processor converts float16.";
    return;
  }
  for (const int64_t lanes : {0, 1, 7, 64, 511, 512, 513, 2999}) {
    for (const bool saturate : {false, true}) {
      const auto found = Converted<To>(from_type, to_type, numbers.data(), lanes, saturate);
      for (size_t k = 0; k < found.size(); ++k) {
        const tensor::Scalar number =
            tensor::LoadScalar(from_type, reinterpret_cast<const std::byte*>(&numbers[k]), 0);
        const tensor::Scalar cast = tensor::CastScalar(from_type, to_type, number, saturate,
                                                       tensor::Rounding::kNearestEven);
        To expected;
        tensor::StoreScalar(to_type, reinterpret_cast<std::byte*>(&expected), 0, cast);
        const bool is_nan = tensor::IsFloat(to_type) && std::isnan(cast.f);
        if (is_nan) {
          const auto* const bytes = reinterpret_cast<const std::byte*>(&found[k]);
          ASSERT_TRUE(std::isnan(tensor::LoadScalar(to_type, bytes, 0).f)) << k;
        } else {
          ASSERT_EQ(found[k], expected) << k << " of " << lanes;
        }
      }
    }
  }
}

template <typename From>
void ExpectToNarrow(ElementType from_type) {
  for (const ElementType half : {ElementType::kFloat16, ElementType::kBfloat16}) {
    if (half != from_type) ExpectAsScalars<From, uint16_t>(from_type, half);
  }
  ExpectAsScalars<From, uint8_t>(from_type, ElementType::kFloat8E5M2);
}

template <typename From>
void ExpectFromNarrow(ElementType from_type) {
  ExpectAsScalars<From, double>(from_type, ElementType::kFloat64);
  ExpectAsScalars<From, int64_t>(from_type, ElementType::kInt64);
  ExpectAsScalars<From, uint64_t>(from_type, ElementType::kUint64);
  ExpectAsScalars<From, int32_t>(from_type, ElementType::kInt32);
  ExpectAsScalars<From, uint8_t>(from_type, ElementType::kUint8);
  ExpectAsScalars<From, uint8_t>(from_type, ElementType::kBool);
}

TEST(CastLoopsTest, ByWayOfFloat32AsOneByOne) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ExpectToNarrow<double>(ElementType::kFloat64);
    ExpectToNarrow<int64_t>(ElementType::kInt64);
    ExpectToNarrow<uint64_t>(ElementType::kUint64);
    ExpectToNarrow<int32_t>(ElementType::kInt32);
    ExpectToNarrow<uint32_t>(ElementType::kUint32);
    ExpectToNarrow<int16_t>(ElementType::kInt16);
    ExpectToNarrow<uint8_t>(ElementType::kUint8);
    ExpectToNarrow<uint8_t>(ElementType::kBool);
    for (const ElementType half : {ElementType::kFloat16, ElementType::kBfloat16}) {
      ExpectToNarrow<uint16_t>(half);
      ExpectFromNarrow<uint16_t>(half);
    }
    ExpectFromNarrow<uint8_t>(ElementType::kFloat8E4M3Fn);
    ExpectAsScalars<uint8_t, uint16_t>(ElementType::kFloat8E4M3Fn, ElementType::kFloat16);
  });
}

TEST(CastLoopsTest, ToANarrowerFloatAndBackAtOnce) {
  const std::vector<uint32_t> codes = Codes();
  std::vector<float> wide;
  for (const uint32_t code : codes) wide.push_back(std::bit_cast<float>(code));
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const ElementType type : {ElementType::kBfloat16, ElementType::kFloat16}) {
      const Loop loop = FindCastAndBackLoop(type);
      // As the casts themselves.
      ASSERT_EQ(loop == nullptr, FindCastLoop(ElementType::kFloat32, type) == nullptr);
      if (loop == nullptr) continue;
      for (int64_t lanes = 0; lanes <= static_cast<int64_t>(wide.size());
           lanes = lanes < kMaxLanes ? lanes + 1 : lanes * 2) {
        std::vector<float> result(static_cast<size_t>(lanes) + 1, 77.0F);
        loop({reinterpret_cast<std::byte*>(result.data()),
              {reinterpret_cast<const std::byte*>(wide.data()), nullptr, nullptr},
              lanes,
              1,
              ElementType::kFloat32,
              ElementType::kFloat32});
        EXPECT_EQ(result.back(), 77.0F) << "written beyond " << lanes << " lanes";
        for (size_t k = 0; k < static_cast<size_t>(lanes); ++k) {
          const auto x = static_cast<double>(wide[k]);
          const float expected =
              type == ElementType::kBfloat16
                  ? Bfloat16Format::Decode(Bfloat16Format::Encode(wide[k]))
                  : Float16Format::Decode(Float16Format::Encode(wide[k], /*saturate=*/false));
          if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(result[k]));
          } else {
            ASSERT_EQ(std::bit_cast<uint32_t>(result[k]), std::bit_cast<uint32_t>(expected)) << x;
          }
        }
      }
    }
  });
}

// A load and one loop, unless the narrow number is a result, too, or rounded another way.
TEST(CastLoopsTest, CastsAndBackAreOneInstruction) {
  program::ExprPool pool;
  const program::Expr x = Load(pool, ElementType::kFloat32, 0);
  const program::Expr narrow = Cast(x, ElementType::kBfloat16);
  const program::Expr wide = Cast(narrow, ElementType::kFloat32);
  const auto count = [&](std::vector<program::ExprId> roots) {
    return Code::Compile(pool, roots, LoopSet::kFast).varying().size();
  };
  EXPECT_EQ(count({wide.id()}), 2u);
  EXPECT_EQ(count({wide.id(), narrow.id()}), 3u);
  const program::Expr up =
      Cast(x, ElementType::kBfloat16, /*saturate=*/true, tensor::Rounding::kUp);
  EXPECT_EQ(count({Cast(up, ElementType::kFloat32).id()}), 3u);
}

}  // namespace
}  // namespace onnxifi::engine
