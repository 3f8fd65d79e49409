// SPDX-License-Identifier: Apache-2.0
//
// Verify: one walk over the steps. Where an expression may stand is described by what its leaves
// may read (Place).

#include "backends/core/program/verify.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace onnxifi::program {
namespace {

using base::Status;
using tensor::ElementType;

Status Fault(std::string sentence) {
  return Status(base::Code::kInternalError, std::move(sentence));
}

std::string TypeText(ElementType type) { return std::string(tensor::Name(type)); }

// What the leaves of an expression may be where it stands.
struct Place {
  size_t index_axes = 0;  // kIndex
  size_t load_rank = 0;   // axes of a view loaded at the domain's coordinates
  bool may_load = true;
  const std::vector<Fold::State>* state = nullptr;  // kState
  bool has_other = false;                           // kOther, with the types of `state`
  size_t row_stages = 0;                            // kRow of stages before this one
  const std::vector<Row::Stage>* stages = nullptr;
  ElementType accumulator = ElementType::kUndefined;  // kAccumulator, unless undefined
};

class StepVerifier {
 public:
  StepVerifier(const Program& program, const Step& step) : program_(program), step_(step) {}

  Status Check() {
    // The reads and writes of control steps are whole values, described by their own records.
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
    if (kind == Buffer::Kind::kInput || kind == Buffer::Kind::kConstant) {
      return Fault("Buffer " + std::to_string(view.buffer) +
                   ", an input or a constant, is written.");
    }
    return base::Ok();
  }

  Status CheckRank(const char* what, size_t index, const View& view, size_t expected) const {
    if (view.strides.size() == expected) return base::Ok();
    return Fault(std::string(what) + " " + std::to_string(index) + " has " +
                 std::to_string(view.strides.size()) + " axes, not " + std::to_string(expected) +
                 ".");
  }

  Status CheckAxes(int axes) const {
    if (axes >= 0 && static_cast<size_t>(axes) <= rank()) return base::Ok();
    return Fault("The last " + std::to_string(axes) + " axes of a domain of rank " +
                 std::to_string(rank()) + " are folded.");
  }

  // Of every node below `root`: its operands' types, and that its place provides what it reads.
  Status CheckExpr(ExprId root, const Place& place) const {
    if (root < 0 || root >= program_.exprs.size()) {
      return Fault("Expression " + std::to_string(root) + " does not exist; there are " +
                   std::to_string(program_.exprs.size()) + ".");
    }
    const ExprId roots[] = {root};
    for (ExprId id : Reachable(program_.exprs, roots)) {
      Status status = CheckNode(program_.exprs[id], place);
      if (!status.ok()) return std::move(status).Context("in " + ToString(program_.exprs, id));
    }
    return base::Ok();
  }

  Status CheckNode(const ExprNode& node, const Place& place) const {
    const ExprPool& pool = program_.exprs;
    auto operand_type = [&](size_t k) { return pool[node.operands[k]].type; };
    auto arity = [&](size_t expected) {
      return node.operands.size() == expected
                 ? base::Ok()
                 : Fault("The operation " + std::string(Name(node.op)) + " has " +
                         std::to_string(node.operands.size()) + " operands, not " +
                         std::to_string(expected) + ".");
    };
    auto typed = [&](ElementType expected) {
      return node.type == expected
                 ? base::Ok()
                 : Fault("A " + std::string(Name(node.op)) + " has type " + TypeText(node.type) +
                         ", not " + TypeText(expected) + ".");
    };
    switch (node.op) {
      case ExprOp::kConstant:
        return arity(0);
      case ExprOp::kDim:
        return typed(ElementType::kInt64);
      case ExprOp::kIndex:
        if (node.payload >= place.index_axes) {
          return Fault("Coordinate " + std::to_string(node.payload) + " is read where there are " +
                       std::to_string(place.index_axes) + ".");
        }
        return typed(ElementType::kInt64);
      case ExprOp::kLoad:
        return CheckLoad(node, place);
      case ExprOp::kState:
      case ExprOp::kOther: {
        const bool is_allowed =
            place.state != nullptr && (node.op == ExprOp::kState || place.has_other);
        if (!is_allowed || node.payload >= place.state->size()) {
          return Fault("State " + std::to_string(node.payload) + " is read where there is none.");
        }
        return typed((*place.state)[node.payload].type);
      }
      case ExprOp::kRow: {
        const size_t stage = node.payload / 256;
        const size_t result = node.payload % 256;
        if (stage >= place.row_stages || result >= (*place.stages)[stage].results.size()) {
          return Fault("Result " + std::to_string(result) + " of stage " + std::to_string(stage) +
                       " is read where " + std::to_string(place.row_stages) + " stages are done.");
        }
        return typed(pool[(*place.stages)[stage].results[result]].type);
      }
      case ExprOp::kAccumulator:
        if (place.accumulator == ElementType::kUndefined) {
          return Fault("An accumulator is read where there is none.");
        }
        return typed(place.accumulator);
      case ExprOp::kSelect:
        ONNXIFI_RETURN_IF_ERROR(arity(3));
        if (operand_type(0) != ElementType::kBool || operand_type(1) != node.type ||
            operand_type(2) != node.type) {
          return Fault("A select of " + TypeText(node.type) + " has operands of types " +
                       TypeText(operand_type(0)) + ", " + TypeText(operand_type(1)) + " and " +
                       TypeText(operand_type(2)) + ".");
        }
        return base::Ok();
      case ExprOp::kCast:
        return arity(1);
      case ExprOp::kBitcast:
        ONNXIFI_RETURN_IF_ERROR(arity(1));
        if (tensor::BitWidth(operand_type(0)) != tensor::BitWidth(node.type)) {
          return Fault("A bitcast turns " + TypeText(operand_type(0)) + " into " +
                       TypeText(node.type) + ", which is of another width.");
        }
        return base::Ok();
      case ExprOp::kRandom:
        ONNXIFI_RETURN_IF_ERROR(arity(1));
        return operand_type(0) == ElementType::kInt64
                   ? typed(ElementType::kFloat64)
                   : Fault("The counter of a random number has type " + TypeText(operand_type(0)) +
                           ", not int64.");
      default:
        return CheckArithmetic(node);
    }
  }

  Status CheckArithmetic(const ExprNode& node) const {
    const bool is_unary = node.op < ExprOp::kAdd;
    if (node.operands.size() != (is_unary ? 1u : 2u)) {
      return Fault("The operation " + std::string(Name(node.op)) + " has " +
                   std::to_string(node.operands.size()) + " operands.");
    }
    const ElementType type = program_.exprs[node.operands[0]].type;
    if (!is_unary && program_.exprs[node.operands[1]].type != type) {
      return Fault("The operation " + std::string(Name(node.op)) + " combines " + TypeText(type) +
                   " and " + TypeText(program_.exprs[node.operands[1]].type) + ".");
    }
    if (tensor::ArithmeticType(type) != type || tensor::IsComplex(type)) {
      return Fault("The operation " + std::string(Name(node.op)) + " is done in " + TypeText(type) +
                   ", a type that is only stored.");
    }
    const bool gives_bool = node.op == ExprOp::kIsNan || node.op == ExprOp::kEqual ||
                            node.op == ExprOp::kLess || node.op == ExprOp::kLessEqual;
    const ElementType expected = gives_bool ? ElementType::kBool : type;
    if (node.type == expected) return base::Ok();
    return Fault("The operation " + std::string(Name(node.op)) + " on " + TypeText(type) +
                 " has type " + TypeText(node.type) + ".");
  }

  Status CheckLoad(const ExprNode& node, const Place& place) const {
    if (!place.may_load) return Fault("An element is loaded where none may be.");
    if (node.payload >= step_.reads.size()) {
      return Fault("Read " + std::to_string(node.payload) + " does not exist; there are " +
                   std::to_string(step_.reads.size()) + ".");
    }
    const View& view = step_.reads[node.payload];
    if (node.type != view.type) {
      return Fault("Read " + std::to_string(node.payload) + " of type " + TypeText(view.type) +
                   " is loaded as " + TypeText(node.type) + ".");
    }
    for (ExprId operand : node.operands) {
      if (program_.exprs[operand].type != ElementType::kInt64) {
        return Fault("A coordinate of a load has type " + TypeText(program_.exprs[operand].type) +
                     ", not int64.");
      }
    }
    // A scalar is loaded at no coordinates; it looks like a load at the domain's.
    const bool is_scalar = node.operands.empty() && view.strides.empty();
    if (is_scalar) return base::Ok();
    return CheckRank("Read", node.payload, view,
                     node.operands.empty() ? place.load_rank : node.operands.size());
  }

  Status CheckRoots(const ExprIds& roots, const Place& place, size_t write_rank) const {
    if (roots.size() != step_.writes.size()) {
      return Fault(std::to_string(roots.size()) + " roots are computed for " +
                   std::to_string(step_.writes.size()) + " writes.");
    }
    for (size_t k = 0; k < roots.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(CheckExpr(roots[k], place));
      ONNXIFI_RETURN_IF_ERROR(CheckRank("Write", k, step_.writes[k], write_rank));
      const ElementType type = program_.exprs[roots[k]].type;
      if (type != step_.writes[k].type) {
        return Fault("Write " + std::to_string(k) + " of type " + TypeText(step_.writes[k].type) +
                     " gets a root of type " + TypeText(type) + ".");
      }
    }
    return base::Ok();
  }

  Status CheckFold(const Fold& fold, const Place& element, bool has_merge) const {
    Place init = element;
    init.may_load = false;
    Place update = element;
    update.state = &fold.states;
    Place merge;
    merge.may_load = false;
    merge.state = &fold.states;
    merge.has_other = true;
    for (size_t k = 0; k < fold.states.size(); ++k) {
      const Fold::State& state = fold.states[k];
      ONNXIFI_RETURN_IF_ERROR(CheckExpr(state.init, init).Context("in an init"));
      ONNXIFI_RETURN_IF_ERROR(CheckExpr(state.update, update).Context("in an update"));
      if (has_merge) ONNXIFI_RETURN_IF_ERROR(CheckExpr(state.merge, merge).Context("in a merge"));
      for (ExprId id : {state.init, state.update, has_merge ? state.merge : state.init}) {
        if (program_.exprs[id].type == state.type) continue;
        return Fault("State " + std::to_string(k) + " of type " + TypeText(state.type) +
                     " gets a value of type " + TypeText(program_.exprs[id].type) + ".");
      }
    }
    return base::Ok();
  }

  Place OverDomain() const {
    Place place;
    place.index_axes = rank();
    place.load_rank = rank();
    return place;
  }

  Status CheckMap(const Map& map) const { return CheckRoots(map.roots, OverDomain(), rank()); }

  Status CheckReduce(const Reduce& reduce) const {
    ONNXIFI_RETURN_IF_ERROR(CheckAxes(reduce.axes));
    ONNXIFI_RETURN_IF_ERROR(CheckFold(reduce.fold, OverDomain(), /*has_merge=*/true));
    Place result;
    result.index_axes = rank() - static_cast<size_t>(reduce.axes);
    result.may_load = false;
    result.state = &reduce.fold.states;
    return CheckRoots(reduce.roots, result, result.index_axes);
  }

  Status CheckRow(const Row& row) const {
    ONNXIFI_RETURN_IF_ERROR(CheckAxes(row.axes));
    Place place = OverDomain();
    place.stages = &row.stages;
    for (const Row::Stage& stage : row.stages) {
      ONNXIFI_RETURN_IF_ERROR(CheckFold(stage.fold, place, /*has_merge=*/true));
      Place result = place;
      result.may_load = false;
      result.state = &stage.fold.states;
      if (stage.results.size() > 256) {
        return Fault("A stage has " + std::to_string(stage.results.size()) +
                     " results; 256 can be named.");
      }
      for (ExprId id : stage.results) ONNXIFI_RETURN_IF_ERROR(CheckExpr(id, result));
      ++place.row_stages;
    }
    return CheckRoots(row.roots, place, rank());
  }

  Status CheckScan(const Scan& scan) const {
    if (rank() == 0) return Fault("A scan runs along the last axis of a domain without axes.");
    ONNXIFI_RETURN_IF_ERROR(CheckFold(scan.fold, OverDomain(), /*has_merge=*/false));
    Place place = OverDomain();
    place.state = &scan.fold.states;
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
      Place place;
      place.index_axes = axes;
      place.load_rank = axes;
      ONNXIFI_RETURN_IF_ERROR(CheckExpr(root, place).Context("in a prologue"));
      if (program_.exprs[root].type != contract.accumulator) {
        return Fault("A prologue has type " + TypeText(program_.exprs[root].type) +
                     ", not that of the accumulator, " + TypeText(contract.accumulator) + ".");
      }
    }
    Place place = OverDomain();
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
    Place place = OverDomain();
    place.accumulator = window.accumulator;
    const bool has_indices = window.kind == Window::Kind::kMax && step_.writes.size() == 2;
    if (!has_indices) return CheckRoots(window.roots, place, rank());
    if (step_.writes[1].type != ElementType::kInt64) {
      return Fault("The indices of maxima are written as " + TypeText(step_.writes[1].type) +
                   ", not as int64.");
    }
    if (window.roots.empty()) return Fault("A window has no root.");
    ONNXIFI_RETURN_IF_ERROR(CheckExpr(window.roots[0], place));
    ONNXIFI_RETURN_IF_ERROR(CheckRank("Write", 0, step_.writes[0], rank()));
    return CheckRank("Write", 1, step_.writes[1], rank());
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
