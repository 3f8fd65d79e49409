// SPDX-License-Identifier: Apache-2.0
//
// Generate: the families, and Map, whose items are the coordinates of the domain.

#include "backends/core/codegen/generate.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "backends/core/codegen/attention.h"
#include "backends/core/codegen/family.h"
#include "backends/core/codegen/index_kernels.h"
#include "backends/core/codegen/map_lanes.h"
#include "backends/core/codegen/map_tiles.h"
#include "backends/core/codegen/recurrent_kernels.h"
#include "backends/core/codegen/reduce_kernels.h"
#include "backends/core/codegen/scan_kernels.h"
#include "backends/core/codegen/scatter_kernels.h"
#include "backends/core/program/activation_expr.h"

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;
using program::ExprId;
using program::Step;
using tensor::ElementType;

class Checker {
 public:
  Checker(const program::Program& program, const Step& step, const Capabilities& capabilities)
      : program_(program), step_(step), capabilities_(capabilities) {}

  Status Check() const {
    for (const program::View& view : step_.reads) {
      if (view.buffer == program::kNoBuffer) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckType(view.type, capabilities_));
    }
    for (const program::View& view : step_.writes) {
      if (view.buffer == program::kNoBuffer) continue;
      ONNXIFI_RETURN_IF_ERROR(CheckType(view.type, capabilities_));
    }
    return std::visit(*this, step_.body);
  }

  Status operator()(const program::Map& map) const { return Expressions(map.roots); }
  Status operator()(const program::Reduce& reduce) const {
    ONNXIFI_RETURN_IF_ERROR(CheckReduction(reduce.reduction));
    return Expressions(reduce.roots);
  }
  Status operator()(const program::Row& row) const {
    for (const program::Row::Pass& pass : row.passes) {
      ONNXIFI_RETURN_IF_ERROR(CheckReduction(pass.reduction));
      ONNXIFI_RETURN_IF_ERROR(Expressions(pass.results));
    }
    return Expressions(row.roots);
  }
  Status operator()(const program::Scan& scan) const {
    ONNXIFI_RETURN_IF_ERROR(CheckReduction(scan.reduction));
    return Expressions(scan.roots);
  }
  Status operator()(const program::Contract& contract) const {
    switch (contract.accumulator) {
      case ElementType::kFloat32:
      case ElementType::kFloat64:
      case ElementType::kInt32:
      case ElementType::kUint32:
      case ElementType::kInt64:
      case ElementType::kUint64:
        break;
      default:
        return Status(
            Code::kUnsupportedDatatype,
            Text("A contraction cannot accumulate in ", tensor::Name(contract.accumulator),
                 "; it can in float32, float64, int32, uint32, int64 and uint64."));
    }
    const ExprId prologues[] = {contract.a_prologue, contract.b_prologue};
    ONNXIFI_RETURN_IF_ERROR(CheckExpressions(program_.exprs, prologues, capabilities_));
    return Expressions(contract.roots);
  }
  Status operator()(const program::Window& window) const {
    const ElementType type = window.accumulator;
    const bool is_float = type == ElementType::kFloat32 || type == ElementType::kFloat64;
    const bool is_integer = tensor::IsInteger(type) && !tensor::IsPacked(type);
    const bool needs_float =
        window.kind == program::Window::Kind::kLp || window.kind == program::Window::Kind::kLrn;
    if (!is_float && (needs_float || !is_integer)) {
      return Status(Code::kUnsupportedDatatype,
                    Text("A window cannot be reduced in ", tensor::Name(type),
                         needs_float ? "; its kind needs float32 or float64."
                                     : "; it needs float32, float64 or an integer type."));
    }
    if (tensor::IsComplex(step_.reads[0].type)) {
      return Status(Code::kUnsupportedDatatype, "A window cannot be reduced over complex numbers.");
    }
    return Expressions(window.roots);
  }
  Status operator()(const program::Attention& attention) const {
    const ExprId parts[] = {attention.query_prologue, attention.key_prologue,
                            attention.value_prologue, attention.score};
    ONNXIFI_RETURN_IF_ERROR(Expressions(parts));
    return Expressions(attention.roots);
  }
  Status operator()(const program::Recurrent& recurrent) const {
    ONNXIFI_RETURN_IF_ERROR(CheckRecurrent(step_));
    // Of each activation once.
    program::ExprPool pool;
    program::ExprIds roots;
    for (const program::Activation& activation : recurrent.activations) {
      const program::Expr sum = program::Accumulator(pool, recurrent.type);
      roots.push_back(program::ActivationExpr(activation, recurrent.clip, sum).id());
    }
    return CheckExpressions(pool, roots, capabilities_);
  }
  Status operator()(const program::Index& index) const {
    const ElementType type = step_.reads[0].type;
    const bool only_moves = index.kind == program::Index::Kind::kNonZero ||
                            index.kind == program::Index::Kind::kCountNonZero ||
                            (index.kind == program::Index::Kind::kScatter &&
                             index.combine == program::Index::Combine::kNone);
    if (tensor::IsComplex(type) && !only_moves) {
      return Status(Code::kUnsupportedDatatype, Text("Elements of type ", tensor::Name(type),
                                                     " cannot be compared or combined."));
    }
    return base::Ok();
  }
  Status operator()(const program::Cut&) const { return RunsOnNoDevice(); }
  Status operator()(const program::Control&) const { return RunsOnNoDevice(); }
  Status operator()(const program::Host&) const { return RunsOnNoDevice(); }

 private:
  Status Expressions(std::span<const ExprId> roots) const {
    return CheckExpressions(program_.exprs, roots, capabilities_);
  }
  Status CheckReduction(const program::Reduction& reduction) const {
    for (const program::Reduction::State& state : reduction.states) {
      const ExprId parts[] = {state.init, state.update, state.merge};
      ONNXIFI_RETURN_IF_ERROR(Expressions(parts));
    }
    return base::Ok();
  }
  static Status RunsOnNoDevice() {
    return Status(Code::kUnsupportedOperator, "Cuts and control steps run on no device.");
  }

  const program::Program& program_;
  const Step& step_;
  const Capabilities& capabilities_;
};

// Whether an output of a window or a contraction has work for all items of a group: less, where
// there are too few outputs to give each item one.
bool HasWorkForGroups(const device::BoundStep& step) {
  constexpr int64_t kFewOutputs = 16384;
  const int64_t kMin = tensor::ElementCount(step.domain) <= kFewOutputs ? 32 : 1024;
  constexpr int64_t kMax = int64_t{1} << 30;  // their numbers are narrow
  program::Shape extents;
  if (const auto* window = step.step->As<program::Window>()) {
    if (window->kind == program::Window::Kind::kLrn) return false;
    extents = window->kernel;
  } else if (const auto* contract = step.step->As<program::Contract>()) {
    extents = contract->inner;
  } else {
    return false;
  }
  int64_t count = 1;
  for (const program::Dim& extent : extents) {
    if (__builtin_mul_overflow(count, step.Number(extent), &count)) return false;
  }
  return count >= kMin && count <= kMax;
}

}  // namespace

Status Check(const program::Program& program, const Step& step, const Capabilities& capabilities) {
  return Checker(program, step, capabilities).Check();
}

KernelSequence MakeKernelSequence(const LoopFacts& facts, const device::BoundStep& step,
                                  const Capabilities& capabilities) {
  LoopNest loops = MakeLoopNest(facts, step);
  // Where items are the lanes, many of them have to have a part in much work.
  if (capabilities.run_length == 1) {
    if (const auto* reduce = step.step->As<program::Reduce>()) {
      return MakeReduceKernels(*reduce, std::move(loops));
    }
    if (const auto* scan = step.step->As<program::Scan>()) {
      return MakeScanKernels(*scan, std::move(loops));
    }
    if (step.step->As<program::Row>() != nullptr) loops.form.row_capacity = RowCapacity(loops);
    loops.form.lanes = MapLanes(facts, step, loops);
    if (loops.form.lanes > 1) {
      const int64_t lanes = loops.form.lanes;
      loops.given = {(loops.extents.back() + lanes - 1) / lanes};
    } else {
      SetMapTile(facts, step, capabilities, loops);
    }
  }
  if (const auto* index = step.step->As<program::Index>()) {
    if (index->kind == program::Index::Kind::kScatter) {
      return MakeScatterKernels(*index, std::move(loops), capabilities);
    }
    return MakeIndexKernels(*index, std::move(loops), capabilities);
  }
  if (step.step->As<program::Recurrent>() != nullptr) {
    return MakeRecurrentKernels(step, std::move(loops), capabilities);
  }
  if (step.step->As<program::Attention>() != nullptr) {
    return MakeAttentionKernels(facts, step, std::move(loops), capabilities);
  }
  if (capabilities.run_length == 1 && HasWorkForGroups(step)) loops.form.is_grouped = true;
  KernelSequence sequence;
  sequence.launches.push_back({.loops = std::move(loops)});
  return sequence;
}

KernelText Generate(const program::Program& program, const Step& step, int kernel,
                    const LoopForm& form, const Capabilities& capabilities, const Dialect& dialect,
                    std::string_view library) {
  Writer writer(form, program::FamilyName(step));
  const Source source{program, step, form, capabilities};
  struct Families {
    Writer& writer;
    const Source& source;
    int kernel;
    Launch operator()(const program::Map&) const { return WriteMap(writer, source); }
    Launch operator()(const program::Reduce&) const { return WriteReduce(writer, source, kernel); }
    Launch operator()(const program::Row&) const { return WriteRow(writer, source); }
    Launch operator()(const program::Scan&) const { return WriteScan(writer, source, kernel); }
    Launch operator()(const program::Contract&) const { return WriteContract(writer, source); }
    Launch operator()(const program::Window&) const { return WriteWindow(writer, source); }
    Launch operator()(const program::Attention&) const {
      return WriteAttention(writer, source, kernel);
    }
    Launch operator()(const program::Recurrent&) const {
      return WriteRecurrent(writer, source, kernel);
    }
    Launch operator()(const program::Index&) const { return WriteIndex(writer, source, kernel); }
    Launch operator()(const program::Cut&) const { return {}; }
    Launch operator()(const program::Control&) const { return {}; }
    Launch operator()(const program::Host&) const { return {}; }
  };
  const Launch launch = std::visit(Families{writer, source, kernel}, step.body);
  return writer.Finish(dialect, launch, form.is_narrow,
                       launch.uses_products ? library : std::string_view());
}

std::string Extent(Writer& writer, int axis) {
  return writer.Use({.kind = Number::Kind::kExtent, .axis = axis});
}

std::vector<std::string> WriteCoordinates(Writer& writer, const std::string& position,
                                          const std::vector<std::string>& extents) {
  std::vector<std::string> coordinates(extents.size());
  std::string rest = position;
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (axis == 0) {
      coordinates[axis] = writer.Declare("idx", rest);
      break;
    }
    const Writer::Division division = writer.DeclareDivision(rest, extents[axis]);
    coordinates[axis] = division.rest;
    rest = division.quotient;
  }
  return coordinates;
}

std::vector<std::string> OpenItems(Writer& writer, int axes) {
  writer.Open("if (ITEM < count)");
  const std::string item = writer.Declare("idx", "AS(idx, ITEM)");
  std::vector<std::string> extents;
  for (int axis = 0; axis < axes; ++axis) extents.push_back(Extent(writer, axis));
  return WriteCoordinates(writer, item, extents);
}

int GroupSizeOfItems(const Source& source) {
  constexpr int kItems = 128;
  return std::clamp(source.capabilities.row_group_size, 1, kItems);
}

Run OpenRun(Writer& writer, int axes, int run_length, bool is_last_slowest) {
  writer.Open("if (ITEM < count)");
  const std::string item = writer.Declare("idx", "AS(idx, ITEM)");
  std::vector<std::string> extents;
  for (int axis = 0; axis < axes; ++axis) extents.push_back(Extent(writer, axis));
  const std::string length = extents.back();
  extents.back() =
      writer.Declare("idx", Text("(", length, " + ", run_length - 1, ") / ", run_length));
  Run run;
  if (is_last_slowest) std::rotate(extents.begin(), extents.end() - 1, extents.end());
  run.coordinates = WriteCoordinates(writer, item, extents);
  if (is_last_slowest) {
    std::rotate(run.coordinates.begin(), run.coordinates.begin() + 1, run.coordinates.end());
  }
  run.begin = writer.Declare("idx", Text(run.coordinates.back(), " * ", run_length));
  const std::string rest = writer.Declare("idx", Text(length, " - ", run.begin));
  run.count =
      writer.Declare("int", Text(rest, " < ", run_length, " ? AS(int, ", rest, ") : ", run_length));
  return run;
}

void OpenLanes(Writer& writer, Run& run, const std::string& begin, const std::string& end) {
  run.lane = writer.NewName("l");
  writer.Line("INDEPENDENT");
  writer.Open("for (int ", run.lane, " = ", begin, "; ", run.lane, " < ", end, "; ++", run.lane,
              ")");
  run.coordinates.back() = writer.Declare("idx", Text(run.begin, " + ", run.lane));
}

void NameIndices(const Source& source, Scope& scope) {
  scope.indices.clear();
  for (const int axis : source.form.axis_of) {
    const bool is_known = axis >= 0 && axis < static_cast<int>(scope.coordinates.size());
    scope.indices.push_back(is_known ? scope.coordinates[static_cast<size_t>(axis)] : "0");
  }
}

Launch WriteMap(Writer& writer, const Source& source) {
  if (source.form.lanes > 1) return WriteMapOfLanes(writer, source);
  if (source.form.tile.read_axis >= 0) return WriteMapOfTiles(writer, source);
  const int rank = source.form.rank;
  Scope scope;
  const int run_length = rank == 0 ? 1 : source.capabilities.run_length;
  if (run_length == 1) {
    scope.coordinates = OpenItems(writer, rank);
  } else {
    // Lines of a view that runs lead across are read again by the next row, if that comes next.
    const std::vector<LastStep>& steps = source.form.read_steps;
    const bool leads_across = std::find(steps.begin(), steps.end(), LastStep::kAny) != steps.end();
    Run run = OpenRun(writer, rank, run_length, leads_across);
    OpenLanes(writer, run, "0", run.count);
    scope.coordinates = run.coordinates;
  }
  NameIndices(source, scope);
  const program::Map& map = *source.step.As<program::Map>();
  const std::vector<std::string> values =
      WriteExpressions(writer, source.program, source.step, scope, map.roots);
  for (size_t k = 0; k < values.size(); ++k) {
    WriteStore(writer, source.step, static_cast<int>(k), scope.coordinates, values[k]);
  }
  if (run_length > 1) writer.Close();
  writer.Close();
  return {
      .item_axes = rank,
      .run_length = run_length,
      .group_size = run_length > 1 ? source.capabilities.run_group_size : GroupSizeOfItems(source)};
}

}  // namespace onnxifi::codegen
