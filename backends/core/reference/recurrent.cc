// SPDX-License-Identifier: Apache-2.0
//
// Recurrent: a row of the batch in one direction after the other, time step by time step. States
// and all that a cell computes are float64; results are rounded when they are stored.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/dense_operand.h"

namespace onnxifi::reference {
namespace {

using program::Activation;
using program::CellFunction;
using program::Recurrent;
using Kind = Recurrent::Kind;
using Numbers = std::vector<double>;

double Apply(const Activation& activation, double x) {
  const auto alpha = static_cast<double>(activation.alpha);
  const auto beta = static_cast<double>(activation.beta);
  switch (activation.function) {
    case CellFunction::kAffine:
      return alpha * x + beta;
    case CellFunction::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case CellFunction::kHardSigmoid: {
      const double line = alpha * x + beta;
      return std::isnan(line) ? line : std::clamp(line, 0.0, 1.0);
    }
    case CellFunction::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case CellFunction::kRelu:
      return x < 0 ? 0 : x;
    case CellFunction::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case CellFunction::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case CellFunction::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case CellFunction::kSoftsign:
      return x / (1 + std::abs(x));
    case CellFunction::kTanh:
      return std::tanh(x);
    case CellFunction::kThresholdedRelu:
      return x > alpha ? x : 0;
  }
  return x;
}

// An expression per read, which is the load of its elements; none for a read that is missing.
using Loads = std::array<std::optional<Expression>, Recurrent::kReads>;

class BoundRecurrent final : public device::BoundKernel {
 public:
  BoundRecurrent(std::shared_ptr<const CompiledStep> owner, const Loads& loads,
                 const device::BoundStep& step, device::Parallel& parallel)
      : owner_(std::move(owner)),
        loads_(loads),
        recurrent_(*step.step->As<Recurrent>()),
        reads_(step.reads),
        writes_(step.writes),
        directions_(step.domain[0]),
        time_(step.domain[1]),
        batch_(step.domain[2]),
        hidden_(step.domain[3]),
        parallel_(parallel) {
    for (size_t read = 0; read < loads.size(); ++read) {
      if (!loads[read]) continue;
      extents_[read] = program::OperandExtents(*step.step, static_cast<int>(read), step.dims);
      load_dims_[read] = loads[read]->BindDims(step.dims);
    }
  }

  std::string Detail() const override { return "loops"; }

  base::Status Run(device::Addresses addresses) const override {
    if (batch_ == 0) return base::Ok();
    std::array<DenseOperand, Recurrent::kReads> operands;
    for (size_t read = 0; read < loads_.size(); ++read) {
      if (!loads_[read]) continue;
      ONNXIFI_ASSIGN_OR_RETURN(
          operands[read], MakeDense(*loads_[read], load_dims_[read], reads_, static_cast<int>(read),
                                    extents_[read], addresses, parallel_));
    }
    return ForRange(parallel_, directions_ * batch_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Row of(*this, operands, addresses, row / batch_, row % batch_);
        of.Run();
      }
    });
  }

 private:
  // One row of the batch in one direction, for the time of a run.
  class Row {
   public:
    Row(const BoundRecurrent& step, const std::array<DenseOperand, Recurrent::kReads>& operands,
        device::Addresses addresses, int64_t direction, int64_t row)
        : step_(step),
          recurrent_(step.recurrent_),
          operands_(operands),
          addresses_(addresses),
          direction_(direction),
          row_(row),
          hidden_(InitialState(Recurrent::kHidden)),
          cell_(InitialState(Recurrent::kCell)),
          functions_(recurrent_.activations.data() + direction * recurrent_.functions()) {}

    void Run() {
      int64_t length = step_.time_;
      if (Has(Recurrent::kLengths)) {
        const DenseOperand& lengths = operands_[Recurrent::kLengths];
        int32_t number = 0;
        std::memcpy(&number,
                    lengths.data + row_ * lengths.strides[0] * static_cast<int64_t>(sizeof(number)),
                    sizeof(number));
        length = std::clamp<int64_t>(number, 0, length);
      }
      const Numbers zeros(hidden_.size(), 0);
      for (int64_t at = 0; at < step_.time_; ++at) {
        const int64_t t = recurrent_.GoesBack(direction_) ? step_.time_ - 1 - at : at;
        const bool is_inside = t < length;
        if (is_inside) Advance(t);
        Store(Recurrent::kSequence, {direction_, t, row_}, is_inside ? hidden_ : zeros);
      }
      Store(Recurrent::kLastHidden, {direction_, row_}, hidden_);
      if (recurrent_.kind == Kind::kLstm) {
        Store(Recurrent::kLastCell, {direction_, row_}, cell_);
      }
    }

   private:
    bool Has(size_t read) const { return step_.loads_[read].has_value(); }

    double Load(size_t read, std::initializer_list<int64_t> at) const {
      const DenseOperand& operand = operands_[read];
      int64_t position = 0;
      size_t axis = 0;
      for (const int64_t coordinate : at) position += coordinate * operand.strides[axis++];
      if (recurrent_.type == tensor::ElementType::kFloat64) {
        return reinterpret_cast<const double*>(operand.data)[position];
      }
      return static_cast<double>(reinterpret_cast<const float*>(operand.data)[position]);
    }

    Numbers InitialState(size_t read) const {
      Numbers state(static_cast<size_t>(step_.hidden_), 0);
      if (!Has(read)) return state;
      for (size_t k = 0; k < state.size(); ++k) {
        state[k] = Load(read, {direction_, row_, static_cast<int64_t>(k)});
      }
      return state;
    }

    void Store(size_t write, std::initializer_list<int64_t> at, const Numbers& elements) const {
      const device::BoundView& view = step_.writes_[write];
      if (view.buffer == program::kNoBuffer) return;
      int64_t position = view.offset;
      size_t axis = 0;
      for (const int64_t coordinate : at) position += coordinate * view.strides[axis++];
      const bool is_double = recurrent_.type == tensor::ElementType::kFloat64;
      for (const double element : elements) {
        const auto narrow = static_cast<float>(element);
        const void* const from =
            is_double ? static_cast<const void*>(&element) : static_cast<const void*>(&narrow);
        const size_t size_bytes = is_double ? sizeof(element) : sizeof(narrow);
        std::memcpy(addresses_[view.buffer] + position * static_cast<int64_t>(size_bytes), from,
                    size_bytes);
        position += view.strides[axis];
      }
    }

    double Projected(int64_t t, int gate, int64_t k) const {
      return Load(Recurrent::kProjected, {direction_, t, row_, gate * step_.hidden_ + k});
    }
    double Product(int gate, int64_t k, const Numbers& state) const {
      double sum = 0;
      for (int64_t n = 0; n < step_.hidden_; ++n) {
        sum += state[static_cast<size_t>(n)] *
               Load(Recurrent::kWeights, {direction_, gate * step_.hidden_ + k, n});
      }
      return sum;
    }
    double Peephole(int gate, int64_t k) const {
      return Has(Recurrent::kPeepholes)
                 ? Load(Recurrent::kPeepholes, {direction_, gate * step_.hidden_ + k})
                 : 0;
    }
    double Activate(int function, double x) const {
      const auto clip = static_cast<double>(recurrent_.clip);
      if (clip > 0 && !std::isnan(x)) x = std::clamp(x, -clip, clip);
      return Apply(functions_[function], x);
    }

    // The states after time step `t`.
    void Advance(int64_t t) {
      Numbers next(hidden_.size());
      const auto gate = [&](int number, int64_t k) {
        return Projected(t, number, k) + Product(number, k, hidden_);
      };
      switch (recurrent_.kind) {
        case Kind::kRnn:
          for (int64_t k = 0; k < step_.hidden_; ++k) {
            next[static_cast<size_t>(k)] = Activate(0, gate(0, k));
          }
          break;
        case Kind::kGru:
          AdvanceGru(t, gate, next);
          break;
        case Kind::kLstm:
          for (int64_t k = 0; k < step_.hidden_; ++k) {
            double& cell = cell_[static_cast<size_t>(k)];
            const double input = Activate(0, gate(0, k) + Peephole(0, k) * cell);
            const double forget = recurrent_.couples_gates
                                      ? 1 - input
                                      : Activate(0, gate(2, k) + Peephole(2, k) * cell);
            cell = forget * cell + input * Activate(1, gate(3, k));
            const double output = Activate(0, gate(1, k) + Peephole(1, k) * cell);
            next[static_cast<size_t>(k)] = output * Activate(2, cell);
          }
          break;
      }
      hidden_ = std::move(next);
    }

    template <typename Gate>
    void AdvanceGru(int64_t t, const Gate& gate, Numbers& next) {
      Numbers reset(hidden_.size()), scaled(hidden_.size());
      for (size_t k = 0; k < reset.size(); ++k) {
        reset[k] = Activate(0, gate(1, static_cast<int64_t>(k)));
        scaled[k] = reset[k] * hidden_[k];
      }
      for (size_t k = 0; k < reset.size(); ++k) {
        const auto at = static_cast<int64_t>(k);
        double sum = Projected(t, 2, at);
        if (recurrent_.resets_linear) {
          const double bias =
              Has(Recurrent::kHiddenBias) ? Load(Recurrent::kHiddenBias, {direction_, at}) : 0;
          sum += reset[k] * (Product(2, at, hidden_) + bias);
        } else {
          sum += Product(2, at, scaled);
        }
        const double update = Activate(0, gate(0, at));
        next[k] = (1 - update) * Activate(1, sum) + update * hidden_[k];
      }
    }

    const BoundRecurrent& step_;
    const Recurrent& recurrent_;
    const std::array<DenseOperand, Recurrent::kReads>& operands_;
    const device::Addresses addresses_;
    const int64_t direction_, row_;
    Numbers hidden_, cell_;
    const Activation* const functions_;
  };

  std::shared_ptr<const CompiledStep> owner_;  // of the loads
  const Loads& loads_;
  const Recurrent& recurrent_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t directions_, time_, batch_, hidden_;
  std::array<tensor::Extents, Recurrent::kReads> extents_;
  std::array<std::vector<int64_t>, Recurrent::kReads> load_dims_;
  device::Parallel& parallel_;
};

class RecurrentStep final : public CompiledStep {
 public:
  explicit RecurrentStep(Loads loads) : loads_(std::move(loads)) {}

  std::unique_ptr<device::BoundKernel> Bind(const device::BoundStep& step,
                                            device::Parallel& parallel) const override {
    return std::make_unique<BoundRecurrent>(shared_from_this(), loads_, step, parallel);
  }

 private:
  Loads loads_;
};

}  // namespace

CompileResult CompileRecurrent(const program::Program& /*program*/, const program::Step& step) {
  program::ExprPool pool;
  Loads loads;
  for (size_t read = 0; read < loads.size(); ++read) {
    const program::View& view = step.reads[read];
    if (view.buffer == program::kNoBuffer) continue;
    ONNXIFI_ASSIGN_OR_RETURN(
        loads[read],
        Expression::Compile(pool, {program::Load(pool, view.type, static_cast<int>(read)).id()}));
  }
  return std::shared_ptr<const CompiledStep>(std::make_shared<RecurrentStep>(std::move(loads)));
}

}  // namespace onnxifi::reference
