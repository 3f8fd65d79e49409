// SPDX-License-Identifier: Apache-2.0
//
// Helpers: one template per function; $T is its type, $U the unsigned type that its arithmetic
// wraps in, $V the unsigned type of its width, $B its bits.

#include "backends/core/codegen/helpers.h"

namespace onnxifi::codegen {
namespace {

struct Template {
  std::string_view name;
  std::string_view text;
  std::vector<std::pair<std::string_view, std::string_view>> needs = {};
};

// Of integers.
const Template kSigned[] = {
    {"div", R"(FN $T div_$T($T a, $T b) {
  if (b == 0) return AS($T, 0);
  if (b == -1) return AS($T, AS($U, 0) - AS($U, a));
  return AS($T, a / b);
}
)"},
    // Languages differ in the remainders of negative numbers.
    {"fmod",
     R"(FN $T fmod_$T($T a, $T b) {
  if (b == 0 || b == -1) return AS($T, 0);
  return AS($T, AS($U, a) - AS($U, a / b) * AS($U, b));
}
)"},
    {"mod",
     R"(FN $T mod_$T($T a, $T b) {
  $T rest = fmod_$T(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? AS($T, rest + b) : rest;
}
)",
     {{"fmod", "$T"}}},
    {"pow", R"(FN $T pow_$T($T base, $T exponent) {
  if (exponent < 0) {
    if (base == 1) return AS($T, 1);
    if (base == -1) return AS($T, (exponent & 1) == 0 ? 1 : -1);
    return AS($T, 0);
  }
  $U result = 1;
  $U power = AS($U, base);
  for ($V rest = AS($V, exponent); rest != 0; rest = AS($V, rest >> 1)) {
    if ((rest & 1) != 0) result *= power;
    power *= power;
  }
  return AS($T, result);
}
)"},
};

const Template kUnsigned[] = {
    {"div", R"(FN $T div_$T($T a, $T b) { return b == 0 ? AS($T, 0) : AS($T, a / b); }
)"},
    {"fmod", R"(FN $T fmod_$T($T a, $T b) { return b == 0 ? AS($T, 0) : AS($T, a % b); }
)"},
    {"mod", R"(FN $T mod_$T($T a, $T b) { return b == 0 ? AS($T, 0) : AS($T, a % b); }
)"},
    {"pow", R"(FN $T pow_$T($T base, $T exponent) {
  $U result = 1;
  $U power = AS($U, base);
  for ($T rest = exponent; rest != 0; rest = AS($T, rest >> 1)) {
    if ((rest & 1) != 0) result *= power;
    power *= power;
  }
  return AS($T, result);
}
)"},
};

const Template kIntegers[] = {
    {"shl", R"(FN $T shl_$T($T a, $T b) {
  $V shift = AS($V, b);
  return shift >= $B ? AS($T, 0) : AS($T, AS($U, a) << shift);
}
)"},
    {"shr", R"(FN $T shr_$T($T a, $T b) {
  $V shift = AS($V, b);
  return shift >= $B ? AS($T, 0) : AS($T, a >> shift);
}
)"},
};

// Of f32 and f64; $L is 2^63, $H 2^64.
const Template kFloats[] = {
    {"mod", R"(FN $T mod_$T($T a, $T b) {
  $T rest = M_fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  return rest == 0 ? M_copysign(AS($T, 0), b) : rest;
}
)"},
    {"sign", R"(FN $T sign_$T($T x) { return 0 < x ? AS($T, 1) : x < 0 ? AS($T, -1) : x; }
)"},
    {"to_i64", R"(FN i64 to_i64_$T($T x) {
  return x >= -$L && x < $L ? AS(i64, x) : AS(i64, U64(0x80000000u, 0x0u));
}
)"},
    {"to_u64",
     R"(FN u64 to_u64_$T($T x) {
  return x >= $L && x < $H ? AS(u64, x) : AS(u64, to_i64_$T(x));
}
)",
     {{"to_i64", "$T"}}},
};

// Of no type. `specials` is tensor::FloatSpecials: 0 IEEE, 1 fn, 2 fnuz, 3 none.
const Template kOthers[] = {
    {"decode", R"(FN f32 decode(u32 code, int e_bits, int m_bits, int bias, int specials) {
  u32 sign_bit = 1u << (e_bits + m_bits);
  u32 m_mask = (1u << m_bits) - 1u;
  u32 e_mask = (1u << e_bits) - 1u;
  u32 largest = specials == 0 ? (e_mask << m_bits) - 1u : specials == 1 ? sign_bit - 2u : sign_bit - 1u;
  u32 sign = (code & sign_bit) != 0u ? 0x80000000u : 0u;
  u32 magnitude = code & (sign_bit - 1u);
  if (specials == 2 && code == sign_bit) return FROM_BITS_f32(0x7fc00000u);
  if (specials != 3 && magnitude > largest) {
    return FROM_BITS_f32(sign | (specials == 0 && (magnitude & m_mask) == 0u ? 0x7f800000u : 0x7fc00000u));
  }
  u32 exponent = magnitude >> m_bits;
  if (exponent == 0u) {
    f32 value = AS(f32, magnitude) * FROM_BITS_f32(AS(u32, 128 - bias - m_bits) << 23);
    return sign != 0u ? -value : value;
  }
  return FROM_BITS_f32(sign | (exponent + AS(u32, 127 - bias)) << 23 | (magnitude & m_mask) << (23 - m_bits));
}
)"},
    {"encode",
     R"(FN u32 encode(f32 value, int e_bits, int m_bits, int bias, int specials, int saturate) {
  u32 sign_bit = 1u << (e_bits + m_bits);
  u32 e_mask = (1u << e_bits) - 1u;
  u32 largest = specials == 0 ? (e_mask << m_bits) - 1u : specials == 1 ? sign_bit - 2u : sign_bit - 1u;
  u32 bits = BITS_f32(value);
  u32 sign = (bits >> 31) != 0u ? sign_bit : 0u;
  u32 magnitude = bits & 0x7fffffffu;
  u32 overflow = saturate != 0 || specials == 3 ? sign | largest
                 : specials == 0 ? sign | e_mask << m_bits
                 : specials == 1 ? sign | (sign_bit - 1u) : sign_bit;
  if (magnitude > 0x7f800000u) {
    return specials == 0 ? sign | e_mask << m_bits | 1u << (m_bits - 1)
           : specials == 1 ? sign | (sign_bit - 1u) : specials == 2 ? sign_bit : sign ^ sign_bit;
  }
  if (magnitude == 0x7f800000u) return overflow;
  u32 code = 0u;
  if (magnitude >= 0x00800000u) {
    int exponent = AS(int, magnitude >> 23) - 127;
    int least = 1 - bias;
    u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
    int shift = 23 - m_bits + (least > exponent ? least - exponent : 0);
    if (shift <= 25) {
      u32 kept = significand >> shift;
      u32 dropped = significand & ((1u << shift) - 1u);
      u32 middle = 1u << (shift - 1);
      u32 round = dropped > middle || (dropped == middle && (kept & 1u) != 0u) ? 1u : 0u;
      u32 base = AS(u32, (exponent > least ? exponent : least) + bias - 1);
      if (base > e_mask + 1u) return overflow;
      code = (base << m_bits) + kept + round;
    }
  }
  if (code > largest) return overflow;
  return specials == 2 && code == 0u ? 0u : sign | code;
}
)"},
    // float16, of which networks are made, by the device's own instruction where the dialect has
    // one (dialect.h), else as decode and encode, without the cases of others.
    {"decode_f16", R"(#ifdef DECODE_f16
FN f32 decode_f16(u32 code) { return DECODE_f16(code); }
#else
FN f32 decode_f16(u32 code) {
  u32 magnitude = code & 0x7fffu;
  u32 sign = (code & 0x8000u) << 16;
  if (magnitude < 0x400u) {
    return FROM_BITS_f32(sign | BITS_f32(AS(f32, magnitude) * FROM_BITS_f32(0x33800000u)));
  }
  return FROM_BITS_f32(sign | ((magnitude << 13) + (magnitude < 0x7c00u ? 0x38000000u : 0x70000000u)));
}
#endif
)"},
    {"encode_f16", R"(#ifdef ENCODE_f16
FN u32 encode_f16(f32 value) {
  return value != value ? (BITS_f32(value) >> 16 & 0x8000u) | 0x7e00u : ENCODE_f16(value);
}
#else
FN u32 encode_f16(f32 value) {
  u32 bits = BITS_f32(value);
  u32 sign = bits >> 16 & 0x8000u;
  u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude >= 0x38800000u) {
    return sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  u32 exponent = magnitude >> 23;
  if (exponent < 102u) return sign;
  u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
  u32 shift = 126u - exponent;
  u32 kept = significand >> shift;
  u32 dropped = significand & ((1u << shift) - 1u);
  u32 middle = 1u << (shift - 1u);
  return sign | (kept + (dropped > middle || (dropped == middle && (kept & 1u) != 0u) ? 1u : 0u));
}
#endif
)"},
    {"decode_bf16", R"(FN f32 decode_bf16(u32 code) { return FROM_BITS_f32(code << 16); }
)"},
    {"encode_bf16", R"(FN u32 encode_bf16(f32 value) {
  u32 bits = BITS_f32(value);
  u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded;
}
)"},
    {"decode_e8m0", R"(FN f32 decode_e8m0(u32 code) {
  return FROM_BITS_f32(code == 0xffu ? 0x7fc00000u : code == 0u ? 0x00400000u : code << 23);
}
)"},
    // `rounding` is tensor::Rounding: 0 nearest even, 1 up, 2 down, 3 nearest.
    {"encode_e8m0", R"(FN u32 encode_e8m0(f32 value, int saturate, int rounding) {
  u32 magnitude = BITS_f32(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0xffu;
  if (magnitude == 0x7f800000u) return saturate != 0 ? 0xfeu : 0xffu;
  if (magnitude < 0x00400000u) return saturate != 0 ? 0u : 0xffu;
  u32 code = magnitude >> 23;
  u32 fraction = code == 0u ? (magnitude - 0x00400000u) << 1 : magnitude & 0x7fffffu;
  if (rounding == 1) {
    code += fraction != 0u ? 1u : 0u;
  } else if (rounding != 2) {
    code += fraction >= 0x400000u ? 1u : 0u;
  }
  if (code > 0xfeu) return saturate != 0 ? 0xfeu : 0xffu;
  return code;
}
)"},
    {"odd_f64", R"(FN f32 odd_f64(f64 value) {
  f32 nearest = AS(f32, value);
  if (AS(f64, nearest) == value || value != value) return nearest;
  u32 bits = BITS_f32(nearest);
  if (M_abs(AS(f64, nearest)) > M_abs(value)) --bits;
  return FROM_BITS_f32(bits | 1u);
}
)"},
    {"odd_u64", R"(FN f32 odd_u64(u64 magnitude) {
  int shift = 0;
  while (((magnitude >> shift) >> 24) != 0) ++shift;
  u32 kept = AS(u32, magnitude >> shift);
  if ((AS(u64, kept) << shift) != magnitude) kept |= 1u;
  return AS(f32, kept) * FROM_BITS_f32(AS(u32, 127 + shift) << 23);
}
)"},
    // The numbers of program/random_bits.h.
    {"random", R"(FN u64 mix_bits(u64 bits) {
  bits = (bits ^ (bits >> 30)) * U64(0xbf58476du, 0x1ce4e5b9u);
  bits = (bits ^ (bits >> 27)) * U64(0x94d049bbu, 0x133111ebu);
  return bits ^ (bits >> 31);
}
FN f64 random(u64 seed, i64 counter) {
  u64 start = mix_bits(seed + U64(0x9e3779b9u, 0x7f4a7c15u));
  u64 bits = mix_bits(start + (AS(u64, counter) + 1) * U64(0x9e3779b9u, 0x7f4a7c15u));
  return AS(f64, bits >> 11) * FROM_BITS_f64(U64(0x3ca00000u, 0x0u));
}
)"},
};

void Replace(std::string& text, std::string_view mark, std::string_view value) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), value);
    at += value.size();
  }
}

template <size_t kCount>
const Template* Find(const Template (&templates)[kCount], std::string_view name) {
  for (const Template& candidate : templates) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

}  // namespace

Helper FindHelper(std::string_view name, std::string_view type) {
  const Template* found = nullptr;
  const std::string_view bits = type.empty() ? type : type.substr(1);
  if (type.empty()) {
    found = Find(kOthers, name);
  } else if (type[0] == 'f') {
    found = Find(kFloats, name);
  } else {
    found = type[0] == 'i' ? Find(kSigned, name) : Find(kUnsigned, name);
    if (found == nullptr) found = Find(kIntegers, name);
  }
  if (found == nullptr) return {};
  Helper helper{std::string(found->text), found->needs};
  const bool is_wide = bits == "64";
  Replace(helper.text, "$T", type);
  Replace(helper.text, "$U", is_wide ? "u64" : "u32");
  Replace(helper.text, "$V", std::string("u") + std::string(bits));
  Replace(helper.text, "$B", bits);
  Replace(helper.text, "$L",
          is_wide ? "FROM_BITS_f64(U64(0x43e00000u, 0x0u))" : "FROM_BITS_f32(0x5f000000u)");
  Replace(helper.text, "$H",
          is_wide ? "FROM_BITS_f64(U64(0x43f00000u, 0x0u))" : "FROM_BITS_f32(0x5f800000u)");
  for (auto& [needed, its_type] : helper.needs) {
    if (its_type == "$T") its_type = type;
  }
  return helper;
}

}  // namespace onnxifi::codegen
