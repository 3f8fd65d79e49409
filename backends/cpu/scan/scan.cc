// SPDX-License-Identifier: Apache-2.0
//
// SelectScan, and a kernel that computes what enters the states a tile at a time, then runs the
// states over the tile, then computes the roots. A sum of what lies in memory needs neither of the
// first and last: the states run from memory to memory.

#include "backends/cpu/scan/scan.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/column.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/any_address.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/reduction.h"
#include "backends/cpu/processor/processor.h"
#include "backends/cpu/scan/form.h"
#include "backends/cpu/scan/grid.h"

namespace onnxifi::scan {
namespace {

using engine::Access;
using engine::BoundCode;
using engine::Box;
using engine::Frame;
using program::ExprOp;

constexpr int64_t kLine = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// The load that is all that enters the only state, and that finds its elements where they lie; else
// null.
const Access* FindPlainLoad(const FormCode& code, const BoundCode& elements) {
  const bool is_load = code.form.writes_state && code.elements.varying().size() == 1 &&
                       code.elements.varying()[0].kind == engine::Code::Kind::kLoad &&
                       code.elements.varying()[0].result == code.elements.roots()[0];
  if (!is_load) return nullptr;
  const Access& access = elements.accesses()[0];
  // A bool in memory may be any byte.
  return access.guards.empty() && !tensor::IsBool(access.type) ? &access : nullptr;
}

class BoundScan final : public device::BoundKernel {
 public:
  BoundScan(std::shared_ptr<const FormCode> code, const device::BoundStep& step,
            engine::Runtime& runtime)
      : code_(std::move(code)),
        init_(code_->init, step),
        elements_(code_->elements, step),
        roots_(code_->roots, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime) {
    if (tensor::ElementCount(step.domain) == 0) return;
    std::vector<engine::LinearForm*> forms;
    init_.AppendForms(forms);
    elements_.AppendForms(forms);
    roots_.AppendForms(forms);
    writer_.AppendForms(forms);
    const engine::LinearForm* primary = engine::FindPrimary(elements_.accesses());
    if (primary == nullptr) primary = &writer_.first_form();
    grid_.emplace(step.domain, primary, forms, runtime.settings().tile_lanes);
    init_.LayOut(grid_->states_grid(), grid_->state_lanes());
    elements_.LayOut(grid_->elements_grid(), grid_->tile_lanes());
    roots_.LayOut(grid_->elements_grid(), grid_->tile_lanes());
    writer_.LayOut(grid_->elements_grid(), engine::Writer::kNeverStreamed);
    if (const Access* load = FindPlainLoad(*code_, elements_)) {
      FindPlain(*load, step.writes[0]);
    }
    int64_t scratch_bytes = init_.scratch_bytes() + elements_.scratch_bytes() +
                            roots_.scratch_bytes() + RoundUp(writer_.scratch_bytes());
    for (const Form::State& state : code_->form.states) {
      const int64_t lane_bytes = reference::LaneBytes(state.type);
      states_bytes_.push_back(RoundUp(grid_->state_lanes() * lane_bytes));
      results_bytes_.push_back(RoundUp(grid_->tile_lanes() * lane_bytes));
      scratch_bytes += states_bytes_.back() + results_bytes_.back();
    }
    runtime.scratch().Reserve(scratch_bytes);
  }

  std::string Detail() const override { return processor::VectorName(); }

  base::Status Run(device::Addresses addresses) const override {
    if (!grid_) return base::Ok();
    // Picoseconds.
    const int64_t cost_of_state = grid_->lanes_are_inner() ? 150 : 500;
    const int64_t cost = code_->elements.cost() + code_->roots.cost() +
                         cost_of_state * static_cast<int64_t>(code_->form.states.size());
    const int64_t lanes = grid_->tiles_of_group() * grid_->tile_lanes();
    return runtime_.For(grid_->group_count(), lanes * cost,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunGroups(addresses, begin, end, scratch);
                        });
  }

 private:
  // States that run from memory to memory.
  struct Plain {
    program::BufferId source;
    program::BufferId target;
    engine::LinearForm source_form;
    engine::LinearForm target_form;
    int64_t lane_bytes;
  };

  void FindPlain(const Access& load, const device::BoundView& target) {
    const engine::LinearForm& target_form = writer_.first_form();
    const bool has_vectors =
        grid_->StepsOf(load.form).lane == 1 && grid_->StepsOf(target_form).lane == 1;
    if (!grid_->HasEvenLanes() || (grid_->lanes_are_inner() && !has_vectors)) return;
    plain_ = {load.buffer, target.buffer, load.form, target_form, load.lane_bytes};
  }

  void RunGroups(device::Addresses addresses, int64_t begin, int64_t end,
                 std::byte* scratch) const {
    auto take = [&scratch](int64_t size_bytes) {
      std::byte* taken = scratch;
      scratch += size_bytes;
      return taken;
    };
    Frame init(init_, addresses, take(init_.scratch_bytes()), grid_->state_lanes());
    Frame elements(elements_, addresses, take(elements_.scratch_bytes()), grid_->tile_lanes());
    Frame roots(roots_, addresses, take(roots_.scratch_bytes()), grid_->tile_lanes());
    std::byte* writer_scratch = take(RoundUp(writer_.scratch_bytes()));
    std::byte* states = scratch;
    for (int64_t size_bytes : states_bytes_) take(size_bytes);
    std::byte* results = scratch;
    roots.Attach(ExprOp::kState, [&](uint64_t k) { return AtState(results, results_bytes_, k); });
    const bool is_plain =
        plain_ && engine::IsAligned(addresses[plain_->source], plain_->lane_bytes);
    for (int64_t group = begin; group < end; ++group) {
      Begin(init, group, states);
      Box box = grid_->MoveTo(group, grid_->elements_grid());
      for (int64_t left = grid_->tiles_of_group(); left-- > 0;) {
        if (is_plain) {
          RunPlain(addresses, box, states);
        } else {
          RunStates(elements, box, states, results);
          writer_.Run(roots, box, addresses, writer_scratch);
        }
        grid_->MoveOn(box);
      }
    }
    writer_.Finish();
  }

  static std::byte* AtState(std::byte* first, const std::vector<int64_t>& bytes, uint64_t state) {
    for (uint64_t k = 0; k < state; ++k) first += bytes[k];
    return first;
  }

  void Begin(Frame& init, int64_t group, std::byte* states) const {
    const Box box = grid_->MoveTo(group, grid_->states_grid());
    init.Run(box);
    for (size_t k = 0; k < states_bytes_.size(); ++k) {
      const int64_t lane_bytes = reference::LaneBytes(code_->form.states[k].type);
      std::memcpy(states, init.root(static_cast<int>(k)),
                  static_cast<size_t>(box.lanes * lane_bytes));
      states += states_bytes_[k];
    }
  }

  void RunStates(Frame& elements, const Box& box, std::byte* states, std::byte* results) const {
    elements.Run(box);
    const ScanGrid::Steps steps = grid_->StepsInTile(box);
    const int64_t count = grid_->ElementsOf(box);
    for (size_t k = 0; k < states_bytes_.size(); ++k) {
      code_->form.states[k].loop({elements.root(static_cast<int>(k)), steps.element, steps.lane,
                                  results, steps.element, steps.lane, states, count,
                                  box.lanes / count});
      states += states_bytes_[k];
      results += results_bytes_[k];
    }
  }

  void RunPlain(device::Addresses addresses, const Box& box, std::byte* states) const {
    const ScanGrid::Steps from = grid_->StepsOf(plain_->source_form);
    const ScanGrid::Steps to = grid_->StepsOf(plain_->target_form);
    const int64_t count = grid_->ElementsOf(box);
    const std::byte* source =
        addresses[plain_->source] + ValueAtBegin(plain_->source_form, box) * plain_->lane_bytes;
    std::byte* target =
        addresses[plain_->target] + ValueAtBegin(plain_->target_form, box) * plain_->lane_bytes;
    code_->form.states[0].loop({source, from.element, from.lane, target, to.element, to.lane,
                                states, count, box.lanes / count});
  }

  const std::shared_ptr<const FormCode> code_;  // shared with the kernel
  BoundCode init_;
  BoundCode elements_;
  BoundCode roots_;
  engine::Writer writer_;
  std::optional<ScanGrid> grid_;  // nothing where there are no elements
  std::optional<Plain> plain_;
  // Per state, of a tile.
  std::vector<int64_t> states_bytes_;
  std::vector<int64_t> results_bytes_;
  engine::Runtime& runtime_;
};

class Kernel final : public device::Kernel {
 public:
  Kernel(std::shared_ptr<const FormCode> code, engine::Runtime& runtime)
      : code_(std::move(code)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = std::make_unique<BoundScan>(code_, step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  const std::shared_ptr<const FormCode> code_;  // shared with what it bound
  engine::Runtime& runtime_;
};

std::unique_ptr<device::Kernel> Build(const device::Facts& facts, engine::Runtime& runtime) {
  return std::make_unique<Kernel>(std::make_shared<const FormCode>(FormCode::Compile(
                                      facts, *FindForm(facts), runtime.settings().loops)),
                                  runtime);
}

}  // namespace

runtime::RecipeResult SelectScan(const device::Facts& facts) {
  ONNXIFI_RETURN_IF_ERROR(FindForm(facts).status());
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<engine::Recipe>("scan", facts, Build));
}

}  // namespace onnxifi::scan
