// SPDX-License-Identifier: Apache-2.0
//
// Compiler: floats mean what they say: no sums fused with products, no subnormals flushed,
// quotients and roots rounded as IEEE 754 has them.

#include "backends/cuda/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "backends/cuda/kept_kernels.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr const char* kOptions[] = {"--fmad=false", "--ftz=false", "--prec-div=true",
                                    "--prec-sqrt=true", "--std=c++17"};

// The number before `words`; 0 if they are not there.
int NumberBefore(const std::string& log, const std::string& words) {
  const size_t at = log.find(" " + words);
  if (at == std::string::npos) return 0;
  const size_t begin = log.find_last_not_of("0123456789", at - 1) + 1;
  return std::atoi(log.substr(begin, at - begin).c_str());
}

class Program {
 public:
  explicit Program(const CompilerApi& api) : api_(api) {}
  ~Program() {
    if (program_ != nullptr) api_.DestroyProgram(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcProgram get() const { return program_; }
  nvrtcProgram* slot() { return &program_; }

 private:
  const CompilerApi& api_;
  nvrtcProgram program_ = nullptr;
};

// What NVRTC said of a program, without its end.
std::string LogOf(const CompilerApi& api, nvrtcProgram program) {
  size_t size = 0;
  std::string words;
  if (api.GetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 0) {
    words.resize(size);
    if (api.GetProgramLog(program, words.data()) != NVRTC_SUCCESS) words.clear();
    while (!words.empty() && (words.back() == '\0' || words.back() == '\n')) words.pop_back();
  }
  return words;
}

}  // namespace

Result<codegen::KernelResources> ReadResources(const std::string& log) {
  codegen::KernelResources resources;
  resources.registers = NumberBefore(log, "registers");
  if (resources.registers == 0) {
    return Status(Code::kInternalError, "NVRTC tells nothing of registers: " + log);
  }
  resources.stack_bytes = NumberBefore(log, "bytes stack frame");
  resources.spill_bytes =
      NumberBefore(log, "bytes spill stores") + NumberBefore(log, "bytes spill loads");
  resources.shared_bytes = NumberBefore(log, "bytes smem");
  return resources;
}

Result<Compiler> Compiler::Create(const CompilerApi& api, int architecture,
                                  const std::filesystem::path& report_file) {
  const auto unavailable = [](std::string sentence) {
    return Status(Code::kBackendUnavailable, std::move(sentence));
  };
  Compiler compiler(api);
  const auto name = [&](int of_major, int of_minor) {
    compiler.name_ = "NVRTC " + std::to_string(of_major) + "." + std::to_string(of_minor) + "\n" +
                     compiler.architecture_ + "\n";
    for (const char* option : kOptions) compiler.name_ += std::string(option) + "\n";
  };
  if (api.kept_major > 0) {
    compiler.architecture_ = "--gpu-architecture=sm_" + std::to_string(architecture);
    name(api.kept_major, api.kept_minor);
    return compiler;
  }
  int major = 0;
  int minor = 0;
  int count = 0;
  if (api.Version(&major, &minor) != NVRTC_SUCCESS ||
      api.GetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) {
    return unavailable("NVRTC does not tell its version or architectures.");
  }
  std::vector<int> known(static_cast<size_t>(count));
  if (api.GetSupportedArchs(known.data()) != NVRTC_SUCCESS) {
    return unavailable("NVRTC does not tell its architectures.");
  }
  std::ranges::sort(known);
  const auto newer = std::ranges::upper_bound(known, architecture);
  if (newer == known.begin()) {
    return unavailable("NVRTC knows no architecture up to sm_" + std::to_string(architecture) +
                       ".");
  }
  const int chosen = *(newer - 1);
  compiler.is_machine_code_ = chosen == architecture;
  compiler.architecture_ = std::string("--gpu-architecture=") +
                           (compiler.is_machine_code_ ? "sm_" : "compute_") +
                           std::to_string(chosen);
  name(major, minor);
  if (!report_file.empty()) {
    compiler.report_ = std::make_shared<codegen::KernelReport>(report_file);
    NoteCompiler(report_file.parent_path(), major, minor);
  }
  return compiler;
}

Result<std::vector<std::byte>> Compiler::Compile(const std::string& source) const {
  if (api_.kept_major > 0) {
    return Status(Code::kInternalError,
                  "The cache folder has no such kernel that can be used, and NVRTC, which would "
                  "compile it, cannot be opened.");
  }
  const auto check = [&](nvrtcResult result, const char* doing) {
    if (result == NVRTC_SUCCESS) return base::Ok();
    return Status(
        result == NVRTC_ERROR_OUT_OF_MEMORY ? Code::kNoSystemMemory : Code::kInternalError,
        std::string("NVRTC cannot ") + doing + ": " + api_.GetErrorString(result) + ".");
  };
  Program program(api_);
  ONNXIFI_RETURN_IF_ERROR(
      check(api_.CreateProgram(program.slot(), source.c_str(), "kernel.cu", 0, nullptr, nullptr),
            "take a kernel"));
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(architecture_.c_str());
  // Says what a kernel takes and changes nothing in it.
  if (report_ != nullptr) options.push_back("--ptxas-options=--verbose");
  const nvrtcResult result =
      api_.CompileProgram(program.get(), static_cast<int>(options.size()), options.data());
  if (result == NVRTC_ERROR_COMPILATION) {
    return Status(Code::kInternalError,
                  "NVRTC refuses a kernel: " + LogOf(api_, program.get()) + ".");
  }
  ONNXIFI_RETURN_IF_ERROR(check(result, "compile a kernel"));
  size_t size = 0;
  ONNXIFI_RETURN_IF_ERROR(check(is_machine_code_ ? api_.GetCUBINSize(program.get(), &size)
                                                 : api_.GetPTXSize(program.get(), &size),
                                "tell the size of a kernel"));
  std::vector<std::byte> binary(size);
  char* const bytes = reinterpret_cast<char*>(binary.data());
  ONNXIFI_RETURN_IF_ERROR(check(
      is_machine_code_ ? api_.GetCUBIN(program.get(), bytes) : api_.GetPTX(program.get(), bytes),
      "give a kernel"));
  if (report() != nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(const codegen::KernelResources resources,
                             ReadResources(LogOf(api_, program.get())));
    ONNXIFI_RETURN_IF_ERROR(report_->Add(binary, source, resources));
  }
  return binary;
}

}  // namespace onnxifi::cuda
