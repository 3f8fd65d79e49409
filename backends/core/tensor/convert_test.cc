// SPDX-License-Identifier: Apache-2.0
//
// Conversions against a slow definition written from the format specifications (IEEE 754, OCP OFP8
// and MX, and the FNUZ paper): every code decoded with ldexp, every encoding found by a search for
// the nearest code.

#include "backends/core/tensor/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace onnxifi::tensor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A sign-magnitude format by its numbers; `infinity` and the codes of NaN as the specification
// lists them.
struct Specification {
  ElementType type;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
  bool has_negative_zero;
  uint32_t largest_code;  // of the finite positive numbers
};

constexpr std::array<Specification, 9> kSpecifications = {{
    {ElementType::kFloat16, 5, 10, 15, true, true, 0x7bff},
    {ElementType::kBfloat16, 8, 7, 127, true, true, 0x7f7f},
    {ElementType::kFloat8E4M3Fn, 4, 3, 7, false, true, 0x7e},
    {ElementType::kFloat8E4M3Fnuz, 4, 3, 8, false, false, 0x7f},
    {ElementType::kFloat8E5M2, 5, 2, 15, true, true, 0x7b},
    {ElementType::kFloat8E5M2Fnuz, 5, 2, 16, false, false, 0x7f},
    {ElementType::kFloat6E2M3, 2, 3, 1, false, true, 0x1f},
    {ElementType::kFloat6E3M2, 3, 2, 3, false, true, 0x1f},
    {ElementType::kFloat4E2M1, 2, 1, 1, false, true, 0x7},
}};

uint32_t SignBit(const Specification& spec) {
  return 1u << (spec.exponent_bits + spec.mantissa_bits);
}

bool HasNan(const Specification& spec) {
  return !spec.has_negative_zero || spec.largest_code != SignBit(spec) - 1;
}

double SlowMagnitude(const Specification& spec, uint32_t code) {
  const int exponent = static_cast<int>(code >> spec.mantissa_bits);
  const auto mantissa = static_cast<double>(code & ((1u << spec.mantissa_bits) - 1));
  const double fraction = std::ldexp(mantissa, -spec.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - spec.bias)
                       : std::ldexp(1.0 + fraction, exponent - spec.bias);
}

double SlowDecode(const Specification& spec, uint32_t code) {
  const uint32_t magnitude = code & (SignBit(spec) - 1);
  if (!spec.has_negative_zero && code == SignBit(spec)) return std::nan("");
  if (magnitude > spec.largest_code) {
    if (!spec.has_infinity || magnitude != spec.largest_code + 1) return std::nan("");
    return code & SignBit(spec) ? -kInfinity : kInfinity;
  }
  const double value = SlowMagnitude(spec, magnitude);
  return code & SignBit(spec) ? -value : value;
}

// The value after rounding: nearest code by distance, ties to the even code; beyond the midpoint
// between the largest number and the one that would follow it, out of range.
double SlowRound(const Specification& spec, double value, bool saturate) {
  if (std::isnan(value)) return value;
  const double magnitude = std::fabs(value);
  const double largest = SlowMagnitude(spec, spec.largest_code);
  const double next = SlowMagnitude(spec, spec.largest_code + 1);
  double rounded = 0;
  const double midpoint = (largest + next) / 2;
  const bool largest_is_even = spec.largest_code % 2 == 0;
  if (magnitude > midpoint || (magnitude == midpoint && !largest_is_even)) {
    const bool never_saturates =
        spec.type == ElementType::kFloat16 || spec.type == ElementType::kBfloat16;
    if (!HasNan(spec) || (saturate && !never_saturates)) {
      rounded = largest;
    } else {
      rounded = spec.has_infinity ? kInfinity : std::nan("");
    }
  } else {
    // The codes of positive numbers are in order: bisect for the last one not above.
    uint32_t below = 0;
    uint32_t above = spec.largest_code;
    while (above - below > 1) {
      const uint32_t middle = (below + above) / 2;
      (SlowMagnitude(spec, middle) <= magnitude ? below : above) = middle;
    }
    const double distance_below = magnitude - SlowMagnitude(spec, below);
    const double distance_above = SlowMagnitude(spec, above) - magnitude;
    const bool take_below =
        distance_below < distance_above || (distance_below == distance_above && below % 2 == 0);
    rounded = SlowMagnitude(spec, take_below ? below : above);
  }
  return std::signbit(value) ? -rounded : rounded;
}

void ExpectSameValue(double actual, double expected, bool compare_zero_sign,
                     const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " gives " << actual << " instead of NaN";
    return;
  }
  EXPECT_EQ(actual, expected) << what;
  if (compare_zero_sign) {
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << what;
  }
}

TEST(ConvertTest, DecodesEveryCodeOfEveryFormat) {
  for (const Specification& spec : kSpecifications) {
    for (uint32_t code = 0; code < 2 * SignBit(spec); ++code) {
      ExpectSameValue(DecodeFloat(spec.type, code), SlowDecode(spec, code),
                      /*compare_zero_sign=*/true,
                      std::string(Name(spec.type)) + " code " + std::to_string(code));
    }
  }
}

TEST(ConvertTest, EveryFiniteCodeSurvivesARoundTrip) {
  for (const Specification& spec : kSpecifications) {
    for (uint32_t code = 0; code < 2 * SignBit(spec); ++code) {
      const float value = DecodeFloat(spec.type, code);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(EncodeFloat(spec.type, value), code) << Name(spec.type);
      EXPECT_EQ(EncodeDouble(spec.type, value), code) << Name(spec.type);
    }
  }
}

// Around each number of a format and each midpoint: the float32 itself and its two neighbours.
TEST(ConvertTest, RoundsToNearestEvenAroundEveryNumberAndMidpoint) {
  for (const Specification& spec : kSpecifications) {
    const uint32_t step = spec.type == ElementType::kBfloat16 ? 7 : 1;
    for (uint32_t code = 0; code <= spec.largest_code; code += step) {
      const double here = SlowMagnitude(spec, code);
      const double next = SlowMagnitude(spec, code + 1);
      for (const double center : {here, (here + next) / 2}) {
        if (center > std::numeric_limits<float>::max()) continue;
        const auto exact = static_cast<float>(center);
        ASSERT_EQ(exact, center);
        for (const float magnitude :
             {std::nextafterf(exact, 0.f), exact, std::nextafterf(exact, INFINITY)}) {
          for (const float value : {magnitude, -magnitude}) {
            for (const bool saturate : {true, false}) {
              const float actual = DecodeFloat(spec.type, EncodeFloat(spec.type, value, saturate));
              ExpectSameValue(actual, SlowRound(spec, value, saturate), spec.has_negative_zero,
                              std::string(Name(spec.type)) + " of " + std::to_string(value));
            }
          }
        }
      }
    }
  }
}

TEST(ConvertTest, RoundsRandomFloat32BitPatterns) {
  std::mt19937 random(7);
  for (int round = 0; round < 200000; ++round) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const bool saturate = round % 2 == 0;
    for (const Specification& spec : kSpecifications) {
      if (std::isnan(value) && !HasNan(spec)) continue;
      const float actual = DecodeFloat(spec.type, EncodeFloat(spec.type, value, saturate));
      ExpectSameValue(actual, SlowRound(spec, value, saturate), spec.has_negative_zero,
                      std::string(Name(spec.type)) + " of " + std::to_string(value));
    }
  }
}

// A float64 just beside a midpoint rounds wrongly when it goes through float32 to nearest first.
TEST(ConvertTest, RoundsFloat64Once) {
  for (const Specification& spec : kSpecifications) {
    for (uint32_t code = 0; code < spec.largest_code; ++code) {
      const double midpoint = (SlowMagnitude(spec, code) + SlowMagnitude(spec, code + 1)) / 2;
      for (const double value :
           {std::nextafter(midpoint, 0.0), midpoint, std::nextafter(midpoint, kInfinity)}) {
        EXPECT_EQ(DecodeFloat(spec.type, EncodeDouble(spec.type, value)),
                  SlowRound(spec, value, /*saturate=*/true))
            << Name(spec.type) << " of " << value;
      }
    }
  }
}

// As ONNX's own conversion: NaN is a zero of the other sign, infinity the largest number, and 0x20
// and 0x8 are -0.
TEST(ConvertTest, FormatsWithoutNanAndInfinityReplaceThem) {
  for (const Specification& spec : kSpecifications) {
    if (HasNan(spec)) continue;
    for (const bool saturate : {true, false}) {
      const auto encode = [&](float value) { return EncodeFloat(spec.type, value, saturate); };
      EXPECT_EQ(encode(std::copysign(NAN, 1.f)), SignBit(spec)) << Name(spec.type);
      EXPECT_EQ(encode(std::copysign(NAN, -1.f)), 0u) << Name(spec.type);
      EXPECT_EQ(encode(INFINITY), spec.largest_code) << Name(spec.type);
      EXPECT_EQ(encode(-INFINITY), SignBit(spec) | spec.largest_code) << Name(spec.type);
      EXPECT_EQ(encode(-0.f), SignBit(spec)) << Name(spec.type);
      EXPECT_EQ(encode(std::numeric_limits<float>::denorm_min()), 0u) << Name(spec.type);
    }
  }
}

TEST(ConvertTest, E8M0DecodesPowersOfTwo) {
  for (uint32_t code = 0; code < 255; ++code) {
    EXPECT_EQ(DecodeFloat(ElementType::kFloat8E8M0, code),
              std::ldexp(1.0, static_cast<int>(code) - 127));
  }
  EXPECT_TRUE(std::isnan(DecodeFloat(ElementType::kFloat8E8M0, 255)));
}

TEST(ConvertTest, E8M0RoundsByMode) {
  const auto encode = [](float value, Rounding rounding) {
    return static_cast<int>(EncodeFloat(ElementType::kFloat8E8M0, value, true, rounding));
  };
  std::mt19937 random(11);
  for (int round = 0; round < 50000; ++round) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu);
    if (!std::isfinite(value) || value < 0x1p-127f) continue;
    int exponent = 0;
    const double mantissa = 2 * std::frexp(static_cast<double>(value), &exponent);  // [1, 2)
    const int down = exponent - 1 + 127;
    EXPECT_EQ(encode(value, Rounding::kDown), down);
    EXPECT_EQ(encode(value, Rounding::kUp), std::min(down + (mantissa > 1 ? 1 : 0), 254));
    EXPECT_EQ(encode(value, Rounding::kNearest), std::min(down + (mantissa >= 1.5 ? 1 : 0), 254));
  }
}

TEST(ConvertTest, E8M0FollowsOnnxTableOfSpecialValues) {
  const auto encode = [](float value, bool saturate) {
    return EncodeFloat(ElementType::kFloat8E8M0, value, saturate,
                       saturate ? Rounding::kUp : Rounding::kNearest);
  };
  EXPECT_EQ(encode(0.f, true), 0u);
  EXPECT_EQ(encode(0.f, false), 0xffu);
  EXPECT_EQ(encode(INFINITY, true), 0xfeu);
  EXPECT_EQ(encode(INFINITY, false), 0xffu);
  EXPECT_EQ(encode(std::numeric_limits<float>::max(), true), 0xfeu);
  EXPECT_EQ(encode(std::numeric_limits<float>::max(), false), 0xffu);
  EXPECT_EQ(encode(0x1p-140f, true), 0u);
  EXPECT_EQ(encode(0x1p-140f, false), 0xffu);
  EXPECT_EQ(encode(NAN, true), 0xffu);
  EXPECT_EQ(encode(NAN, false), 0xffu);
}

// What ONNX's own conversion gives for the values of its Cast test cases.
TEST(ConvertTest, MatchesOnnxForTheValuesOfItsCastCases) {
  struct Case {
    ElementType type;
    float value;
    bool saturate;
    uint32_t code;
  };
  for (const Case& expected : std::initializer_list<Case>{
           {ElementType::kFloat8E4M3Fn, INFINITY, true, 0x7e},
           {ElementType::kFloat8E4M3Fn, -INFINITY, false, 0xff},
           {ElementType::kFloat8E4M3Fnuz, INFINITY, true, 0x7f},
           {ElementType::kFloat8E4M3Fnuz, -INFINITY, false, 0x80},
           {ElementType::kFloat8E4M3Fnuz, -1e-7f, true, 0x00},
           {ElementType::kFloat8E5M2, 1e6f, true, 0x7b},
           {ElementType::kFloat8E5M2, 1e6f, false, 0x7c},
           {ElementType::kFloat8E5M2Fnuz, -1e6f, false, 0x80},
           {ElementType::kFloat4E2M1, -8.f, false, 0xf},
           {ElementType::kFloat4E2M1, 0.25f, true, 0x0},
           {ElementType::kFloat6E2M3, 7.74f, true, 0x1f},
           {ElementType::kFloat6E2M3, 0.0625f, true, 0x00},
           {ElementType::kFloat6E2M3, -0.1875f, true, 0x22},
           {ElementType::kFloat6E3M2, -1e30f, false, 0x3f},
           {ElementType::kFloat6E3M2, 0.03126f, true, 0x01},
           {ElementType::kFloat6E3M2, 0.09375f, true, 0x02},
           {ElementType::kFloat16, 1e6f, true, 0x7c00},
       }) {
    EXPECT_EQ(EncodeFloat(expected.type, expected.value, expected.saturate), expected.code)
        << Name(expected.type) << " of " << expected.value;
  }
}

TEST(ConvertTest, PackedElementsAreIndependent) {
  for (const ElementType type :
       {ElementType::kUint4, ElementType::kInt4, ElementType::kUint2, ElementType::kInt2}) {
    const int codes = 1 << BitWidth(type);
    std::array<std::byte, 4> data{};
    std::vector<int64_t> expected(static_cast<size_t>(32 / BitWidth(type)), 0);
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
      const size_t index = random() % expected.size();
      int64_t value = static_cast<int64_t>(random() % static_cast<uint32_t>(codes));
      if (IsSigned(type) && value >= codes / 2) value -= codes;
      StoreScalar(type, data.data(), static_cast<int64_t>(index), Scalar{.i = value});
      expected[index] = value;
      for (size_t slot = 0; slot < expected.size(); ++slot) {
        ASSERT_EQ(LoadScalar(type, data.data(), static_cast<int64_t>(slot)).i, expected[slot]);
      }
    }
  }
}

// Of 6 bits, elements 1 and 2 of four lie in two bytes each.
TEST(ConvertTest, PackedFloatsAreIndependent) {
  for (const ElementType type :
       {ElementType::kFloat6E2M3, ElementType::kFloat6E3M2, ElementType::kFloat4E2M1}) {
    constexpr int64_t kCount = 11;
    std::array<std::byte, 10> data{};
    data.fill(std::byte{0xa5});
    for (int64_t index = 0; index < kCount; ++index) {
      StoreScalar(type, data.data(), index, Scalar{.f = 0});
    }
    std::array<double, kCount> expected{};
    std::mt19937 random(3);
    for (int round = 0; round < 2000; ++round) {
      const size_t index = random() % expected.size();
      expected[index] = DecodeFloat(type, static_cast<uint32_t>(random()));
      StoreScalar(type, data.data(), static_cast<int64_t>(index), Scalar{.f = expected[index]});
      for (size_t slot = 0; slot < expected.size(); ++slot) {
        const double loaded = LoadScalar(type, data.data(), static_cast<int64_t>(slot)).f;
        ASSERT_EQ(loaded, expected[slot]) << Name(type);
        ASSERT_EQ(std::signbit(loaded), std::signbit(expected[slot])) << Name(type);
      }
    }
    // Neither the bits behind the last element nor the bytes behind them have changed.
    const int64_t bits = kCount * BitWidth(type);
    EXPECT_EQ(std::to_integer<int>(data[static_cast<size_t>(bits / 8)]) >> bits % 8,
              0xa5 >> bits % 8);
    for (auto at = static_cast<size_t>(bits / 8 + 1); at < data.size(); ++at) {
      EXPECT_EQ(data[at], std::byte{0xa5});
    }
  }
}

TEST(ConvertTest, ElementsOfSixBitsAreABitstream) {
  // Codes 1, 0x3f, 0x15, 0x20 as onnx.proto lays them down, then 3 alone.
  const std::array<uint32_t, 5> codes = {0x01, 0x3f, 0x15, 0x20, 0x03};
  const std::array<std::byte, 4> data = {std::byte{0xc1}, std::byte{0x5f}, std::byte{0x81},
                                         std::byte{0x03}};
  for (const ElementType type : {ElementType::kFloat6E2M3, ElementType::kFloat6E3M2}) {
    std::array<std::byte, 4> stored{};
    for (size_t index = 0; index < codes.size(); ++index) {
      const auto place = static_cast<int64_t>(index);
      const double value = DecodeFloat(type, codes[index]);
      EXPECT_EQ(LoadScalar(type, data.data(), place).f, value) << index;
      StoreScalar(type, stored.data(), place, Scalar{.f = value});
    }
    EXPECT_EQ(stored, data);
  }
}

TEST(ConvertTest, PackedElementsStartInTheLowBits) {
  const std::array<std::byte, 1> data = {std::byte{0xe4}};  // 11 10 01 00
  for (int64_t index = 0; index < 4; ++index) {
    EXPECT_EQ(LoadScalar(ElementType::kUint2, data.data(), index).u, static_cast<uint64_t>(index));
  }
  EXPECT_EQ(LoadScalar(ElementType::kUint4, data.data(), 0).u, 4u);
  EXPECT_EQ(LoadScalar(ElementType::kInt4, data.data(), 1).i, -2);
  EXPECT_EQ(LoadScalar(ElementType::kInt2, data.data(), 3).i, -1);
}

TEST(ConvertTest, StoreAndLoadKeepEveryExtremeOfEveryType) {
  for (int number = 1; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (type == ElementType::kString || IsComplex(type)) continue;
    for (const double extreme : {LargestFinite(type), Lowest(type)}) {
      if (extreme >= 0x1p63) continue;  // int64's and uint64's maximum are not float64 numbers
      std::array<std::byte, 8> data{};
      if (IsFloat(type)) {
        StoreScalar(type, data.data(), 0, Scalar{.f = extreme});
        EXPECT_EQ(LoadScalar(type, data.data(), 0).f, extreme) << Name(type);
      } else {
        StoreScalar(type, data.data(), 0, Scalar{.i = static_cast<int64_t>(extreme)});
        EXPECT_EQ(LoadScalar(type, data.data(), 0).i, static_cast<int64_t>(extreme)) << Name(type);
      }
    }
  }
}

TEST(ConvertTest, CastFromFloatTruncatesAndWraps) {
  const auto cast = [](ElementType to, double value) {
    return CastScalar(ElementType::kFloat64, to, Scalar{.f = value}).i;
  };
  EXPECT_EQ(cast(ElementType::kInt32, -3.99), -3);
  EXPECT_EQ(cast(ElementType::kUint8, 300.7), 44);
  EXPECT_EQ(cast(ElementType::kInt8, 300.7), 44);
  EXPECT_EQ(cast(ElementType::kUint8, -3.7), 253);
  EXPECT_EQ(cast(ElementType::kInt4, 9.0), -7);
  EXPECT_EQ(cast(ElementType::kUint4, -9.0), 7);
  EXPECT_EQ(cast(ElementType::kInt2, 3.0), -1);
  EXPECT_EQ(cast(ElementType::kUint2, -1.0), 3);
  EXPECT_EQ(cast(ElementType::kInt64, 1e300), INT64_MIN);
  EXPECT_EQ(cast(ElementType::kInt32, std::nan("")), 0);
  EXPECT_EQ(cast(ElementType::kBool, std::nan("")), 1);
  EXPECT_EQ(cast(ElementType::kBool, -0.0), 0);
  EXPECT_EQ(CastScalar(ElementType::kFloat64, ElementType::kUint64, Scalar{.f = 0x1.8p63}).u,
            uint64_t{3} << 62);
}

TEST(ConvertTest, CastBetweenIntegersKeepsTheLowBits) {
  for (int64_t value = -70000; value <= 70000; value += 13) {
    const Scalar from{.i = value};
    EXPECT_EQ(CastScalar(ElementType::kInt32, ElementType::kInt8, from).i,
              static_cast<int8_t>(value));
    EXPECT_EQ(CastScalar(ElementType::kInt32, ElementType::kUint16, from).u,
              static_cast<uint16_t>(value));
    EXPECT_EQ(CastScalar(ElementType::kInt32, ElementType::kUint64, from).u,
              static_cast<uint64_t>(value));
    EXPECT_EQ(CastScalar(ElementType::kInt32, ElementType::kUint4, from).u,
              static_cast<uint64_t>(((value % 16) + 16) % 16));
  }
}

// 2^54 + 2^46 + 1 lies just above a bfloat16 midpoint; rounding to float32 first would lose the
// last one.
TEST(ConvertTest, CastFromIntegerRoundsOnce) {
  const int64_t above_midpoint = (int64_t{1} << 54) + (int64_t{1} << 46) + 1;
  EXPECT_EQ(CastScalar(ElementType::kInt64, ElementType::kBfloat16, Scalar{.i = above_midpoint}).f,
            0x1p54 + 0x1p47);
  EXPECT_EQ(CastScalar(ElementType::kInt64, ElementType::kBfloat16, Scalar{.i = -above_midpoint}).f,
            -0x1p54 - 0x1p47);
  EXPECT_EQ(CastScalar(ElementType::kUint64, ElementType::kFloat32, Scalar{.u = UINT64_MAX}).f,
            0x1p64);
  EXPECT_EQ(CastScalar(ElementType::kInt64, ElementType::kFloat32, Scalar{.i = 16777217}).f,
            16777216.0);
  EXPECT_EQ(CastScalar(ElementType::kInt64, ElementType::kFloat16, Scalar{.i = -70000}).f,
            -kInfinity);
}

// Every pair of types: the cast result must be a number of the target, whatever the source.
TEST(ConvertTest, CastResultIsRepresentableInTheTarget) {
  std::mt19937_64 random(5);
  for (int from_number = 1; from_number < kElementTypeCount; ++from_number) {
    for (int to_number = 1; to_number < kElementTypeCount; ++to_number) {
      const auto from = static_cast<ElementType>(from_number);
      const auto to = static_cast<ElementType>(to_number);
      if (from == ElementType::kString || to == ElementType::kString || IsComplex(from) ||
          IsComplex(to)) {
        continue;
      }
      for (int round = 0; round < 200; ++round) {
        std::array<std::byte, 8> source{};
        const uint64_t bits = random();
        std::memcpy(source.data(), &bits, sizeof(bits));
        const Scalar result = CastScalar(from, to, LoadScalar(from, source.data(), 0));
        std::array<std::byte, 8> target{};
        StoreScalar(to, target.data(), 0, result);
        const Scalar loaded = LoadScalar(to, target.data(), 0);
        if (IsFloat(to) && std::isnan(result.f)) {
          EXPECT_TRUE(std::isnan(loaded.f));
        } else if (IsFloat(to)) {
          EXPECT_EQ(loaded.f, result.f) << Name(from) << " -> " << Name(to);
        } else {
          EXPECT_EQ(loaded.u, result.u) << Name(from) << " -> " << Name(to);
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::tensor
