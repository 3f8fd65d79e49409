// SPDX-License-Identifier: Apache-2.0
//
// WireScanner: one bounded walk over the bytes of a model before protobuf sees them. It refuses
// malformed bytes with their offset, and lifts the data of every tensor out, so that what protobuf
// parses is small.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_WIRE_SCANNER_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_WIRE_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::model {

// Messages inside messages, as deep as protobuf itself would follow them.
inline constexpr int kMaxNesting = 96;
// Messages of a model, each of which costs a few hundred bytes once parsed.
inline constexpr int64_t kMaxMessages = int64_t{1} << 22;

// The data fields of one TensorProto. Spans point into the scanned bytes.
struct LiftedTensor {
  std::span<const std::byte> body;  // the whole TensorProto, from which typed fields are read
  std::span<const std::byte> raw;   // raw_data
  bool has_raw = false;
  // Elements in the typed fields.
  int64_t float_count = 0;
  int64_t int32_count = 0;
  int64_t int64_count = 0;
  int64_t double_count = 0;
  int64_t uint64_count = 0;
  int64_t string_count = 0;
};

struct ScannedModel {
  // A ModelProto without tensor data, documentation, metadata, training information and unknown
  // fields. The raw_data of each of its tensors is a little-endian uint32: the index into
  // `tensors`.
  std::string skeleton;
  std::vector<LiftedTensor> tensors;
};

// INVALID_PROTOBUF with the byte offset if `bytes` is not the wire form of a ModelProto, nests
// deeper than kMaxNesting or holds more than kMaxMessages messages. Memory: at most a constant
// times the size of `bytes`.
base::Result<ScannedModel> ScanModel(std::span<const std::byte> bytes);

// Field numbers of TensorProto's data.
enum class TensorField : uint32_t {
  kFloat = 4,
  kInt32 = 5,
  kString = 6,
  kInt64 = 7,
  kRaw = 9,
  kDouble = 10,
  kUint64 = 11,
};

// Calls `visit` for each run of bytes of `field` in a TensorProto that ScanModel accepted: a packed
// block, or one element by itself, without tag and length.
void ForEachRun(std::span<const std::byte> body, TensorField field,
                const std::function<void(std::span<const std::byte> run)>& visit);

// Reads a varint at `position`, inside bytes that ScanModel accepted, and moves past it.
uint64_t ReadCheckedVarint(std::span<const std::byte> bytes, size_t& position);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_WIRE_SCANNER_H_
