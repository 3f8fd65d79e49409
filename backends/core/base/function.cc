// SPDX-License-Identifier: Apache-2.0
//
// Function: the table of functions and statuses. A column is a Function, in the order of the
// enumeration.

#include "backends/core/base/function.h"

namespace onnxifi::base {
namespace {

struct Row {
  Code code;
  // 'x' where the interface lists the code, 'r' where it needs the code but forgets to list it.
  std::string_view cells;
};

// The first part of a row is the table of the interface: GetBackendIDs, ReleaseBackendID,
// GetBackendInfo, GetBackendCompatibility, InitBackend, ReleaseBackend, InitEvent, SignalEvent,
// GetEventState, WaitEvent, ReleaseEvent, InitGraph, SetGraphIO, RunGraph, ReleaseGraph. The second
// part is the extensions.
// clang-format off
constexpr Row kRows[] = {
    {Code::kOk, "xxxxxxxxxxxxxxx" "xxxxxxxxxxxxxxxxxxxxx"},
    {Code::kFallback, "x.xx.......x..." "...xx...x...x........"},
    {Code::kInvalidId, ".xxxx.........." "x...x...x...x........"},
    {Code::kInvalidSize, "...x.......xr.." ".x..x..x....xx.xx.xx."},
    {Code::kInvalidPointer, "x.xxx.x.x..xxx." "xxxxxxxxxxxxxxxxxxxxx"},
    {Code::kInvalidProtobuf, "...x.......x..." "....x.......x........"},
    {Code::kInvalidModel, "...x.......x..." "....x.......x.....x.."},
    {Code::kInvalidBackend, ".....xx....x..." "...............x...xx"},
    {Code::kInvalidGraph, "............xxx" ".x...x.x..xx.x...x..."},
    {Code::kInvalidEvent, ".......xxxx..x." "..x...x.......xxx...."},
    {Code::kInvalidState, ".......x......." "......x...x...x......"},
    {Code::kInvalidName, "...........rx.." ".x...x.......x......."},
    {Code::kInvalidShape, "...........xx.." ".x...x.......x......."},
    {Code::kInvalidDatatype, "...........xx.." ".x...x.......x......."},
    {Code::kInvalidMemoryType, "...........xx.." ".x...........x......."},
    {Code::kInvalidMemoryLocation, "...........xx.." ".x...........x......."},
    {Code::kInvalidFenceType, ".............x." ".x.............xx...."},
    {Code::kInvalidProperty, "....x......x..." "..................x.."},
    {Code::kUnsupportedTag, "...........rxx." ".x...x.......x......."},
    {Code::kUnsupportedVersion, "...x.......x..." "....x.......x........"},
    {Code::kUnsupportedOperator, "...x.......x..." "....x.......x........"},
    {Code::kUnsupportedAttribute, "..xx.......x..." "....x.......x........"},
    {Code::kUnsupportedShape, "...x.......xx.." ".x..xx......xx......."},
    {Code::kUnsupportedDatatype, "...x.......xr.." ".x..xx......xx......."},
    {Code::kUnsupportedMemoryType, "...........xx.." ".x...........x.....x."},
    {Code::kUnsupportedFenceType, ".............x." ".x.............xx...."},
    {Code::kUnsupportedProperty, "....x......x..." "..................x.."},
    {Code::kUnidentifiedName, "............xx." "xx...x.......x......."},
    {Code::kMismatchingShape, "...x.......xx.." ".x..xx......xx......."},
    {Code::kMismatchingDatatype, "...x.......xx.." ".x..xx......xx......."},
    {Code::kNoSystemMemory, "x..xx.x....xxx." ".x..xxx..xxxxxxxxxxx."},
    {Code::kNoDeviceMemory, "....x.x....xxx." ".x...........x.....x."},
    {Code::kNoSystemResources, "....x.x....xxx." ".x...........x.....x."},
    {Code::kNoDeviceResources, "....x.x....xxx." ".x...........x.xx..x."},
    {Code::kBackendUnavailable, "..xxx.xxxx.xxx." "xxx.xxxx..xxxxxxxx.x."},
    {Code::kInternalError, "xx.xxxxxxxxxxxx" "xxxxxxxxxxxxxxxxxxxxx"},
};
// clang-format on

constexpr bool EveryRowIsComplete() {
  for (const Row& row : kRows) {
    if (row.cells.size() != kFunctionCount) return false;
  }
  return std::size(kRows) == kCodeCount;
}
static_assert(EveryRowIsComplete());

}  // namespace

bool MayAnswer(Function function, Code code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row.cells[static_cast<size_t>(function)] != '.';
  }
  return false;
}

}  // namespace onnxifi::base
