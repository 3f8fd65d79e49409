// SPDX-License-Identifier: Apache-2.0
//
// FloatMode: instructions are put in where the logical layout of a module has their kind:
// capabilities, extensions, ..., entry points, execution modes, names, decorations, types,
// functions (SPIR-V specification, section 2.4).

#include "backends/vulkan/float_mode.h"

#include <algorithm>
#include <set>

namespace onnxifi::vulkan {
namespace {

constexpr uint32_t kMagic = 0x07230203;
constexpr size_t kHeaderWords = 5;
constexpr size_t kPlainFloatWords = 3;  // of OpTypeFloat; a fourth is an encoding

// Opcodes.
enum : uint32_t {
  kOpExtension = 10,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpTypeVoid = 19,
  kOpTypeFloat = 22,
  kOpTypeForwardPointer = 39,
  kOpConstantTrue = 41,
  kOpSpecConstantOp = 52,
  kOpFunction = 54,
  kOpVariable = 59,
  kOpDecorate = 71,
  kOpFNegate = 127,
  kOpFAdd = 129,
  kOpFSub = 131,
  kOpFMul = 133,
  kOpFDiv = 136,
  kOpFRem = 140,
  kOpFMod = 141,
  kOpVectorTimesScalar = 142,  // the first of the products of vectors and matrices
  kOpDot = 148,                // the last of them
};

constexpr uint32_t kNoContraction = 42;  // decoration
// The capability of a mode is the mode's number and 5.
constexpr uint32_t kDenormPreserve = 4459;
constexpr uint32_t kSignedZeroInfNanPreserve = 4461;
constexpr uint32_t kRoundingModeRte = 4462;
constexpr uint32_t kCapabilityOfMode = 5;
// From this version on the modes need no extension.
constexpr uint32_t kVersionWithModes = 0x00010400;

bool IsFloatOperation(uint32_t opcode) {
  switch (opcode) {
    case kOpFNegate:
    case kOpFAdd:
    case kOpFSub:
    case kOpFMul:
    case kOpFDiv:
    case kOpFRem:
    case kOpFMod:
      return true;
    default:
      return opcode >= kOpVectorTimesScalar && opcode <= kOpDot;
  }
}

bool IsTypeOrConstant(uint32_t opcode) {
  return (opcode >= kOpTypeVoid && opcode <= kOpTypeForwardPointer) ||
         (opcode >= kOpConstantTrue && opcode <= kOpSpecConstantOp) || opcode == kOpVariable ||
         opcode == kOpFunction;
}

struct Found {
  size_t after_capabilities = kHeaderWords;
  size_t after_modes = 0;
  size_t before_types = 0;
  uint32_t entry_point = 0;
  std::set<uint32_t> float_bits;
  std::set<uint32_t> capabilities;
  std::set<uint32_t> marked;
  std::vector<uint32_t> operations;
};

// False for what is no module.
bool Find(std::span<const uint32_t> module, Found& found) {
  if (module.size() < kHeaderWords || module[0] != kMagic) return false;
  for (size_t at = kHeaderWords; at < module.size();) {
    const uint32_t opcode = module[at] & 0xFFFF;
    const size_t length = module[at] >> 16;
    if (length == 0 || length > module.size() - at) return false;
    const auto word = [&](size_t k) { return k < length ? module[at + k] : 0; };
    if (found.before_types == 0 && IsTypeOrConstant(opcode)) found.before_types = at;
    if (opcode == kOpCapability) {
      found.after_capabilities = at + length;
      found.capabilities.insert(word(1));
    } else if (opcode == kOpEntryPoint) {
      found.entry_point = word(2);
      found.after_modes = at + length;
    } else if (opcode == kOpExecutionMode) {
      found.after_modes = at + length;
    } else if (opcode == kOpTypeFloat) {
      // Modes are not for types of another encoding, as bfloat16.
      if (length == kPlainFloatWords) found.float_bits.insert(word(2));
    } else if (opcode == kOpDecorate && word(2) == kNoContraction) {
      found.marked.insert(word(1));
    } else if (IsFloatOperation(opcode)) {
      found.operations.push_back(word(2));
    }
    at += length;
  }
  return found.after_modes != 0 && found.before_types >= found.after_modes;
}

void Append(std::vector<uint32_t>& words, uint32_t opcode,
            std::initializer_list<uint32_t> operands) {
  words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
  words.insert(words.end(), operands);
}

}  // namespace

void LimitByIndependence(VkShaderFloatControlsIndependence independence,
                         bool FloatControls::Width::*mode, FloatControls& controls) {
  if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) return;
  auto& [half, single, twice] = controls.by_width;
  if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY) {
    half.*mode = twice.*mode = half.*mode && twice.*mode;
    return;
  }
  half.*mode = single.*mode = twice.*mode = half.*mode && single.*mode && twice.*mode;
}

std::vector<uint32_t> WithFloatMode(std::span<const uint32_t> module,
                                    const FloatControls& controls) {
  Found found;
  if (!Find(module, found)) return {module.begin(), module.end()};
  std::set<uint32_t> wanted;
  std::vector<uint32_t> modes;
  for (const FloatControls::Width& width : controls.by_width) {
    if (!found.float_bits.contains(width.bits)) continue;
    const auto ask = [&](bool is_offered, uint32_t mode) {
      if (!is_offered) return;
      wanted.insert(mode);
      Append(modes, kOpExecutionMode, {found.entry_point, mode, width.bits});
    };
    ask(width.keeps_specials, kSignedZeroInfNanPreserve);
    ask(width.rounds_to_nearest, kRoundingModeRte);
    ask(width.keeps_subnormals, kDenormPreserve);
  }
  std::vector<uint32_t> capabilities;
  for (const uint32_t mode : wanted) {
    if (found.capabilities.contains(mode + kCapabilityOfMode)) continue;
    Append(capabilities, kOpCapability, {mode + kCapabilityOfMode});
  }
  if (!capabilities.empty() && module[1] < kVersionWithModes) {
    // "SPV_KHR_float_controls" in words of four characters, the first lowest, zeros behind.
    Append(capabilities, kOpExtension,
           {0x5F565053, 0x5F52484B, 0x616F6C66, 0x6F635F74, 0x6F72746E, 0x0000736C});
  }
  std::vector<uint32_t> decorations;
  for (const uint32_t operation : found.operations) {
    if (found.marked.contains(operation)) continue;
    Append(decorations, kOpDecorate, {operation, kNoContraction});
  }
  std::vector<uint32_t> result(module.begin(), module.end());
  const auto insert = [&](size_t at, const std::vector<uint32_t>& words) {
    result.insert(result.begin() + static_cast<ptrdiff_t>(at), words.begin(), words.end());
  };
  // From the end on, so that places before stay.
  insert(found.before_types, decorations);
  insert(found.after_modes, modes);
  insert(found.after_capabilities, capabilities);
  return result;
}

}  // namespace onnxifi::vulkan
