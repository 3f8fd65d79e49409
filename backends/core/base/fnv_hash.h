// SPDX-License-Identifier: Apache-2.0
//
// FnvHash: a number for names of files and for checksums: the same in every process and on every
// machine. It resists no attacker.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_FNV_HASH_H_
#define ONNXIFI_BACKENDS_CORE_BASE_FNV_HASH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onnxifi::base {

inline constexpr uint64_t kFnvStart = 0xcbf29ce484222325;

// FNV-1a (Fowler, Noll and Vo), 64 bits. `hash`: of what stands before, or another start.
inline uint64_t FnvHash(std::string_view bytes, uint64_t hash = kFnvStart) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

inline uint64_t FnvHash(std::span<const std::byte> bytes, uint64_t hash = kFnvStart) {
  return FnvHash(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), hash);
}

// As 16 hexadecimal digits.
inline std::string HashName(uint64_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name(16, '0');
  for (size_t k = name.size(); k-- > 0; hash >>= 4) name[k] = kDigits[hash & 15];
  return name;
}

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_FNV_HASH_H_
