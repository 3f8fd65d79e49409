// SPDX-License-Identifier: Apache-2.0
//
// Kept kernels: a file with a version beside the tables of kernels.

#include "backends/cuda/kept_kernels.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

namespace onnxifi::cuda {
namespace {

constexpr const char kCompilerFile[] = "cuda-compiler.txt";

}  // namespace

std::filesystem::path KernelReportFile(const std::filesystem::path& folder, int architecture) {
  return folder / ("cuda-kernels-sm_" + std::to_string(architecture) + ".csv");
}

void NoteCompiler(const std::filesystem::path& folder, int major, int minor) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream(folder / kCompilerFile) << "NVRTC " << major << ' ' << minor << '\n';
}

base::Result<CompilerApi> FindKeptCompiler(const std::filesystem::path& folder,
                                           const base::Status& missing) {
  CompilerApi api;
  std::ifstream file;
  if (!folder.empty()) file.open(folder / kCompilerFile);
  std::string name;
  if (!(file >> name >> api.kept_major >> api.kept_minor) || name != "NVRTC" ||
      api.kept_major <= 0 || api.kept_minor < 0) {
    return missing;
  }
  return api;
}

void KeepDevicesWithKernels(const std::filesystem::path& folder, FoundDevices& devices) {
  std::erase_if(devices.fit, [&](const DeviceInfo& info) {
    std::error_code error;
    if (std::filesystem::exists(KernelReportFile(folder, info.architecture), error)) return false;
    devices.left_out.push_back(info.name + " (sm_" + std::to_string(info.architecture) +
                               ") has no kernels in the cache folder, and NVRTC, which would " +
                               "compile them, cannot be opened");
    return true;
  });
}

}  // namespace onnxifi::cuda
