// SPDX-License-Identifier: Apache-2.0
//
// Minimax polynomials by the exchange algorithm of Remez in 240 bits, coefficients rounded to the
// type. Beside each: what it approximates, where, and the largest error relative to the function
// that it stands in, for float32 and float64.

#include "backends/core/codegen/float_polynomials.h"

namespace onnxifi::codegen {
namespace {

struct Polynomial {
  std::string_view name;
  std::span<const double> float32;
  std::span<const double> float64;
};

// (e^r - 1 - r) / r^2, |r| <= 0.35; 2^-25.7 and 2^-59.4 of e^r - 1.
constexpr double kExp32[] = {0x1.fffffep-2, 0x1.5554aap-3, 0x1.55567ep-5, 0x1.122cfep-7,
                             0x1.6beb72p-10};
constexpr double kExp64[] = {0x1p-1,
                             0x1.5555555555559p-3,
                             0x1.555555555553cp-5,
                             0x1.111111110f4b5p-7,
                             0x1.6c16c16c1fb3ap-10,
                             0x1.a01a01b0c8958p-13,
                             0x1.a01a017997228p-16,
                             0x1.71ddf5da2da82p-19,
                             0x1.27e5387b9c208p-22,
                             0x1.af636e326936dp-26,
                             0x1.1ee87ea6337c5p-29};

// (2 atanh(s) - 2 s - 2/3 s^3) / s^5 of z = s^2 <= 0.0295; 2^-36.7 and 2^-66.0 of 2 atanh(s).
constexpr double kLog32[] = {0x1.999ap-2, 0x1.24527ap-2, 0x1.dfa30ap-3};
constexpr double kLog64[] = {0x1.9999999999b33p-2, 0x1.2492492457784p-2, 0x1.c71c722deed41p-3,
                             0x1.745ce9b2bac2ap-3, 0x1.3b1ef521219a9p-3, 0x1.0f7f0ece129c5p-3,
                             0x1.0e4ad72b44406p-3};

// (sin(r) - r) / r^3 of z = r^2 <= 0.63; 2^-27.8 and 2^-57.7 of sin(r).
constexpr double kSin32[] = {-0x1.555544p-3, 0x1.1106bcp-7, -0x1.991676p-13};
constexpr double kSin64[] = {-0x1.5555555555547p-3, 0x1.111111110f579p-7,   -0x1.a01a019baddbfp-13,
                             0x1.71de351e8a887p-19, -0x1.ae5e1e9304925p-26, 0x1.5d7dc2c66b93dp-33};

// (cos(r) - 1 + r^2 / 2) / r^4 of z = r^2 <= 0.63; 2^-32.7 and 2^-63.3 of cos(r).
constexpr double kCos32[] = {0x1.55554ap-5, -0x1.6c0c14p-10, 0x1.99de6ep-16};
constexpr double kCos64[] = {0x1.5555555555549p-5,   -0x1.6c16c16c14bcfp-10, 0x1.a01a019c24ec9p-16,
                             -0x1.27e4f7a4f3a8cp-22, 0x1.1ee9a7b12f989p-29,  -0x1.8f8b7870d534p-37};

// (atan(t) - t) / t^3 of z = t^2 <= 0.25; 2^-27.0 and 2^-57.5 of atan(t).
constexpr double kAtan32[] = {-0x1.555514p-2, 0x1.997bd4p-3, -0x1.2253d8p-3, 0x1.a0604p-4,
                              -0x1.a530b4p-5};
constexpr double kAtan64[] = {-0x1.5555555555518p-2, 0x1.99999999914cbp-3,  -0x1.249249216fa87p-3,
                              0x1.c71c70967bcadp-4,  -0x1.745cf54d51e4p-4,  0x1.3b11453721967p-4,
                              -0x1.10f366de71228p-4, 0x1.dfed0db504f7ap-5,  -0x1.a3a782e28800cp-5,
                              0x1.571e1b7cec661p-5,  -0x1.c1fb5b6b4e512p-6, 0x1.4c2974881fa74p-7};

// (asin(s) - s) / s^3 of z = s^2 <= 0.25; 2^-27.4 and 2^-55.7 of asin(s).
constexpr double kAsin32[] = {0x1.5555cap-3, 0x1.330152p-4, 0x1.748c12p-5, 0x1.8ba55ep-6,
                              0x1.59d848p-5};
constexpr double kAsin64[] = {0x1.5555555555387p-3, 0x1.333333336f8c8p-4,  0x1.6db6db41d1dc7p-5,
                              0x1.f1c72c6dd34e4p-6, 0x1.6e89ef6fb8d61p-6,  0x1.1c6c283b65a44p-6,
                              0x1.c6f875dca77afp-7, 0x1.8ee4d07ea3eeep-7,  0x1.aab28894bc971p-8,
                              0x1.40b27fb355481p-6, -0x1.0af59699d8a5ep-6, 0x1.05ce8c2bd201fp-5};

// erf(x) / x - 1 of z = x^2 <= 1; 2^-27.8 and 2^-55.2 of erf(x).
constexpr double kErf32[] = {0x1.06eba8p-3, -0x1.81273ep-2,  0x1.ce2cf8p-4, -0x1.b7f90cp-6,
                             0x1.5405bp-8,  -0x1.a3f6f8p-11, 0x1.496a1ap-14};
constexpr double kErf64[] = {
    0x1.06eba8214db68p-3,  -0x1.812746b0379bdp-2,  0x1.ce2f21a040d16p-4,  -0x1.b82ce311fa93p-6,
    0x1.565bccf92b18cp-8,  -0x1.c02db03dd4823p-11, 0x1.f9a2baa8d2b39p-14, -0x1.f4ca4d6d9175cp-17,
    0x1.b97fd3d15f5fap-20, -0x1.5c0726e929adfp-23, 0x1.d71b0fe1a5ccfp-27, -0x1.abae4dcf330a7p-31};

// -ln(1 - erf(x)): of x - 2.5, 1 <= x <= 4, and of x - 3.5, 1 <= x <= 6; 2^-24.7 and 2^-52.2 of 1.
constexpr double kErfc32[] = {0x1.f3a2cp+2,  0x1.5694d2p+2,   0x1.e3bf48p-1,
                              0x1.a1eae2p-7, -0x1.a1766ep-12, 0x1.2d8fb4p-10};
constexpr double kErfc64[] = {
    0x1.c3991652acf7p+3,    0x1.d107c69311889p+2,  0x1.eefa41dbad282p-1,   0x1.5678067d550dp-8,
    -0x1.ca172fcc40621p-11, 0x1.3499c4fa8844bp-13, -0x1.9bf6ecaf78bfep-16, 0x1.030326236447bp-18,
    -0x1.b9bb9347eafe5p-22, 0x1.758cd53ea3397p-22, 0x1.b124931c171fep-23,  0x1.c8a5bf95062ddp-24,
    0x1.282296ad80e5p-25,   0x1.e57eaf08415f9p-28, 0x1.c6b8816e0ab45p-31,  0x1.27ad32a1e48d5p-35};

constexpr Polynomial kPolynomials[] = {{"exp", kExp32, kExp64},    {"log", kLog32, kLog64},
                                       {"sin", kSin32, kSin64},    {"cos", kCos32, kCos64},
                                       {"atan", kAtan32, kAtan64}, {"asin", kAsin32, kAsin64},
                                       {"erf", kErf32, kErf64},    {"erfc", kErfc32, kErfc64}};

constexpr uint32_t kTwoOverPi[] = {
    0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
    0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
    0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
    0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
    0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};

}  // namespace

std::span<const double> FindPolynomial(std::string_view name, bool is_float64) {
  for (const Polynomial& polynomial : kPolynomials) {
    if (polynomial.name == name) return is_float64 ? polynomial.float64 : polynomial.float32;
  }
  return {};
}

std::span<const uint32_t> TwoOverPi(bool has_float64) {
  return std::span<const uint32_t>(kTwoOverPi).first(has_float64 ? 38 : 8);
}

}  // namespace onnxifi::codegen
