// SPDX-License-Identifier: Apache-2.0
//
// Tests of the count of usable CPUs: control groups as folders of files, and the affinity mask of a
// thread.

#include "backends/core/device/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace onnxifi::device {
namespace {

namespace fs = std::filesystem;

class CpuQuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    mount_ = fs::path(testing::TempDir()) /
             ("cpu_quota_test." + std::to_string(getpid()) + "." +
              testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(mount_);
  }
  void TearDown() override { fs::remove_all(mount_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((mount_ / path).parent_path());
    std::ofstream(mount_ / path) << text;
  }

  fs::path mount_;
};

TEST_F(CpuQuotaTest, IsNothingWithoutFiles) {
  EXPECT_EQ(CpuQuota("0::/user.slice\n", mount_), std::nullopt);
  EXPECT_EQ(CpuQuota("", mount_), std::nullopt);
  EXPECT_EQ(CpuQuota("no colons\n:\n", mount_), std::nullopt);
}

TEST_F(CpuQuotaTest, ReadsVersion2) {
  Write("a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(CpuQuota("0::/a/b\n", mount_), 1.5);
}

TEST_F(CpuQuotaTest, TakesTheLeastOfTheGroupsAround) {
  Write("a/cpu.max", "200000 100000\n");
  Write("a/b/cpu.max", "max 100000\n");
  Write("a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(CpuQuota("0::/a/b/c\n", mount_), 2.0);
}

TEST_F(CpuQuotaTest, UsesTheMountWhereTheGroupIsNotVisible) {
  Write("cpu.max", "100000 50000\n");
  EXPECT_EQ(CpuQuota("0::/docker/0123\n", mount_), 2.0);
}

TEST_F(CpuQuotaTest, ReadsVersion1UnderEitherName) {
  Write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  Write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota("5:memory:/x\n4:cpu,cpuacct:/job\n", mount_), 3.0);
  Write("cpu/job/cpu.cfs_quota_us", "100000\n");
  Write("cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota("4:cpu,cpuacct:/job\n", mount_), 1.0);
}

TEST_F(CpuQuotaTest, IgnoresNoQuotaAndNonsense) {
  Write("cpu/cpu.cfs_quota_us", "-1\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  Write("cpu.max", "lots 0\n");
  EXPECT_EQ(CpuQuota("4:cpu:/\n0::/\n", mount_), std::nullopt);
}

TEST(CountUsableCpusTest, FollowsTheAffinityMask) {
  int count = 0;
  std::thread([&count] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      break;
    }
    count = CountUsableCpus();
  }).join();
  EXPECT_EQ(count, 1);
  EXPECT_GE(CountUsableCpus(), 1);
}

}  // namespace
}  // namespace onnxifi::device
