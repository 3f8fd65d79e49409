// SPDX-License-Identifier: Apache-2.0
//
// The conversions of float16 and bfloat16 in kernels: their text, compiled as C++ by the compiler
// of the build, against core/tensor's: every code, and every number around which rounding changes.

#include "backends/core/codegen/helpers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "backends/core/tensor/convert.h"

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;
using tensor::ElementType;

// The names of dialect.h that the conversions use.
constexpr const char* kPrelude = R"(typedef unsigned u32; typedef float f32;
#define FN static inline
#define AS(type, value) ((type)(value))
#define BITS_f32(value) __builtin_bit_cast(u32, (f32)(value))
#define FROM_BITS_f32(bits) __builtin_bit_cast(f32, (u32)(bits))
)";

using Decode = float (*)(uint32_t);
using Encode = uint32_t (*)(float);

class HelpersTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "helpers.XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::string text = kPrelude;
    for (const char* type : {"f16", "bf16"}) {
      for (const std::string way : {"decode_", "encode_"}) {
        const std::string function = way + type;
        const bool decodes = way == "decode_";
        text += FindHelper(function, {}).text + "extern \"C\" " + (decodes ? "f32" : "u32") +
                " test_" + function + (decodes ? "(u32" : "(f32") + " x) { return " + function +
                "(x); }\n";
      }
    }
    std::ofstream(folder_ / "helpers.cc") << text;
    const std::string library = (folder_ / "helpers.so").string();
    const std::string command = std::string(ONNXIFI_TEST_COMPILER) +
                                " -std=c++20 -O1 -shared -fPIC -o " + library + " " +
                                (folder_ / "helpers.cc").string();
    ASSERT_EQ(std::system(command.c_str()), 0) << text;
    handle_ = dlopen(library.c_str(), RTLD_NOW);
    ASSERT_NE(handle_, nullptr) << dlerror();
  }
  void TearDown() override {
    if (handle_ != nullptr) dlclose(handle_);
    fs::remove_all(folder_);
  }
  template <typename Function>
  Function Find(const std::string& name) {
    return reinterpret_cast<Function>(dlsym(handle_, ("test_" + name).c_str()));
  }

  void ExpectEveryCodeDecoded(ElementType type, const std::string& name) {
    const auto decode = Find<Decode>("decode_" + name);
    ASSERT_NE(decode, nullptr);
    for (uint32_t code = 0; code <= 0xffff; ++code) {
      const auto bits = static_cast<uint16_t>(code);
      const auto expected = static_cast<float>(
          tensor::LoadScalar(type, reinterpret_cast<const std::byte*>(&bits), 0).f);
      const float actual = decode(code);
      if (std::isnan(expected)
              ? !std::isnan(actual)
              : std::bit_cast<uint32_t>(actual) != std::bit_cast<uint32_t>(expected)) {
        FAIL() << name << " " << code << " is " << actual << " instead of " << expected;
      }
    }
  }

  void ExpectEncoded(ElementType type, Encode encode, uint32_t bits) {
    const auto value = std::bit_cast<float>(bits);
    const uint32_t expected = tensor::EncodeFloat(type, value);
    if (encode(value) != expected) {
      FAIL() << Name(type) << " of " << value << " (" << bits << ") is " << encode(value)
             << " instead of " << expected;
    }
  }

  void ExpectEncodedAroundEveryCode(ElementType type, const std::string& name) {
    const auto encode = Find<Encode>("encode_" + name);
    ASSERT_NE(encode, nullptr);
    for (uint32_t code = 0; code <= 0xffff && !HasFatalFailure(); ++code) {
      const auto at = static_cast<uint16_t>(code);
      const auto value = static_cast<float>(
          tensor::LoadScalar(type, reinterpret_cast<const std::byte*>(&at), 0).f);
      const auto next_at = static_cast<uint16_t>(code + 1);
      const auto next = static_cast<float>(
          tensor::LoadScalar(type, reinterpret_cast<const std::byte*>(&next_at), 0).f);
      // Itself and the middle to the next one, each with its neighbours.
      for (const float around : {value, value / 2 + next / 2}) {
        const auto bits = std::bit_cast<uint32_t>(around);
        for (uint32_t step = 0; step < 5; ++step) ExpectEncoded(type, encode, bits + step - 2);
      }
    }
    for (uint64_t bits = 0; bits <= 0xffffffff && !HasFatalFailure(); bits += 4099) {
      ExpectEncoded(type, encode, static_cast<uint32_t>(bits));
    }
  }

 private:
  fs::path folder_;
  void* handle_ = nullptr;
};

TEST_F(HelpersTest, EveryNarrowFloatIsDecoded) {
  ExpectEveryCodeDecoded(ElementType::kFloat16, "f16");
  ExpectEveryCodeDecoded(ElementType::kBfloat16, "bf16");
}

TEST_F(HelpersTest, FloatsAreRoundedToTheNearestNarrowOne) {
  ExpectEncodedAroundEveryCode(ElementType::kFloat16, "f16");
  ExpectEncodedAroundEveryCode(ElementType::kBfloat16, "bf16");
}

}  // namespace
}  // namespace onnxifi::codegen
