// SPDX-License-Identifier: Apache-2.0
//
// HostFunction: names.

#include "backends/core/program/host_function.h"

#include <cmath>
#include <limits>

#include "backends/core/tensor/convert.h"

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
  std::string_view operator()(const ConcatStrings&) const { return "concat strings"; }
  std::string_view operator()(const SplitStrings&) const { return "split strings"; }
  std::string_view operator()(const TokenizeStrings&) const { return "tokenize strings"; }
  std::string_view operator()(const NormalizeStrings&) const { return "normalize strings"; }
  std::string_view operator()(const MatchStrings&) const { return "match strings"; }
  std::string_view operator()(const FormatNumbers&) const { return "format numbers"; }
  std::string_view operator()(const ParseNumbers&) const { return "parse numbers"; }
  std::string_view operator()(const RankStrings&) const { return "rank strings"; }
  std::string_view operator()(const MakeMaps&) const { return "make maps"; }
  std::string_view operator()(const ListMap&) const { return "list map"; }
  std::string_view operator()(const DecodeImage&) const { return "decode image"; }
};

}  // namespace

std::string KeyOf(const tensor::Tensor& tensor, int64_t index) {
  const tensor::ElementType type = tensor.type();
  if (type == tensor::ElementType::kString) return tensor.strings()[static_cast<size_t>(index)];
  tensor::Scalar value = tensor::LoadScalar(type, tensor.data(), index);
  if (tensor::IsFloat(type)) {
    // Of many bits each.
    if (std::isnan(value.f)) value.f = std::numeric_limits<double>::quiet_NaN();
    if (value.f == 0) value.f = 0;
  }
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string_view Name(const HostFunction& function) {
  return std::visit(Names(), static_cast<const HostFunction::variant&>(function));
}

}  // namespace onnxifi::program
