// SPDX-License-Identifier: Apache-2.0
//
// ViewExtents: what each view of a step is looked at over, for passes that say the view in another
// way. A view has no extents of its own; the family of the step gives them.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_EXTENTS_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_EXTENTS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// Valid as long as the step, whose views may change. May make new Dims.
class ViewExtents {
 public:
  ViewExtents(const Program& program, const Step& step);

  // Nothing where the body computes coordinates that no guard bounds, where a prologue or a score
  // reads it beside an operand, and for steps that execution runs.
  std::optional<Shape> OfRead(size_t read) const;
  // Whether the body computes the coordinates of a read, whose guards bound them then.
  bool HasComputedCoordinates(size_t read) const { return computed_.contains(read); }
  // Nothing too where only data tells what is written.
  std::optional<Shape> OfWrite(size_t write) const;

 private:
  const Step& step_;
  // By read at computed coordinates: its extents, where all loads have the same.
  std::map<size_t, std::optional<Shape>> computed_;
  std::set<size_t> elsewhere_;  // reads that are not looked at over the domain
};

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_VIEW_EXTENTS_H_
