// SPDX-License-Identifier: Apache-2.0
//
// FuseMaps: inlines element-wise producers into their reader by expressing the reader's coordinates
// as the producer's.

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "backends/core/program/body_exprs.h"
#include "backends/core/program/buffer_uses.h"
#include "backends/core/program/even_positions.h"
#include "backends/core/program/kept_precision.h"
#include "backends/core/program/passes.h"

namespace onnxifi::program {
namespace {

// Bounds of a fused step: what an engine can hold in registers and argument lists.
constexpr size_t kMaxNodes = 96;
constexpr size_t kMaxReads = 16;
// A producer of at most this many arithmetic nodes, none of them transcendental, may be computed
// more than once.
constexpr int kCheapNodes = 4;

bool IsCheap(const Program& program, const Map& map) {
  int arithmetic = 0;
  for (ExprId id : Reachable(program.exprs, map.roots)) {
    switch (program.exprs[id].op) {
      case ExprOp::kConstant:
      case ExprOp::kDim:
      case ExprOp::kIndex:
      case ExprOp::kLoad:
        break;
      case ExprOp::kNeg:
      case ExprOp::kAbs:
      case ExprOp::kNot:
      case ExprOp::kAdd:
      case ExprOp::kSub:
      case ExprOp::kMul:
      case ExprOp::kMin:
      case ExprOp::kMax:
      case ExprOp::kAnd:
      case ExprOp::kOr:
      case ExprOp::kEqual:
      case ExprOp::kLess:
      case ExprOp::kLessEqual:
      case ExprOp::kSelect:
      case ExprOp::kCast:
        ++arithmetic;
        break;
      default:
        return false;
    }
  }
  return arithmetic <= kCheapNodes;
}

// For each axis of the producer's domain, the reader's axis that runs along it, or -1 where the
// reader stays at 0. Nothing when the read is not along whole axes.
std::optional<std::vector<int>> MatchAxes(const Step& producer, const Step& reader,
                                          const View& read) {
  const View& written = producer.writes[0];
  if (!read.guards.empty() || !(read.offset == written.offset) || read.type != written.type ||
      read.rank() != static_cast<int>(reader.domain.size())) {
    return std::nullopt;
  }
  std::vector<int> axes(producer.domain.size(), -1);
  for (int k = 0; k < read.rank(); ++k) {
    if (read.strides[k] == Dim(0) || reader.domain[k] == Dim(1)) continue;
    bool is_matched = false;
    for (size_t a = 0; a < axes.size() && !is_matched; ++a) {
      if (axes[a] < 0 && written.strides[a] == read.strides[k] &&
          producer.domain[a] == reader.domain[k]) {
        axes[a] = k;
        is_matched = true;
      }
    }
    if (!is_matched) return std::nullopt;
  }
  return axes;
}

View Reexpress(const View& view, const std::vector<int>& axes, size_t reader_rank) {
  View moved = view;
  moved.strides.assign(reader_rank, Dim(0));
  for (Guard& guard : moved.guards) guard.coefficients.assign(reader_rank, Dim(0));
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a] < 0) continue;
    moved.strides[axes[a]] = view.strides[a];
    for (size_t g = 0; g < view.guards.size(); ++g) {
      moved.guards[g].coefficients[axes[a]] = view.guards[g].coefficients[a];
    }
  }
  return moved;
}

class Inliner {
 public:
  Inliner(Program& program, const Step& producer, const Step& reader)
      : program_(program), producer_(producer), reader_(reader) {}

  std::optional<Step> Join() {
    const Map& map = *producer_.As<Map>();
    BufferId buffer = producer_.writes[0].buffer;
    Step joined;
    joined.domain = reader_.domain;
    joined.writes = reader_.writes;
    joined.node = producer_.node;
    if (const Map* body = reader_.As<Map>()) joined.body = *body;
    if (const Reduce* body = reader_.As<Reduce>()) joined.body = *body;
    if (const Row* body = reader_.As<Row>()) joined.body = *body;

    std::vector<ExprId> replacement(reader_.reads.size(), kNoExpr);
    std::vector<int> new_read(reader_.reads.size(), -1);
    const std::vector<bool> is_plain = PlainReads(reader_);
    for (size_t r = 0; r < reader_.reads.size(); ++r) {
      const View& read = reader_.reads[r];
      if (read.buffer != buffer) {
        new_read[r] = AddRead(read, is_plain[r], joined);
        if (joined.reads.size() > kMaxReads) return std::nullopt;
        continue;
      }
      std::optional<std::vector<int>> axes = MatchAxes(producer_, reader_, read);
      if (!axes) return std::nullopt;
      replacement[r] = Moved(map.roots[0], *axes, joined);
    }
    const KeptPrecision kept(program_, reader_);
    std::unordered_map<ExprId, ExprId> done;
    bool is_indexed = false;
    auto replace = [&](ExprId id) {
      ExprNode node = program_.exprs[id];
      if (node.op == ExprOp::kCast) {
        const ExprNode& load = program_.exprs[node.operands[0]];
        const bool is_replaced = load.op == ExprOp::kLoad && load.operands.empty() &&
                                 replacement[load.payload] != kNoExpr;
        return is_replaced ? kept.Unrounded(id, producer_, replacement[load.payload]) : kNoExpr;
      }
      if (node.op != ExprOp::kLoad) return kNoExpr;
      size_t read = node.payload;
      if (replacement[read] != kNoExpr) {
        is_indexed = is_indexed || !node.operands.empty();
        return replacement[read];
      }
      for (ExprId& operand : node.operands)
        operand = Rewrite(program_.exprs, operand, *self_, done);
      node.payload = static_cast<uint64_t>(new_read[read]);
      return program_.exprs.Add(std::move(node));
    };
    std::function<ExprId(ExprId)> erased = replace;
    self_ = &erased;
    for (ExprId* id : BodyExprs(joined)) *id = Rewrite(program_.exprs, *id, erased, done);
    if (is_indexed || joined.reads.size() > kMaxReads) return std::nullopt;
    if (Reachable(program_.exprs, BodyExprs(std::as_const(joined))).size() > kMaxNodes)
      return std::nullopt;
    return joined;
  }

 private:
  // The number of a read. What is loaded over the domain by both is one: a function that is put
  // together of several Maps knows its argument by it.
  int AddRead(const View& view, bool is_plain, Step& joined) {
    for (size_t k = 0; is_plain && k < joined.reads.size(); ++k) {
      if (is_plain_[k] && SameOver(joined.domain, joined.reads[k], view)) {
        return static_cast<int>(k);
      }
    }
    joined.reads.push_back(view);
    is_plain_.push_back(is_plain);
    return static_cast<int>(joined.reads.size()) - 1;
  }
  // By read: whether it is loaded over the domain, and not at coordinates.
  std::vector<bool> PlainReads(const Step& step) const {
    std::vector<bool> is_plain(step.reads.size(), true);
    for (ExprId id : Reachable(program_.exprs, BodyExprs(step))) {
      const ExprNode& node = program_.exprs[id];
      if (node.op == ExprOp::kLoad && !node.operands.empty()) is_plain[node.payload] = false;
    }
    return is_plain;
  }

  // The producer's expression over the reader's coordinates; its reads are added to `joined`.
  ExprId Moved(ExprId root, const std::vector<int>& axes, Step& joined) {
    std::vector<int> new_read(producer_.reads.size(), -1);
    std::unordered_map<ExprId, ExprId> done;
    std::function<ExprId(ExprId)> replace = [&](ExprId id) -> ExprId {
      ExprNode node = program_.exprs[id];
      if (node.op == ExprOp::kIndex) {
        int axis = axes[node.payload];
        if (axis < 0) return IntConstant(program_.exprs, ElementType::kInt64, 0).id();
        return Coordinate(program_.exprs, axis).id();
      }
      if (node.op != ExprOp::kLoad) return kNoExpr;
      size_t read = node.payload;
      if (new_read[read] < 0) {
        // A view that is only loaded at explicit coordinates keeps its own axes.
        const bool is_plain = node.operands.empty();
        new_read[read] =
            AddRead(is_plain ? Reexpress(producer_.reads[read], axes, joined.domain.size())
                             : producer_.reads[read],
                    is_plain, joined);
      }
      for (ExprId& operand : node.operands)
        operand = Rewrite(program_.exprs, operand, replace, done);
      node.payload = static_cast<uint64_t>(new_read[read]);
      return program_.exprs.Add(std::move(node));
    };
    return Rewrite(program_.exprs, root, replace, done);
  }

  Program& program_;
  const Step& producer_;
  const Step& reader_;
  const std::function<ExprId(ExprId)>* self_ = nullptr;
  std::vector<bool> is_plain_;  // by read of the joined step
};

// A read that is loaded both plainly and at explicit coordinates cannot be given one set of axes.
bool HasMixedLoads(const Program& program, const Step& step) {
  std::vector<int> seen(step.reads.size(), 0);
  for (ExprId id : Reachable(program.exprs, BodyExprs(step))) {
    const ExprNode& node = program.exprs[id];
    if (node.op == ExprOp::kLoad) seen[node.payload] |= node.operands.empty() ? 1 : 2;
  }
  return std::any_of(seen.begin(), seen.end(), [](int kinds) { return kinds == 3; });
}

bool CanBeInlined(const Program& program, const BufferUses& uses, const Step& step) {
  const Map* map = step.As<Map>();
  if (map == nullptr || map->roots.size() != 1) return false;
  const View& write = step.writes[0];
  const Buffer& buffer = program.buffers[write.buffer];
  return buffer.kind == Buffer::Kind::kTemporary && !uses.IsOutput(write.buffer) &&
         buffer.shape == step.domain && IsDense({write, step.domain}) &&
         !HasMixedLoads(program, step);
}

// Whether inlining computes nothing more often than before, or only what is cheap.
bool IsWorthwhile(const Program& program, const Step& producer, const Step& reader) {
  if (IsCheap(program, *producer.As<Map>())) return true;
  if (reader.As<Row>() != nullptr) return false;
  return tensor::Product(producer.domain) == tensor::Product(reader.domain);
}

// Whether the expressions load where other loads tell.
bool LoadsWhereDataTells(const Program& program, const Map& map) {
  const auto is_load = [&](ExprId id) { return program.exprs[id].op == ExprOp::kLoad; };
  for (const ExprId id : Reachable(program.exprs, map.roots)) {
    if (!is_load(id)) continue;
    const std::vector<ExprId> told = Reachable(program.exprs, program.exprs[id].operands);
    if (std::any_of(told.begin(), told.end(), is_load)) return true;
  }
  return false;
}

// Whether neighbours in what `producer` writes are neighbours in what `reader` writes. Elements
// that are found where data tells come in runs along one axis, and one by one along any other.
bool KeepsRuns(const Program& program, const Step& producer, const Step& reader, const View& read) {
  if (reader.As<Map>() == nullptr || !LoadsWhereDataTells(program, *producer.As<Map>())) {
    return true;
  }
  size_t inner = producer.domain.size();
  while (inner > 0 && producer.domain[inner - 1] == Dim(1)) --inner;
  const std::optional<std::vector<int>> axes = MatchAxes(producer, reader, read);
  if (inner == 0 || !axes) return true;
  const int along = (*axes)[inner - 1];
  return along >= 0 && reader.writes[0].strides[static_cast<size_t>(along)] == Dim(1);
}

// Whether more buffers are read than a fused step may read, with any one of them inlined. Then no
// producer needs to be tried: the time to try all of them grows with the square of the reads.
bool ReadsTooManyBuffers(const Step& reader) {
  if (reader.reads.size() <= kMaxReads + 1) return false;
  std::unordered_set<BufferId> buffers;
  for (const View& read : reader.reads) buffers.insert(read.buffer);
  return buffers.size() > kMaxReads + 1;
}

// Inlines the first producer of step `reader_number` that can be; false when there is none.
bool InlineOneProducer(Program& program, BufferUses& uses, int reader_number,
                       const Accepts& accepts) {
  const Step& reader = program.steps[reader_number];
  if (ReadsTooManyBuffers(reader) || HasMixedLoads(program, reader)) return false;
  for (const View& read : reader.reads) {
    const int number = uses.OnlyWriter(read.buffer);
    if (number == BufferUses::kNoStep || number >= reader_number ||
        uses.OnlyReader(read.buffer) != reader_number) {
      continue;
    }
    const Step& producer = program.steps[number];
    if (!CanBeInlined(program, uses, producer) || !IsWorthwhile(program, producer, reader) ||
        !KeepsRuns(program, producer, reader, read) ||
        uses.ReadsWhatIsWrittenAfter(number, producer)) {
      continue;
    }
    std::optional<Step> joined = Inliner(program, producer, reader).Join();
    if (!joined || !accepts(program, reader, *joined)) continue;
    JoinSteps(program, uses, number, reader_number, *std::move(joined));
    return true;
  }
  return false;
}

// Whether the step only dequantizes bytes, with one scale and zero point for all of them.
bool IsDequantization(const Program& program, const Step& step) {
  const Map& map = *step.As<Map>();
  const ExprNode& product = program.exprs[map.roots[0]];
  if (product.op != ExprOp::kMul || product.type != ElementType::kFloat32 ||
      program.exprs[product.operands[0]].op != ExprOp::kCast) {
    return false;
  }
  for (ExprId id : Reachable(program.exprs, map.roots)) {
    const ExprNode& node = program.exprs[id];
    const bool is_plain_load = node.op == ExprOp::kLoad && node.operands.empty();
    const bool is_product = id == map.roots[0];
    if (!is_plain_load && !is_product && node.op != ExprOp::kCast && node.op != ExprOp::kSub &&
        node.op != ExprOp::kConstant) {
      return false;
    }
  }
  int tensors = 0;
  for (const View& read : step.reads) {
    bool is_number = true;
    for (int axis = 0; axis < read.rank(); ++axis) {
      is_number = is_number && (read.strides[axis] == Dim(0) || step.domain[axis] == Dim(1));
    }
    if (!read.guards.empty()) return false;
    if (is_number) continue;
    const bool is_byte = read.type == ElementType::kInt8 || read.type == ElementType::kUint8;
    if (!is_byte || !IsDense({read, step.domain})) return false;
    ++tensors;
  }
  return tensors == 1;
}

// Whether Maps compute what is in `buffer` from what is in `source`.
bool IsComputedFrom(const Program& program, const BufferUses& uses, BufferId buffer,
                    BufferId source, int depth = 8) {
  if (buffer == source) return true;
  const int number = uses.OnlyWriter(buffer);
  if (number == BufferUses::kNoStep || program.steps[number].As<Map>() == nullptr) return false;
  if (depth == 0) return true;
  const std::vector<View>& reads = program.steps[number].reads;
  return std::any_of(reads.begin(), reads.end(), [&](const View& read) {
    return IsComputedFrom(program, uses, read.buffer, source, depth - 1);
  });
}

// Whether a Map combines `source` with another tensor, which no Map computes from it.
bool CombinesWithOther(const Program& program, const BufferUses& uses, const Step& reader,
                       BufferId source) {
  bool has_other = false;
  for (const View& read : reader.reads) {
    if (read.buffer == source) continue;
    if (IsComputedFrom(program, uses, read.buffer, source)) return false;
    has_other = has_other || (program.buffers[read.buffer].kind == Buffer::Kind::kTemporary &&
                              IsDense({read, reader.domain}));
  }
  return has_other;
}

}  // namespace

void InlineDequantizations(Program& program, const Accepts& accepts) {
  BufferUses uses(program);
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<Map>() == nullptr) continue;
    const std::vector<View> reads = program.steps[s].reads;
    for (const View& read : reads) {
      const Step& reader = program.steps[s];
      const int number = uses.OnlyWriter(read.buffer);
      if (number == BufferUses::kNoStep || number >= s) continue;
      const Step& producer = program.steps[number];
      if (!CanBeInlined(program, uses, producer) || !IsDequantization(program, producer) ||
          uses.ReadsWhatIsWrittenAfter(number, producer) || HasMixedLoads(program, reader) ||
          !CombinesWithOther(program, uses, reader, read.buffer)) {
        continue;
      }
      std::optional<Step> joined = Inliner(program, producer, reader).Join();
      if (!joined || !accepts(program, reader, *joined)) continue;
      uses.Remove(s, program.steps[s]);
      program.steps[s] = *std::move(joined);
      uses.Add(s, program.steps[s]);
    }
  }
  RemoveDeadSteps(program);
}

void FuseFunctions(Program& program, const Accepts& accepts) {
  const Accepts accepts_function = [&accepts](const Program& whole, const Step& before,
                                              const Step& after) {
    return after.As<Map>() != nullptr && after.reads.size() == 1 && accepts(whole, before, after);
  };
  BufferUses uses(program);
  // Producers before readers: what is made of x is one function of it before x comes in once more.
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) {
    if (program.steps[s].As<Map>() == nullptr) continue;
    while (InlineOneProducer(program, uses, s, accepts_function)) {
    }
  }
  RemoveDeadSteps(program);
}

void FuseMaps(Program& program, const Accepts& accepts) {
  // Positions that steps have computed are constants by now.
  ReadAtEvenPositions(program);
  BufferUses uses(program);
  // Readers before producers, so that a chain collapses into its last step in one walk.
  for (int s = static_cast<int>(program.steps.size()) - 1; s >= 0; --s) {
    const Step& step = program.steps[s];
    if (step.writes.empty()) continue;  // its reader has it
    if (!step.As<Map>() && !step.As<Reduce>() && !step.As<Row>()) continue;
    while (InlineOneProducer(program, uses, s, accepts)) {
    }
  }
  RemoveDeadSteps(program);
}

}  // namespace onnxifi::program
