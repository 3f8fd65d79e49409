// SPDX-License-Identifier: Apache-2.0
//
// Scan: an item per row, which takes its elements in ascending order; or a group, which goes along
// a row, or along a block of one, in rounds: each item reduces a few neighbours, the items' states
// are joined to those of all items before them, and from there each item runs through its
// neighbours once more. What the blocks before a group's own come to, another kernel has left. A
// long row that is an item's is done in ranges, and the item leaves its state for that of the next
// one.

#include <string>
#include <vector>

#include "backends/core/codegen/elements.h"
#include "backends/core/codegen/family.h"
#include "backends/core/codegen/reduce_kernels.h"
#include "backends/core/codegen/reduction_writer.h"
#include "backends/core/codegen/scan_kernels.h"

namespace onnxifi::codegen {
namespace {

// Neighbours of an item in a round: 16 bytes of floats.
constexpr int kNeighbours = 4;

class ScanWriter {
 public:
  ScanWriter(Writer& writer, const Source& source)
      : writer_(writer),
        source_(source),
        scan_(*source.step.As<program::Scan>()),
        elements_(writer, source) {}

  Launch InOrder() {
    Scope scope = elements_.Open();
    ReductionWriter state(writer_, source_, scan_.reduction);
    scope.state = state.Begin(scope);
    elements_.ForEach(scope, [&](const Scope& inner) { Advance(state, inner); });
    return elements_.Close();
  }

  Launch Range() {
    const std::string words = writer_.UseScratch(/*is_write=*/true, 0, "u64");
    const std::string begin = writer_.UseGiven(kScanRangeBegin);
    const Scope scope = elements_.Open();
    ReductionWriter state(writer_, source_, scan_.reduction);
    state.Begin(scope);
    const size_t count = state.names().size();
    const auto word_at = [&](size_t k) {
      return Text(words, ", AS(idx, ITEM) * ", count, " + ", k);
    };
    writer_.Open("if (", begin, " > 0)");
    std::vector<std::string> before;
    for (size_t k = 0; k < count; ++k) {
      const tensor::ElementType type = scan_.reduction.states[k].type;
      const std::string word = writer_.Declare("u64", Text("LOAD(", word_at(k), ")"));
      before.push_back(writer_.Declare(LaneType(type), FromWord(type, word)));
    }
    state.Assign(before);
    writer_.Close();
    ForNeighbours(scope, begin, writer_.UseGiven(kScanRangeEnd),
                  [&](const Scope& inner) { Advance(state, inner); });
    for (size_t k = 0; k < count; ++k) {
      writer_.Line("STORE(", word_at(k), ", ",
                   ToWord(scan_.reduction.states[k].type, state.names()[k]), ");");
    }
    return elements_.Close();
  }

  Launch ReduceBlocks() {
    const std::string blocks = writer_.UseGiven(kPartCount);
    const Scope scope = elements_.Open(blocks, writer_.UseGiven(kPartLength));
    elements_.StoreParts(scan_.reduction, elements_.Reduce(scope, scan_.reduction));
    return CloseBlocks();
  }

  Launch Rows() {
    const Scope scope = elements_.Open();
    ReductionWriter before(writer_, source_, scan_.reduction);
    before.Begin(scope);
    has_before_ = writer_.NewName("s");
    writer_.Line("bool ", has_before_, " = false;");
    Rounds(scope, before);
    return elements_.Close();
  }

  Launch Blocks() {
    const std::string blocks = writer_.UseGiven(kPartCount);
    const Scope scope = elements_.Open(blocks, writer_.UseGiven(kPartLength));
    const std::vector<std::string> sum =
        elements_.ReduceParts(scan_.reduction, blocks, elements_.part());
    ReductionWriter before(writer_, source_, scan_.reduction);
    before.Begin(scope);
    has_before_ = writer_.NewName("s");
    writer_.Line("bool ", has_before_, " = ", elements_.part(), " > 0;");
    writer_.Open("if (", has_before_, ")");
    before.Assign(sum);
    writer_.Close();
    Rounds(scope, before);
    return CloseBlocks();
  }

 private:
  Launch CloseBlocks() {
    Launch launch = elements_.Close();
    launch.given_items = kPartGroups;
    return launch;
  }

  // Takes an element into the state and writes what is asked for.
  void Advance(ReductionWriter& state, Scope inner) {
    inner.state = state.names();
    if (!scan_.exclusive) state.Update(inner);
    WriteRoots(writer_, source_, inner, scan_.roots);
    if (scan_.exclusive) state.Update(inner);
  }

  // Around what `body` writes, a loop over the neighbours of an item.
  template <typename Body>
  void ForNeighbours(const Scope& scope, const std::string& begin, const std::string& end,
                     const Body& body) {
    Scope inner = scope;
    inner.coordinates.back() = writer_.NewName("j");
    const std::string& element = inner.coordinates.back();
    writer_.Open("for (idx ", element, " = ", begin, "; ", element, " < ", end, "; ++", element,
                 ")");
    NameIndices(source_, inner);
    body(inner);
    writer_.Close();
  }

  std::vector<std::string> LoadShared(const ReductionWriter& of, const std::string& place) {
    std::vector<std::string> states;
    for (size_t k = 0; k < shared_.size(); ++k) {
      states.push_back(writer_.Declare(of.TypeOf(k), Text(shared_[k], "[", place, "]")));
    }
    return states;
  }
  void StoreShared(const ReductionWriter& state) {
    for (size_t k = 0; k < shared_.size(); ++k) {
      writer_.Line(shared_[k], "[LANE] = ", state.names()[k], ";");
    }
  }

  // Joins `others`, which comes behind, to the state; or it is all that there is so far.
  void Append(ReductionWriter& state, const std::vector<std::string>& others) {
    writer_.Open("if (", has_before_, ")");
    state.Join(others);
    writer_.Close();
    writer_.Open("else");
    state.Assign(others);
    writer_.Close();
  }

  // `before` is the state before the group's first element. All items reach every barrier.
  void Rounds(const Scope& scope, ReductionWriter& before) {
    const int group_size = Launch().group_size;
    const std::string base = writer_.NewName("j");
    writer_.Open("for (idx ", base, " = ", elements_.first(), "; ", base, " < ", elements_.end(),
                 "; ", base, " += ", group_size * kNeighbours, ")");
    const std::string left = writer_.Declare("idx", Text(elements_.end(), " - ", base));
    const std::string lanes = writer_.Declare(
        "int", Text(left, " < ", group_size * kNeighbours, " ? AS(int, (", left, " + ",
                    kNeighbours - 1, ") / ", kNeighbours, ") : ", group_size));
    const std::string begin =
        writer_.Declare("idx", Text(base, " + AS(idx, LANE) * ", kNeighbours));
    const std::string last = writer_.Declare("idx", Text(begin, " + ", kNeighbours));
    const std::string end = writer_.Declare(
        "idx", Text(last, " < ", elements_.end(), " ? ", last, " : ", elements_.end()));
    ReductionWriter own(writer_, source_, scan_.reduction);
    own.Begin(scope);
    ForNeighbours(scope, begin, end, [&](const Scope& inner) { own.Update(inner); });
    JoinLanes(own, lanes);

    ReductionWriter running(writer_, source_, scan_.reduction);
    running.BeginAt(before.names());
    writer_.Open("if (LANE > 0)");
    Append(running, LoadShared(running, "LANE - 1"));
    writer_.Close();
    elements_.OpenStores();
    ForNeighbours(scope, begin, end, [&](const Scope& inner) { Advance(running, inner); });
    elements_.CloseStores();
    Append(before, LoadShared(before, Text(lanes, " - 1")));
    writer_.Line(has_before_, " = true;");
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Leaves in shared memory, for each of the first `lanes` items, the states of the items up to it
  // as one: after each step an item's state has twice as many in it.
  void JoinLanes(ReductionWriter& own, const std::string& lanes) {
    const int group_size = Launch().group_size;
    if (shared_.empty()) {
      for (size_t k = 0; k < own.names().size(); ++k) {
        shared_.push_back(writer_.NewName("g"));
        writer_.Share(Text(own.TypeOf(k), " ", shared_[k], "[", group_size, "]"));
      }
    }
    StoreShared(own);
    writer_.Line("BARRIER;");
    const std::string step = writer_.NewName("j");
    writer_.Open("for (int ", step, " = 1; ", step, " < ", group_size, "; ", step, " *= 2)");
    writer_.Open("if (LANE >= ", step, " && LANE < ", lanes, ")");
    own.JoinBehind(LoadShared(own, Text("LANE - ", step)));
    writer_.Close();
    writer_.Line("BARRIER;");
    StoreShared(own);
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  Writer& writer_;
  const Source& source_;
  const program::Scan& scan_;
  Elements elements_;
  std::string has_before_;           // whether there are elements before those of the round
  std::vector<std::string> shared_;  // by state: the items' states
};

}  // namespace

Launch WriteScan(Writer& writer, const Source& source, int kernel) {
  ScanWriter scan(writer, source);
  switch (kernel) {
    case kScanRows:
      return scan.Rows();
    case kReduceBlocks:
      return scan.ReduceBlocks();
    case kScanBlocks:
      return scan.Blocks();
    case kScanRange:
      return scan.Range();
    default:
      return scan.InOrder();
  }
}

}  // namespace onnxifi::codegen
