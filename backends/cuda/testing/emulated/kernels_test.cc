// SPDX-License-Identifier: Apache-2.0
//
// What kernels on the emulated device compute, against plain loops; and that planted mistakes are
// found.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/dialect.h"
#include "backends/cuda/testing/emulated/story.h"

namespace emulated {
namespace {

using testing::HasSubstr;
using testing::Not;

class KernelTest : public EmulatedTest {};

std::vector<float> Sequence(size_t count) {
  std::vector<float> values(count);
  for (size_t n = 0; n < count; ++n) values[n] = static_cast<float>(n % 97) * 0.25f - 7.0f;
  return values;
}

TEST_F(KernelTest, AMapInThePluginsDialect) {
  onnxifi::codegen::KernelParts parts;
  parts.group_size = 64;
  parts.number_count = 1;
  parts.is_narrow = true;
  parts.parameters = {{.name = "in0", .type = "f32", .is_written = false, .is_alone = true},
                      {.name = "out0", .type = "f32", .is_written = true, .is_alone = true}};
  parts.body =
      "  if (ITEM < count) STORE(out0, ITEM, M_exp(LOAD(in0, ITEM)) + AS(f32, NUMBER(0)));\n";
  const CUfunction run = Load(onnxifi::codegen::CudaDialect().Assemble(parts));
  const std::vector<float> in = Sequence(1000);
  const CUdeviceptr from = Upload(in);
  const CUdeviceptr to = Upload(std::vector<float>(1000));
  MUST(Launch(run, 16, 64, nullptr, from, to, int64_t{3}, uint64_t{1000}));
  const std::vector<float> out = Download<float>(to, 1000);
  for (size_t n = 0; n < in.size(); ++n) EXPECT_FLOAT_EQ(out[n], std::exp(in[n]) + 3) << n;
  EXPECT_EQ(Misuses(), "");
}

// Whatever process loads it: one of Python's has no functions of the compiler's for 16 bits.
TEST_F(KernelTest, AKernelBringsWhatTheCompilerCalls) {
  const std::string cubin = Compile(R"(
extern "C" __global__ void run(const float* in, unsigned short* out) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out[threadIdx.x]) : "f"(in[threadIdx.x]));
})");
  const std::string file = testing::TempDir() + "kernel_of_halves.so";
  std::ofstream(file, std::ios::binary) << cubin;
  std::FILE* const names = popen(("nm -D --undefined-only '" + file + "' 2>&1").c_str(), "r");
  ASSERT_NE(names, nullptr);
  std::string undefined(4096, '\0');
  undefined.resize(std::fread(undefined.data(), 1, undefined.size(), names));
  EXPECT_EQ(pclose(names), 0) << undefined;
  std::remove(file.c_str());
  EXPECT_THAT(undefined, Not(HasSubstr("hf")));
}

constexpr char kBlockSum[] = R"(
extern "C" __global__ void __launch_bounds__(256) run(const float* in, float* out) {
  __shared__ float sums[256];
  const int lane = threadIdx.x;
  sums[lane] = in[blockIdx.x * 256 + lane];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (lane < half) sums[lane] += sums[lane + half];
    BARRIER
  }
  if (lane == 0) out[blockIdx.x] = sums[0];
}
)";

std::string BlockSum(bool has_barrier) {
  return std::string(has_barrier ? "#define BARRIER __syncthreads();" : "#define BARRIER") +
         kBlockSum;
}

TEST_F(KernelTest, BarriersAndSharedMemory) {
  const CUfunction run = Load(BlockSum(true));
  const std::vector<float> in = Sequence(2560);
  const CUdeviceptr from = Upload(in);
  const CUdeviceptr to = Upload(std::vector<float>(10));
  for (const int twice : {0, 1}) {
    emulated_run_twice(twice);
    MUST(Launch(run, 10, 256, nullptr, from, to));
    const std::vector<float> out = Download<float>(to, 10);
    for (size_t n = 0; n < out.size(); ++n) {
      EXPECT_EQ(out[n], std::accumulate(in.begin() + n * 256, in.begin() + (n + 1) * 256, 0.0f))
          << n;
    }
  }
  EXPECT_EQ(Misuses(), "");
}

TEST_F(KernelTest, AMissingBarrierIsFound) {
  const CUfunction run = Load(BlockSum(false));
  const CUdeviceptr from = Upload(Sequence(2560));
  const CUdeviceptr to = Upload(std::vector<float>(10));
  emulated_run_twice(1);
  MUST(Launch(run, 10, 256, nullptr, from, to));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Misuses(), HasSubstr("A barrier is missing"));
}

TEST_F(KernelTest, BlocksThatLeanOnEachOtherAreFound) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(int* at) {
    if (threadIdx.x == 0) at[blockIdx.x + 1] = at[blockIdx.x] + 1;
  })");
  const CUdeviceptr at = Upload(std::vector<int>(9));
  emulated_run_twice(1);
  MUST(Launch(run, 8, 32, nullptr, at));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Misuses(), HasSubstr("lean on each other"));
}

TEST_F(KernelTest, ARunFromTheSameMemoryTwiceDoesNotCountTwice) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(int* at) {
    at[threadIdx.x] += 1; atomicAdd(at + 64, 1);
  })");
  const CUdeviceptr at = Upload(std::vector<int>(65));
  emulated_run_twice(1);
  MUST(Launch(run, 1, 64, nullptr, at));
  const std::vector<int> out = Download<int>(at, 65);
  EXPECT_EQ(out[5], 1);
  EXPECT_EQ(out[64], 64);
  EXPECT_EQ(Misuses(), "");
}

TEST_F(KernelTest, AReadBehindABufferIsFound) {
  const CUfunction run =
      Load(R"(extern "C" __global__ void run(const float* in, float* out, int count) {
    float sum = 0;
    for (int n = 0; n < count; ++n) sum += in[n];
    out[threadIdx.x] = sum;
  })");
  const CUdeviceptr from = Upload(std::vector<float>(1024, 1.0f));
  const CUdeviceptr to = Upload(std::vector<float>(32));
  MUST(Launch(run, 1, 32, nullptr, from, to, 1024));
  EXPECT_EQ(Download<float>(to, 32)[31], 1024);
  MUST(Launch(run, 1, 32, nullptr, from, to, 1025));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Misuses(), HasSubstr("where nothing is"));
  // The context is lost.
  CUdeviceptr none = 0;
  EXPECT_EQ(cuMemAlloc(&none, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(KernelTest, AWriteBehindABufferIsFound) {
  const CUfunction run =
      Load(R"(extern "C" __global__ void run(float* out) { out[threadIdx.x] = 1; })");
  const CUdeviceptr to = Upload(std::vector<float>(31));
  MUST(Launch(run, 1, 32, nullptr, to));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(Misuses(), HasSubstr("writes behind an allocation of 124 bytes"));
}

TEST_F(KernelTest, ABarrierThatSomeNeverReachIsFound) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(float* out) {
    if (threadIdx.x == 3) return;
    __syncthreads();
    out[threadIdx.x] = 1;
  })");
  MUST(Launch(run, 1, 32, nullptr, Upload(std::vector<float>(32))));
  EXPECT_NE(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(Misuses(), HasSubstr("end before a barrier"));
}

TEST_F(KernelTest, WarpFunctions) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(const int* in, int* out) {
    const int lane = threadIdx.x;
    const unsigned all = 0xffffffffu;
    int sum = in[lane];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all, sum, step);
    int scan = in[lane];
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(all, scan, step);
      if ((lane & 31) >= step) scan += other;
    }
    const unsigned ballot = __ballot_sync(all, in[lane] & 1);
    __syncwarp();
    out[lane] = sum;
    out[96 + lane] = scan;
    out[192 + lane] = (int)ballot;
    out[288 + lane] = __reduce_max_sync(all, in[lane]);
    out[384 + lane] = __shfl_down_sync(all, in[lane], 3, 8);
    if ((lane & 1) == 0) out[480 + lane] = __shfl_sync(0x55555555u, in[lane], 30);
    else out[480 + lane] = __reduce_add_sync(0xaaaaaaaau, in[lane]);
    __syncthreads();
    out[576 + lane] = __shfl_sync(all, out[95 - lane], 0);
  })");
  std::vector<int> in(96);
  for (int n = 0; n < 96; ++n) in[n] = (n * 37) % 53;
  const CUdeviceptr from = Upload(in);
  const CUdeviceptr to = Upload(std::vector<int>(672));
  emulated_run_twice(1);
  MUST(Launch(run, 1, 96, nullptr, from, to));
  const std::vector<int> out = Download<int>(to, 672);
  for (int n = 0; n < 96; ++n) {
    const int first = n / 32 * 32;
    int sum = 0, scan = 0, most = 0, odd = 0;
    unsigned ballot = 0;
    for (int m = first; m < first + 32; ++m) {
      sum += in[m];
      if (m <= n) scan += in[m];
      most = std::max(most, in[m]);
      if ((m & 1) != 0) odd += in[m];
      ballot |= static_cast<unsigned>(in[m] & 1) << (m - first);
    }
    EXPECT_EQ(out[n], sum) << n;
    EXPECT_EQ(out[96 + n], scan) << n;
    EXPECT_EQ(out[192 + n], static_cast<int>(ballot)) << n;
    EXPECT_EQ(out[288 + n], most) << n;
    EXPECT_EQ(out[384 + n], n % 8 + 3 < 8 ? in[n + 3] : in[n]) << n;
    EXPECT_EQ(out[480 + n], (n & 1) == 0 ? in[first + 30] : odd) << n;
    // The sum that item 95 - first has.
    EXPECT_EQ(out[576 + n], out[95 - first]) << n;
  }
  EXPECT_EQ(Misuses(), "");
}

TEST_F(KernelTest, AWarpWhoseLanesNeverMeetIsFound) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(int* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0);
    else __syncthreads();
  })");
  MUST(Launch(run, 1, 32, nullptr, Upload(std::vector<int>(32))));
  EXPECT_NE(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(Misuses(), HasSubstr("waits for lanes of its warp"));
}

// A warp's product of 16 x 16 and 16 x 8 whole numbers as float16. Elements of fragments lie as the
// PTX ISA has them.
constexpr char kWarpProduct[] = R"(
__device__ unsigned short Half(int number) {
  unsigned short bits;
  asm("cvt.rn.f16.s32 %0, %1;" : "=h"(bits) : "r"(number));
  return bits;
}
extern "C" __global__ void run(const int* a, const int* b, float* c) {
  const int group = threadIdx.x / 4, thread = threadIdx.x % 4;
  union { unsigned short halves[8]; unsigned words[4]; } of_a;
  union { unsigned short halves[4]; unsigned words[2]; } of_b;
  for (int i = 0; i < 8; ++i) {
    const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    of_a.halves[i] = Half(a[row * 16 + thread * 2 + (i & 1) + (i < 4 ? 0 : 8)]);
  }
  for (int i = 0; i < 4; ++i) {
    of_b.halves[i] = Half(b[(thread * 2 + (i & 1) + (i < 2 ? 0 : 8)) * 8 + group]);
  }
  float sums[4] = {1, 1, 1, 1};
  ITEMS asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(of_a.words[0]), "r"(of_a.words[1]), "r"(of_a.words[2]), "r"(of_a.words[3]),
        "r"(of_b.words[0]), "r"(of_b.words[1]));
  for (int i = 0; i < 4; ++i) {
    c[(i < 2 ? group : group + 8) * 8 + thread * 2 + (i & 1)] = sums[i];
  }
}
)";

class WarpProductTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    for (size_t n = 0; n < a_.size(); ++n) a_[n] = static_cast<int>(n * 37 % 53) - 26;
    for (size_t n = 0; n < b_.size(); ++n) b_[n] = static_cast<int>(n * 29 % 47) - 23;
    of_a_ = Upload(a_);
    of_b_ = Upload(b_);
    to_ = Upload(std::vector<float>(16 * 8));
  }
  // `items`: what stands before the instruction.
  void Start(const std::string& items, const std::string& text) {
    MUST(Launch(Load("#define ITEMS " + items + "\n" + text), 1, 32, nullptr, of_a_, of_b_, to_));
  }
  // Of the last launch's 128 sums.
  int CountWrong() {
    const std::vector<float> out = Download<float>(to_, 16 * 8);
    int count = 0;
    for (size_t row = 0; row < 16; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        int sum = 1;
        for (size_t k = 0; k < 16; ++k) sum += a_[row * 16 + k] * b_[k * 8 + column];
        count += out[row * 8 + column] == static_cast<float>(sum) ? 0 : 1;
      }
    }
    return count;
  }

  std::vector<int> a_ = std::vector<int>(16 * 16);
  std::vector<int> b_ = std::vector<int>(16 * 8);
  CUdeviceptr of_a_ = 0, of_b_ = 0, to_ = 0;
};

TEST_F(WarpProductTest, MatrixUnits) {
  Start("", kWarpProduct);
  EXPECT_EQ(CountWrong(), 0);
  EXPECT_EQ(Misuses(), "");
}

// Each is one that is easily made: of what an item holds of the one or the other operand or of the
// sums, and of the order of the words.
TEST_F(WarpProductTest, AWrongFragmentIsSeen) {
  const struct {
    const char* right;
    const char* wrong;
  } kMistakes[] = {
      {"i < 2 || (i >= 4 && i < 6) ? group", "i < 4 ? group"},
      {"(i & 1) + (i < 4 ? 0 : 8)]", "(i & 1) + (i < 4 ? 8 : 0)]"},
      {"a[row * 16 +", "a[(row ^ 1) * 16 +"},
      {"(i < 2 ? 0 : 8)) * 8 + group]", "(i < 2 ? 0 : 8)) * 8 + (group ^ 1)]"},
      {"b[(thread * 2 + (i & 1)", "b[(thread + 4 * (i & 1)"},
      {"\"r\"(of_b.words[0]), \"r\"(of_b.words[1])", "\"r\"(of_b.words[1]), \"r\"(of_b.words[0])"},
      {"\"r\"(of_a.words[1]), \"r\"(of_a.words[2])", "\"r\"(of_a.words[2]), \"r\"(of_a.words[1])"},
      {"c[(i < 2 ? group : group + 8)", "c[(i % 2 == 0 ? group : group + 8)"},
      {"* 8 + thread * 2 + (i & 1)] = sums", "* 8 + thread + 4 * (i & 1)] = sums"},
  };
  for (const auto& mistake : kMistakes) {
    std::string text = kWarpProduct;
    const size_t at = text.find(mistake.right);
    ASSERT_NE(at, std::string::npos) << mistake.right;
    Start("", text.replace(at, std::strlen(mistake.right), mistake.wrong));
    EXPECT_GT(CountWrong(), 32) << mistake.wrong;
  }
}

// Half an odd last place goes away from zero, and beyond the largest number there is infinity.
constexpr char kCopied[] = R"(
extern "C" __global__ void run(const uint4* in, unsigned* out) {
  __shared__ uint4 words[2][32];
  const int lane = threadIdx.x;
  for (int k = 0; k < 2; ++k) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
      :: "r"((unsigned)__cvta_generic_to_shared(&words[k][lane])), "l"(in + k * 32 + lane)
      : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
  __syncthreads();
  unsigned a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
    : "r"((unsigned)__cvta_generic_to_shared(&words[WHICH][31 - lane])) : "memory");
  out[lane] = a;
  out[32 + lane] = b;
  out[64 + lane] = c;
  out[96 + lane] = d;
}
)";

// Each item names a row of one of four blocks, and gets a word of a row of each.
TEST_F(KernelTest, CopiesThatAreWaitedForAndBlocksOfEightRows) {
  std::vector<uint32_t> in(256);
  std::iota(in.begin(), in.end(), 1U);
  const CUdeviceptr from = Upload(in);
  const CUdeviceptr to = Upload(std::vector<uint32_t>(128));
  for (const int which : {0, 1}) {
    MUST(Launch(Load("#define LEFT 0\n#define WHICH " + std::to_string(which) + "\n" + kCopied), 1,
                32, nullptr, from, to));
    const std::vector<uint32_t> out = Download<uint32_t>(to, 128);
    for (int block = 0; block < 4; ++block) {
      for (int lane = 0; lane < 32; ++lane) {
        const int row = 31 - (block * 8 + lane / 4);
        EXPECT_EQ(out[static_cast<size_t>(block * 32 + lane)],
                  static_cast<uint32_t>(which * 128 + row * 4 + lane % 4 + 1))
            << which << ' ' << block << ' ' << lane;
      }
    }
  }
  EXPECT_EQ(Misuses(), "");
}

// The first group of copies is there, and nothing of the second.
TEST_F(KernelTest, CopiesThatAreNotWaitedForAreMissed) {
  const CUdeviceptr from = Upload(std::vector<uint32_t>(256, 7));
  const CUdeviceptr to = Upload(std::vector<uint32_t>(128));
  const std::vector<uint32_t> all(128, 7);
  for (const int which : {0, 1}) {
    MUST(Launch(Load("#define LEFT 1\n#define WHICH " + std::to_string(which) + "\n" + kCopied), 1,
                32, nullptr, from, to));
    EXPECT_EQ(Download<uint32_t>(to, 128) == all, which == 0) << which;
  }
}

TEST_F(KernelTest, RoundingToTf32) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(const float* in, float* out) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(in[threadIdx.x]));
    out[threadIdx.x] = __uint_as_float(bits);
  })");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, float>> cases = {
      {1 + 0x1p-11F, 1 + 0x1p-10F},
      {-1 - 0x1p-11F, -1 - 0x1p-10F},
      {1 + 0x1p-11F - 0x1p-23F, 1},
      {1 + 0x3p-11F, 1 + 0x2p-10F},
      {0x1p-137F, 0x1p-136F},
      {0x1p-138F, 0},
      {std::numeric_limits<float>::max(), kInfinity},
      {-kInfinity, -kInfinity},
  };
  std::vector<float> in;
  for (const auto& [from, to] : cases) in.push_back(from);
  in.push_back(std::numeric_limits<float>::quiet_NaN());
  const CUdeviceptr to = Upload(in);
  MUST(Launch(run, 1, static_cast<unsigned>(in.size()), nullptr, Upload(in), to));
  const std::vector<float> out = Download<float>(to, in.size());
  for (size_t n = 0; n < cases.size(); ++n) EXPECT_EQ(out[n], cases[n].second) << cases[n].first;
  EXPECT_TRUE(std::isnan(out.back()));
}

// A sum of one row of TF32 and one column of ones.
TEST_F(KernelTest, MatrixUnitsCutOffWhatTheyDoNotHold) {
  const CUfunction run = Load(R"(
  extern "C" __global__ void run(const float* row, float before, float* out) {
    const int group = threadIdx.x / 4, thread = threadIdx.x % 4;
    const unsigned one = 0x3f800000u, zero = 0;
    const unsigned first = group == 0 ? __float_as_uint(row[thread]) : zero;
    const unsigned second = group == 0 ? __float_as_uint(row[thread + 4]) : zero;
    float sums[4] = {before, before, before, before};
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(first), "r"(zero), "r"(second), "r"(zero), "r"(one), "r"(one));
    if (threadIdx.x == 0) out[0] = sums[0];
  })");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const struct {
    std::vector<float> row;
    float before;
    float sum;
  } kCases[] = {
      {{1, 2, 4, 8, 16, 32, 64, 128}, 3, 258},
      // More bits than TF32 has.
      {{1 + 0x1p-11F + 0x1p-12F}, 0, 1},
      // Of the sum: it would be rounded up.
      {{0x1.8p-24F}, 1, 1},
      {{-0x1.8p-24F}, -1, -1},
      // Of each term before they are added, but for one bit more than the sum has.
      {{-0x1.8p-25F, -0x1.8p-25F}, 1, 1},
      {{-0x1p-24F, -0x1p-25F}, 1, 1 - 0x1p-24F},
      // Four places first, so that the others meet a sum that has lost its bits.
      {{0x1.8p-24F, 0, 0, 0, 0x1.8p-24F}, 1, 1},
      {{0x1p-149F * 8192, 0x1p-149F * 8192}, 0x1p-149F, 0x1p-149F * 16385},
      {{0x1.8p127F, 0x1.8p127F}, 0, kInfinity},
      {{kInfinity, 1}, 0, kInfinity},
  };
  for (const auto& one : kCases) {
    std::vector<float> row = one.row;
    row.resize(8);
    const CUdeviceptr to = Upload(std::vector<float>(1));
    MUST(Launch(run, 1, 32, nullptr, Upload(row), one.before, to));
    EXPECT_EQ(Download<float>(to, 1)[0], one.sum) << one.row[0] << " and " << one.before;
  }
  EXPECT_EQ(Misuses(), "");
}

TEST_F(WarpProductTest, SomeItemsOfAWarpAloneAreAFault) {
  Start("if (threadIdx.x != 5)", kWarpProduct);
  EXPECT_NE(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(Misuses(), HasSubstr("Some items of a warp alone"));
}

TEST_F(KernelTest, DynamicSharedMemoryAndThreeAxes) {
  const CUfunction run = Load(R"(extern "C" __global__ void run(int* out) {
    extern __shared__ __align__(16) int held[];
    const int item = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const int count = blockDim.x * blockDim.y * blockDim.z;
    held[item] = item * 10 + blockIdx.y;
    __syncthreads();
    out[(blockIdx.y * gridDim.x + blockIdx.x) * count + item] = held[count - 1 - item];
  })");
  const CUdeviceptr to = Upload(std::vector<int>(24 * 6));
  void* parameters[] = {const_cast<CUdeviceptr*>(&to)};
  MUST(cuLaunchKernel(run, 2, 3, 1, 2, 3, 4, 24 * 4, nullptr, parameters, nullptr));
  const std::vector<int> out = Download<int>(to, 24 * 6);
  for (int n = 0; n < 24 * 6; ++n) EXPECT_EQ(out[n], (23 - n % 24) * 10 + n / 48) << n;
}

TEST_F(KernelTest, LimitsOfLaunches) {
  const CUfunction run = Load(R"(extern "C" __global__ void __launch_bounds__(128) run(int* out) {
    extern __shared__ int held[];
    if (threadIdx.x == 0) out[0] = held != nullptr;
  })");
  const CUdeviceptr to = Upload(std::vector<int>(1));
  EXPECT_EQ(Launch(run, 1, 129, nullptr, to), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Launch(run, 0, 1, nullptr, to), CUDA_ERROR_INVALID_VALUE);
  dynamic_bytes_ = (48 << 10) + 1;
  EXPECT_EQ(Launch(run, 1, 1, nullptr, to), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      cuFuncSetAttribute(run, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (227 << 10) + 1),
      CUDA_ERROR_INVALID_VALUE);
  MUST(cuFuncSetAttribute(run, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 << 10));
  MUST(Launch(run, 1, 1, nullptr, to));
  EXPECT_EQ(Download<int>(to, 1)[0], 1);
}

// Its array takes 96 registers of an item, and all else 32.
constexpr char kManyRegisters[] = R"( run(float* out) {
  float sums[12][8];
  for (int k = 0; k < 96; ++k) sums[k / 8][k % 8] = k;
  if (threadIdx.x == blockDim.x - 1) out[0] = sums[11][7] + blockDim.x;
})";

TEST_F(KernelTest, AKernelOfMoreRegistersThanThereAreIsNotLaunched) {
  const CUdeviceptr to = Upload(std::vector<float>(1));
  const std::string head = "extern \"C\" __global__ void";
  const auto registers_of = [](CUfunction run) {
    int count = 0;
    EXPECT_EQ(cuFuncGetAttribute(&count, CU_FUNC_ATTRIBUTE_NUM_REGS, run), CUDA_SUCCESS);
    return count;
  };
  const CUfunction run = Load(head + kManyRegisters);
  EXPECT_EQ(registers_of(run), 128);
  int most_items = 0;
  MUST(cuFuncGetAttribute(&most_items, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, run));
  EXPECT_EQ(most_items, 512);
  MUST(Launch(run, 1, 512, nullptr, to));
  EXPECT_EQ(Download<float>(to, 1)[0], 95 + 512);
  EXPECT_EQ(Misuses(), "");
  EXPECT_EQ(Launch(run, 1, 513, nullptr, to), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_THAT(Misuses(), HasSubstr("128 registers of each of 513 items"));
  // The compiler makes do with fewer where it is told of more items, or of fewer registers.
  for (const char* const bound : {" __launch_bounds__(1024)", " __maxnreg__(64)"}) {
    const CUfunction bounded = Load(head + bound + kManyRegisters);
    EXPECT_EQ(registers_of(bounded), 64) << bound;
    MUST(Launch(bounded, 1, 1024, nullptr, to));
    EXPECT_EQ(Download<float>(to, 1)[0], 95 + 1024) << bound;
  }
  const std::string cubin =
      Compile(head + kManyRegisters, nullptr, {"--gpu-architecture=sm_90", "--maxrregcount=72"});
  CUmodule module = nullptr;
  CUfunction fewer = nullptr;
  MUST(cuModuleLoadData(&module, cubin.data()));
  MUST(cuModuleGetFunction(&fewer, module, "run"));
  EXPECT_EQ(registers_of(fewer), 72);
  EXPECT_EQ(Launch(fewer, 1, 1024, nullptr, to), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  MUST(Launch(fewer, 1, 896, nullptr, to));
}

TEST_F(KernelTest, ATrapAndADivisionByZeroLoseTheContext) {
  for (const char* const body : {"__trap();", "out[0] = 7 / out[1];"}) {
    const CUfunction run =
        Load(std::string("extern \"C\" __global__ void run(int* out) {") + body + "}");
    MUST(Launch(run, 1, 32, nullptr, Upload(std::vector<int>(2))));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    emulated_recover();
  }
}

TEST_F(KernelTest, MistakesOfATextAreTold) {
  std::string log;
  EXPECT_EQ(Compile("extern \"C\" __global__ void run() { nothing(); }", &log), "");
  EXPECT_THAT(log, HasSubstr("default_program:1:"));
  EXPECT_THAT(log, HasSubstr("nothing"));
}

TEST_F(KernelTest, OptionsAreThoseOfNvrtc) {
  const std::string source = "extern \"C\" __global__ void run() {}";
  std::string log;
  nvrtcResult result = NVRTC_SUCCESS;
  for (const char* const option : {"--gpu-architecture=sm_79", "--fmad=perhaps", "--make-it-fast",
                                   "-arch=sm_900", "--std=c++98"}) {
    Compile(source, &log, {option}, &result);
    EXPECT_EQ(result, NVRTC_ERROR_INVALID_OPTION) << option;
    EXPECT_THAT(log, HasSubstr("nvrtc: error")) << option;
  }
  for (const char* const option : {"--gpu-architecture=sm_80", "-arch=sm_121", "-arch=sm_90a"}) {
    EXPECT_NE(Compile(source, &log, {option, "--fmad=false", "-DNAME=1"}, &result), "") << log;
  }
  // Of a virtual architecture there is PTX only.
  EXPECT_EQ(Compile(source, &log, {"--gpu-architecture=compute_90"}, &result), "");
  EXPECT_EQ(result, NVRTC_SUCCESS);
  // Code for another device.
  const std::string other = Compile(source, &log, {"-arch=sm_80"}, &result);
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoadData(&module, other.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(
      cuModuleLoadData(&module, "rubbish rubbish rubbish rubbish rubbish rubbish rubbish rubbish "),
      CUDA_ERROR_INVALID_IMAGE);
}

TEST_F(KernelTest, ATextIsCompiledOnce) {
  const std::string source =
      "extern \"C\" __global__ void run() {} //" + std::to_string(time(nullptr));
  const int before = emulated_nvrtc_compilations();
  EXPECT_EQ(Compile(source), Compile(source));
  EXPECT_EQ(emulated_nvrtc_compilations(), before + 1);
  EXPECT_EQ(emulated_nvrtc_live_programs(), 0);
}

}  // namespace
}  // namespace emulated
