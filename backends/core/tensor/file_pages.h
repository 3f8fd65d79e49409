// SPDX-License-Identifier: Apache-2.0
//
// FilePages: reading a mapped file without holding in memory what is copied or packed already.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_FILE_PAGES_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_FILE_PAGES_H_

#include <cstddef>
#include <span>

namespace onnxifi::tensor {

// Tells the system that nobody needs the whole pages inside `bytes` in memory. They must belong to
// a private mapping of a file that nobody has written to: read again, they come from the file. What
// shares a page with its neighbours stays. Without effect where the system has no such call.
void GiveBackPages(std::span<const std::byte> bytes);

// Copies as memcpy does, and gives pages back as it goes, so that no more than a few MiB of
// `source` are in memory at once. `source` as above.
void CopyAndGiveBack(std::byte* target, std::span<const std::byte> source);

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_FILE_PAGES_H_
