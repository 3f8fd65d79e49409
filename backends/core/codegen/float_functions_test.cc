// SPDX-License-Identifier: Apache-2.0
//
// DefineFloatFunctions: the text is compiled as C++ by the compiler of the build, loaded, and
// compared with <cmath> in long double; the same text is valid GLSL.

#include "backends/core/codegen/float_functions.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kArguments = 1'000'000;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Function {
  const char* name;
  long double (*of_one)(long double);
  long double (*of_two)(long double, long double);
  double bound;                      // units in the last place
  double least, most;                // where its arguments usually lie
  std::initializer_list<double> at;  // where its kind or its algorithm changes; none: n pi/2
};

const Function kFunctions[] = {
    {"exp", std::exp, nullptr, 4, -110, 90, {0, 0.3466, -87.34, 88.73, -103.98, 709.8, -745.2}},
    {"expm1", std::expm1, nullptr, 4, -20, 30, {0, 0.3466, 1.04, 40, 88.73, 709.8}},
    {"log", std::log, nullptr, 4, 0, 4, {1, 0.70711, 1.41421, 2}},
    {"log1p", std::log1p, nullptr, 4, -1, 4, {0, -1, 0.41421, -0.29289}},
    {"sin", std::sin, nullptr, 4, -100, 100, {}},
    {"cos", std::cos, nullptr, 4, -100, 100, {}},
    {"tan", std::tan, nullptr, 4, -100, 100, {}},
    {"asin", std::asin, nullptr, 4, -1, 1, {0, 0.5, 1}},
    {"acos", std::acos, nullptr, 4, -1, 1, {0, 0.5, 1}},
    {"atan", std::atan, nullptr, 4, -4, 4, {0, 0.5, 1, 2.414, kInf}},
    {"sinh", std::sinh, nullptr, 4, -90, 90, {0, 0.3466, 1, 89.42, 710.5}},
    {"cosh", std::cosh, nullptr, 4, -90, 90, {0, 1, 89.42, 710.5}},
    {"tanh", std::tanh, nullptr, 4, -10, 10, {0, 0.1733, 0.5493, 9, 20}},
    {"asinh", std::asinh, nullptr, 4, -10, 10, {0, 1, 8192, 268435456}},
    {"acosh", std::acosh, nullptr, 4, 1, 10, {1, 2, 8192, 268435456}},
    {"atanh", std::atanh, nullptr, 4, -1, 1, {0, 0.5, 1}},
    {"erf", std::erf, nullptr, 16, -6, 6, {0, 1, 3.92, 5.92}},
    {"pow", nullptr, std::pow, 16, 0, 10, {0, 0.5, 1, 2, -1, -2}},
    {"fmod", nullptr, std::fmod, 0, -100, 100, {0, 1, 3}},
    {"copysign", nullptr, std::copysign, 0, -10, 10, {0, 1}},
};

std::string CallsOfAll() {
  std::string text;
  for (const Function& function : kFunctions) text += std::string("M_") + function.name + "(";
  return text;
}

// The names of dialect.h that the functions use.
constexpr std::string_view kCppPrelude = R"(
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#define FN static inline
#define AS(type, value) ((type)(value))
#define U64(high, low) ((u64)(high) << 32 | (low))
#define BITS_f32(value) __builtin_bit_cast(u32, (f32)(value))
#define BITS_f64(value) __builtin_bit_cast(u64, (f64)(value))
#define FROM_BITS_f32(bits) __builtin_bit_cast(f32, (u32)(bits))
#define FROM_BITS_f64(bits) __builtin_bit_cast(f64, (u64)(bits))
static inline f32 M_abs(f32 x) { return __builtin_fabsf(x); }
static inline f64 M_abs(f64 x) { return __builtin_fabs(x); }
static inline f32 M_floor(f32 x) { return __builtin_floorf(x); }
static inline f64 M_floor(f64 x) { return __builtin_floor(x); }
static inline f32 M_rint(f32 x) { return __builtin_rintf(x); }
static inline f64 M_rint(f64 x) { return __builtin_rint(x); }
static inline f32 M_sqrt(f32 x) { return __builtin_sqrtf(x); }
static inline f64 M_sqrt(f64 x) { return __builtin_sqrt(x); }
)";

constexpr std::string_view kGlslPrelude = R"(#version 460
#extension GL_EXT_shader_explicit_arithmetic_types : require
#define i32 int
#define u32 uint
#define i64 int64_t
#define u64 uint64_t
#define f32 float
#define f64 double
#define FN
#define AS(type, value) (type(value))
#define U64(high, low) packUint2x32(uvec2(low, high))
#define BITS_f32(value) floatBitsToUint(value)
#define BITS_f64(value) packUint2x32(unpackDouble2x32(value))
#define FROM_BITS_f32(bits) uintBitsToFloat(bits)
#define FROM_BITS_f64(bits) packDouble2x32(unpackUint2x32(bits))
#define M_abs abs
#define M_floor floor
#define M_rint roundEven
#define M_sqrt sqrt
layout(local_size_x = 1) in;
layout(binding = 0) buffer Narrow { f32 of_f32[]; };
)";

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "float_functions.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  // The path of a new file.
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  std::string Read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(path_ / name).rdbuf();
    return text.str();
  }
  // What `command` prints, if it fails.
  testing::AssertionResult Run(const std::string& command) const {
    if (std::system((command + " > " + (path_ / "log").string() + " 2>&1").c_str()) == 0) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << command << "\n" << Read("log");
  }

 private:
  fs::path path_;
};

template <typename T>
using Loop = void (*)(const T* x, const T* y, T* results, int64_t count);

// The functions as a loaded library.
class Library {
 public:
  Library() {
    std::string source = std::string(kCppPrelude) + DefineFloatFunctions(CallsOfAll(), true);
    for (const Function& function : kFunctions) {
      for (const std::string type : {"f32", "f64"}) {
        source += "extern \"C\" void " + std::string(function.name) + "_" + type + "(const " +
                  type + "* x, const " + type + "* y, " + type +
                  "* results, i64 count) {\n  (void)y;\n"
                  "  for (i64 k = 0; k < count; ++k) results[k] = M_" +
                  function.name +
                  (function.of_one != nullptr ? "(x[k]);\n}\n" : "(x[k], y[k]);\n}\n");
      }
    }
    const std::string file = folder_.Write("functions.cc", source);
    const std::string library = file + ".so";
    result_ = folder_.Run(std::string(ONNXIFI_TEST_COMPILER) +
                          " -std=c++20 -O1 -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror"
                          " -ffp-contract=off -fno-fast-math -shared -fPIC -o " +
                          library + " " + file);
    if (result_) image_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~Library() {
    if (image_ != nullptr) dlclose(image_);
  }
  const testing::AssertionResult& result() const { return result_; }
  template <typename T>
  Loop<T> Find(const std::string& name) const {
    void* symbol = dlsym(image_, (name + (sizeof(T) == 4 ? "_f32" : "_f64")).c_str());
    return reinterpret_cast<Loop<T>>(symbol);
  }

 private:
  Folder folder_;
  testing::AssertionResult result_ = testing::AssertionSuccess();
  void* image_ = nullptr;
};

template <typename T>
class Arguments {
 public:
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

  explicit Arguments(const Function& function) : function_(function) {}

  // In turn: any bits, the usual ones, those near special points, small ones.
  T First(int64_t k) {
    switch (k % 4) {
      case 0:
        return std::bit_cast<T>(static_cast<Bits>(random_()));
      case 1:
        return static_cast<T>(Uniform(function_.least, function_.most));
      case 2:
        return Near(SpecialPoint());
      default:
        return Small();
    }
  }
  T Second(int64_t k, T first) {
    switch (random_() % 4) {
      case 0:
        return First(k);
      case 1:
        return static_cast<T>(Uniform(-100, 100));
      case 2:
        return static_cast<T>(static_cast<double>(random_() % 81) / 2 - 20);
      default:  // of powers near the bounds of the type
        return static_cast<T>(Uniform(std::numeric_limits<T>::min_exponent - 1.5 * FLT_MANT_DIG,
                                      std::numeric_limits<T>::max_exponent + 1) /
                              std::log2(std::fabs(static_cast<double>(first))));
    }
  }

 private:
  double Uniform(double least, double most) {
    return least + (most - least) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  T SpecialPoint() {
    const auto sign = static_cast<T>(random_() % 2 == 0 ? 1 : -1);
    if (function_.at.size() != 0)
      return sign * static_cast<T>(function_.at.begin()[random_() % function_.at.size()]);
    const auto turns = static_cast<long double>(random_() >> (24 + random_() % 40));
    return sign * static_cast<T>(turns * 1.5707963267948966192313216916397514L);
  }
  T Near(T point) {
    if (random_() % 2 == 0) {
      return point + static_cast<T>(std::ldexp(Uniform(-1, 1), -static_cast<int>(random_() % 50)));
    }
    const Bits bits = std::bit_cast<Bits>(point) + static_cast<Bits>(random_() % 17) - 8;
    return std::bit_cast<T>(bits);
  }
  // Subnormal, or 2^-k, or 1 + 2^-k.
  T Small() {
    const auto bits = static_cast<Bits>(random_());
    const Bits sign = bits & ~(~Bits{0} >> 1);
    if (random_() % 3 == 0) {
      const int exponent_bits = sizeof(T) == 4 ? 8 : 11;
      return std::bit_cast<T>(sign | (bits << 1) >> (2 + exponent_bits + random_() % 20));
    }
    const auto value = static_cast<T>(
        std::ldexp(Uniform(1, 2), -static_cast<int>(random_() % (sizeof(T) == 4 ? 140 : 300))));
    return (sign != 0 ? -value : value) + static_cast<T>(random_() % 2);
  }

  const Function& function_;
  std::mt19937_64 random_{20};
};

// The distance in units of the last place that `exact` has as a T. What exceeds T counts as the
// power of two above its largest number.
template <typename T>
double Error(T result, long double exact) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(result) || std::isnan(exact)) {
    return std::isnan(result) == std::isnan(exact) ? 0 : kInf;
  }
  if (std::signbit(result) != std::signbit(exact)) return kInf;
  const long double most = std::ldexp(1.0L, Limits::max_exponent);
  const long double value = std::clamp(static_cast<long double>(result), -most, most);
  exact = std::clamp(exact, -most, most);
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = exact == 0 ? Limits::min_exponent
                        : std::clamp(exponent, Limits::min_exponent, Limits::max_exponent);
  return static_cast<double>(std::fabs(value - exact) /
                             std::ldexp(1.0L, exponent - Limits::digits));
}

long double Exact(const Function& function, long double x, long double y) {
  return function.of_one != nullptr ? function.of_one(x) : function.of_two(x, y);
}

template <typename T>
void CheckErrors() {
  const Library library;
  ASSERT_TRUE(library.result());
  for (const Function& function : kFunctions) {
    Arguments<T> arguments(function);
    std::vector<T> x(kArguments);
    std::vector<T> y(kArguments);
    std::vector<T> results(kArguments);
    for (int64_t k = 0; k < kArguments; ++k) {
      x[k] = arguments.First(k);
      if (function.of_two != nullptr) y[k] = arguments.Second(k, x[k]);
    }
    library.Find<T>(function.name)(x.data(), y.data(), results.data(), kArguments);
    double largest = -1;
    int64_t at = 0;
    for (int64_t k = 0; k < kArguments; ++k) {
      const double error = Error(results[k], Exact(function, x[k], y[k]));
      if (error > largest) {
        largest = error;
        at = k;
      }
    }
    std::printf("%-8s %6.3f units, of %.9g, %.9g\n", function.name, largest, double{x[at]},
                double{y[at]});
    EXPECT_LE(largest, function.bound)
        << function.name << "(" << std::hexfloat << x[at] << ", " << y[at] << ") is "
        << Exact(function, x[at], y[at]) << ", not " << results[at];
  }
}

TEST(FloatFunctionsTest, ErrorsOfFloat32AreSmall) { CheckErrors<float>(); }

TEST(FloatFunctionsTest, ErrorsOfFloat64AreSmall) {
  if (LDBL_MANT_DIG < 64) GTEST_SKIP() << "long double is no more exact than double.";
  CheckErrors<double>();
}

struct Special {
  const char* name;
  double x, y;
  double result;
};

const Special kSpecials[] = {
    {"exp", 0, 0, 1},
    {"exp", -0.0, 0, 1},
    {"exp", kInf, 0, kInf},
    {"exp", -kInf, 0, 0},
    {"exp", 1e4, 0, kInf},
    {"exp", -1e4, 0, 0},
    {"expm1", kInf, 0, kInf},
    {"expm1", -kInf, 0, -1},
    {"expm1", 1e4, 0, kInf},
    {"log", 0, 0, -kInf},
    {"log", -0.0, 0, -kInf},
    {"log", 1, 0, 0},
    {"log", -1, 0, kNan},
    {"log", -kInf, 0, kNan},
    {"log", kInf, 0, kInf},
    {"log1p", -1, 0, -kInf},
    {"log1p", -2, 0, kNan},
    {"log1p", -kInf, 0, kNan},
    {"log1p", kInf, 0, kInf},
    {"sin", kInf, 0, kNan},
    {"sin", -kInf, 0, kNan},
    {"cos", 0, 0, 1},
    {"cos", -0.0, 0, 1},
    {"cos", kInf, 0, kNan},
    {"tan", kInf, 0, kNan},
    {"asin", 1.001, 0, kNan},
    {"asin", -kInf, 0, kNan},
    {"acos", 1, 0, 0},
    {"acos", -1.001, 0, kNan},
    {"acos", kInf, 0, kNan},
    {"sinh", kInf, 0, kInf},
    {"sinh", -kInf, 0, -kInf},
    {"cosh", 0, 0, 1},
    {"cosh", kInf, 0, kInf},
    {"cosh", -kInf, 0, kInf},
    {"tanh", kInf, 0, 1},
    {"tanh", -kInf, 0, -1},
    {"asinh", kInf, 0, kInf},
    {"asinh", -kInf, 0, -kInf},
    {"acosh", 1, 0, 0},
    {"acosh", 0.999, 0, kNan},
    {"acosh", -kInf, 0, kNan},
    {"acosh", kInf, 0, kInf},
    {"atanh", 1, 0, kInf},
    {"atanh", -1, 0, -kInf},
    {"atanh", 1.001, 0, kNan},
    {"atanh", -kInf, 0, kNan},
    {"erf", kInf, 0, 1},
    {"erf", -kInf, 0, -1},
    {"pow", kNan, 0, 1},
    {"pow", kNan, -0.0, 1},
    {"pow", 0, 0, 1},
    {"pow", 1, kNan, 1},
    {"pow", 1, kInf, 1},
    {"pow", -1, kInf, 1},
    {"pow", -1, -kInf, 1},
    {"pow", kNan, 1, kNan},
    {"pow", 2, kNan, kNan},
    {"pow", -1, kNan, kNan},
    {"pow", 0, 3, 0},
    {"pow", -0.0, 3, -0.0},
    {"pow", -0.0, 2, 0},
    {"pow", -0.0, 0.5, 0},
    {"pow", 0, -3, kInf},
    {"pow", -0.0, -3, -kInf},
    {"pow", -0.0, -2, kInf},
    {"pow", -0.0, -0.5, kInf},
    {"pow", 0, kInf, 0},
    {"pow", -0.0, -kInf, kInf},
    {"pow", 0.5, kInf, 0},
    {"pow", -0.5, -kInf, kInf},
    {"pow", 2, kInf, kInf},
    {"pow", -2, -kInf, 0},
    {"pow", kInf, 0.5, kInf},
    {"pow", kInf, -0.5, 0},
    {"pow", kInf, -kInf, 0},
    {"pow", -kInf, 3, -kInf},
    {"pow", -kInf, 2, kInf},
    {"pow", -kInf, 0.5, kInf},
    {"pow", -kInf, -3, -0.0},
    {"pow", -kInf, -2, 0},
    {"pow", -8, 1.0 / 3, kNan},
    {"pow", -2, 3, -8},
    {"pow", -2, 2, 4},
    {"pow", -2, -1, -0.5},
    {"pow", -2, 16777217.0 * 2, kInf},
    {"pow", -2, 9999, -kInf},
    {"pow", 10, 1e30, kInf},
    {"pow", 10, -1e30, 0},
    {"pow", 0x1p-149, 1, 0x1p-149},
    {"fmod", 1, 0, kNan},
    {"fmod", 1, -0.0, kNan},
    {"fmod", kInf, 1, kNan},
    {"fmod", -kInf, kInf, kNan},
    {"fmod", kNan, 1, kNan},
    {"fmod", 1, kNan, kNan},
    {"fmod", 5, kInf, 5},
    {"fmod", -5, -kInf, -5},
    {"fmod", 0, 3, 0},
    {"fmod", -0.0, 3, -0.0},
    {"fmod", -0.0, kNan, kNan},
    {"fmod", 6, -3, 0},
    {"fmod", -6, 3, -0.0},
    {"fmod", -5, 3, -2},
    {"fmod", 0x1p127, 0x1.8p-148, 0x1p-149},
    {"copysign", 1, -0.0, -1},
    {"copysign", -kInf, 1, kInf},
    {"copysign", 0, -2, -0.0},
    {"copysign", kNan, -1, kNan},
};

template <typename T>
void CheckSpecials(const Library& library) {
  std::vector<Special> specials(std::begin(kSpecials), std::end(kSpecials));
  for (const Function& function : kFunctions) {
    if (function.of_one == nullptr) continue;
    specials.push_back({function.name, kNan, 0, kNan});
    if (function.of_one(-0.0L) != 0 || std::string_view(function.name) == "log") continue;
    // An odd function: signs of zeros and subnormal numbers remain.
    for (const double x : {0.0, -0.0}) specials.push_back({function.name, x, 0, x});
    if (std::string_view(function.name) == "erf") continue;
    const double least = std::numeric_limits<T>::denorm_min();
    for (const double x : {least, -least}) specials.push_back({function.name, x, 0, x});
  }
  for (const Special& special : specials) {
    const auto x = static_cast<T>(special.x);
    const auto y = static_cast<T>(special.y);
    T result = 99;
    library.Find<T>(special.name)(&x, &y, &result, 1);
    EXPECT_EQ(Error(result, static_cast<long double>(static_cast<T>(special.result))), 0)
        << special.name << "(" << x << ", " << y << ") is " << special.result << ", not " << result;
  }
}

TEST(FloatFunctionsTest, SpecialValuesAreThoseOfC) {
  const Library library;
  ASSERT_TRUE(library.result());
  CheckSpecials<float>(library);
  CheckSpecials<double>(library);
}

TEST(FloatFunctionsTest, TextIsGlsl) {
  const Folder folder;
  if (!folder.Run("glslangValidator --version")) {
    GTEST_SKIP() << "There is no glslangValidator on the PATH.";
  }
  for (const bool has_float64 : {false, true}) {
    std::string text = std::string(kGlslPrelude);
    if (has_float64) text += "layout(binding = 1) buffer Wide { f64 of_f64[]; };\n";
    text += DefineFloatFunctions(CallsOfAll(), has_float64) + "void main() {\n";
    for (const Function& function : kFunctions) {
      for (const std::string array : {"of_f32", "of_f64"}) {
        if (array == "of_f64" && !has_float64) continue;
        text += "  " + array + "[0] = M_" + function.name + "(" + array + "[1]" +
                (function.of_two != nullptr ? ", " + array + "[2]);\n" : ");\n");
      }
    }
    const std::string file = folder.Write("functions.comp", text + "}\n");
    EXPECT_TRUE(folder.Run("glslangValidator --target-env vulkan1.2 -o " + file + ".spv " + file));
  }
}

int64_t CountOf(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FloatFunctionsTest, OnlyWhatIsCalledIsDefined) {
  EXPECT_EQ(DefineFloatFunctions("x = M_sqrt(y) + HM_exp(y) + M_exponent(y);", true), "");
  const std::string tanh = DefineFloatFunctions("x = M_tanh(y) + M_tanh(M_copysign(y, x));", false);
  EXPECT_EQ(CountOf(tanh, " M_tanh(f32"), 1);
  EXPECT_EQ(CountOf(tanh, " M_copysign(f32"), 1);
  EXPECT_THAT(tanh, Not(HasSubstr(" M_exp(")));
  EXPECT_THAT(tanh, Not(HasSubstr("64")));
  EXPECT_THAT(tanh, Not(HasSubstr("$")));
  const std::string wide = DefineFloatFunctions("M_cos(x)", true);
  EXPECT_EQ(CountOf(wide, "FN f32 M_cos("), 1);
  EXPECT_EQ(CountOf(wide, "FN f64 M_cos("), 1);
  EXPECT_EQ(CountOf(wide, "FN u64 quarter_turns("), 1);
}

}  // namespace
}  // namespace onnxifi::codegen
