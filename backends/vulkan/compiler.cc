// SPDX-License-Identifier: Apache-2.0
//
// Compiler: glslang's C interface. The process is made ready once and never taken down: another
// thread may still compile.

#include "backends/vulkan/compiler.h"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
#include <glslang/build_info.h>

#include <memory>
#include <string_view>

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

// More of a compiler's words than this helps nobody.
constexpr size_t kMaxLogBytes = 2000;

struct ShaderEnd {
  void operator()(glslang_shader_t* shader) const { glslang_shader_delete(shader); }
};
struct ProgramEnd {
  void operator()(glslang_program_t* program) const { glslang_program_delete(program); }
};

Status Refusal(const char* log) {
  Status status(Code::kInternalError, "glslang refuses the source of a kernel.");
  const std::string_view words = log == nullptr ? "" : log;
  status.Context("the compiler says: " + std::string(words.substr(0, kMaxLogBytes)));
  return status;
}

}  // namespace

Result<std::vector<uint32_t>> CompileGlsl(const std::string& source) {
  static const bool is_ready = glslang_initialize_process() != 0;
  if (!is_ready) return Status(Code::kInternalError, "glslang cannot be initialised.");
  glslang_input_t input{};
  input.language = GLSLANG_SOURCE_GLSL;
  input.stage = GLSLANG_STAGE_COMPUTE;
  input.client = GLSLANG_CLIENT_VULKAN;
  input.client_version = GLSLANG_TARGET_VULKAN_1_2;
  input.target_language = GLSLANG_TARGET_SPV;
  input.target_language_version = GLSLANG_TARGET_SPV_1_5;
  input.code = source.c_str();
  input.default_version = 460;
  input.default_profile = GLSLANG_NO_PROFILE;
  input.messages = static_cast<glslang_messages_t>(
      GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT | GLSLANG_MSG_SUPPRESS_WARNINGS_BIT);
  input.resource = glslang_default_resource();
  const std::unique_ptr<glslang_shader_t, ShaderEnd> shader(glslang_shader_create(&input));
  if (shader == nullptr)
    return Status(Code::kNoSystemMemory, "glslang has no memory for a kernel.");
  if (glslang_shader_preprocess(shader.get(), &input) == 0 ||
      glslang_shader_parse(shader.get(), &input) == 0) {
    return Refusal(glslang_shader_get_info_log(shader.get()));
  }
  const std::unique_ptr<glslang_program_t, ProgramEnd> program(glslang_program_create());
  if (program == nullptr) {
    return Status(Code::kNoSystemMemory, "glslang has no memory for a kernel.");
  }
  glslang_program_add_shader(program.get(), shader.get());
  if (glslang_program_link(program.get(), input.messages) == 0) {
    return Refusal(glslang_program_get_info_log(program.get()));
  }
  glslang_program_SPIRV_generate(program.get(), input.stage);
  std::vector<uint32_t> words(glslang_program_SPIRV_get_size(program.get()));
  if (words.empty()) return Refusal(glslang_program_SPIRV_get_messages(program.get()));
  glslang_program_SPIRV_get(program.get(), words.data());
  return words;
}

bool KnowsCooperativeMatrices() { return GLSLANG_VERSION_MAJOR >= 13; }

bool KnowsBfloat16() {
  return GLSLANG_VERSION_MAJOR > 15 || (GLSLANG_VERSION_MAJOR == 15 && GLSLANG_VERSION_MINOR >= 3);
}

std::string CompilerName() {
  return "glslang " + std::to_string(GLSLANG_VERSION_MAJOR) + "." +
         std::to_string(GLSLANG_VERSION_MINOR) + "." + std::to_string(GLSLANG_VERSION_PATCH);
}

}  // namespace onnxifi::vulkan
