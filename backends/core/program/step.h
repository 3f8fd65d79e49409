// SPDX-License-Identifier: Apache-2.0
//
// Step: one piece of work of a tensor program. The families are the whole vocabulary that a device
// has to know; core/ops lowers every ONNX operator to them.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_STEP_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/core/program/expr.h"
#include "backends/core/program/recurrent.h"
#include "backends/core/program/view.h"

namespace onnxifi::program {

struct Program;

// Map: for every coordinate of the domain, writes[k] = roots[k].
struct Map {
  ExprIds roots;  // one per write, of the write's type
};

// A tuple reduced over elements: state = init; state = update(state, element); partial states are
// joined by merge. `update` reads kState, kLoad and kIndex; `merge` reads kState and kOther;
// neither depends on the order of elements beyond rounding (ties in ArgMin/Max are decided by the
// index kept in the state).
struct Reduction {
  struct State {
    tensor::ElementType type;
    ExprId init;
    ExprId update;
    ExprId merge;
  };
  std::vector<State> states;
};

// Reduce: the last `axes` axes of the domain are reduced. Writes are over the leading axes; roots
// read kState.
struct Reduce {
  int axes = 0;
  Reduction reduction;
  ExprIds roots;
};

// Row: the last `axes` axes of the domain are one row. Each pass reduces the row and ends in
// `results`, readable as kRow by later passes and by the roots. Writes are over the whole domain;
// one with stride 0 along every row axis has a root that depends only on kRow and is written once
// per row.
struct Row {
  struct Pass {
    Reduction reduction;
    ExprIds results;  // read kState, kRow of earlier passes
  };
  int axes = 0;
  std::vector<Pass> passes;
  ExprIds roots;
};

// Scan: the state runs along the last axis of the domain. Writes are over the whole domain; roots
// read kState after the element has updated it, or before that if `exclusive`.
struct Scan {
  // With merges, blocks of the axis may be reduced side by side and joined; each running state is
  // then rounded as the state of a Reduce is. All states have a merge, or none.
  Reduction reduction;
  bool exclusive = false;
  ExprIds roots;
};

// Contract: sums of products. reads[0] is A, reads[1] is B; further reads belong to prologues and
// epilogue. Operands keep the types that they have in memory, and `accumulator` is the type of the
// sum: product_operand.h says what is multiplied, before it is widened to that type.
//   kMatMul: A[batch, m, k], B[batch, k, n] -> out[batch, m, n]; each of batch, m, n, k is any
//   number of axes, or none. Domain: batch, m, n axes; `inner` holds the k extents.
//   kConv: A[N, C, spatial], B[M, C / group, kernel] -> out[N, M, spatial]. Domain: out; `inner`:
//   [C / group, kernel].
//   kConvTranspose: A[N, C, spatial], B[C, M / group, kernel] -> out[N, M, spatial]. Domain: out;
//   `inner` as for kConv with C / group.
// The views of A and B are over their own axes, as are those read by their prologue; epilogue reads
// are over the domain.
struct Contract {
  enum class Form : uint8_t { kMatMul, kConv, kConvTranspose };
  Form form = Form::kMatMul;
  int batch_axes = 0, m_axes = 0, n_axes = 0;  // kMatMul; k_axes is inner.size()
  Shape inner;
  tensor::ElementType accumulator = tensor::ElementType::kFloat32;
  // Elements of A and B as the product takes them, of type `accumulator`; kLoad of read 0 (or 1)
  // and of others.
  ExprId a_prologue = kNoExpr;
  ExprId b_prologue = kNoExpr;
  ExprIds roots;  // one per write; read kAccumulator and kLoad over the domain
  // kConv, kConvTranspose; per spatial axis.
  Shape a_spatial;  // extents of A's spatial axes
  std::vector<int64_t> strides, dilations;
  Dims pads_begin;
  int64_t group = 1;
  // kMatMul with a B that is dequantized in blocks: a permission to round A to bytes, with a scale
  // for each block of a row, where fast algorithms are permitted.
  bool may_round_to_bytes = false;
};

// Window: a reduction over a sliding window; reads[0] is X[N, C, spatial], a view over its own
// axes. Domain: out [N, C, spatial]. Padding never counts as an element; kAverage divides by the
// window's size clipped to the input, or, with count_include_pad, clipped to the input extended by
// pads_begin and pads_end.
struct Window {
  enum class Kind : uint8_t { kMax, kAverage, kLp, kLrn };
  Kind kind = Kind::kMax;
  Shape in_spatial;
  Dims kernel;  // global pooling: the input's extents
  std::vector<int64_t> strides, dilations;
  Dims pads_begin, pads_end;
  bool count_include_pad = false;
  int64_t p = 2;  // kLp
  // kMax with two writes: the second gets int64 indices of the maxima into the flattened X, in
  // row-major order or, with column_major, with the spatial axes' order reversed.
  bool column_major = false;
  // kLrn: window of `kernel[0]` channels around c; out = x / (bias + alpha / size * sum of squares)
  // ^ beta.
  double alpha = 0, beta = 0, bias = 0;
  tensor::ElementType accumulator = tensor::ElementType::kFloat32;
  ExprIds roots;  // root 0 reads kAccumulator (of type accumulator) and kLoad over the domain
};

// Attention: for each query a mean of the values, weighted by the softmax of the query's scores:
//   score[batch, query, key] = `score` of the sum over width of Q * K
//   out[batch, query, value] = `roots` of the sum over keys of softmax(score) * V
// reads[0] is Q[batch, queries, width], reads[1] is K[batch, width, keys], reads[2] is
// V[batch, keys, values]; further reads belong to prologues, score and epilogue. Domain: any number
// of batch axes, queries, values. Queries that share the head of a K or V are a batch axis along
// which that view's stride is 0. Scores, their softmax and all sums are float32. As it follows from
// that: without keys the sums are 0; with no score above minus infinity, with an infinite one or
// with NaN among them they are NaN.
struct Attention {
  Dim keys, width;
  // Elements of Q, K and V as float32, over their own axes, as are all views that they read.
  ExprId query_prologue = kNoExpr;
  ExprId key_prologue = kNoExpr;
  ExprId value_prologue = kNoExpr;
  // Scale, softcap and masks: float32; reads kAccumulator, the sum of products, and kLoad and
  // kIndex over [batch, queries, keys].
  ExprId score = kNoExpr;
  ExprIds roots;  // one per write; read kAccumulator and kLoad over the domain
};

// Recurrent, of LSTM, GRU and RNN: recurrent.h.

// Index: data-dependent addressing that a Map cannot say. Duplicates are combined in ascending
// order of the updates.
struct Index {
  enum class Kind : uint8_t {
    // reads[0]: updates over the domain; reads[1..]: int64 coordinates over the domain, one per
    // axis of writes[0]; writes[0]: combined in place into what an earlier step wrote there.
    // Coordinates out of range are skipped.
    kScatter,
    // reads[0] over the domain, selecting along its last axis. writes[0]: values, writes[1]: int64
    // positions; both over the leading axes and `k`. Ties keep the lower position first.
    kTopK,
    // reads[0]: bool (any type: != 0) over the domain. writes[0]: one int64, how many are true.
    kCountNonZero,
    // reads[0] as above. writes[0]: int64 [rank, count], coordinates of the true elements in
    // row-major order.
    kNonZero,
    // Greedy suppression along the last axis of the domain; all views are over the domain.
    // reads[0]: bool, the candidates; reads[1..4]: float32 boxes as y1, x1, y2, x2 with y1 <= y2
    // and x1 <= x2; reads[5]: float32 threshold and reads[6]: int64 limit, taken from a row's first
    // element. writes[0]: bool, what is kept: a candidate whose intersection over union with no
    // kept one before it is above the threshold, while fewer than the limit are kept.
    kSuppress,
  };
  enum class Combine : uint8_t { kNone, kAdd, kMul, kMin, kMax };
  Kind kind = Kind::kScatter;
  Combine combine = Combine::kNone;
  Shape target;  // kScatter: extents of writes[0]
  Dim k;
  bool largest = true;
  bool sorted = true;
};

// Cut: reads[0] (int64, domain [count]) becomes the numbers of symbols first_symbol.. of the
// program. Run by execution, on no device; every step before it has finished.
struct Cut {
  int first_symbol = 0;
  int count = 0;
};

// Control: If, Loop and Scan-the-operator as sub-programs run by execution. Inputs of a body are:
// its own (Loop: iteration number and condition, carried values, scanned slices), then the captured
// ones. The extents of outputs that are not known beforehand are symbols bound after the step.
struct Control {
  enum class Kind : uint8_t { kIf, kLoop, kScan };
  struct ScanInput {
    int axis = 0;
    bool reverse = false;
  };
  Kind kind = Kind::kIf;
  std::vector<std::unique_ptr<Program>> bodies;  // kIf: then, else
  // reads (dense views): kIf: condition, captures of both bodies; kLoop: trip count, condition,
  // carried, captures; kScan: carried, scanned, captures. A missing read has buffer kNoBuffer.
  int carried = 0;
  std::vector<ScanInput> scanned;  // kScan
  // kLoop (axis 0), kScan: outputs that stack one slice per iteration.
  std::vector<ScanInput> stacked;
  // Per body: positions in reads of its captured inputs, in order.
  std::vector<std::vector<int>> captures;
  // Extents of the reads, as values of the outer program.
  std::vector<Shape> read_shapes;
  // Outputs are buffers of kind kDynamic: output k's extents are symbols first_symbol[k].. (rank
  // many), or none, -1, where all are known before. A read or output may be a non-tensor value.
  std::vector<int> first_symbol;
};

struct HostFunction;  // host_function.h

// Host: a function of non-tensor values, or of the text of strings, run by execution in host
// memory. Reads are dense views, or buffers of non-tensor values; writes are buffers of kind
// kDynamic.
struct Host {
  std::shared_ptr<const HostFunction> function;  // never null; shared by copies of the step
  // Extents of the reads that are tensors, nothing for the others.
  std::vector<Shape> read_shapes;
  // As of Control; of no meaning for writes of non-tensor values.
  std::vector<int> first_symbol;
  std::string context;  // of its errors: "while running node 3 (SequenceAt)"
};

using Body = std::variant<Map, Reduce, Row, Scan, Contract, Window, Attention, Recurrent, Index,
                          Cut, Control, Host>;

struct Step {
  Shape domain;
  std::vector<View> reads;
  std::vector<View> writes;
  Body body;
  int node = -1;  // graph::Node::index it came from (the first, when fused)

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&body);
  }
  template <typename T>
  T* As() {
    return std::get_if<T>(&body);
  }
};

// Whether execution runs the step itself, between two segments that a device runs.
inline bool IsRunByExecution(const Step& step) {
  return step.As<Cut>() != nullptr || step.As<Control>() != nullptr || step.As<Host>() != nullptr;
}

// "Map", "Reduce", ... for messages and reports.
std::string_view FamilyName(const Step& step);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_STEP_H_
