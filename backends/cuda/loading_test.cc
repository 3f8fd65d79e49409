// SPDX-License-Identifier: Apache-2.0
//
// The plugin where something of CUDA is missing, as onnxifi_info tells of it: one sentence that
// names what. Each try is a process whose search path has what the test puts there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace onnxifi::cuda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// What a command of the shell prints.
std::string OutputOf(const std::string& command) {
  std::string text;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part{};
  for (size_t count = 0; (count = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), count);
  }
  pclose(pipe);
  return text;
}

class LoadingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "cuda_loading.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A library of that name is the one at `target`, or a file that is none.
  void Put(const std::string& library, const fs::path& target = {}) const {
    if (target.empty()) {
      std::ofstream(folder_ / library) << "This is no library.";
    } else {
      fs::create_symlink(target, folder_ / library);
    }
  }
  std::string Info(const std::string& variables = {}, const std::string& arguments = {}) const {
    return OutputOf("LD_LIBRARY_PATH='" + folder_.string() + "' " + variables +
                    " '" ONNXIFI_TEST_INFO "' --probe-limit 0 " + arguments);
  }
  std::string Run(const std::string& variables, const std::string& arguments) const {
    return OutputOf("LD_LIBRARY_PATH='" + folder_.string() + "' " + variables +
                    " '" ONNXIFI_TEST_RUN "' --probe-limit 0 " + arguments);
  }

  const fs::path emulated_ = ONNXIFI_TEST_EMULATED;
  fs::path folder_;
};

TEST_F(LoadingTest, WithAllOfItThereIsADevice) {
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13", emulated_ / "libnvrtc.so.13");
  EXPECT_THAT(Info(), HasSubstr("Emulated GPU"));
}

// 132 multiprocessors of sm_90 at 1 GHz; memory at 1 GHz, 256 bits wide.
TEST_F(LoadingTest, ADeviceTellsItsRatesAndSizes) {
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13", emulated_ / "libnvrtc.so.13");
  const std::string told = Info({}, "--json");
  EXPECT_THAT(told, HasSubstr("\"macs_fp32\": 16896000000000,"));
  EXPECT_THAT(told, HasSubstr("\"macs_fp16\": 270336000000000,"));
  EXPECT_THAT(told, HasSubstr("\"memory_bandwidth\": 64000000000,"));
  EXPECT_THAT(told, HasSubstr("\"compute_capability\": \"9.0\""));
  EXPECT_THAT(told, HasSubstr("\"multiprocessors\": \"132\""));
}

TEST_F(LoadingTest, NoDriverIsTold) {
  Put("libcuda.so.1");
  EXPECT_THAT(Info(), HasSubstr("Plugin 'cuda' is not used (no device): The CUDA driver "
                                "libcuda.so.1 cannot be opened: "));
}

TEST_F(LoadingTest, ADriverWithoutAFunctionIsTold) {
  Put("libcuda.so.1", emulated_ / "libnvrtc.so.13");
  EXPECT_THAT(Info(), HasSubstr("The CUDA driver has no function cuInit."));
}

TEST_F(LoadingTest, NoCompilerIsTold) {
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13");
  Put("libnvrtc.so.12");
  EXPECT_THAT(Info(), HasSubstr("The CUDA compiler NVRTC, version 13 or 12, cannot be opened: "));
}

// A cache folder that another machine has filled serves in NVRTC's place, for the architectures
// that it was filled for; nothing is compiled, and what is not there is told.
TEST_F(LoadingTest, KeptKernelsServeWithoutACompiler) {
  const std::string cache = "ONNXIFI_CACHE_DIR='" + (folder_ / "cache").string() + "'";
  const std::string model = " '" ONNXIFI_TEST_MODEL "'";
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13", emulated_ / "libnvrtc.so.13");
  // sm_100's kernels are those of another device.
  EXPECT_THAT(Run(cache, "--compile-for sm_100" + model), HasSubstr(" for sm_100 in "));
  const std::string with_compiler = Run("ONNXIFI_CACHE_DIR=", "--device cuda" + model);
  fs::remove(folder_ / "libnvrtc.so.13");
  Put("libnvrtc.so.13");
  Put("libnvrtc.so.12");
  EXPECT_THAT(Info(cache), HasSubstr("Emulated GPU (sm_90) has no kernels in the "
                                     "cache folder, and NVRTC, which would compile them, cannot "
                                     "be opened"));
  fs::remove(folder_ / "libnvrtc.so.13");
  Put("libnvrtc.so.13", emulated_ / "libnvrtc.so.13");
  EXPECT_THAT(Run(cache, "--compile-for sm_90" + model), HasSubstr(" for sm_90 in "));
  fs::remove(folder_ / "libnvrtc.so.13");
  Put("libnvrtc.so.13");
  EXPECT_THAT(Info(cache), HasSubstr("Emulated GPU"));
  const std::string without = Run(cache, "--device cuda" + model);
  EXPECT_THAT(without, HasSubstr("largest values:"));
  const auto outputs_of = [](const std::string& told) {
    return told.substr(0, told.find("First result"));
  };
  EXPECT_EQ(outputs_of(without), outputs_of(with_compiler));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "cache")) {
    if (entry.path().extension() == ".bin") fs::remove(entry);
  }
  EXPECT_THAT(Run(cache, "--device cuda" + model),
              HasSubstr("The cache folder has no such kernel that can be used, and NVRTC, which "
                        "would compile it, cannot be opened."));
}

TEST_F(LoadingTest, TheOlderCompilerServes) {
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13");
  Put("libnvrtc.so.12", emulated_ / "libnvrtc.so.13");
  EXPECT_THAT(Info(), HasSubstr("Emulated GPU"));
}

TEST_F(LoadingTest, NoDeviceIsTold) {
  Put("libcuda.so.1", emulated_ / "libcuda.so.1");
  Put("libnvrtc.so.13", emulated_ / "libnvrtc.so.13");
  EXPECT_THAT(Info("CUDA_VISIBLE_DEVICES="), HasSubstr("The CUDA driver has no device."));
}

TEST_F(LoadingTest, ThePluginIsLinkedToNothingOfCuda) {
  const std::string needed = OutputOf("readelf -d '" ONNXIFI_TEST_PLUGIN "' | grep NEEDED");
  ASSERT_THAT(needed, HasSubstr("libc.so"));
  for (const char* const library : {"cuda", "nvrtc", "cublas", "cudnn", "nvidia", "nvJitLink"}) {
    EXPECT_THAT(needed, Not(HasSubstr(library)));
  }
}

}  // namespace
}  // namespace onnxifi::cuda
