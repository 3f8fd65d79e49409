// SPDX-License-Identifier: Apache-2.0
//
// WireScanner: a table of ONNX's messages drives one recursive walk. What it keeps goes to the
// skeleton in stretches as long as nothing is left out; where something is, the lengths of the
// messages around it are corrected as they end.

#include "backends/core/model/wire_scanner.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace onnxifi::model {
namespace {

using base::Code;
using base::Status;

enum class Message : uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTensorType,
  kSequenceType,
  kMapType,
  kShape,
  kDimension,
  kFunction,
  kOperatorSet,
  kStringPair,
  kSegment,
  kTraining,
  kAnnotation,
  kUnread,  // messages that nothing here reads: their fields are checked as unknown ones
};
constexpr size_t kMessageKinds = 20;

enum class FieldKind : uint8_t { kUnknown, kVarint, kFixed32, kFixed64, kBytes, kMessage };

struct Field {
  FieldKind kind = FieldKind::kUnknown;
  Message message = Message::kUnread;  // of kMessage
  bool is_repeated = false;
  bool is_kept = true;  // copied to the skeleton
};

constexpr size_t kFieldLimit = 27;  // above the largest field number that ONNX uses
using Fields = std::array<Field, kFieldLimit>;

constexpr Field kInteger{FieldKind::kVarint};
constexpr Field kIntegers{FieldKind::kVarint, Message::kUnread, true};
constexpr Field kText{FieldKind::kBytes};
constexpr Field kTexts{FieldKind::kBytes, Message::kUnread, true};
constexpr Field kDroppedText{FieldKind::kBytes, Message::kUnread, true, false};

constexpr Field One(Message message) { return {FieldKind::kMessage, message}; }
constexpr Field Many(Message message) { return {FieldKind::kMessage, message, true}; }
constexpr Field Dropped(Message message) { return {FieldKind::kMessage, message, true, false}; }

constexpr std::array<Fields, kMessageKinds> MakeTable() {
  std::array<Fields, kMessageKinds> table{};
  const auto of = [&table](Message message) -> Fields& {
    return table[static_cast<size_t>(message)];
  };
  Fields& model = of(Message::kModel);
  model[1] = model[5] = kInteger;
  model[2] = model[3] = model[4] = model[6] = kDroppedText;
  model[7] = One(Message::kGraph);
  model[8] = Many(Message::kOperatorSet);
  model[14] = Dropped(Message::kStringPair);
  model[20] = Dropped(Message::kTraining);
  model[25] = Many(Message::kFunction);
  model[26] = Dropped(Message::kUnread);

  Fields& graph = of(Message::kGraph);
  graph[1] = Many(Message::kNode);
  graph[2] = kText;
  graph[5] = Many(Message::kTensor);
  graph[10] = kDroppedText;
  graph[11] = graph[12] = graph[13] = Many(Message::kValueInfo);
  graph[14] = Dropped(Message::kAnnotation);
  graph[15] = Many(Message::kSparseTensor);
  graph[16] = Dropped(Message::kStringPair);

  Fields& node = of(Message::kNode);
  node[1] = node[2] = kTexts;
  node[3] = node[4] = node[7] = node[8] = kText;
  node[5] = Many(Message::kAttribute);
  node[6] = kDroppedText;
  node[9] = Dropped(Message::kStringPair);
  node[10] = Dropped(Message::kUnread);

  Fields& attribute = of(Message::kAttribute);
  attribute[1] = attribute[4] = attribute[21] = kText;
  attribute[2] = {FieldKind::kFixed32};
  attribute[3] = attribute[20] = kInteger;
  attribute[5] = One(Message::kTensor);
  attribute[6] = One(Message::kGraph);
  attribute[7] = {FieldKind::kFixed32, Message::kUnread, true};
  attribute[8] = kIntegers;
  attribute[9] = kTexts;
  attribute[10] = Many(Message::kTensor);
  attribute[11] = Many(Message::kGraph);
  attribute[13] = kDroppedText;
  attribute[14] = One(Message::kType);
  attribute[15] = Many(Message::kType);
  attribute[22] = One(Message::kSparseTensor);
  attribute[23] = Many(Message::kSparseTensor);

  Fields& tensor = of(Message::kTensor);
  tensor[1] = kIntegers;
  tensor[2] = tensor[14] = kInteger;
  tensor[3] = One(Message::kSegment);
  tensor[4] = {FieldKind::kFixed32, Message::kUnread, true, false};
  tensor[5] = tensor[7] = tensor[11] = {FieldKind::kVarint, Message::kUnread, true, false};
  tensor[6] = tensor[9] = tensor[12] = kDroppedText;
  tensor[8] = kText;
  tensor[10] = {FieldKind::kFixed64, Message::kUnread, true, false};
  tensor[13] = Many(Message::kStringPair);
  tensor[16] = Dropped(Message::kStringPair);

  Fields& sparse = of(Message::kSparseTensor);
  sparse[1] = sparse[2] = One(Message::kTensor);
  sparse[3] = kIntegers;

  Fields& value_info = of(Message::kValueInfo);
  value_info[1] = kText;
  value_info[2] = One(Message::kType);
  value_info[3] = kDroppedText;
  value_info[4] = Dropped(Message::kStringPair);

  Fields& type = of(Message::kType);
  type[1] = type[8] = One(Message::kTensorType);
  type[4] = type[9] = One(Message::kSequenceType);
  type[5] = One(Message::kMapType);
  type[6] = kDroppedText;
  type[7] = One(Message::kUnread);
  of(Message::kTensorType)[1] = kInteger;
  of(Message::kTensorType)[2] = One(Message::kShape);
  of(Message::kSequenceType)[1] = One(Message::kType);
  of(Message::kMapType)[1] = kInteger;
  of(Message::kMapType)[2] = One(Message::kType);
  of(Message::kShape)[1] = Many(Message::kDimension);
  of(Message::kDimension)[1] = kInteger;
  of(Message::kDimension)[2] = kText;
  of(Message::kDimension)[3] = kDroppedText;

  Fields& function = of(Message::kFunction);
  function[1] = function[10] = function[13] = kText;
  function[4] = function[5] = function[6] = kTexts;
  function[7] = Many(Message::kNode);
  function[8] = kDroppedText;
  function[9] = Many(Message::kOperatorSet);
  function[11] = Many(Message::kAttribute);
  function[12] = Dropped(Message::kValueInfo);
  function[14] = Dropped(Message::kStringPair);

  of(Message::kOperatorSet)[1] = kText;
  of(Message::kOperatorSet)[2] = kInteger;
  of(Message::kStringPair)[1] = of(Message::kStringPair)[2] = kText;
  of(Message::kSegment)[1] = of(Message::kSegment)[2] = kInteger;
  of(Message::kTraining)[1] = of(Message::kTraining)[2] = One(Message::kGraph);
  of(Message::kTraining)[3] = of(Message::kTraining)[4] = Many(Message::kStringPair);
  of(Message::kAnnotation)[1] = kText;
  of(Message::kAnnotation)[2] = Many(Message::kStringPair);
  return table;
}

constexpr std::array<Fields, kMessageKinds> kTable = MakeTable();

constexpr std::array<std::string_view, kMessageKinds> kMessageNames = {
    "ModelProto",       "GraphProto",         "NodeProto",          "AttributeProto",
    "TensorProto",      "SparseTensorProto",  "ValueInfoProto",     "TypeProto",
    "TypeProto.Tensor", "TypeProto.Sequence", "TypeProto.Map",      "TensorShapeProto",
    "Dimension",        "FunctionProto",      "OperatorSetIdProto", "StringStringEntryProto",
    "Segment",          "TrainingInfoProto",  "TensorAnnotation",   "message"};

enum WireType : uint32_t { kWireVarint = 0, kWireFixed64 = 1, kWireBytes = 2, kWireFixed32 = 5 };

// Of values of each FieldKind; for kUnknown none that exists.
constexpr std::array<uint32_t, 6> kWireTypes = {UINT32_MAX,   kWireVarint, kWireFixed32,
                                                kWireFixed64, kWireBytes,  kWireBytes};

constexpr uint32_t WireTypeOf(FieldKind kind) { return kWireTypes[static_cast<size_t>(kind)]; }

// Whether a value of this wire type can be the field's: its own, or a packed block of a repeated
// number.
constexpr bool Fits(const Field& field, uint32_t wire_type) {
  return wire_type == WireTypeOf(field.kind) || (field.is_repeated && wire_type == kWireBytes);
}

// What is done with a field of this number and wire type: as the table says, or left out.
constexpr Field FieldOf(Message message, uint64_t number, uint32_t wire_type) {
  if (number >= kFieldLimit) return Field{};
  const Field& field = kTable[static_cast<size_t>(message)][number];
  return Fits(field, wire_type) ? field : Field{};
}

// The same by the one byte that most tags are.
constexpr size_t kShortTags = 0x80;
using FieldsByTag = std::array<std::array<Field, kShortTags>, kMessageKinds>;
constexpr FieldsByTag MakeTableByTag() {
  FieldsByTag table{};
  for (size_t message = 0; message < kMessageKinds; ++message) {
    for (uint32_t tag = 0; tag < kShortTags; ++tag) {
      table[message][tag] = FieldOf(static_cast<Message>(message), tag >> 3, tag & 7);
    }
  }
  return table;
}
constexpr FieldsByTag kTableByTag = MakeTableByTag();

constexpr size_t kLengthBytes = 5;  // a varint of 32 bits
constexpr size_t kReservedBytes = 4096;

// The length as a varint of so many bytes, at most ten. Writing it with zeros to fill them is legal
// wire form.
void PatchLength(std::string& text, size_t at, size_t size_bytes, uint64_t length) {
  for (size_t byte = 0; byte < size_bytes; ++byte) {
    const uint64_t continues = byte + 1 < size_bytes ? 0x80u : 0u;
    text[at + byte] = static_cast<char>((length >> (7 * byte) & 0x7f) | continues);
  }
}

class Scanner {
 public:
  explicit Scanner(std::span<const std::byte> bytes) : bytes_(bytes) {}

  base::Result<ScannedModel> Run() {
    // Large models are mostly tensor data, which are not copied.
    result_.skeleton.reserve(std::min(bytes_.size(), kReservedBytes));
    if (!ScanMessage(Message::kModel, 0, bytes_.size(), /*depth=*/0, /*is_kept=*/true)) {
      return std::move(failure_);
    }
    CopyTo(bytes_.size());
    // Protobuf counts the bytes of a message in an int.
    if (result_.skeleton.size() > INT32_MAX) {
      return Status(Code::kInvalidProtobuf,
                    "The model without its tensor data has " +
                        std::to_string(result_.skeleton.size()) + " bytes, more than the " +
                        std::to_string(INT32_MAX) + " that a protobuf message can have.");
    }
    return std::move(result_);
  }

 private:
  bool ScanMessage(Message message, size_t begin, size_t end, int depth, bool is_kept) {
    if (depth > kMaxNesting) {
      return Malformed(begin, "messages nest " + std::to_string(depth) +
                                  " deep, beyond the deepest supported (" +
                                  std::to_string(kMaxNesting) + ")");
    }
    if (++message_count_ > kMaxMessages) {
      return Malformed(begin, "the number of messages exceeds the largest supported (" +
                                  std::to_string(kMaxMessages) + ")");
    }
    if (message != Message::kTensor || !is_kept) {
      return ScanFields(message, begin, end, depth, is_kept, /*tensor=*/nullptr);
    }
    LiftedTensor tensor;
    if (!ScanFields(message, begin, end, depth, is_kept, &tensor)) return false;
    tensor.body = bytes_.subspan(begin, end - begin);
    CopyTo(end);
    Lift(tensor);
    return true;
  }

  // `tensor`: where the data fields of a tensor go that is kept, else null.
  bool ScanFields(Message message, size_t begin, size_t end, int depth, bool is_kept,
                  LiftedTensor* tensor) {
    uint32_t seen = 0;  // singular messages, by field number
    size_t position = begin;
    while (position < end) {
      const size_t start = position;
      uint64_t tag = static_cast<uint8_t>(bytes_[start]);
      size_t tag_end = start + 1;
      Field field;
      if (tag < kShortTags) {
        field = kTableByTag[static_cast<size_t>(message)][tag];
      } else {
        const Varint read = ReadLongVarint(start, end);
        if (read.end == 0) return false;
        tag = read.value;
        tag_end = read.end;
        field = FieldOf(message, tag >> 3, static_cast<uint32_t>(tag & 7));
      }
      if (tag >> 3 == 0 || tag > UINT32_MAX) {
        return Malformed(start, "a field has number " + std::to_string(tag >> 3));
      }
      const auto wire_type = static_cast<uint32_t>(tag & 7);
      Extent value;
      if (!FindShortValue(wire_type, tag_end, end, value)) {
        value = FindValue(wire_type, tag_end, end);
        if (value.end == 0) return false;
      }
      position = value.end;
      if (field.kind == FieldKind::kMessage) {
        if (!field.is_repeated) {
          const uint32_t bit = 1u << (tag >> 3);
          if ((seen & bit) != 0) return MalformedTwice(start, message, tag >> 3);
          seen |= bit;
        }
        if (is_kept && !field.is_kept) LeaveOut(start, value.end);
        const bool is_well_formed =
            is_kept && field.is_kept
                ? ScanKept(field.message, tag_end, value, depth + 1)
                : ScanMessage(field.message, value.begin, value.end, depth + 1, /*is_kept=*/false);
        if (!is_well_formed) return false;
        continue;
      }
      // Else it is unknown to ONNX: left out.
      const bool is_known = field.kind != FieldKind::kUnknown;
      int64_t element_count = 1;
      if (wire_type == kWireBytes && is_known && field.kind != FieldKind::kBytes) {
        if (!CheckPacked(field.kind, value.begin, value.end, element_count)) return false;
      }
      if (!is_kept || (is_known && field.is_kept)) continue;
      LeaveOut(start, value.end);
      if (is_known && tensor != nullptr) {
        LiftField(static_cast<TensorField>(tag >> 3), value.begin, value.end, element_count,
                  *tensor);
      }
    }
    return true;
  }

  // From a value's first byte after a length to past its last; 0 to 0 where it is malformed.
  struct Extent {
    size_t begin = 0;
    size_t end = 0;
  };

  // A message whose length begins at `length_at`, right after its tag. Its length is corrected
  // where anything in it was left out or lifted.
  bool ScanKept(Message message, size_t length_at, Extent body, int depth) {
    std::string& skeleton = result_.skeleton;
    // Where the length will be once it is copied: nothing between is left out.
    const size_t copied_length_at = skeleton.size() + (length_at - copied_to_);
    const int64_t changes = change_count_;
    if (!ScanMessage(message, body.begin, body.end, depth, /*is_kept=*/true)) return false;
    if (change_count_ == changes) return true;
    CopyTo(body.end);
    size_t length_bytes = body.begin - length_at;
    const size_t size_bytes = skeleton.size() - copied_length_at - length_bytes;
    if (length_bytes < kLengthBytes && size_bytes >> (7 * length_bytes) != 0) {
      skeleton.insert(copied_length_at, kLengthBytes - length_bytes, '\0');
      length_bytes = kLengthBytes;
    }
    // What five bytes cannot hold means a skeleton above 2 GiB, which Run refuses.
    PatchLength(skeleton, copied_length_at, length_bytes, size_bytes);
    return true;
  }

  void LiftField(TensorField field, size_t begin, size_t end, int64_t element_count,
                 LiftedTensor& tensor) {
    switch (field) {
      case TensorField::kFloat:
        tensor.float_count += element_count;
        break;
      case TensorField::kInt32:
        tensor.int32_count += element_count;
        break;
      case TensorField::kString:
        tensor.string_count += element_count;
        break;
      case TensorField::kInt64:
        tensor.int64_count += element_count;
        break;
      case TensorField::kRaw:
        tensor.raw = bytes_.subspan(begin, end - begin);
        tensor.has_raw = true;
        break;
      case TensorField::kDouble:
        tensor.double_count += element_count;
        break;
      case TensorField::kUint64:
        tensor.uint64_count += element_count;
        break;
    }
  }

  void Lift(const LiftedTensor& tensor) {
    const auto index = static_cast<uint32_t>(result_.tensors.size());
    std::string& skeleton = result_.skeleton;
    skeleton += static_cast<char>(static_cast<uint32_t>(TensorField::kRaw) << 3 | kWireBytes);
    skeleton += static_cast<char>(sizeof(index));
    for (size_t byte = 0; byte < sizeof(index); ++byte) {
      skeleton += static_cast<char>(index >> (8 * byte) & 0xff);
    }
    result_.tensors.push_back(tensor);
    ++change_count_;
  }

  // What was read and not copied yet, up to `end`.
  void CopyTo(size_t end) {
    result_.skeleton.append(reinterpret_cast<const char*>(bytes_.data()) + copied_to_,
                            end - copied_to_);
    copied_to_ = end;
  }

  void LeaveOut(size_t begin, size_t end) {
    CopyTo(begin);
    copied_to_ = end;
    ++change_count_;
  }

  // What FindValue gives, where the length or number has one byte, as nearly all have.
  bool FindShortValue(uint32_t wire_type, size_t begin, size_t end, Extent& value) const {
    if (begin >= end || (wire_type != kWireBytes && wire_type != kWireVarint)) return false;
    const auto byte = static_cast<size_t>(bytes_[begin]);
    if (byte >= 0x80) return false;
    if (wire_type == kWireVarint) {
      value = {begin, begin + 1};
      return true;
    }
    value = {begin + 1, begin + 1 + byte};
    return value.end <= end;
  }

  // The value that begins, with its length if it has one, at `begin`; its message ends at `end`.
  Extent FindValue(uint32_t wire_type, size_t begin, size_t end) {
    if (wire_type == kWireBytes) {
      const Varint length = ReadVarint(begin, end);
      if (length.end == 0) [[unlikely]]
        return {};
      if (length.value <= end - length.end) return {length.end, length.end + length.value};
      Malformed(length.end, "a field of " + std::to_string(length.value) +
                                " bytes reaches beyond the " + std::to_string(end - length.end) +
                                " that its message has left");
      return {};
    }
    if (wire_type == kWireVarint) {
      const Varint number = ReadVarint(begin, end);
      return number.end == 0 ? Extent() : Extent{begin, number.end};
    }
    if (wire_type != kWireFixed64 && wire_type != kWireFixed32) {
      Malformed(begin,
                "a field has wire type " + std::to_string(wire_type) + ", which ONNX does not use");
      return {};
    }
    const size_t size_bytes = wire_type == kWireFixed64 ? 8 : 4;
    if (size_bytes <= end - begin) return {begin, begin + size_bytes};
    Malformed(begin, "a number of " + std::to_string(size_bytes) + " bytes reaches beyond the " +
                         std::to_string(end - begin) + " that its message has left");
    return {};
  }

  bool CheckPacked(FieldKind kind, size_t begin, size_t end, int64_t& element_count) {
    const size_t size_bytes = end - begin;
    if (kind != FieldKind::kVarint) {
      const size_t width = kind == FieldKind::kFixed32 ? 4 : 8;
      if (size_bytes % width != 0) {
        return Malformed(begin, "a packed block of " + std::to_string(size_bytes) +
                                    " bytes is no whole number of " + std::to_string(width) +
                                    "-byte elements");
      }
      element_count = static_cast<int64_t>(size_bytes / width);
      return true;
    }
    element_count = 0;
    size_t position = begin;
    while (position < end) {
      position = ReadVarint(position, end).end;
      if (position == 0) return false;
      ++element_count;
    }
    return true;
  }

  // A number and where it ends; 0, which is the end of nothing, where it is malformed.
  struct Varint {
    uint64_t value = 0;
    size_t end = 0;
  };

  // Nearly all are one byte long.
  Varint ReadVarint(size_t position, size_t end) {
    if (position < end && (bytes_[position] & std::byte{0x80}) == std::byte{0}) {
      return {static_cast<uint64_t>(bytes_[position]), position + 1};
    }
    return ReadLongVarint(position, end);
  }

  Varint ReadLongVarint(size_t start, size_t end) {
    constexpr size_t kLongest = 10;
    uint64_t value = 0;
    for (size_t byte = 0; byte < kLongest; ++byte) {
      if (start + byte == end) {
        Malformed(start, "a varint reaches beyond the end");
        return {};
      }
      const auto bits = static_cast<uint64_t>(bytes_[start + byte]);
      value |= (bits & 0x7f) << (7 * byte);
      if ((bits & 0x80) == 0) return {value, start + byte + 1};
    }
    Malformed(start, "a varint is longer than " + std::to_string(kLongest) + " bytes");
    return {};
  }

  [[gnu::cold]] bool MalformedTwice(size_t offset, Message message, uint64_t number) {
    return Malformed(offset, "field " + std::to_string(number) + " of " +
                                 std::string(kMessageNames[static_cast<size_t>(message)]) +
                                 " occurs twice where one is allowed");
  }

  // Always false, so that a failure can be returned in one statement. A flag is tested after each
  // of the many small reads, where a Status would cost as much as the read.
  [[gnu::cold]] bool Malformed(size_t offset, const std::string& what) {
    failure_ = Status(Code::kInvalidProtobuf,
                      "The model is not valid protobuf: at byte " + std::to_string(offset) +
                          " of " + std::to_string(bytes_.size()) + ", " + what + ".");
    return false;
  }

  std::span<const std::byte> bytes_;
  ScannedModel result_;
  Status failure_;
  int64_t message_count_ = 0;
  // Bytes before this one are in the skeleton or left out of it.
  size_t copied_to_ = 0;
  // Of the skeleton against the bytes.
  int64_t change_count_ = 0;
};

FieldKind KindOf(TensorField field) {
  return kTable[static_cast<size_t>(Message::kTensor)][static_cast<size_t>(field)].kind;
}

}  // namespace

base::Result<ScannedModel> ScanModel(std::span<const std::byte> bytes) {
  return Scanner(bytes).Run();
}

uint64_t ReadCheckedVarint(std::span<const std::byte> bytes, size_t& position) {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && position < bytes.size(); shift += 7) {
    const auto bits = static_cast<uint64_t>(bytes[position++]);
    value |= (bits & 0x7f) << shift;
    if ((bits & 0x80) == 0) break;
  }
  return value;
}

void ForEachRun(std::span<const std::byte> body, TensorField field,
                const std::function<void(std::span<const std::byte> run)>& visit) {
  const FieldKind kind = KindOf(field);
  size_t position = 0;
  while (position < body.size()) {
    const uint64_t tag = ReadCheckedVarint(body, position);
    const auto wire_type = static_cast<uint32_t>(tag & 7);
    size_t end = position;
    if (wire_type == kWireVarint) {
      ReadCheckedVarint(body, end);
    } else if (wire_type == kWireBytes) {
      const uint64_t length = ReadCheckedVarint(body, position);
      end = position + length;
    } else {
      end = position + (wire_type == kWireFixed64 ? 8 : 4);
    }
    const bool is_packable = kind != FieldKind::kBytes;
    if (tag >> 3 == static_cast<uint64_t>(field) &&
        (wire_type == WireTypeOf(kind) || (is_packable && wire_type == kWireBytes))) {
      visit(body.subspan(position, end - position));
    }
    position = end;
  }
}

}  // namespace onnxifi::model
