// SPDX-License-Identifier: Apache-2.0
//
// Library: what emulated libraries read from and write to device memory, in float64 meanwhile; and
// what every one of them counts and remembers for a test.

#ifndef ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LIBRARY_H_
#define ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LIBRARY_H_

#include <cuda.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace onnxifi::cuda {

enum class Number : uint8_t { kInt8, kInt32, kFloat16, kBfloat16, kFloat32 };

inline int BytesOf(Number type) {
  switch (type) {
    case Number::kInt8:
      return 1;
    case Number::kFloat16:
    case Number::kBfloat16:
      return 2;
    default:
      return 4;
  }
}

inline double Load(uintptr_t base, Number type, int64_t element) {
  const uintptr_t at = base + static_cast<uintptr_t>(element * BytesOf(type));
  const auto read = [at](auto value) {
    std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof(value));
    return value;
  };
  switch (type) {
    case Number::kInt8:
      return read(int8_t());
    case Number::kInt32:
      return read(int32_t());
    case Number::kFloat16:
      return static_cast<double>(read(_Float16()));
    case Number::kBfloat16: {
      const uint32_t bits = uint32_t{read(uint16_t())} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    default:
      return read(float());
  }
}

// With so many bits of fraction, to the nearest; of a tie to the even one.
inline float Rounded(float value, int bits) {
  uint32_t of_value = 0;
  std::memcpy(&of_value, &value, sizeof(value));
  if (!std::isfinite(value)) return value;
  const int dropped = 23 - bits;
  of_value += (uint32_t{1} << (dropped - 1)) - 1 + (of_value >> dropped & 1);
  of_value &= ~((uint32_t{1} << dropped) - 1);
  std::memcpy(&value, &of_value, sizeof(value));
  return value;
}

inline void Store(uintptr_t base, Number type, int64_t element, double value) {
  const uintptr_t at = base + static_cast<uintptr_t>(element * BytesOf(type));
  const auto write = [at](auto of_type) {
    std::memcpy(reinterpret_cast<void*>(at), &of_type, sizeof(of_type));
  };
  switch (type) {
    case Number::kInt32:
      return write(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))));
    case Number::kFloat16:
      return write(static_cast<_Float16>(static_cast<float>(value)));
    case Number::kBfloat16: {
      const float rounded = Rounded(static_cast<float>(value), 7);
      uint32_t bits = 0;
      std::memcpy(&bits, &rounded, sizeof(bits));
      return write(static_cast<uint16_t>(bits >> 16));
    }
    default:
      return write(static_cast<float>(value));
  }
}

// Whether all of it lies in one allocation of the device's.
inline bool IsInside(uintptr_t address, int64_t bytes) {
  CUdeviceptr base = 0;
  size_t size_bytes = 0;
  if (cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) !=
          CUDA_SUCCESS ||
      cuPointerGetAttribute(&size_bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) !=
          CUDA_SUCCESS) {
    return false;
  }
  return address >= base && address + static_cast<uintptr_t>(bytes) <= base + size_bytes;
}

// Faults that a test wants, and what a library was told wrongly. Any thread.
class LibraryState {
 public:
  LibraryState(const char* name, int invalid_value) : name_(name), invalid_value_(invalid_value) {}

  // Counts a call; whether it answers `result` and does nothing.
  bool Fails(const char* function, int* result) {
    const std::lock_guard lock(mutex_);
    const int call = calls_[function]++;
    if (fault_.function != function || call < fault_.call) return false;
    if (fault_.count >= 0 && call >= fault_.call + fault_.count) return false;
    *result = fault_.result;
    return true;
  }
  int Misuse(std::string sentence) {
    const std::lock_guard lock(mutex_);
    std::fprintf(stderr, "Emulated %s: %s\n", name_, sentence.c_str());
    misuse_ = std::move(sentence);
    return invalid_value_;
  }

  // The library's success, 0.
  template <typename Object>
  int Make(Object** made, Object object) {
    if (made == nullptr) return invalid_value_;
    *made = new Object(std::move(object));
    const std::lock_guard lock(mutex_);
    live_.insert(*made);
    return 0;
  }
  template <typename Object>
  int Destroy(Object* object) {
    {
      const std::lock_guard lock(mutex_);
      if (live_.erase(object) == 0) return invalid_value_;
    }
    delete object;
    return 0;
  }
  bool IsLive(const void* object) {
    const std::lock_guard lock(mutex_);
    return live_.count(object) > 0;
  }

  // For as long as a graph may start it.
  template <typename Work>
  void* Hold(const Work& work) {
    static auto* const kept = new std::set<Work>;
    const std::lock_guard lock(mutex_);
    return const_cast<Work*>(&*kept->insert(work).first);
  }

  // As control.h has them.
  void Fail(const char* function, int result, int call, int count) {
    const std::lock_guard lock(mutex_);
    fault_ = {function == nullptr ? "" : function, result, call, count};
    calls_.clear();
  }
  int call_count(const char* function) {
    const std::lock_guard lock(mutex_);
    return calls_[function];
  }
  int live_count() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(live_.size());
  }
  const char* misuse() {
    const std::lock_guard lock(mutex_);
    return misuse_.empty() ? nullptr : misuse_.c_str();
  }

 private:
  struct Fault {
    std::string function;
    int result = 0;
    int call = 0;
    int count = 0;
  };

  const char* const name_;
  const int invalid_value_;
  std::mutex mutex_;
  std::set<const void*> live_;
  std::map<std::string, int> calls_;
  Fault fault_;
  std::string misuse_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_TESTING_EMULATED_LIBRARY_H_
