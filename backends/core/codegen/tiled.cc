// SPDX-License-Identifier: Apache-2.0
//
// Tiled: up to four kernels in a row, which hand each other the device's scratch memory.

#include "backends/core/codegen/tiled.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/codegen/scratch.h"

namespace onnxifi::codegen {
namespace {
using base::Result;
using base::Status;
using Part = TiledProduct::Part;

// A constant operand as the sums want it, and the numbers that it was laid out with.
struct Panels {
  std::vector<int64_t> numbers;
  std::unique_ptr<device::Allocation> held;  // null if there is nothing of it
};

constexpr std::array<Part, 2> kOperands = {Part::kRows, Part::kColumns};
size_t NumberOf(Part part) { return static_cast<size_t>(part); }

class BoundTiled final : public device::BoundKernel {
 public:
  BoundTiled(Services& services, KernelLaunch sums, std::string_view units)
      : services_(services), sums_(std::move(sums)), units_(units) {}

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    if (sums_.is_empty()) return base::Ok();
    const Scratch::Use use(services_.scratch, queue);
    std::array<std::byte*, 3> places = {};
    for (const Part part : kOperands) places[NumberOf(part)] = PlaceOf(part, use, addresses);
    places[2] = use.at(part_offset_bytes_);
    for (const KernelLaunch& launch : before_) {
      ONNXIFI_RETURN_IF_ERROR(launch.Enqueue(&queue, addresses, places));
    }
    return sums_.Enqueue(&queue, addresses, places);
  }

  bool ReadsAtRun(int read) const override { return is_read_[static_cast<size_t>(read)]; }

  std::string Detail() const override {
    const auto what = [&](Part part) -> std::string {
      const Operand& operand = operands_[NumberOf(part)];
      return operand.panels != nullptr ? "constant" : operand.is_in_place ? "in place" : "laid out";
    };
    std::string detail = "rows " + what(Part::kRows) + ", columns " + what(Part::kColumns);
    if (part_count_ > 1) detail += ", depth in " + std::to_string(part_count_) + " parts";
    return detail + std::string(units_);
  }

  // Where the sums find an operand: in what was laid out at the binding, in a buffer of the
  // program, or in scratch memory.
  struct Operand {
    std::shared_ptr<const Panels> panels;  // shared by the bindings of a kernel
    bool is_in_place = false;
    program::BufferId buffer = program::kNoBuffer;
    int64_t offset_bytes = 0;
  };

 private:
  friend class TiledKernel;

  std::byte* PlaceOf(Part part, const Scratch::Use& use, device::Addresses addresses) const {
    const Operand& operand = operands_[NumberOf(part)];
    if (operand.panels != nullptr) {
      const auto& held = operand.panels->held;
      return held == nullptr ? nullptr : held->data();
    }
    if (!operand.is_in_place) return use.at(operand.offset_bytes);
    std::byte* const buffer = addresses[static_cast<size_t>(operand.buffer)];
    return buffer == nullptr ? nullptr : buffer + operand.offset_bytes;
  }

  Services& services_;
  const KernelLaunch sums_;
  const std::string_view units_;      // what Detail says of them
  std::vector<bool> is_read_;         // by read of the step
  std::vector<KernelLaunch> before_;  // lay out what is no constant, sum parts of the depth
  std::array<Operand, 2> operands_;
  int64_t part_offset_bytes_ = 0;  // of the sums of parts of the depth
  int64_t part_count_ = 1;
};

class TiledKernel final : public device::Kernel {
 public:
  TiledKernel(const TiledProduct& product, const Capabilities& capabilities, Services& services)
      : product_(product), capabilities_(capabilities), services_(services) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    const TiledProduct::Bound bound = product_.Bind(step);
    ONNXIFI_ASSIGN_OR_RETURN(KernelLaunch sums, MakeLaunch(Part::kSums, bound));
    const auto unit = product_.matrix_unit();
    const std::string_view units = !unit            ? ""
                                   : unit->is_split ? ", matrix units, 3xTF32"
                                                    : ", matrix units";
    auto kernel = std::make_unique<BoundTiled>(services_, std::move(sums), units);
    int64_t scratch_bytes = 0;
    for (const Part part : kOperands) {
      BoundTiled::Operand& operand = kernel->operands_[NumberOf(part)];
      const bool is_rows = part == Part::kRows;
      if (is_rows ? bound.has_rows_in_place : bound.has_columns_in_place) {
        const int read = is_rows ? product_.row_read() : product_.column_read();
        operand.is_in_place = true;
        operand.buffer = step.reads[static_cast<size_t>(read)].buffer;
        operand.offset_bytes = is_rows ? bound.row_offset_bytes : bound.column_offset_bytes;
        continue;
      }
      ONNXIFI_ASSIGN_OR_RETURN(KernelLaunch launch, MakeLaunch(part, bound));
      const int64_t size_bytes = part == Part::kRows ? bound.row_bytes : bound.column_bytes;
      if (product_.IsConstant(part)) {
        ONNXIFI_ASSIGN_OR_RETURN(operand.panels,
                                 LayOut(part, bound, launch, size_bytes, constants));
        continue;
      }
      operand.offset_bytes = scratch_bytes;
      scratch_bytes += Scratch::Aligned(size_bytes);
      kernel->before_.push_back(std::move(launch));
    }
    if (bound.part_bytes > 0) {
      ONNXIFI_ASSIGN_OR_RETURN(KernelLaunch parts, MakeLaunch(Part::kDepthParts, bound));
      kernel->before_.push_back(std::move(parts));
      kernel->part_offset_bytes_ = scratch_bytes;
      kernel->part_count_ = bound.part_count;
      scratch_bytes += Scratch::Aligned(bound.part_bytes);
    }
    ONNXIFI_RETURN_IF_ERROR(services_.scratch.Reserve(scratch_bytes));
    for (int read = 0; read < static_cast<int>(step.reads.size()); ++read) {
      kernel->is_read_.push_back(product_.IsReadBy(Part::kSums, read) ||
                                 std::any_of(kOperands.begin(), kOperands.end(), [&](Part part) {
                                   return kernel->operands_[NumberOf(part)].panels == nullptr &&
                                          product_.IsReadBy(part, read);
                                 }));
    }
    return std::unique_ptr<device::BoundKernel>(std::move(kernel));
  }

 private:
  Result<KernelLaunch> MakeLaunch(Part part, const TiledProduct::Bound& bound) {
    const LoopNest& loops = bound.loops(part);
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const KernelVariant> variant,
                             variants_[NumberOf(part)].Find(services_, loops.form, [&] {
                               return product_.Generate(part, loops.form, capabilities_,
                                                        services_.driver.dialect(),
                                                        services_.driver.product_library());
                             }));
    return KernelLaunch::Create(services_, std::move(variant), loops);
  }

  Result<std::shared_ptr<const Panels>> LayOut(Part part, const TiledProduct::Bound& bound,
                                               const KernelLaunch& launch, int64_t size_bytes,
                                               device::Addresses constants) {
    // Two bindings may lay out the same at once; the first one's stays.
    std::vector<int64_t> numbers = ValuesOf(launch.numbers(), bound.loops(part));
    std::shared_ptr<const Panels>& known = panels_[NumberOf(part)];
    {
      const std::lock_guard lock(mutex_);
      if (known != nullptr && known->numbers == numbers) return known;
    }
    auto panels = std::make_shared<Panels>();
    panels->numbers = std::move(numbers);
    if (!launch.is_empty()) {
      ONNXIFI_ASSIGN_OR_RETURN(panels->held, services_.memory.Allocate(size_bytes));
      const std::array<std::byte*, 2> places = {panels->held->data(), panels->held->data()};
      ONNXIFI_RETURN_IF_ERROR(launch.Enqueue(/*queue=*/nullptr, constants, places));
    }
    const std::lock_guard lock(mutex_);
    known = panels;
    return std::shared_ptr<const Panels>(std::move(panels));
  }

  const TiledProduct product_;
  const Capabilities capabilities_;
  Services& services_;
  std::array<KernelVariants, 4> variants_;  // by part
  std::mutex mutex_;
  std::array<std::shared_ptr<const Panels>, 2> panels_;  // shared with what is bound
};

// Of a product whose rows are a symbol: few rows have tiles of their own.
class TiledByRowsKernel final : public device::Kernel {
 public:
  struct Choice {
    TiledProduct product;
    int64_t most_rows = 0;  // 0: any
  };
  TiledByRowsKernel(const std::vector<Choice>& choices, const Capabilities& capabilities,
                    Services& services)
      : choices_(choices) {
    for (const Choice& choice : choices_) {
      kernels_.push_back(std::make_unique<TiledKernel>(choice.product, capabilities, services));
    }
  }

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    const int64_t rows = choices_.back().product.RowsOf(step);
    size_t number = 0;
    while (choices_[number].most_rows != 0 && choices_[number].most_rows < rows) ++number;
    // Constants are laid out once, for any rows.
    const TiledProduct& few = choices_[number].product;
    if (few.IsConstant(Part::kColumns) && !few.Bind(step).has_columns_in_place) {
      number = choices_.size() - 1;
    }
    Result<std::unique_ptr<device::BoundKernel>> bound = kernels_[number]->Bind(step, constants);
    // While a caller's stream is captured none is laid out. Tiles of others, which read them in
    // place, serve any number of rows, if slower.
    const bool is_captured = !bound.ok() && bound.status().code() == base::Code::kInvalidState;
    for (size_t other = number; is_captured && other-- > 0;) {
      Result<std::unique_ptr<device::BoundKernel>> served = kernels_[other]->Bind(step, constants);
      if (served.ok()) return served;
    }
    return bound;
  }

 private:
  const std::vector<Choice> choices_;
  std::vector<std::unique_ptr<TiledKernel>> kernels_;  // by choice
};

class TiledRecipe final : public Recipe {
 public:
  using Choice = TiledByRowsKernel::Choice;
  // The last choice is for any rows.
  TiledRecipe(std::vector<Choice> choices, const Capabilities& capabilities)
      : choices_(std::move(choices)),
        product_(choices_.back().product),
        capabilities_(capabilities) {}
  std::string_view implementation() const override {
    if (product_.is_transposed()) return "tiled transposed convolution";
    return product_.is_window() ? "tiled convolution" : "tiled product";
  }
  tensor::Precision precision() const override { return product_.precision(); }
  std::unique_ptr<device::Kernel> Build(Services& services) const override {
    if (choices_.size() > 1) {
      return std::make_unique<TiledByRowsKernel>(choices_, capabilities_, services);
    }
    return std::make_unique<TiledKernel>(product_, capabilities_, services);
  }

 private:
  const std::vector<Choice> choices_;
  const TiledProduct& product_;
  const Capabilities capabilities_;
};

}  // namespace

TileShape TileOf(const Tuning& tuning, const TiledProduct& product, int64_t rows) {
  return tuning.TileFor(rows, product.most_depth(), product.sum_bits(),
                        product.known_columns().value_or(Tuning::kManyColumns),
                        product.known_depth(), product.known_count());
}

Result<std::unique_ptr<const Recipe>> SelectTiled(const device::Facts& facts,
                                                  const Capabilities& capabilities,
                                                  const Tuning& tuning) {
  ONNXIFI_RETURN_IF_ERROR(CheckTiles(facts.program, facts.step));
  const auto with_tile_for = [&](int64_t rows) {
    TiledProduct product(facts.program, facts.step);
    product.SetTile(TileOf(tuning, product, rows), capabilities.matrix_units);
    return product;
  };
  const TiledProduct untiled(facts.program, facts.step);
  TiledProduct product = with_tile_for(untiled.least_rows());
  // A group sums an output then (contract.cc).
  constexpr int64_t kMaxItemDepth = 32768;
  if (product.item_depth() > kMaxItemDepth) {
    return Status(base::Code::kUnsupportedOperator,
                  "A sum of so few rows leaves " + std::to_string(product.item_depth()) +
                      " products to an item; the most is " + std::to_string(kMaxItemDepth) + ".");
  }
  std::vector<TiledRecipe::Choice> choices;
  if (tuning.are_items_lanes && untiled.has_symbolic_rows()) {
    for (const int64_t rows : {1, 4, 8}) {
      TiledProduct few = with_tile_for(rows);
      if (few.reads_rows_anywhere() && few.item_depth() <= kMaxItemDepth) {
        choices.push_back({std::move(few), rows});
      }
    }
  }
  choices.push_back({std::move(product)});
  return std::unique_ptr<const Recipe>(
      std::make_unique<TiledRecipe>(std::move(choices), capabilities));
}

}  // namespace onnxifi::codegen
