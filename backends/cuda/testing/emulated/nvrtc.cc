// SPDX-License-Identifier: Apache-2.0
//
// libnvrtc of the emulated device: has the host compiler make a shared library of a kernel's text,
// which takes the place of the cubin. Libraries are kept in a folder, by a digest of all that they
// are made from.

#include <fcntl.h>
#include <nvrtc.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/fnv_hash.h"
#include "backends/cuda/testing/emulated/kernel_text.h"

extern char** environ;

struct _nvrtcProgram {
  std::string source;
  std::string log;
  std::string binary;
  bool is_compiled = false;
  bool is_virtual = false;
};

namespace emulated {
namespace {

namespace fs = std::filesystem;

constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

struct State {
  std::mutex mutex;
  std::map<nvrtcProgram, std::unique_ptr<_nvrtcProgram>> programs;
  std::map<std::string, int> calls;
  std::map<std::string, int> compiled;
  // Of emulated_nvrtc_fail: the function, the result, calls before, and how many.
  std::string failing;
  nvrtcResult result = NVRTC_SUCCESS;
  int calls_before = 0;
  int count = 0;
  int compilations = 0;
};

State& S() {
  static auto* const state = new State;
  return *state;
}

nvrtcResult Enter(const char* function) {
  const std::lock_guard lock(S().mutex);
  ++S().calls[function];
  if (S().failing != function) return NVRTC_SUCCESS;
  if (S().calls_before > 0) {
    --S().calls_before;
    return NVRTC_SUCCESS;
  }
  if (S().count == 0) return NVRTC_SUCCESS;
  if (S().count > 0) --S().count;
  return S().result;
}

#define EMULATED_ENTER(function)                            \
  const nvrtcResult entered = ::emulated::Enter(#function); \
  if (entered != NVRTC_SUCCESS) return entered

_nvrtcProgram* FindProgram(nvrtcProgram handle) {
  const std::lock_guard lock(S().mutex);
  const auto found = S().programs.find(handle);
  return found == S().programs.end() ? nullptr : found->second.get();
}

std::string Read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

fs::path Folder() {
  const char* const named = std::getenv("ONNXIFI_EMULATED_CACHE");
  const fs::path folder =
      named != nullptr && *named != '\0'
          ? fs::path(named)
          : fs::temp_directory_path() / ("onnxifi-emulated-" + std::to_string(getuid()));
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  return folder;
}

// The status of the command, or -1 if it cannot be started. What it says goes to the file.
int Start(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  // A sanitizer of this process is none of the compiler's business.
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  pid_t child = 0;
  const int failure =
      posix_spawnp(&child, words[0], &actions, nullptr, words.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

struct Options {
  int architecture = 75;
  bool is_virtual = true;
  bool is_verbose = false;
  unsigned most_registers = kMaxRegisters;
  std::vector<std::string> forwarded;
};

bool TakePrefix(std::string_view* text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (text->substr(0, prefix.size()) != prefix) continue;
    text->remove_prefix(prefix.size());
    return true;
  }
  return false;
}

// False for what NVRTC does not know, with a sentence in the log as it has it.
bool Parse(int count, const char* const* texts, Options* options, std::string* log) {
  const auto refuse = [&](std::string_view what, std::string_view option) {
    *log = "nvrtc: error: " + std::string(what) + " " + std::string(option) + "\n";
    return false;
  };
  for (int n = 0; n < count; ++n) {
    const std::string_view option = texts[n];
    std::string_view value = option;
    if (TakePrefix(&value, {"--gpu-architecture=", "-arch="})) {
      const std::string_view name = value;
      options->is_virtual = TakePrefix(&value, {"compute_"});
      if (!options->is_virtual && !TakePrefix(&value, {"sm_"})) {
        return refuse("invalid value for --gpu-architecture (-arch):", name);
      }
      char* end = nullptr;
      const std::string number(value);
      options->architecture = static_cast<int>(std::strtol(number.c_str(), &end, 10));
      const bool is_specific =
          (*end == 'a' || *end == 'f') && end[1] == '\0' && options->architecture >= 90;
      const bool is_known = std::find(std::begin(kArchitectures), std::end(kArchitectures),
                                      options->architecture) != std::end(kArchitectures);
      if (!is_known || (*end != '\0' && !is_specific)) {
        return refuse("invalid value for --gpu-architecture (-arch):", name);
      }
    } else if (TakePrefix(&value,
                          {"--fmad=", "-fmad=", "--ftz=", "-ftz=", "--prec-div=", "-prec-div=",
                           "--prec-sqrt=", "-prec-sqrt=", "--builtin-initializer-list=",
                           "--builtin-move-forward=", "--device-stack-protector="})) {
      if (value != "true" && value != "false") return refuse("invalid value for option", option);
    } else if (TakePrefix(&value, {"--ptxas-options=", "-Xptxas="})) {
      if (value == "-v" || value == "--verbose") options->is_verbose = true;
    } else if (option == "--ptxas-options" || option == "-Xptxas") {
      if (++n == count) return refuse("an option lacks its value:", option);
      if (std::string_view(texts[n]) == "-v") options->is_verbose = true;
    } else if (TakePrefix(&value, {"--define-macro=", "-D", "--undefine-macro=", "-U"})) {
      const bool is_definition = option.substr(0, 2) == "-D" || option.substr(0, 3) == "--d";
      options->forwarded.push_back((is_definition ? "-D" : "-U") + std::string(value));
    } else if (TakePrefix(&value, {"--std=", "-std="})) {
      if (value != "c++03" && value != "c++11" && value != "c++14" && value != "c++17" &&
          value != "c++20") {
        return refuse("invalid value for --std:", value);
      }
    } else if (TakePrefix(&value, {"--maxrregcount=", "-maxrregcount="})) {
      const unsigned long number = std::strtoul(std::string(value).c_str(), nullptr, 10);
      if (number == 0) return refuse("invalid value for --maxrregcount:", value);
      options->most_registers = static_cast<unsigned>(std::min(number, 255UL));
    } else if (TakePrefix(&value, {"--include-path=", "-I", "--diag-", "-diag-",
                                   "--split-compile=", "-split-compile="})) {
    } else {
      constexpr std::string_view kPlain[] = {"--use_fast_math",
                                             "-use_fast_math",
                                             "--generate-line-info",
                                             "-lineinfo",
                                             "--device-debug",
                                             "-G",
                                             "--restrict",
                                             "-restrict",
                                             "--disable-warnings",
                                             "-w",
                                             "--device-as-default-execution-space",
                                             "-default-device",
                                             "--device-int128",
                                             "-device-int128",
                                             "--extra-device-vectorization",
                                             "-extra-device-vectorization",
                                             "--no-source-include",
                                             "-no-source-include",
                                             "--minimal",
                                             "-minimal",
                                             "--relocatable-device-code=false",
                                             "-rdc=false",
                                             "--dopt=on",
                                             "--no-cache",
                                             "-no-cache"};
      if (std::find(std::begin(kPlain), std::end(kPlain), option) == std::end(kPlain)) {
        return refuse("unrecognized option", std::string(option) + " found");
      }
    }
  }
  return true;
}

// The compiler's words with the name that NVRTC gives a text without one.
std::string CleanLog(std::string log, const std::string& file) {
  for (size_t at = log.find(file); at != std::string::npos; at = log.find(file, at)) {
    log.replace(at, file.size(), "default_program");
  }
  return log;
}

bool IsSanitized() {
  const char* const text = std::getenv("ONNXIFI_EMULATED_SANITIZE");
  return text != nullptr && *text == '1';
}

nvrtcResult Compile(_nvrtcProgram* program, const Options& options) {
  const std::vector<KernelEntry> kernels = FindKernels(program->source, options.most_registers);
  if (kernels.empty()) {
    program->log = "default_program: error: the text has no kernel\n";
    return NVRTC_ERROR_COMPILATION;
  }
  std::string text;
  for (int n = 0; n < kHeaderCount; ++n) text += kHeaders[n];
  text += "#line 1\n" + Translate(program->source) + "\nEMULATED_MODULE(\n";
  for (size_t n = 0; n < kernels.size(); ++n) {
    text += (n == 0 ? "  EMULATED_KERNEL(" : ",\n  EMULATED_KERNEL(") + kernels[n].name + ", " +
            std::to_string(kernels[n].most_items) + ", " + std::to_string(kernels[n].registers) +
            ")";
  }
  text += ")\n";

  std::vector<std::string> command = {
      ONNXIFI_EMULATED_COMPILER,
      "-x",
      "c++",
      "-std=c++17",
      "-O1",
      "-w",
      "-fPIC",
      "-shared",
      "-nostdlib",
      "-fno-exceptions",
      "-fno-rtti",
      "-fno-strict-aliasing",
      "-ffp-contract=off",
      "-fno-math-errno",
      "-fno-asynchronous-unwind-tables",
      "-fno-stack-protector",
      "-fno-threadsafe-statics",
      "-fvisibility=hidden",
      "-DEMULATED_ARCHITECTURE=" + std::to_string(options.is_virtual ? 0 : options.architecture),
      "-D__CUDA_ARCH__=" + std::to_string(options.architecture * 10),
      "-D__CUDACC__=1",
      "-D__CUDACC_RTC__=1"};
  if (IsSanitized()) command.insert(command.end(), {"-fsanitize=address,undefined", "-g"});
  command.insert(command.end(), options.forwarded.begin(), options.forwarded.end());
  // Also what the compiler calls for numbers of 16 bits, as a process may have no such functions.
  const std::vector<std::string> libraries = {"-lm", "-lgcc"};
  std::string all = text;
  for (const std::string& word : command) all += '\n' + word;
  for (const std::string& word : libraries) all += '\n' + word;
  const std::string name = onnxifi::base::HashName(onnxifi::base::FnvHash(all)) +
                           onnxifi::base::HashName(onnxifi::base::FnvHash(all, 0x9e3779b97f4a7c15));
  const fs::path folder = Folder();
  const fs::path kept = folder / (std::string(name) + ".so");
  program->binary = Read(kept);
  if (program->binary.empty()) {
    static std::atomic<int> next{0};
    const fs::path stem =
        folder / ("part-" + std::to_string(getpid()) + "-" + std::to_string(next++));
    const std::string source_file = stem.string() + ".cc";
    const std::string log_file = stem.string() + ".log";
    const std::string made = stem.string() + ".so";
    std::ofstream(source_file) << text;
    command.insert(command.end(), {"-o", made, source_file});
    command.insert(command.end(), libraries.begin(), libraries.end());
    const int status = Start(command, log_file);
    program->log = CleanLog(Read(log_file), source_file);
    std::error_code ignored;
    if (status == 0) {
      program->binary = Read(made);
      fs::rename(made, kept, ignored);
    } else if (status < 0 || status == 127) {
      program->log = std::string("nvrtc: error: the host compiler ") + ONNXIFI_EMULATED_COMPILER +
                     " cannot be started\n";
    }
    fs::remove(source_file, ignored);
    fs::remove(log_file, ignored);
    {
      const std::lock_guard lock(S().mutex);
      ++S().compilations;
    }
    if (program->binary.empty()) return NVRTC_ERROR_COMPILATION;
  }
  if (options.is_verbose) {
    program->log += "ptxas info    : 0 bytes gmem\n";
    for (const KernelEntry& kernel : kernels) {
      program->log += "ptxas info    : Compiling entry function '" + kernel.name + "' for 'sm_" +
                      std::to_string(options.architecture) +
                      "'\nptxas info    : Function properties for " + kernel.name +
                      "\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                      "ptxas info    : Used " +
                      std::to_string(kernel.registers) + " registers, used 1 barriers\n";
    }
  }
  program->is_virtual = options.is_virtual;
  program->is_compiled = true;
  return NVRTC_SUCCESS;
}

nvrtcResult CopyOut(const std::string& from, char* to) {
  if (to == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(to, from.data(), from.size());
  return NVRTC_SUCCESS;
}

}  // namespace
}  // namespace emulated

using namespace emulated;

#define EMULATED_PROGRAM(handle)                      \
  _nvrtcProgram* const program = FindProgram(handle); \
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM
#define EMULATED_EXPORT extern "C" __attribute__((visibility("default")))

const char* nvrtcGetErrorString(nvrtcResult result) {
  constexpr const char* kNames[] = {"NVRTC_SUCCESS",
                                    "NVRTC_ERROR_OUT_OF_MEMORY",
                                    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                    "NVRTC_ERROR_INVALID_INPUT",
                                    "NVRTC_ERROR_INVALID_PROGRAM",
                                    "NVRTC_ERROR_INVALID_OPTION",
                                    "NVRTC_ERROR_COMPILATION",
                                    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                    "NVRTC_ERROR_INTERNAL_ERROR",
                                    "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"};
  const auto index = static_cast<size_t>(result);
  return index < std::size(kNames) ? kNames[index] : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  EMULATED_ENTER(nvrtcVersion);
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  EMULATED_ENTER(nvrtcGetNumSupportedArchs);
  if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *count = static_cast<int>(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  EMULATED_ENTER(nvrtcGetSupportedArchs);
  if (architectures == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), architectures);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* made, const char* source, const char*,
                               int header_count, const char* const*, const char* const*) {
  EMULATED_ENTER(nvrtcCreateProgram);
  if (made == nullptr || source == nullptr || header_count < 0) return NVRTC_ERROR_INVALID_INPUT;
  auto program = std::make_unique<_nvrtcProgram>();
  program->source = source;
  const std::lock_guard lock(S().mutex);
  *made = program.get();
  S().programs[*made] = std::move(program);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* handle) {
  EMULATED_ENTER(nvrtcDestroyProgram);
  if (handle == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  const std::lock_guard lock(S().mutex);
  if (S().programs.erase(*handle) == 0) return NVRTC_ERROR_INVALID_PROGRAM;
  *handle = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int count, const char* const* texts) {
  EMULATED_ENTER(nvrtcCompileProgram);
  EMULATED_PROGRAM(handle);
  Options options;
  program->log.clear();
  if (count < 0 || (count > 0 && texts == nullptr)) return NVRTC_ERROR_INVALID_INPUT;
  if (!Parse(count, texts, &options, &program->log)) return NVRTC_ERROR_INVALID_OPTION;
  return Compile(program, options);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram handle, size_t* size_bytes) {
  EMULATED_ENTER(nvrtcGetCUBINSize);
  EMULATED_PROGRAM(handle);
  if (size_bytes == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (!program->is_compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  *size_bytes = program->is_virtual ? 0 : program->binary.size();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram handle, char* cubin) {
  EMULATED_ENTER(nvrtcGetCUBIN);
  EMULATED_PROGRAM(handle);
  if (!program->is_compiled || program->is_virtual) return NVRTC_ERROR_INVALID_PROGRAM;
  return CopyOut(program->binary, cubin);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram handle, size_t* size_bytes) {
  EMULATED_ENTER(nvrtcGetPTXSize);
  EMULATED_PROGRAM(handle);
  if (size_bytes == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  if (!program->is_compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  *size_bytes = program->binary.size();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram handle, char* ptx) {
  EMULATED_ENTER(nvrtcGetPTX);
  EMULATED_PROGRAM(handle);
  if (!program->is_compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  return CopyOut(program->binary, ptx);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram handle, size_t* size_bytes) {
  EMULATED_ENTER(nvrtcGetProgramLogSize);
  EMULATED_PROGRAM(handle);
  if (size_bytes == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *size_bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram handle, char* log) {
  EMULATED_ENTER(nvrtcGetProgramLog);
  EMULATED_PROGRAM(handle);
  if (log == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

EMULATED_EXPORT void emulated_nvrtc_fail(const char* function, int result, int call, int count) {
  const std::lock_guard lock(S().mutex);
  S().failing = function != nullptr ? function : "";
  S().result = static_cast<nvrtcResult>(result);
  S().calls_before = call;
  S().count = count;
  S().calls.clear();
}

EMULATED_EXPORT int emulated_nvrtc_call_count(const char* function) {
  const std::lock_guard lock(S().mutex);
  const auto found = S().calls.find(function);
  return found == S().calls.end() ? 0 : found->second;
}

EMULATED_EXPORT int emulated_nvrtc_compilations(void) {
  const std::lock_guard lock(S().mutex);
  return S().compilations;
}

EMULATED_EXPORT int emulated_nvrtc_live_programs(void) {
  const std::lock_guard lock(S().mutex);
  return static_cast<int>(S().programs.size());
}
