// SPDX-License-Identifier: Apache-2.0
//
// Map: one pass over memory for the whole expression. Every tile is on its own, so the order of
// axes is free: the first write's.

#include <memory>
#include <vector>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/engine/recipe.h"

namespace onnxifi::engine {
namespace {

class BoundMap final : public device::BoundKernel {
 public:
  BoundMap(std::shared_ptr<const Code> code, const device::BoundStep& step, Runtime& runtime)
      : code_(std::move(code)),
        bound_(*code_, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        runtime_(runtime) {
    is_empty_ = tensor::ElementCount(step.domain) == 0;
    if (is_empty_) return;
    grid_ = Grid(step.domain);
    std::vector<LinearForm*> forms;
    bound_.AppendForms(forms);
    writer_.AppendForms(forms);
    grid_.Permute(Grid::SortedAxes(writer_.first_form(), 0, grid_.rank()), forms);
    grid_.Join({}, forms);
    const int64_t lanes = runtime.settings().tile_lanes;
    const int transposed = FindTransposedAxis(grid_, bound_.accesses(), lanes);
    if (transposed >= 0) {
      // Longer runs on both sides: every one of them begins on another page.
      constexpr int64_t kTilesOfTransposed = 8;
      grid_.TileTransposed(transposed, kTilesOfTransposed * lanes);
    } else {
      grid_.Tile(0, grid_.rank(), lanes);
    }
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
    bound_.LayOut(grid_, tile_lanes_);
    writer_.LayOut(grid_, transposed >= 0 ? runtime.settings().streamed_transposed_bytes
                                          : runtime.settings().streamed_bytes);
    runtime.scratch().Reserve(bound_.scratch_bytes() + writer_.scratch_bytes());
  }

  base::Status Run(device::Addresses addresses) const override {
    if (is_empty_) return base::Ok();
    const int64_t cost = tile_lanes_ * (code_->cost() + 100);
    return runtime_.For(grid_.TileCount(0, grid_.rank()), cost,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    Frame frame(bound_, addresses, scratch, tile_lanes_);
    Box box;
    grid_.MoveTo(0, grid_.rank(), begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      writer_.Run(frame, box, addresses, scratch + bound_.scratch_bytes());
      grid_.MoveOn(0, grid_.rank(), box);
    }
    writer_.Finish();
  }

  // The axis along which a read is contiguous that is not so along the last one, or -1. None where
  // a tile of `lanes` holds all of both.
  static int FindTransposedAxis(const Grid& grid, std::span<const Access> accesses, int64_t lanes) {
    constexpr int64_t kShortest = 4;
    const int last = grid.rank() - 1;
    if (last < 1 || grid.extent(last) < kShortest) return -1;
    for (const Access& access : accesses) {
      const int64_t step = access.form.steps[last];
      if (access.buffer == program::kNoBuffer || step == 0 || step == 1 || step == -1) continue;
      for (int axis = last; axis-- > 0;) {
        if (access.form.steps[axis] == 1 && grid.extent(axis) >= kShortest) {
          if (grid.TileLanes(axis, grid.rank()) > lanes) return axis;
          break;
        }
      }
    }
    return -1;
  }

  const std::shared_ptr<const Code> code_;  // shared with the kernel
  BoundCode bound_;
  Writer writer_;
  Grid grid_;
  int64_t tile_lanes_ = 0;
  bool is_empty_;
  Runtime& runtime_;
};

class MapKernel final : public device::Kernel {
 public:
  MapKernel(std::shared_ptr<const Code> code, Runtime& runtime)
      : code_(std::move(code)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = std::make_unique<BoundMap>(code_, step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  const std::shared_ptr<const Code> code_;  // shared with what it bound
  Runtime& runtime_;
};

}  // namespace

std::unique_ptr<device::Kernel> BuildMap(const device::Facts& facts, Runtime& runtime) {
  return std::make_unique<MapKernel>(
      std::make_shared<const Code>(Code::Compile(
          facts.program.exprs, facts.step.As<program::Map>()->roots, runtime.settings().loops)),
      runtime);
}

}  // namespace onnxifi::engine
