// SPDX-License-Identifier: Apache-2.0
//
// CUDA's functions of one item, for a host compiler: bits, float functions in float and double, and
// atomic functions, beside which no other item runs.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FUNCTIONS_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FUNCTIONS_H_

// ---- bits
template <class To, class From>
static inline To emulated_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &value, sizeof(to));
  return to;
}
static inline unsigned __float_as_uint(float value) { return emulated_bits<unsigned>(value); }
static inline int __float_as_int(float value) { return emulated_bits<int>(value); }
static inline float __uint_as_float(unsigned bits) { return emulated_bits<float>(bits); }
static inline float __int_as_float(int bits) { return emulated_bits<float>(bits); }
static inline long long __double_as_longlong(double value) {
  return emulated_bits<long long>(value);
}
static inline double __longlong_as_double(long long bits) { return emulated_bits<double>(bits); }
static inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz(value); }
static inline int __clzll(long long value) { return value == 0 ? 64 : __builtin_clzll(value); }
static inline int __ffs(int value) { return __builtin_ffs(value); }
static inline int __ffsll(long long value) { return __builtin_ffsll(value); }
static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
static inline unsigned __brev(unsigned value) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (value >> bit & 1) << (31 - bit);
  return reversed;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return (long long)((__int128)a * b >> 64);
}
static inline int __dp4a(int a, int b, int sum) {
  for (int n = 0; n < 4; ++n) sum += (signed char)(a >> 8 * n) * (signed char)(b >> 8 * n);
  return sum;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int n = 0; n < 4; ++n) sum += (a >> 8 * n & 255) * (b >> 8 * n & 255);
  return sum;
}
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)high << 32 | low;
  unsigned chosen = 0;
  for (int n = 0; n < 4; ++n) {
    const unsigned which = selector >> 4 * n & 15;
    unsigned byte = (unsigned)(bytes >> 8 * (which & 7)) & 255;
    if (which & 8) byte = byte & 128 ? 255 : 0;
    chosen |= byte << 8 * n;
  }
  return chosen;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
static inline unsigned long long __cvta_generic_to_shared(const void* address) {
  return (unsigned long long)((const char*)address - __start_emulated_shared);
}

// ---- float functions, overloaded for float and double as CUDA has them
#define EMULATED_FLOAT_FUNCTION(name)                                          \
  static inline float name(float value) { return __builtin_##name##f(value); } \
  extern "C" double name(double);                                              \
  static inline float name##f(float value, int = 0) { return __builtin_##name##f(value); }
#define EMULATED_FLOAT_FUNCTION_2(name)                                            \
  static inline float name(float a, float b) { return __builtin_##name##f(a, b); } \
  extern "C" double name(double, double);                                          \
  static inline float name##f(float a, float b, int = 0) { return __builtin_##name##f(a, b); }
EMULATED_FLOAT_FUNCTION(fabs)
EMULATED_FLOAT_FUNCTION(floor)
EMULATED_FLOAT_FUNCTION(ceil)
EMULATED_FLOAT_FUNCTION(rint)
EMULATED_FLOAT_FUNCTION(nearbyint)
EMULATED_FLOAT_FUNCTION(round)
EMULATED_FLOAT_FUNCTION(trunc)
EMULATED_FLOAT_FUNCTION(sqrt)
EMULATED_FLOAT_FUNCTION(exp)
EMULATED_FLOAT_FUNCTION(exp2)
EMULATED_FLOAT_FUNCTION(expm1)
EMULATED_FLOAT_FUNCTION(log)
EMULATED_FLOAT_FUNCTION(log2)
EMULATED_FLOAT_FUNCTION(log10)
EMULATED_FLOAT_FUNCTION(log1p)
EMULATED_FLOAT_FUNCTION(sin)
EMULATED_FLOAT_FUNCTION(cos)
EMULATED_FLOAT_FUNCTION(tan)
EMULATED_FLOAT_FUNCTION(asin)
EMULATED_FLOAT_FUNCTION(acos)
EMULATED_FLOAT_FUNCTION(atan)
EMULATED_FLOAT_FUNCTION(sinh)
EMULATED_FLOAT_FUNCTION(cosh)
EMULATED_FLOAT_FUNCTION(tanh)
EMULATED_FLOAT_FUNCTION(asinh)
EMULATED_FLOAT_FUNCTION(acosh)
EMULATED_FLOAT_FUNCTION(atanh)
EMULATED_FLOAT_FUNCTION(erf)
EMULATED_FLOAT_FUNCTION(erfc)
EMULATED_FLOAT_FUNCTION_2(fmod)
EMULATED_FLOAT_FUNCTION_2(copysign)
EMULATED_FLOAT_FUNCTION_2(pow)
EMULATED_FLOAT_FUNCTION_2(atan2)
EMULATED_FLOAT_FUNCTION_2(fmin)
EMULATED_FLOAT_FUNCTION_2(fmax)
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
extern "C" double fma(double, double, double);
static inline float fmaf(float a, float b, float c, int = 0) { return __builtin_fmaf(a, b, c); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float rsqrtf(float a) { return 1.0f / __builtin_sqrtf(a); }
static inline float __expf(float a) { return __builtin_expf(a); }
static inline float __logf(float a) { return __builtin_logf(a); }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }
static inline bool isnan(float a) { return a != a; }
static inline bool isnan(double a) { return a != a; }
static inline bool isinf(float a) { return __builtin_isinf(a); }
static inline bool isinf(double a) { return __builtin_isinf(a); }
static inline bool isfinite(float a) { return __builtin_isfinite(a); }
static inline bool isfinite(double a) { return __builtin_isfinite(a); }
static inline float abs(float a) { return __builtin_fabsf(a); }
static inline double abs(double a) { return __builtin_fabs(a); }
static inline int abs(int a) { return a < 0 ? -a : a; }
static inline long long abs(long long a) { return a < 0 ? -a : a; }
#define EMULATED_LEAST_MOST(type)                                  \
  static inline type min(type a, type b) { return b < a ? b : a; } \
  static inline type max(type a, type b) { return a < b ? b : a; }
EMULATED_LEAST_MOST(int)
EMULATED_LEAST_MOST(unsigned int)
EMULATED_LEAST_MOST(long long)
EMULATED_LEAST_MOST(unsigned long long)
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }

// ---- atomic functions: no item runs beside another
#define EMULATED_ATOMIC(type, name, expression)   \
  static inline type name(type* at, type value) { \
    const type old = *at;                         \
    *at = (expression);                           \
    return old;                                   \
  }
#define EMULATED_ATOMICS(type)                                        \
  EMULATED_ATOMIC(type, atomicAdd, old + value)                       \
  EMULATED_ATOMIC(type, atomicSub, old - value)                       \
  EMULATED_ATOMIC(type, atomicMin, value < old ? value : old)         \
  EMULATED_ATOMIC(type, atomicMax, old < value ? value : old)         \
  EMULATED_ATOMIC(type, atomicAnd, old& value)                        \
  EMULATED_ATOMIC(type, atomicOr, old | value)                        \
  EMULATED_ATOMIC(type, atomicXor, old ^ value)                       \
  EMULATED_ATOMIC(type, atomicExch, value)                            \
  static inline type atomicCAS(type* at, type expected, type value) { \
    const type old = *at;                                             \
    if (old == expected) *at = value;                                 \
    return old;                                                       \
  }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned int)
EMULATED_ATOMICS(long long)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(float, atomicAdd, old + value)
EMULATED_ATOMIC(double, atomicAdd, old + value)
EMULATED_ATOMIC(float, atomicExch, value)
EMULATED_ATOMIC(unsigned int, atomicInc, old >= value ? 0 : old + 1)
EMULATED_ATOMIC(unsigned int, atomicDec, old == 0 || old > value ? value : old - 1)

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_FUNCTIONS_H_
