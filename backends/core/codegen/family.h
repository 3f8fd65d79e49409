// SPDX-License-Identifier: Apache-2.0
//
// Family: the generators, one per family of steps, and what they share. For generate.cc alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_FAMILY_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_FAMILY_H_

#include <span>
#include <string>
#include <vector>

#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/codegen/writer.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// What every generator is given.
struct Source {
  const program::Program& program;
  const program::Step& step;
  const LoopForm& form;
  const Capabilities& capabilities;
};

// Each writes the body of the kernel and says how it is launched.
Launch WriteMap(Writer& writer, const Source& source);
Launch WriteReduce(Writer& writer, const Source& source, int kernel);
Launch WriteRow(Writer& writer, const Source& source);
Launch WriteScan(Writer& writer, const Source& source, int kernel);
Launch WriteContract(Writer& writer, const Source& source);
Launch WriteWindow(Writer& writer, const Source& source);
Launch WriteAttention(Writer& writer, const Source& source, int kernel);
Launch WriteRecurrent(Writer& writer, const Source& source, int kernel);
Launch WriteIndex(Writer& writer, const Source& source, int kernel);
Launch WriteScatter(Writer& writer, const Source& source, int kernel);
Launch WriteSuppress(Writer& writer, const Source& source, int kernel);

// The type of a contraction's running sum: integers wrap, so they are summed unsigned.
std::string_view SumType(tensor::ElementType accumulator);
// The name of the extent of an axis of the loops.
std::string Extent(Writer& writer, int axis);
// Declares variables for the coordinates that `position`, row-major over axes of these extents,
// stands for.
std::vector<std::string> WriteCoordinates(Writer& writer, const std::string& position,
                                          const std::vector<std::string>& extents);
// Opens the block that each item of the first `axes` axes runs and gives its coordinates.
std::vector<std::string> OpenItems(Writer& writer, int axes);
// Items of a group where each computes an element by itself: a device starts that many sooner than
// twice as many groups of half the size.
int GroupSizeOfItems(const Source& source);
// A run: neighbours along the last axis of the loops that one item computes.
struct Run {
  std::vector<std::string> coordinates;  // the last one is that of the lane
  std::string begin;                     // of the run, along the last axis
  std::string count;                     // of lanes, an int
  std::string lane;                      // the name of what counts in the loop that is open
};
// Opens the block that each run of up to `run_length` coordinates runs; `axes` is not 0. Items
// count along the last axis first, or last.
Run OpenRun(Writer& writer, int axes, int run_length, bool is_last_slowest = false);
// Opens a loop over lanes [begin, end) whose rounds are independent.
void OpenLanes(Writer& writer, Run& run, const std::string& begin, const std::string& end);
// Computes `roots` and stores root k as write k, at the scope's coordinates; kNoExpr is skipped.
void WriteRoots(Writer& writer, const Source& source, const Scope& scope,
                std::span<const program::ExprId> roots);
// Sets scope.indices, by axis of the domain, from scope.coordinates, by axis of the loops.
void NameIndices(const Source& source, Scope& scope);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_FAMILY_H_
