// SPDX-License-Identifier: Apache-2.0
//
// One template per function serves both types. In it, $T is the type, $U and $I are the integers of
// its width, $[a|b] is a for f32 and b for f64, $(a) and $(a|b) are literals of the type and
// $poly(name, z) is a polynomial of float_polynomials.h. "Exact" means without a rounding.

#include "backends/core/codegen/float_functions.h"

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>

#include "backends/core/codegen/float_polynomials.h"

namespace onnxifi::codegen {
namespace {

struct Template {
  std::string_view name;
  std::string_view text;
};

// Numbers that templates name. Where a number has a high and a low part, the products of the high
// one with exponents are exact; a number and its low part alone are its nearest value and the rest.
constexpr Template kWords[] = {{"T", "$[f32|f64]"},
                               {"U", "$[u32|u64]"},
                               {"I", "$[i32|i64]"},
                               {"BIAS", "$[127|1023]"},
                               {"DIGITS", "$[23|52]"},
                               {"FRACTION", "$[0x7fffffu|U64(0xfffffu, 0xffffffffu)]"},
                               {"HIDDEN", "$[0x800000u|U64(0x100000u, 0x0u)]"},
                               {"MAGNITUDE", "$[0x7fffffffu|U64(0x7fffffffu, 0xffffffffu)]"},
                               {"LN_2", "$(0x1.62e43p-1|0x1.62e42fefa39efp-1)"},
                               {"LN_2_HIGH", "$(0x1.62e4p-1|0x1.62e42fefa38p-1)"},
                               {"LN_2_LOW", "$(0x1.7f7d1cp-20|0x1.ef35793c7673p-45)"},
                               {"LOG_2_E", "$(0x1.715476p+0|0x1.71547652b82fep+0)"},
                               {"TWO_THIRDS", "$(0x1.555556p-1|0x1.5555555555555p-1)"},
                               {"TWO_THIRDS_LOW", "$(-0x1.555556p-26|0x1.5555555555555p-55)"},
                               {"HALF_PI", "$(0x1.921fb6p+0|0x1.921fb54442d18p+0)"},
                               {"HALF_PI_LOW", "$(-0x1.777a5cp-25|0x1.1a62633145c07p-54)"},
                               {"TWO_OVER_PI", "$(0x1.45f306p-1|0x1.45f306dc9c883p-1)"}};

// Each calls only those before it.
constexpr Template kTemplates[] = {
    {"M_copysign", R"(
FN $T M_copysign($T x, $T sign) {
  return FROM_BITS_$T((BITS_$T(x) & $MAGNITUDE) | (BITS_$T(sign) & ~$MAGNITUDE));
}
)"},
    // x 2^e in two steps: the first is exact where the product is subnormal.
    {"times_power_of_2", R"(
FN $T times_power_of_2($T x, int e) {
  int part = e >> 1;
  return x * FROM_BITS_$T(AS($U, part + $BIAS) << $DIGITS) *
         FROM_BITS_$T(AS($U, e - part + $BIAS) << $DIGITS);
}
)"},
    // a b - product, where product is a b rounded: products of halves of the digits are exact.
    {"product_error", R"(
FN $T product_error($T a, $T b, $T product) {
  $T a_high = FROM_BITS_$T(BITS_$T(a) & $[0xfffff000u|U64(0xffffffffu, 0xf8000000u)]);
  $T b_high = FROM_BITS_$T(BITS_$T(b) & $[0xfffff000u|U64(0xffffffffu, 0xf8000000u)]);
  $T a_low = a - a_high;
  $T b_low = b - b_high;
  return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
}
)"},
    // r of x = k ln 2 + r. The first product and difference are exact.
    {"exp_rest", R"(
FN $T exp_rest($T x, $T k) { return (x - k * $LN_2_HIGH) - k * $LN_2_LOW; }
)"},
    {"expm1_near_0", R"(
FN $T expm1_near_0($T r) { return r + r * (r * $poly(exp, r)); }
)"},
    // 2^shift e^(x + low) for small low. Beyond the bounds of x it is infinite or 0.
    {"exp_scaled", R"(
FN $T exp_scaled($T x, $T low, int shift) {
  if (x != x) return x;
  $T y = x > $(100|800) ? $(100|800) : x < $(-120|-800) ? $(-120|-800) : x;
  $T k = M_rint(y * $LOG_2_E);
  return times_power_of_2(1 + expm1_near_0(exp_rest(y, k) + low), AS(int, k) + shift);
}
)"},
    {"M_exp", R"(
FN $T M_exp($T x) { return exp_scaled(x, $(0), 0); }
)"},
    // Of |x| <= 40: 2^k is finite. For NaN, k is any number.
    {"expm1_within_40", R"(
FN $T expm1_within_40($T x) {
  $T k = M_rint(x * $LOG_2_E);
  $T power = FROM_BITS_$T(AS($U, AS(int, k) + $BIAS) << $DIGITS);
  return power * expm1_near_0(exp_rest(x, k)) + (power - 1);
}
)"},
    {"M_expm1", R"(
FN $T M_expm1($T x) {
  if (M_abs(x) < 40) return M_copysign(expm1_within_40(x), x);
  return exp_scaled(x, $(0), 0) - 1;
}
)"},
    {"M_sinh", R"(
FN $T M_sinh($T x) {
  $T a = M_abs(x);
  if (a < 1) {
    $T t = expm1_within_40(a);
    return M_copysign((t + t / (t + 1)) * $(0.5), x);
  }
  $T e = exp_scaled(a, $(0), -1);
  return M_copysign(e - $(0.25) / e, x);
}
)"},
    {"M_cosh", R"(
FN $T M_cosh($T x) {
  $T e = exp_scaled(M_abs(x), $(0), -1);
  return e + $(0.25) / e;
}
)"},
    {"M_tanh", R"(
FN $T M_tanh($T x) {
  $T a = M_abs(x);
  $T t = expm1_within_40(2 * (a > 20 ? $(20) : a));
  bool is_small = t < 2;
  $T y = (is_small ? t : $(2)) / (t + 2);
  return M_copysign(is_small ? y : 1 - y, x);
}
)"},
    {"M_erf", R"(
FN $T M_erf($T x) {
  $T a = M_abs(x);
  $T z = a * a;
  if (a < 1) return x + x * $poly(erf, z);
  $T t = (a > $(4|6) ? $(4|6) : a) - $(2.5|3.5);
  return M_copysign(1 - exp_scaled(-$poly(erfc, t), $(0), 0), x);
}
)"},
    // k of x = 2^k m, m between the roots of 1/2 and 2, of a normal x.
    {"log_exponent", R"(
FN int log_exponent($T x) {
  return AS(int, AS($I, BITS_$T(x) - $[0x3f3504f3u|U64(0x3fe6a09eu, 0x667f3bcdu)]) >> $DIGITS);
}
)"},
    // m of the same.
    {"log_fraction", R"(
FN $T log_fraction($T x, int k) {
  return FROM_BITS_$T(BITS_$T(x) - (AS($U, AS($I, k)) << $DIGITS));
}
)"},
    // ln(2^k m) + low. With f = m - 1 and s = f / (2 + f), ln m = 2 atanh(s) = f - s (f - series).
    {"log_sum", R"(
FN $T log_sum($T m, $T k, $T low) {
  $T f = m - 1;
  $T s = f / (2 + f);
  $T z = s * s;
  $T series = z * ($TWO_THIRDS + z * $poly(log, z));
  return k * $LN_2_HIGH + (f - (s * (f - series) - (k * $LN_2_LOW + low)));
}
)"},
    {"M_log", R"(
FN $T M_log($T x) {
  if (!(x > 0)) return x == 0 ? $(-inf) : $(nan);
  if (x == $(inf)) return x;
  bool is_small = x < $(0x1p-126|0x1p-1022);
  $T y = is_small ? x * $(0x1p+64) : x;
  int k = log_exponent(y);
  return log_sum(log_fraction(y, k), AS($T, is_small ? k - 64 : k), $(0));
}
)"},
    // 1 + x is u + low without error, and ln(u + low) is ln(u) + low / u.
    {"M_log1p", R"(
FN $T M_log1p($T x) {
  if (!(x > -1)) return x == -1 ? $(-inf) : $(nan);
  if (x == $(inf)) return x;
  $T u = 1 + x;
  $T rest = u - 1;
  $T low = (1 - (u - rest)) + (x - rest);
  int k = log_exponent(u);
  return M_copysign(log_sum(log_fraction(u, k), AS($T, k), low / u), x);
}
)"},
    {"M_asinh", R"(
FN $T M_asinh($T x) {
  $T a = M_abs(x);
  $T z = a * a;
  $T y = a > $(0x1p+13|0x1p+28) ? M_log(a) + $LN_2 : M_log1p(a + z / (1 + M_sqrt(z + 1)));
  return M_copysign(y, x);
}
)"},
    {"M_acosh", R"(
FN $T M_acosh($T x) {
  if (!(x >= 1)) return $(nan);
  if (x > $(0x1p+13|0x1p+28)) return M_log(x) + $LN_2;
  $T t = x - 1;
  return M_log1p(t + M_sqrt(t * (t + 2)));
}
)"},
    {"M_atanh", R"(
FN $T M_atanh($T x) {
  $T a = M_abs(x);
  if (!(a < 1)) return a == 1 ? M_copysign($(inf), x) : $(nan);
  return M_copysign($(0.5) * M_log1p(2 * a + 2 * a * a / (1 - a)), x);
}
)"},
    // e^(y ln |x|), the logarithm and its product in two pieces: s + s_low is f / (2 + f) and
    // l + l_low = s (2 + z (2/3 + ...)) the logarithm of the fraction.
    {"M_pow", R"(
FN $T M_pow($T x, $T y) {
  if (y == 0 || x == 1) return $(1);
  if (x != x || y != y) return $(nan);
  bool is_whole = M_floor(y) == y;
  $T half_y = $(0.5) * y;
  bool is_odd = is_whole && M_floor(half_y) != half_y;
  $T sign = is_odd ? x : $(1);
  $T a = M_abs(x);
  $T exponent = M_abs(y);
  if (a == 1 && exponent == $(inf)) return $(1);
  if (a == 0 || a == $(inf) || exponent == $(inf)) {
    return M_copysign((a < 1) == (y > 0) ? $(0) : $(inf), sign);
  }
  if (x < 0 && !is_whole) return $(nan);
  // Whatever |x| is, but 1, larger exponents mean no more.
  exponent = exponent > $(0x1p+40|0x1p+70) ? $(0x1p+40|0x1p+70) : exponent;
  bool is_small = a < $(0x1p-126|0x1p-1022);
  a = is_small ? a * $(0x1p+64) : a;
  int e = log_exponent(a);
  $T m = log_fraction(a, e);
  $T k = AS($T, is_small ? e - 64 : e);
  $T f = m - 1;
  $T d = m + 1;
  $T d_low = m - (d - 1);
  $T s = f / d;
  $T product = s * d;
  $T s_low = ((f - product) - product_error(s, d, product) - s * d_low) / d;
  $T z = s * s;
  $T z_low = product_error(s, s, z) + 2 * s * s_low;
  $T series = z * $poly(log, z);
  $T w = $TWO_THIRDS + series;
  $T w_low = ($TWO_THIRDS - w) + series + $TWO_THIRDS_LOW;
  $T u = z * w;
  $T u_low = product_error(z, w, u) + z * w_low + z_low * w;
  $T v = 2 + u;
  $T v_low = (2 - v) + u + u_low;
  $T l = s * v;
  $T l_low = product_error(s, v, l) + s * v_low + s_low * v;
  $T whole = k * $LN_2_HIGH;
  $T sum = whole + l;
  $T sum_low = (whole - sum) + l + (k * $LN_2_LOW + l_low);
  $T power = y < 0 ? -exponent : exponent;
  $T at = power * sum;
  $T at_low = M_abs(at) < 1000 ? product_error(power, sum, at) + power * sum_low : $(0);
  return M_copysign(exp_scaled(at, at_low, 0), sign);
}
)"},
    // 27 digits of 2/pi behind digit `at`; those before the point are zeros.
    {"two_over_pi_digits", R"(
FN u64 two_over_pi_digits(int at) {
  int word = at >> 5;
  u64 words = U64(two_over_pi(word), two_over_pi(word + 1));
  return (words >> (37 - (at & 31))) & AS(u64, 0x7ffffffu);
}
)"},
    // m 2^e 2/pi modulo 4, m < 2^54: the first 64 binary digits, 2 of them before the point, or the
    // 64 next. Digits of 2/pi that make multiples of 4 are left out; 27 count in each round, the
    // last ones first.
    {"quarter_turns", R"(
FN u64 quarter_turns(u64 m, int e, int rounds, bool is_next) {
  u64 m_high = m >> 27;
  u64 m_low = m & AS(u64, 0x7ffffffu);
  u64 sum = AS(u64, 0);
  u64 first = AS(u64, 0);
  u64 next = AS(u64, 0);
  u64 previous = AS(u64, 0);
  for (int i = rounds - 1; i >= 0; --i) {
    u64 digits = two_over_pi_digits(e - 2 + 27 * i);
    sum = (sum >> 27) + m_low * digits + m_high * previous;
    next = (next >> 27) | (first << 37);
    first = (first >> 27) | (sum << 37);
    previous = digits;
  }
  return is_next ? next : first;
}
)"},
    // 0: sin, 1: cos, 2: tan. x is n quarter turns and r. For small x, pi/2 comes in three pieces,
    // and the products with n <= 2^8 (f64: 2^10) are exact but for the last. For others, t and
    // t_low are the digits behind the point, of which t takes as many as are exact.
    {"trigonometric", R"(
FN $T trigonometric($T x, int which) {
  $T a = M_abs(x);
  if (!(a < $(inf))) return $(nan);
  if (which != 1 && a < $(0x1p-13|0x1p-27)) return x;
  int n = 0;
  $T r = x;
  if (a < $(400|1600)) {
    $T k = M_rint(x * $TWO_OVER_PI);
    n = AS(int, k);
    $T high = x - k * $(0x1.921ep+0|0x1.921fb54442cp+0);
    $T product = k * $(0x1.b544p-16|0x1.18469898cc4p-44);
    r = high - product;
    r += ((high - r) - product) - k * $(0x1.0b4612p-34|0x1.1701b839a252p-88);
  } else {
    $U bits = BITS_$T(a);
    int e = AS(int, bits >> $DIGITS) - ($BIAS + $DIGITS);
    u64 m = AS(u64, (bits & $FRACTION) | $HIDDEN);
    u64 turns = quarter_turns(m, e, $[4|7], false);
    u64 nearest = (turns + U64(0x20000000u, 0x0u)) >> 62;
    i64 rest = AS(i64, turns - (nearest << 62));
    i64 rest_low = rest & AS(i64, $[U64(0x1fu, 0xffffffffu)|0xff]);
    $T t = AS($T, rest - rest_low);
    $T t_low = AS($T, rest_low);
    $[|t_low += AS(f64, quarter_turns(m, e, 7, true)) * $(0x1p-64);]
    $T product = t * $HALF_PI;
    r = product + (product_error(t, $HALF_PI, product) + t * $HALF_PI_LOW + t_low * $HALF_PI);
    r *= $(0x1p-62);
    n = AS(int, nearest);
    if (x < 0) {
      n = -n;
      r = -r;
    }
  }
  $T z = r * r;
  $T s = r + r * (z * $poly(sin, z));
  $T c = 1 - (z * $(0.5) - z * z * $poly(cos, z));
  bool is_odd = (n & 1) != 0;
  if (which == 2) return is_odd ? -c / s : s / c;
  $T y = is_odd == (which == 0) ? c : s;
  return ((n + which) & 2) != 0 ? -y : y;
}
)"},
    {"M_sin", R"(
FN $T M_sin($T x) { return trigonometric(x, 0); }
)"},
    {"M_cos", R"(
FN $T M_cos($T x) { return trigonometric(x, 1); }
)"},
    {"M_tan", R"(
FN $T M_tan($T x) { return trigonometric(x, 2); }
)"},
    // atan(a) is atan(t) + 0, pi/4 or pi/2.
    {"M_atan", R"(
FN $T M_atan($T x) {
  $T a = M_abs(x);
  bool is_far = a > $(2.414);
  bool is_middle = a > $(0.5);
  $T t = (is_far ? $(-1) : is_middle ? a - 1 : a) / (is_far ? a : is_middle ? a + 1 : $(1));
  $T part = is_far ? $(1) : is_middle ? $(0.5) : $(0);
  $T z = t * t;
  $T low = t * (z * $poly(atan, z)) + part * $HALF_PI_LOW;
  return M_copysign(part * $HALF_PI + (t + low), x);
}
)"},
    {"asin_near_0", R"(
FN $T asin_near_0($T s, $T z) { return s + s * (z * $poly(asin, z)); }
)"},
    // asin(a) = pi/2 - 2 asin(root of (1 - a) / 2).
    {"M_asin", R"(
FN $T M_asin($T x) {
  $T a = M_abs(x);
  if (a > 1) return $(nan);
  if (a < $(0.5)) return M_copysign(asin_near_0(a, a * a), x);
  $T z = (1 - a) * $(0.5);
  $T y = 2 * asin_near_0(M_sqrt(z), z) - $HALF_PI_LOW;
  return M_copysign($HALF_PI - y, x);
}
)"},
    {"M_acos", R"(
FN $T M_acos($T x) {
  $T a = M_abs(x);
  if (a > 1) return $(nan);
  bool is_middle = a < $(0.5);
  $T z = is_middle ? a * a : (1 - a) * $(0.5);
  $T y = asin_near_0(is_middle ? x : M_sqrt(z), z);
  if (x >= $(0.5)) return 2 * y;
  $T rest = $HALF_PI - (y - $HALF_PI_LOW);
  return is_middle ? rest : 2 * rest;
}
)"},
    // Long division of the integers that x and y are in units of y's last place.
    {"M_fmod", R"(
FN $T M_fmod($T x, $T y) {
  $U a = BITS_$T(x) & $MAGNITUDE;
  $U b = BITS_$T(y) & $MAGNITUDE;
  $U infinity = BITS_$T($(inf));
  if (b == AS($U, 0) || a >= infinity || b > infinity) return $(nan);
  if (a < b) return x;
  int a_exponent = AS(int, a >> $DIGITS);
  int b_exponent = AS(int, b >> $DIGITS);
  $U rest = a_exponent == 0 ? a : (a & $FRACTION) | $HIDDEN;
  $U divisor = b_exponent == 0 ? b : (b & $FRACTION) | $HIDDEN;
  a_exponent = a_exponent == 0 ? 1 : a_exponent;
  b_exponent = b_exponent == 0 ? 1 : b_exponent;
  rest %= divisor;
  for (int left = a_exponent - b_exponent; left > 0 && rest != AS($U, 0); left -= $[8|11]) {
    rest = (rest << (left < $[8|11] ? left : $[8|11])) % divisor;
  }
  return M_copysign(times_power_of_2(AS($T, rest), b_exponent - ($BIAS + $DIGITS)), x);
}
)"},
};

std::string Format(const char* format, auto... values) {
  char text[64];
  std::snprintf(text, sizeof(text), format, values...);
  return text;
}

std::string Literal(double value, bool is_float64) {
  if (is_float64) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    return Format("FROM_BITS_f64(U64(0x%xu, 0x%xu))", static_cast<uint32_t>(bits >> 32),
                  static_cast<uint32_t>(bits));
  }
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) {
    return Format("FROM_BITS_f32(0x%xu)", std::bit_cast<uint32_t>(narrow));
  }
  std::string text = Format("%.9g", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string Horner(std::string_view name, std::string_view variable, bool is_float64) {
  std::string text;
  std::string end;
  const std::span<const double> coefficients = FindPolynomial(name, is_float64);
  for (const double& coefficient : coefficients) {
    text += "(" + Literal(coefficient, is_float64);
    end += ")";
    if (&coefficient != &coefficients.back()) text += " + " + std::string(variable) + " * ";
  }
  return text + end;
}

// `text` with what stands for its $ marks.
std::string Expand(std::string_view text, bool is_float64) {
  const auto choose = [&](std::string_view both) {
    const size_t bar = both.find('|');
    if (bar == std::string_view::npos) return both;
    return is_float64 ? both.substr(bar + 1) : both.substr(0, bar);
  };
  std::string result;
  for (size_t mark = 0; (mark = text.find('$')) != std::string_view::npos;) {
    result += text.substr(0, mark);
    text.remove_prefix(mark + 1);
    if (text[0] == '(') {
      const size_t end = text.find(')');
      const std::string number(choose(text.substr(1, end - 1)));
      result += Literal(std::strtod(number.c_str(), nullptr), is_float64);
      text.remove_prefix(end + 1);
    } else if (text[0] == '[') {
      const size_t end = text.find(']');
      result += Expand(choose(text.substr(1, end - 1)), is_float64);
      text.remove_prefix(end + 1);
    } else if (text.starts_with("poly(")) {
      const size_t comma = text.find(", ");
      const size_t end = text.find(')');
      result +=
          Horner(text.substr(5, comma - 5), text.substr(comma + 2, end - comma - 2), is_float64);
      text.remove_prefix(end + 1);
    } else {
      size_t end = 0;
      while (end < text.size() &&
             (std::isupper(text[end]) != 0 || text[end] == '_' || std::isdigit(text[end]) != 0))
        ++end;
      for (const auto& [word, meaning] : kWords) {
        if (text.substr(0, end) == word) result += Expand(meaning, is_float64);
      }
      text.remove_prefix(end);
    }
  }
  return result + std::string(text);
}

bool Calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const size_t end = at + name.size();
    if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_' &&
        end < text.size() && text[end] == '(') {
      return true;
    }
  }
  return false;
}

// 32 binary digits of 2/pi; those before the point are zeros.
std::string DefineTwoOverPi(bool has_float64) {
  std::string text = "\nFN u32 two_over_pi(int word) {\n  switch (word) {\n";
  int word = 0;
  for (const uint32_t digits : TwoOverPi(has_float64)) {
    text += Format("    case %d: return 0x%xu;\n", word++, digits);
  }
  return text + "  }\n  return 0u;\n}\n";
}

}  // namespace

std::string DefineFloatFunctions(std::string_view text, bool has_float64) {
  std::string definitions;
  for (size_t k = std::size(kTemplates); k-- > 0;) {
    const auto& [name, meaning] = kTemplates[k];
    if (!Calls(text, name) && !Calls(definitions, name)) continue;
    std::string definition = Expand(meaning, false);
    if (has_float64 && meaning.find("$T") != std::string_view::npos) {
      definition += Expand(meaning, true);
    }
    definitions.insert(0, definition);
  }
  if (Calls(definitions, "two_over_pi")) definitions.insert(0, DefineTwoOverPi(has_float64));
  return definitions;
}

}  // namespace onnxifi::codegen
