// SPDX-License-Identifier: Apache-2.0
//
// HostFunction: names.

#include "backends/core/program/host_function.h"

namespace onnxifi::program {
namespace {

struct Names {
  std::string_view operator()(const MakeSequence&) const { return "make sequence"; }
  std::string_view operator()(const InsertElement&) const { return "insert element"; }
  std::string_view operator()(const EraseElement&) const { return "erase element"; }
  std::string_view operator()(const TakeElement&) const { return "take element"; }
  std::string_view operator()(const CountElements&) const { return "count elements"; }
  std::string_view operator()(const SplitTensor&) const { return "split tensor"; }
  std::string_view operator()(const JoinElements&) const { return "join elements"; }
  std::string_view operator()(const TestPresence&) const { return "test presence"; }
  std::string_view operator()(const PassValue&) const { return "pass value"; }
};

}  // namespace

std::string_view Name(const HostFunction& function) {
  return std::visit(Names(), static_cast<const HostFunction::variant&>(function));
}

}  // namespace onnxifi::program
