// SPDX-License-Identifier: Apache-2.0
//
// GuardedBuffer: memory for one tensor between two fences of known bytes, so that a library that
// writes beside it is found out, and filled with a pattern, so that one that writes nothing is too.

#ifndef ONNXIFI_CLIENT_GUARDED_BUFFER_H_
#define ONNXIFI_CLIENT_GUARDED_BUFFER_H_

#include <cstddef>
#include <span>
#include <vector>

namespace onnxifi::client {

class GuardedBuffer {
 public:
  // `misalignment_bytes` moves the start away from a 64-byte boundary.
  explicit GuardedBuffer(size_t size_bytes, size_t misalignment_bytes = 0);

  std::span<std::byte> bytes() { return {data_, size_bytes_}; }
  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  std::byte* data() { return data_; }

  // Fills the memory with the pattern of the beginning.
  void Refill();

  // Whether the bytes before and after are as they were.
  bool IsIntact() const;

 private:
  std::vector<std::byte> storage_;
  std::byte* data_;
  size_t size_bytes_;
};

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_GUARDED_BUFFER_H_
