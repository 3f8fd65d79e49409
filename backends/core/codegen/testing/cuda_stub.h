// SPDX-License-Identifier: Apache-2.0
//
// What CUDA C++ has beyond C++, as declarations: enough for a host compiler to check the sources of
// kernels. Nothing here runs.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_CUDA_STUB_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_CUDA_STUB_H_

#include <cmath>

#define __device__
#define __global__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// The host's compiler knows no PTX.
#define asm(...)

using std::abs, std::fabs, std::floor, std::ceil, std::rint, std::trunc, std::sqrt, std::exp,
    std::expm1, std::log, std::log1p, std::sin, std::cos, std::tan, std::asin, std::acos, std::atan,
    std::sinh, std::cosh, std::tanh, std::asinh, std::acosh, std::atanh, std::erf, std::fmod,
    std::copysign, std::pow, std::fma;

struct Index3 {
  unsigned int x, y, z;
};
extern const Index3 threadIdx, blockIdx, blockDim, gridDim;

struct float4 {
  float x, y, z, w;
};
struct int4 {
  int x, y, z, w;
};
struct uint4 {
  unsigned int x, y, z, w;
};
struct ulonglong2 {
  unsigned long long x, y;
};
ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y);

unsigned int __float_as_uint(float value);
float __uint_as_float(unsigned int bits);
long long __double_as_longlong(double value);
double __longlong_as_double(long long bits);

void __syncthreads();
unsigned int atomicAnd(unsigned int* word, unsigned int bits);
unsigned int atomicMax(unsigned int* word, unsigned int value);
unsigned int atomicOr(unsigned int* word, unsigned int bits);

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_CUDA_STUB_H_
