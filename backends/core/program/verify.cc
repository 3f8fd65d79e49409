// SPDX-License-Identifier: Apache-2.0
//
// Verify: one walk over the steps, by family. What stands in their expressions is ExprVerifier's.

#include "backends/core/program/verify.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/program/expr_verifier.h"
#include "backends/core/program/recurrent_verifier.h"

namespace onnxifi::program {
namespace {

using base::Status;
using tensor::ElementType;

class StepVerifier {
 public:
  StepVerifier(const Program& program, const Step& step)
      : program_(program), step_(step), exprs_(program, step) {}

  Status Check() {
    // The reads and writes of control steps are non-tensor values, described by their own records.
    if (const Control* control = step_.As<Control>()) return CheckControl(*control);
    if (const Host* host = step_.As<Host>()) return CheckHost(*host);
    for (const View& view : step_.reads) ONNXIFI_RETURN_IF_ERROR(CheckView(view));
    for (const View& view : step_.writes) {
      ONNXIFI_RETURN_IF_ERROR(CheckView(view));
      ONNXIFI_RETURN_IF_ERROR(CheckWrite(view));
    }
    if (const Map* map = step_.As<Map>()) return CheckMap(*map);
    if (const Reduce* reduce = step_.As<Reduce>()) return CheckReduce(*reduce);
    if (const Row* row = step_.As<Row>()) return CheckRow(*row);
    if (const Scan* scan = step_.As<Scan>()) return CheckScan(*scan);
    if (const Contract* contract = step_.As<Contract>()) return CheckContract(*contract);
    if (const Window* window = step_.As<Window>()) return CheckWindow(*window);
    if (const Attention* attention = step_.As<Attention>()) return CheckAttention(*attention);
    if (step_.As<Recurrent>() != nullptr) return CheckRecurrent(step_);
    if (const Index* index = step_.As<Index>()) return CheckIndex(*index);
    if (const Cut* cut = step_.As<Cut>()) return CheckCut(*cut);
    return base::Ok();
  }

 private:
  size_t rank() const { return step_.domain.size(); }

  Status CheckBuffer(BufferId id) const {
    if (id >= 0 && static_cast<size_t>(id) < program_.buffers.size()) return base::Ok();
    return Fault("Buffer " + std::to_string(id) + " does not exist; there are " +
                 std::to_string(program_.buffers.size()) + ".");
  }

  Status CheckView(const View& view) const {
    if (view.buffer == kNoBuffer) return base::Ok();
    ONNXIFI_RETURN_IF_ERROR(CheckBuffer(view.buffer));
    const Buffer& buffer = program_.buffers[static_cast<size_t>(view.buffer)];
    if (tensor::BitWidth(view.type) != tensor::BitWidth(buffer.type)) {
      return Fault("A view of type " + TypeText(view.type) + " looks at buffer " +
                   std::to_string(view.buffer) + " of type " + TypeText(buffer.type) + ".");
    }
    for (const Guard& guard : view.guards) {
      if (guard.coefficients.size() != view.strides.size()) {
        return Fault("A guard has " + std::to_string(guard.coefficients.size()) +
                     " coefficients for the " + std::to_string(view.strides.size()) +
                     " axes of its view.");
      }
    }
    return base::Ok();
  }

  Status CheckWrite(const View& view) const {
    if (view.buffer == kNoBuffer) return base::Ok();
    if (!view.guards.empty()) return Fault("A writing view has a guard.");
    const Buffer::Kind kind = program_.buffers[static_cast<size_t>(view.buffer)].kind;
    if (kind == Buffer::Kind::kInput || kind == Buffer::Kind::kConstant ||
        kind == Buffer::Kind::kDraws) {
      return Fault("Buffer " + std::to_string(view.buffer) +
                   ", an input, a constant or the numbers of draws, is written.");
    }
    return base::Ok();
  }

  Status CheckAxes(int axes) const {
    if (axes >= 0 && static_cast<size_t>(axes) <= rank()) return base::Ok();
    return Fault("The last " + std::to_string(axes) + " axes of a domain of rank " +
                 std::to_string(rank()) + " are reduced.");
  }

  Status CheckRoots(const ExprIds& roots, const AllowedLeaves& place, size_t write_rank) const {
    if (roots.size() != step_.writes.size()) {
      return Fault(std::to_string(roots.size()) + " roots are computed for " +
                   std::to_string(step_.writes.size()) + " writes.");
    }
    for (size_t k = 0; k < roots.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(exprs_.Check(roots[k], place));
      ONNXIFI_RETURN_IF_ERROR(CheckRank("Write", k, step_.writes[k], write_rank));
      const ElementType type = program_.exprs[roots[k]].type;
      if (type != step_.writes[k].type) {
        return Fault("Write " + std::to_string(k) + " of type " + TypeText(step_.writes[k].type) +
                     " gets a root of type " + TypeText(type) + ".");
      }
    }
    return base::Ok();
  }

  Status CheckReduction(const Reduction& reduction, const AllowedLeaves& element,
                        bool has_merge) const {
    AllowedLeaves init = element;
    init.may_load = false;
    AllowedLeaves update = element;
    update.state = &reduction.states;
    AllowedLeaves merge;
    merge.may_load = false;
    merge.state = &reduction.states;
    merge.has_other = true;
    for (size_t k = 0; k < reduction.states.size(); ++k) {
      const Reduction::State& state = reduction.states[k];
      ONNXIFI_RETURN_IF_ERROR(exprs_.Check(state.init, init).Context("in an init"));
      ONNXIFI_RETURN_IF_ERROR(exprs_.Check(state.update, update).Context("in an update"));
      if (has_merge)
        ONNXIFI_RETURN_IF_ERROR(exprs_.Check(state.merge, merge).Context("in a merge"));
      for (ExprId id : {state.init, state.update, has_merge ? state.merge : state.init}) {
        if (program_.exprs[id].type == state.type) continue;
        return Fault("State " + std::to_string(k) + " of type " + TypeText(state.type) +
                     " gets a value of type " + TypeText(program_.exprs[id].type) + ".");
      }
    }
    return base::Ok();
  }

  AllowedLeaves OverDomain() const {
    AllowedLeaves place;
    place.index_axes = rank();
    place.load_rank = rank();
    return place;
  }

  Status CheckMap(const Map& map) const { return CheckRoots(map.roots, OverDomain(), rank()); }

  Status CheckReduce(const Reduce& reduce) const {
    ONNXIFI_RETURN_IF_ERROR(CheckAxes(reduce.axes));
    ONNXIFI_RETURN_IF_ERROR(CheckReduction(reduce.reduction, OverDomain(), /*has_merge=*/true));
    AllowedLeaves result;
    result.index_axes = rank() - static_cast<size_t>(reduce.axes);
    result.may_load = false;
    result.state = &reduce.reduction.states;
    return CheckRoots(reduce.roots, result, result.index_axes);
  }

  Status CheckRow(const Row& row) const {
    ONNXIFI_RETURN_IF_ERROR(CheckAxes(row.axes));
    AllowedLeaves place = OverDomain();
    place.passes = &row.passes;
    for (const Row::Pass& pass : row.passes) {
      ONNXIFI_RETURN_IF_ERROR(CheckReduction(pass.reduction, place, /*has_merge=*/true));
      AllowedLeaves result = place;
      result.may_load = false;
      result.state = &pass.reduction.states;
      if (pass.results.size() > 256) {
        return Fault("A pass has " + std::to_string(pass.results.size()) +
                     " results; 256 can be named.");
      }
      for (ExprId id : pass.results) ONNXIFI_RETURN_IF_ERROR(exprs_.Check(id, result));
      ++place.row_passes;
    }
    return CheckRoots(row.roots, place, rank());
  }

  Status CheckScan(const Scan& scan) const {
    if (rank() == 0) return Fault("A scan runs along the last axis of a domain without axes.");
    const auto& states = scan.reduction.states;
    const bool has_merge = std::any_of(states.begin(), states.end(),
                                       [](const auto& state) { return state.merge != kNoExpr; });
    ONNXIFI_RETURN_IF_ERROR(CheckReduction(scan.reduction, OverDomain(), has_merge));
    AllowedLeaves place = OverDomain();
    place.state = &scan.reduction.states;
    return CheckRoots(scan.roots, place, rank());
  }

  Status CheckSpatial(const char* what, size_t count, size_t spatial) const {
    if (count == spatial) return base::Ok();
    return Fault(std::string(what) + " has " + std::to_string(count) + " entries for " +
                 std::to_string(spatial) + " spatial axes.");
  }

  Status CheckContract(const Contract& contract) const {
    if (step_.reads.size() < 2) return Fault("A contraction reads fewer than two operands.");
    size_t a_rank = 0;
    size_t b_rank = 0;
    if (contract.form == Contract::Form::kMatMul) {
      const auto batch = static_cast<size_t>(contract.batch_axes);
      const auto m = static_cast<size_t>(contract.m_axes);
      const auto n = static_cast<size_t>(contract.n_axes);
      if (batch + m + n != rank()) {
        return Fault("Batch, m and n have " + std::to_string(batch + m + n) +
                     " axes in a domain of rank " + std::to_string(rank()) + ".");
      }
      a_rank = batch + m + contract.inner.size();
      b_rank = batch + contract.inner.size() + n;
    } else {
      if (rank() < 2) {
        return Fault("A convolution has a domain of rank " + std::to_string(rank()) + ".");
      }
      const size_t spatial = rank() - 2;
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("inner", contract.inner.size(), spatial + 1));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("a_spatial", contract.a_spatial.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("strides", contract.strides.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("dilations", contract.dilations.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("pads_begin", contract.pads_begin.size(), spatial));
      for (int64_t stride : contract.strides) {
        if (stride < 1) return Fault("A stride is " + std::to_string(stride) + ".");
      }
      if (contract.group < 1) return Fault("group is " + std::to_string(contract.group) + ".");
      a_rank = rank();
      b_rank = rank();
    }
    const std::pair<ExprId, size_t> prologues[] = {{contract.a_prologue, a_rank},
                                                   {contract.b_prologue, b_rank}};
    for (const auto& [root, axes] : prologues) {
      AllowedLeaves place;
      place.index_axes = axes;
      place.load_rank = axes;
      ONNXIFI_RETURN_IF_ERROR(exprs_.Check(root, place).Context("in a prologue"));
      if (program_.exprs[root].type != contract.accumulator) {
        return Fault("A prologue has type " + TypeText(program_.exprs[root].type) +
                     ", not that of the accumulator, " + TypeText(contract.accumulator) + ".");
      }
    }
    AllowedLeaves place = OverDomain();
    place.accumulator = contract.accumulator;
    return CheckRoots(contract.roots, place, rank());
  }

  Status CheckWindow(const Window& window) const {
    if (rank() < 2 || step_.reads.empty()) {
      return Fault("A window has a domain of rank " + std::to_string(rank()) + " and " +
                   std::to_string(step_.reads.size()) + " reads.");
    }
    const size_t spatial = rank() - 2;
    ONNXIFI_RETURN_IF_ERROR(CheckRank("Read", 0, step_.reads[0], rank()));
    ONNXIFI_RETURN_IF_ERROR(CheckSpatial("in_spatial", window.in_spatial.size(), spatial));
    if (window.kind == Window::Kind::kLrn) {
      if (window.kernel.size() != 1) return Fault("A window over channels has no single size.");
    } else {
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("kernel", window.kernel.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("strides", window.strides.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("dilations", window.dilations.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("pads_begin", window.pads_begin.size(), spatial));
      ONNXIFI_RETURN_IF_ERROR(CheckSpatial("pads_end", window.pads_end.size(), spatial));
    }
    AllowedLeaves place = OverDomain();
    place.accumulator = window.accumulator;
    const bool has_indices = window.kind == Window::Kind::kMax && step_.writes.size() == 2;
    if (!has_indices) return CheckRoots(window.roots, place, rank());
    if (step_.writes[1].type != ElementType::kInt64) {
      return Fault("The indices of maxima are written as " + TypeText(step_.writes[1].type) +
                   ", not as int64.");
    }
    if (window.roots.empty()) return Fault("A window has no root.");
    ONNXIFI_RETURN_IF_ERROR(exprs_.Check(window.roots[0], place));
    ONNXIFI_RETURN_IF_ERROR(CheckRank("Write", 0, step_.writes[0], rank()));
    return CheckRank("Write", 1, step_.writes[1], rank());
  }

  Status CheckAttention(const Attention& attention) const {
    if (rank() < 2) {
      return Fault("Attention has a domain of rank " + std::to_string(rank()) +
                   ", without queries and values.");
    }
    if (step_.reads.size() < 3) return Fault("Attention reads fewer than three operands.");
    // Operands, scores and outputs have as many axes each.
    const AllowedLeaves operand = OverDomain();
    AllowedLeaves sum = operand;
    sum.accumulator = ElementType::kFloat32;
    struct Part {
      const char* name;
      ExprId root;
      const AllowedLeaves& place;
    };
    const Part parts[] = {{"the prologue of Q", attention.query_prologue, operand},
                          {"the prologue of K", attention.key_prologue, operand},
                          {"the prologue of V", attention.value_prologue, operand},
                          {"the score", attention.score, sum}};
    for (const Part& part : parts) {
      ONNXIFI_RETURN_IF_ERROR(
          exprs_.Check(part.root, part.place).Context(std::string("in ") + part.name));
      const ElementType type = program_.exprs[part.root].type;
      if (type != ElementType::kFloat32) {
        return Fault("Attention has " + std::string(part.name) + " of type " + TypeText(type) +
                     ", not float32.");
      }
    }
    return CheckRoots(attention.roots, sum, rank());
  }

  Status CheckIndex(const Index& index) const {
    if (step_.reads.empty() || step_.writes.empty()) {
      return Fault("An index step has " + std::to_string(step_.reads.size()) + " reads and " +
                   std::to_string(step_.writes.size()) + " writes.");
    }
    for (size_t k = 0; k < step_.reads.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(CheckRank("Read", k, step_.reads[k], rank()));
    }
    switch (index.kind) {
      case Index::Kind::kScatter:
        if (step_.reads.size() != index.target.size() + 1) {
          return Fault(std::to_string(step_.reads.size() - 1) +
                       " coordinates address a target of " + std::to_string(index.target.size()) +
                       " axes.");
        }
        for (size_t k = 1; k < step_.reads.size(); ++k) {
          if (step_.reads[k].type != ElementType::kInt64) {
            return Fault("Coordinates have type " + TypeText(step_.reads[k].type) + ", not int64.");
          }
        }
        if (step_.reads[0].type != step_.writes[0].type) {
          return Fault("Updates of type " + TypeText(step_.reads[0].type) +
                       " are written to type " + TypeText(step_.writes[0].type) + ".");
        }
        return CheckRank("Write", 0, step_.writes[0], index.target.size());
      case Index::Kind::kTopK:
        if (rank() == 0) return Fault("Top-k selects along the last axis of no axes.");
        return CheckRank(
            "Write", 0, step_.writes[0],
            step_.writes[0].buffer == kNoBuffer ? step_.writes[0].strides.size() : rank());
      case Index::Kind::kCountNonZero:
        return base::Ok();
      case Index::Kind::kNonZero:
        return CheckRank("Write", 0, step_.writes[0], 2);
      case Index::Kind::kSuppress:
        return CheckSuppress();
    }
    return base::Ok();
  }

  Status CheckSuppress() const {
    constexpr ElementType kTypes[] = {
        ElementType::kBool,    ElementType::kFloat32, ElementType::kFloat32, ElementType::kFloat32,
        ElementType::kFloat32, ElementType::kFloat32, ElementType::kInt64};
    if (rank() == 0) return Fault("Suppression runs along the last axis of no axes.");
    if (step_.reads.size() != std::size(kTypes)) {
      return Fault("Suppression has " + std::to_string(step_.reads.size()) + " reads instead of " +
                   std::to_string(std::size(kTypes)) + ".");
    }
    for (size_t k = 0; k < std::size(kTypes); ++k) {
      if (step_.reads[k].type != kTypes[k]) {
        return Fault("Read " + std::to_string(k) + " of a suppression has type " +
                     TypeText(step_.reads[k].type) + ", not " + TypeText(kTypes[k]) + ".");
      }
    }
    if (step_.writes[0].type != ElementType::kBool) {
      return Fault("Suppression writes type " + TypeText(step_.writes[0].type) + ", not bool.");
    }
    return CheckRank("Write", 0, step_.writes[0], rank());
  }

  Status CheckCut(const Cut& cut) const {
    if (step_.reads.empty() || step_.reads[0].type != ElementType::kInt64) {
      return Fault("A cut does not read int64 numbers.");
    }
    const int symbols = program_.dims->symbol_count();
    if (cut.first_symbol >= 0 && cut.count >= 0 && cut.first_symbol + cut.count <= symbols) {
      return base::Ok();
    }
    return Fault("A cut binds symbols " + std::to_string(cut.first_symbol) + " to " +
                 std::to_string(cut.first_symbol + cut.count) + " of " + std::to_string(symbols) +
                 ".");
  }

  Status CheckHost(const Host& host) const {
    if (host.function == nullptr) return Fault("A host step has no function.");
    if (host.read_shapes.size() != step_.reads.size() ||
        host.first_symbol.size() != step_.writes.size()) {
      return Fault("A host step describes " + std::to_string(host.read_shapes.size()) + " of " +
                   std::to_string(step_.reads.size()) + " reads and " +
                   std::to_string(host.first_symbol.size()) + " of " +
                   std::to_string(step_.writes.size()) + " writes.");
    }
    for (const View& view : step_.reads) {
      if (view.buffer != kNoBuffer) ONNXIFI_RETURN_IF_ERROR(CheckBuffer(view.buffer));
    }
    for (size_t k = 0; k < step_.writes.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(CheckBuffer(step_.writes[k].buffer));
      const Buffer& buffer = program_.buffers[static_cast<size_t>(step_.writes[k].buffer)];
      if (buffer.kind != Buffer::Kind::kDynamic) {
        return Fault("Write " + std::to_string(k) + " of a host step is not of a dynamic buffer.");
      }
      if (host.first_symbol[k] == -1) continue;
      const int end = host.first_symbol[k] + static_cast<int>(buffer.shape.size());
      if (host.first_symbol[k] < 0 || end > program_.dims->symbol_count()) {
        return Fault("A host step binds symbols " + std::to_string(host.first_symbol[k]) + " to " +
                     std::to_string(end) + " of " + std::to_string(program_.dims->symbol_count()) +
                     ".");
      }
    }
    return base::Ok();
  }

  Status CheckControl(const Control& control) const {
    for (const View& view : step_.reads) {
      if (view.buffer != kNoBuffer) ONNXIFI_RETURN_IF_ERROR(CheckBuffer(view.buffer));
    }
    for (const View& view : step_.writes) {
      if (view.buffer != kNoBuffer) ONNXIFI_RETURN_IF_ERROR(CheckBuffer(view.buffer));
    }
    for (const std::unique_ptr<Program>& body : control.bodies) {
      if (body == nullptr) return Fault("A control step has an empty body.");
      ONNXIFI_RETURN_IF_ERROR(Verify(*body).Context("in a body"));
    }
    for (const std::vector<int>& captures : control.captures) {
      for (int position : captures) {
        if (position < 0 || static_cast<size_t>(position) >= step_.reads.size()) {
          return Fault("A body captures read " + std::to_string(position) + " of " +
                       std::to_string(step_.reads.size()) + ".");
        }
      }
    }
    return base::Ok();
  }

  const Program& program_;
  const Step& step_;
  const ExprVerifier exprs_;
};

Status CheckPorts(const Program& program) {
  for (const std::vector<Port>* ports : {&program.inputs, &program.outputs}) {
    for (const Port& port : *ports) {
      if (port.buffer < 0 || static_cast<size_t>(port.buffer) >= program.buffers.size()) {
        return Fault("Port '" + port.name + "' names buffer " + std::to_string(port.buffer) +
                     " of " + std::to_string(program.buffers.size()) + ".");
      }
    }
  }
  for (const Buffer& buffer : program.buffers) {
    const size_t limit = buffer.kind == Buffer::Kind::kInput      ? program.inputs.size()
                         : buffer.kind == Buffer::Kind::kConstant ? program.constants.size()
                                                                  : SIZE_MAX;
    if (limit != SIZE_MAX && (buffer.index < 0 || static_cast<size_t>(buffer.index) >= limit)) {
      return Fault("A buffer is input or constant " + std::to_string(buffer.index) + " of " +
                   std::to_string(limit) + ".");
    }
  }
  return base::Ok();
}

}  // namespace

Status Verify(const Program& program) {
  ONNXIFI_RETURN_IF_ERROR(CheckPorts(program));
  for (size_t k = 0; k < program.steps.size(); ++k) {
    const Step& step = program.steps[k];
    ONNXIFI_RETURN_IF_ERROR(
        StepVerifier(program, step)
            .Check()
            .Context("in step " + std::to_string(k) + " (" + std::string(FamilyName(step)) + ")"));
  }
  return base::Ok();
}

}  // namespace onnxifi::program
