// SPDX-License-Identifier: Apache-2.0
//
// Recurrence: directions have teams of threads of their own where there are threads enough, and
// blocks of hidden units are divided among the members of a team.

#include "backends/cpu/recurrent/recurrence.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/processor/processor.h"
#include "backends/cpu/recurrent/cell.h"
#include "backends/cpu/recurrent/division.h"
#include "backends/cpu/recurrent/team.h"
#include "backends/cpu/recurrent/weights.h"

namespace onnxifi::recurrent {
namespace {

using base::Status;
using program::Activation;
using program::CellFunction;
using program::Recurrent;
using Kind = Recurrent::Kind;

constexpr int kMaxDirections = 2;

bool HasDefaults(const Recurrent& recurrent, const Activation* functions) {
  if (recurrent.clip > 0) return false;
  for (int k = 0; k < recurrent.functions(); ++k) {
    const bool is_gate = k == 0 && recurrent.kind != Kind::kRnn;
    const CellFunction standard = is_gate ? CellFunction::kSigmoid : CellFunction::kTanh;
    if (functions[k].function != standard) return false;
  }
  return true;
}

// Parts of the working memory, each on cache lines of its own.
class Layout {
 public:
  // Where `floats` more begin.
  int64_t Add(int64_t floats) {
    constexpr int64_t kLine = 16;
    return std::exchange(floats_, floats_ + (floats + kLine - 1) / kLine * kLine);
  }
  int64_t size_bytes() const { return floats_ * static_cast<int64_t>(sizeof(float)); }

 private:
  int64_t floats_ = 0;
};

class BoundRecurrence final : public device::BoundKernel {
 public:
  BoundRecurrence(const device::BoundStep& step, runtime::PackedWeights weights,
                  runtime::Runtime& runtime)
      : runtime_(runtime),
        recurrent_(*step.step->As<Recurrent>()),
        weights_(std::move(weights)),
        reads_(step.reads),
        writes_(step.writes),
        directions_(step.domain[0]),
        time_(step.domain[1]),
        batch_(step.domain[2]),
        hidden_(step.domain[3]),
        blocks_((hidden_ + BlockUnits() - 1) / BlockUnits()),
        products_(ProductsOf(recurrent_)),
        division_(
            Divide({directions_, time_, blocks_, batch_ * recurrent_.gates() * hidden_ * hidden_},
                   runtime.pool().thread_count())) {
    // Rows begin on cache lines, so that two threads seldom write to the same.
    constexpr int64_t kLine = 16;
    stride_ = (blocks_ * BlockUnits() + kLine - 1) / kLine * kLine;
    Layout layout;
    for (Places& of : std::span(places_).first(static_cast<size_t>(directions_))) {
      for (int64_t& place : of.hidden) place = layout.Add(batch_ * stride_);
      if (recurrent_.kind == Kind::kLstm) of.cell = layout.Add(batch_ * stride_);
      if (recurrent_.HasTwoProducts()) {
        of.update = layout.Add(batch_ * stride_);
        of.scaled = layout.Add(batch_ * stride_);
      }
      of.peepholes = layout.Add(3 * stride_);
      of.bias = layout.Add(stride_);
    }
    lengths_ = layout.Add(batch_);
    rows_ = layout.Add(batch_ * directions_ * division_.members);
    if (weights_ == nullptr) {
      packed_ = layout.Add(directions_ * PackedWeightFloats(recurrent_, hidden_));
    }
    work_bytes_ = layout.size_bytes();
    runtime.work_memory().Reserve(work_bytes_);
  }

  bool ReadsAtRun(int read) const override {
    return read != Recurrent::kWeights || weights_ == nullptr;
  }

  std::string Detail() const override {
    constexpr const char* kKinds[] = {"RNN", "GRU", "LSTM"};
    return kKinds[static_cast<size_t>(recurrent_.kind)] +
           std::string(directions_ == 2 ? ", 2 directions, " : ", ") +
           std::to_string(division_.threads) +
           (division_.threads == 1 ? " thread, " : " threads, ") + processor::VectorName();
  }

  Status Run(device::Addresses addresses) const override {
    if (batch_ == 0) return base::Ok();
    ONNXIFI_ASSIGN_OR_RETURN(const runtime::WorkMemory::Lease lease,
                             runtime_.work_memory().Lend(work_bytes_));
    const auto* const weights = Prepare(addresses, reinterpret_cast<float*>(lease.data()));
    RunTeams({*this, addresses, reinterpret_cast<float*>(lease.data()), weights});
    StoreLast(Recurrent::kLastHidden, addresses, reinterpret_cast<const float*>(lease.data()));
    StoreLast(Recurrent::kLastCell, addresses, reinterpret_cast<const float*>(lease.data()));
    return base::Ok();
  }

 private:
  // Of one direction, in the working memory; -1: the kind does not need it.
  struct Places {
    int64_t hidden[2] = {-1, -1};  // states before and after a time step, in turns
    int64_t cell = -1, update = -1, scaled = -1, peepholes = -1, bias = -1;
  };

  // What the units of one run share.
  struct OneRun {
    const BoundRecurrence& kernel;
    device::Addresses addresses;
    float* work;
    const float* weights;

    float* At(int64_t place) const { return place < 0 ? nullptr : work + place; }
    float* FloatsOf(const device::BoundView& view) const {
      return reinterpret_cast<float*>(addresses[view.buffer]) + view.offset;
    }
  };

  bool Has(Recurrent::Read read) const {
    return reads_[static_cast<size_t>(read)].buffer != program::kNoBuffer;
  }
  Elements<float> Of(Recurrent::Read read, device::Addresses addresses) const {
    const device::BoundView& view = reads_[static_cast<size_t>(read)];
    return {view, addresses[view.buffer]};
  }

  // Fills the working memory. Returns the packed weights.
  const float* Prepare(device::Addresses addresses, float* work) const {
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const Places& places = places_[static_cast<size_t>(direction)];
      LoadState(Recurrent::kHidden, addresses, direction, work + places.hidden[0]);
      // Written before it is read, but for what is behind the last unit.
      std::fill_n(work + places.hidden[1], batch_ * stride_, 0.0F);
      if (places.cell >= 0) {
        LoadState(Recurrent::kCell, addresses, direction, work + places.cell);
      }
      if (Has(Recurrent::kPeepholes)) {
        const Elements<float> peepholes = Of(Recurrent::kPeepholes, addresses);
        for (int64_t gate = 0; gate < 3; ++gate) {
          float* const to = work + places.peepholes + gate * stride_;
          for (int64_t unit = 0; unit < stride_; ++unit) {
            to[unit] = unit < hidden_ ? peepholes.At({direction, gate * hidden_ + unit}) : 0.0F;
          }
        }
      }
      if (Has(Recurrent::kHiddenBias)) {
        const Elements<float> bias = Of(Recurrent::kHiddenBias, addresses);
        for (int64_t unit = 0; unit < stride_; ++unit) {
          work[places.bias + unit] = unit < hidden_ ? bias.At({direction, unit}) : 0.0F;
        }
      }
    }
    PrepareRows(addresses, work);
    if (weights_ != nullptr) return runtime::Floats(weights_);
    const device::BoundView& view = reads_[Recurrent::kWeights];
    PackWeights(recurrent_, directions_, hidden_, view, addresses[view.buffer], runtime_.pool(),
                work + packed_);
    return work + packed_;
  }

  void LoadState(Recurrent::Read read, device::Addresses addresses, int64_t direction,
                 float* to) const {
    std::fill_n(to, batch_ * stride_, 0.0F);
    if (!Has(read)) return;
    const Elements<float> elements = Of(read, addresses);
    for (int64_t row = 0; row < batch_; ++row) {
      for (int64_t unit = 0; unit < hidden_; ++unit) {
        to[row * stride_ + unit] = elements.At({direction, row, unit});
      }
    }
  }

  // Lengths, and the rows that take part in all time steps: of each unit a list of its own.
  void PrepareRows(device::Addresses addresses, float* work) const {
    auto* const rows = reinterpret_cast<int32_t*>(work + rows_);
    for (int64_t k = 0; k < batch_ * directions_ * division_.members; ++k) {
      rows[k] = static_cast<int32_t>(k % batch_);
    }
    if (!Has(Recurrent::kLengths)) return;
    const device::BoundView& view = reads_[Recurrent::kLengths];
    const Elements<int32_t> lengths(view, addresses[view.buffer]);
    for (int64_t row = 0; row < batch_; ++row) {
      reinterpret_cast<int32_t*>(work + lengths_)[row] = lengths.At({row});
    }
  }

  void RunTeams(const OneRun& run) const {
    const int teams = division_.teams;
    const int members = division_.members;
    const int of_team = static_cast<int>(directions_) / teams;
    const auto phases = time_ * static_cast<int64_t>(products_.size());
    std::array<std::optional<Team>, kMaxDirections> all;
    for (std::optional<Team>& team : std::span(all).first(static_cast<size_t>(teams))) {
      team.emplace(members, members * of_team, phases);
    }
    runtime_.pool().parallel_for(division_.threads, [&](int thread, int threads) {
      for (int team = thread % teams; team < teams; team += threads) {
        all[static_cast<size_t>(team)]->Work(thread / teams, [&](int unit, int64_t phase) {
          RunUnit(run, team * of_team + unit / members, unit % members, phase);
        });
      }
    });
  }

  // The share of one member in a phase: its blocks of hidden units, in one time step's product.
  void RunUnit(const OneRun& run, int direction, int member, int64_t phase) const {
    const auto products = static_cast<int64_t>(products_.size());
    const int64_t at = phase / products;
    const int64_t t = recurrent_.GoesBack(direction) ? time_ - 1 - at : at;
    const Places& places = places_[static_cast<size_t>(direction)];
    const Activation* functions =
        recurrent_.activations.data() + direction * recurrent_.functions();
    const Direction of = {&recurrent_,
                          functions,
                          HasDefaults(recurrent_, functions),
                          hidden_,
                          stride_,
                          run.weights + direction * PackedWeightFloats(recurrent_, hidden_),
                          Has(Recurrent::kPeepholes) ? run.work + places.peepholes : nullptr,
                          Has(Recurrent::kHiddenBias) ? run.work + places.bias : nullptr,
                          run.At(places.cell),
                          run.At(places.update),
                          run.At(places.scaled)};
    Part part = {};
    part.first_block = blocks_ * member / division_.members;
    part.end_block = blocks_ * (member + 1) / division_.members;
    part.hidden_in = run.work + places.hidden[at % 2];
    part.hidden_out = run.work + places.hidden[(at + 1) % 2];
    const device::BoundView& projected = reads_[Recurrent::kProjected];
    part.projected =
        run.FloatsOf(projected) + direction * projected.strides[0] + t * projected.strides[1];
    part.projected_stride = projected.strides[2];
    const device::BoundView& sequence = writes_[Recurrent::kSequence];
    if (sequence.buffer != program::kNoBuffer) {
      part.sequence =
          run.FloatsOf(sequence) + direction * sequence.strides[0] + t * sequence.strides[1];
      part.sequence_stride = sequence.strides[2];
    }
    auto* const rows = reinterpret_cast<int32_t*>(run.work + rows_) +
                       (direction * division_.members + member) * batch_;
    part.rows = {rows, static_cast<size_t>(batch_)};
    if (Has(Recurrent::kLengths)) {
      const bool is_last = phase % products == products - 1;
      part.rows = part.rows.first(PassEnded(run, part, rows, t, is_last));
    }
    RunPart(of, part, static_cast<int>(phase % products));
  }

  // Lists the rows whose sequences go on at time step `t`; the states of the others stay.
  size_t PassEnded(const OneRun& run, const Part& part, int32_t* rows, int64_t t,
                   bool is_last) const {
    const auto* const lengths = reinterpret_cast<const int32_t*>(run.work + lengths_);
    const int64_t first = part.first_block * BlockUnits();
    const int64_t end = std::min(hidden_, part.end_block * BlockUnits());
    size_t count = 0;
    for (int64_t row = 0; row < batch_; ++row) {
      if (t < lengths[row]) {
        rows[count++] = static_cast<int32_t>(row);
        continue;
      }
      if (!is_last || first >= end) continue;
      std::copy_n(part.hidden_in + row * stride_ + first, end - first,
                  part.hidden_out + row * stride_ + first);
      if (part.sequence != nullptr) {
        std::memset(part.sequence + row * part.sequence_stride + first, 0,
                    static_cast<size_t>(end - first) * sizeof(float));
      }
    }
    return count;
  }

  void StoreLast(Recurrent::Write write, device::Addresses addresses, const float* work) const {
    const device::BoundView& view = writes_[static_cast<size_t>(write)];
    if (view.buffer == program::kNoBuffer) return;
    for (int64_t direction = 0; direction < directions_; ++direction) {
      const Places& places = places_[static_cast<size_t>(direction)];
      const float* const states =
          work + (write == Recurrent::kLastHidden ? places.hidden[time_ % 2] : places.cell);
      for (int64_t row = 0; row < batch_; ++row) {
        std::byte* const to = addresses[view.buffer];
        int64_t position = view.offset + direction * view.strides[0] + row * view.strides[1];
        for (int64_t unit = 0; unit < hidden_; ++unit) {
          std::memcpy(to + position * static_cast<int64_t>(sizeof(float)),
                      states + row * stride_ + unit, sizeof(float));
          position += view.strides[2];
        }
      }
    }
  }

  runtime::Runtime& runtime_;
  const Recurrent recurrent_;
  const runtime::PackedWeights weights_;
  const std::vector<device::BoundView> reads_, writes_;
  const int64_t directions_, time_, batch_, hidden_;
  const int64_t blocks_;  // of hidden units
  const std::span<const ProductGates> products_;
  const Division division_;
  int64_t stride_ = 0;  // of states, in floats
  std::array<Places, kMaxDirections> places_;
  // In the working memory.
  int64_t lengths_ = 0;  // int32
  int64_t rows_ = 0;     // int32: by direction and member, as many as the batch has
  int64_t packed_ = 0;   // weights that are no constants
  int64_t work_bytes_ = 0;
};

}  // namespace

std::unique_ptr<device::BoundKernel> BindRecurrence(const device::BoundStep& step,
                                                    runtime::PackedWeights weights,
                                                    runtime::Runtime& runtime) {
  return std::make_unique<BoundRecurrence>(step, std::move(weights), runtime);
}

}  // namespace onnxifi::recurrent
