// SPDX-License-Identifier: Apache-2.0
//
// Pooling: a tile is a block of pixels with all or some of their channels, or of channels with
// their pixels, whichever lie side by side. Its windows are reduced into a register, then the
// epilogue runs over that. Where there is none, they are reduced into the result. An epilogue of
// bytes has 256 results, which are computed once and looked up. The largest of some bfloat16 is one
// of them, and is widened for the epilogue alone.

#include "backends/cpu/pooling/pooling.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/reference/scratch.h"
#include "backends/cpu/engine/byte_function.h"
#include "backends/cpu/engine/frame.h"
#include "backends/cpu/pooling/plane_reduction.h"
#include "backends/cpu/pooling/reduction.h"
#include "backends/cpu/processor/processor.h"

namespace onnxifi::pooling {
namespace {

using base::Code;
using base::Status;
using engine::Box;
using engine::Grid;
using program::Window;
using tensor::ElementType;

PlaneWindows MakeWindows(const device::BoundStep& step) {
  const Window& window = *step.step->As<Window>();
  PlaneWindows plane;
  Windows& windows = plane.windows;
  windows.kind =
      window.kind == Window::Kind::kMax ? Windows::Kind::kMaximum : Windows::Kind::kAverage;
  windows.type = step.reads[0].type;
  windows.counts_padding = window.count_include_pad;
  const size_t missing = kSpatialAxes - window.in_spatial.size();
  for (size_t axis = 0; axis < kSpatialAxes; ++axis) {
    if (axis < missing) {
      windows.taps[axis] = FindTaps({});
      continue;
    }
    const size_t own = axis - missing;
    plane.sliding[axis] = {step.Number(window.in_spatial[own]),
                           step.domain[own + 2],
                           step.Number(window.kernel[own]),
                           window.strides[own],
                           window.dilations[own],
                           step.Number(window.pads_begin[own]),
                           step.Number(window.pads_end[own])};
    windows.taps[axis] = FindTaps(plane.sliding[axis]);
    windows.strides[axis] = step.reads[0].strides[own + 2];
    windows.tap_strides[axis] = engine::WrapMulAdd(0, windows.strides[axis], window.dilations[own]);
  }
  return plane;
}

struct Epilogue {
  engine::Code code;
  bool is_empty;  // the one result is what was reduced
};

// What an epilogue makes of each byte, by its bits.
using ByteTable = std::array<uint8_t, 256>;

bool IsIdentity(const ByteTable& table) {
  for (size_t k = 0; k < table.size(); ++k) {
    if (table[k] != k) return false;
  }
  return true;
}

class BoundPooling final : public device::BoundKernel {
 public:
  BoundPooling(std::shared_ptr<const Epilogue> epilogue, const std::optional<ByteTable>& table,
               const device::BoundStep& step, engine::Runtime& runtime)
      : epilogue_(std::move(epilogue)),
        table_(table),
        bound_(epilogue_->code, step),
        writer_(step.writes, static_cast<int>(step.domain.size())),
        source_(step.reads[0]),
        result_(step.writes[0]),
        element_bytes_(tensor::SizeBytes(source_.type, 1)),
        is_widened_(source_.type != step.step->As<Window>()->accumulator),
        runtime_(runtime) {
    const int64_t count = tensor::ElementCount(step.domain);
    is_empty_ = count == 0;
    if (is_empty_) return;
    // Where there is one channel, its pixels are neighbours.
    is_planar_ = source_.strides.back() == 1 && (source_.strides[1] != 1 || step.domain[1] == 1);
    is_direct_ = (epilogue_->is_empty || table_) &&
                 (is_planar_ ? result_.strides.back() : result_.strides[1]) == 1 &&
                 count < runtime.settings().streamed_bytes / element_bytes_;
    plane_ = MakeWindows(step);
    std::vector<engine::LinearForm*> forms;
    bound_.AppendForms(forms);
    writer_.AppendForms(forms);
    grid_ = Grid(step.domain);
    if (!is_planar_) {
      std::vector<int> order = {0};
      for (int axis = 2; axis < grid_.rank(); ++axis) order.push_back(axis);
      order.push_back(1);
      grid_.Permute(order, forms);
    }
    int64_t taps = 1;
    for (const program::Dim& extent : step.step->As<Window>()->kernel) {
      taps = std::clamp<int64_t>(step.Number(extent), 1, kManyTaps / taps) * taps;
    }
    TileGrid(count, taps);
    cost_ = tile_lanes_ * (taps * 60 + 100 + epilogue_->code.cost());
    bound_.LayOut(grid_, tile_lanes_);
    writer_.LayOut(grid_, runtime.settings().streamed_bytes);
    constexpr int64_t kLine = 64;
    const auto lines = [&](int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
    window_bytes_ = lines(tile_lanes_ * element_bytes_);
    if (is_widened_) wide_bytes_ = lines(tile_lanes_ * static_cast<int64_t>(sizeof(float)));
    runtime.scratch().Reserve(wide_bytes_ + window_bytes_ + plane_bytes_ + 2 * kLine +
                              bound_.scratch_bytes() + writer_.scratch_bytes());
  }

  std::string Detail() const override { return processor::VectorName(); }

  base::Status Run(device::Addresses addresses) const override {
    if (is_empty_) return base::Ok();
    return runtime_.For(grid_.TileCount(0, grid_.rank()), cost_,
                        [&](int64_t begin, int64_t end, std::byte* scratch) {
                          RunTiles(addresses, begin, end, scratch);
                        });
  }

 private:
  static constexpr int64_t kManyTaps = int64_t{1} << 20;

  // Fewer where each is a lot of work, down to some vectors of channels.
  int64_t TileLanes(int64_t taps) const {
    constexpr int64_t kWholeTileTaps = 16;
    constexpr int64_t kMin = 128;
    const int64_t lanes = runtime_.settings().tile_lanes;
    const int64_t fewer = lanes * kWholeTileTaps / std::max(taps, kWholeTileTaps);
    return std::min(lanes, std::max(fewer / kMin, int64_t{1}) * kMin);
  }

  // More where tiles share the rows, or even the planes, at their edges, as far as there are tiles
  // for many threads.
  int64_t LongTileLanes(int64_t count, int64_t min, bool has_planes) const {
    constexpr int64_t kMinTiles = 32;
    return std::clamp(count / kMinTiles, min,
                      (has_planes ? 16 : 4) * runtime_.settings().tile_lanes);
  }

  // Tiles whose rows the scratch memory takes, if some are so small.
  void TileGrid(int64_t count, int64_t taps) {
    const bool has_planes = plane_.sliding[0].kernel > 1;
    const bool is_long = is_planar_ && (has_planes || IsReducedByAxes(plane_));
    const int64_t min = TileLanes(taps);
    int64_t lanes = is_long ? LongTileLanes(count, min, has_planes) : min;
    grid_.Tile(0, grid_.rank(), lanes);
    plane_bytes_ = is_planar_ ? TilePlaneBytes() : 0;
    while (is_planar_ && plane_bytes_ == 0 && lanes > min) {
      lanes = std::max(min, lanes / 2);
      grid_.Tile(0, grid_.rank(), lanes);
      plane_bytes_ = TilePlaneBytes();
    }
    tile_lanes_ = grid_.TileLanes(0, grid_.rank());
  }
  int64_t TilePlaneBytes() const {
    std::array<int64_t, kSpatialAxes> extents = {1, 1, 1};
    const int missing = kSpatialAxes - (grid_.rank() - 2);
    for (int axis = missing; axis < kSpatialAxes; ++axis) {
      extents[static_cast<size_t>(axis)] = grid_.tile_extent(axis - missing + 2);
    }
    return PlaneScratchBytes(plane_, extents);
  }

  void RunTiles(device::Addresses addresses, int64_t begin, int64_t end, std::byte* scratch) const {
    std::byte* const wide = scratch + bound_.scratch_bytes();
    std::byte* const reduced = wide + wide_bytes_;
    std::byte* const rows = plane_bytes_ > 0 ? reduced + window_bytes_ : nullptr;
    std::byte* const writer_scratch = reduced + window_bytes_ + plane_bytes_;
    engine::Frame frame(bound_, addresses, scratch, tile_lanes_);
    frame.Attach(program::ExprOp::kAccumulator,
                 [&](uint64_t) { return is_widened_ ? wide : reduced; });
    Box box;
    grid_.MoveTo(0, grid_.rank(), begin, box);
    for (int64_t tile = begin; tile < end; ++tile) {
      if (is_direct_) {
        ReduceIntoResult(box, addresses, rows);
      } else {
        const int64_t count = ReduceIntoRegister(box, addresses, reduced, rows);
        if (is_widened_) Widen(reduced, count, wide);
        writer_.Run(frame, box, addresses, writer_scratch);
      }
      grid_.MoveOn(0, grid_.rank(), box);
    }
    writer_.Finish();
  }

  static void Widen(const std::byte* narrow, int64_t count, std::byte* wide) {
    const auto* const from = reinterpret_cast<const uint16_t*>(narrow);
    auto* const to = reinterpret_cast<uint32_t*>(wide);
    for (int64_t k = 0; k < count; ++k) to[k] = uint32_t{from[k]} << 16;
  }

  // Returns how many there are.
  int64_t ReduceIntoRegister(const Box& box, device::Addresses addresses, std::byte* reduced,
                             std::byte* rows) const {
    PlaneBlock planes = MakeBlock(box);
    Block& block = planes.block;
    int64_t stride = is_planar_ ? 1 : block.channels;
    for (size_t axis = kSpatialAxes; axis-- > 0;) {
      block.strides[axis] = stride;
      stride *= block.extents[axis];
    }
    planes.result_stride = stride;
    const int64_t image = is_planar_ ? stride * block.channels : stride;
    for (int64_t n = 0; n < box.extents[0]; ++n) {
      Reduce(planes, FirstOf(source_, box, n, addresses), reduced + n * image * element_bytes_,
             rows);
    }
    return image * box.extents[0];
  }

  void ReduceIntoResult(const Box& box, device::Addresses addresses, std::byte* rows) const {
    PlaneBlock planes = MakeBlock(box);
    Block& block = planes.block;
    int64_t pixel = 0;
    const int missing = kSpatialAxes - (box.rank - 2);
    for (int axis = missing; axis < kSpatialAxes; ++axis) {
      const auto of_block = static_cast<size_t>(axis);
      block.strides[of_block] = result_.strides[static_cast<size_t>(axis - missing + 2)];
      pixel += block.begin[of_block] * block.strides[of_block];
    }
    planes.result_stride = result_.strides[1];
    for (int64_t n = 0; n < box.extents[0]; ++n) {
      Reduce(planes, FirstOf(source_, box, n, addresses),
             FirstOf(result_, box, n, addresses) + pixel * element_bytes_, rows);
      if (table_ && !IsIdentity(*table_)) {
        LookUp(planes, reinterpret_cast<uint8_t*>(FirstOf(result_, box, n, addresses)) + pixel);
      }
    }
  }

  // Of bytes that were stored just now.
  void LookUp(const PlaneBlock& planes, uint8_t* result) const {
    const Block& block = planes.block;
    const int64_t channels = is_planar_ ? block.channels : 1;
    int64_t runs = block.extents[2], run = block.channels, stride = block.strides[2];
    if (is_planar_ || stride == run) {
      run = is_planar_ ? block.extents[2] : runs * run;
      runs = 1;
    }
    for (int64_t c = 0; c < channels; ++c, result += planes.result_stride) {
      for (int64_t z = 0; z < block.extents[0]; ++z) {
        for (int64_t y = 0; y < block.extents[1]; ++y) {
          uint8_t* const row = result + z * block.strides[0] + y * block.strides[1];
          engine::LookUpBytes(table_->data(), runs, run, row, stride, row, stride);
        }
      }
    }
  }

  void Reduce(const PlaneBlock& planes, const std::byte* source, std::byte* result,
              std::byte* rows) const {
    if (is_planar_) {
      ReducePlanes(plane_, planes, source, result, rows);
    } else {
      ReduceWindows(plane_.windows, planes.block, source, result);
    }
  }

  // Boxes are over [N, spatial, C], of planes over [N, C, spatial].
  int ChannelAxis(const Box& box) const { return is_planar_ ? 1 : box.rank - 1; }

  PlaneBlock MakeBlock(const Box& box) const {
    const int missing = kSpatialAxes - (box.rank - 2);
    const int first = is_planar_ ? 2 : 1;
    PlaneBlock planes;
    for (int axis = missing; axis < kSpatialAxes; ++axis) {
      planes.block.begin[static_cast<size_t>(axis)] = box.begin[axis - missing + first];
      planes.block.extents[static_cast<size_t>(axis)] = box.extents[axis - missing + first];
    }
    planes.block.channels = box.extents[ChannelAxis(box)];
    planes.source_stride = source_.strides[1];
    return planes;
  }

  // The box's first channel at the first pixel of image n of the box.
  std::byte* FirstOf(const device::BoundView& view, const Box& box, int64_t n,
                     device::Addresses addresses) const {
    const int64_t element = view.offset + (box.begin[0] + n) * view.strides[0] +
                            box.begin[ChannelAxis(box)] * view.strides[1];
    return addresses[view.buffer] + element * element_bytes_;
  }

  const std::shared_ptr<const Epilogue> epilogue_;  // shared with the kernel
  const std::optional<ByteTable> table_;            // what may take the epilogue's place
  engine::BoundCode bound_;
  engine::Writer writer_;
  const device::BoundView source_;
  const device::BoundView result_;
  const int64_t element_bytes_;
  const bool is_widened_;  // bfloat16, for the epilogue
  PlaneWindows plane_;
  Grid grid_;
  int64_t tile_lanes_ = 0;
  int64_t wide_bytes_ = 0;
  int64_t window_bytes_ = 0;
  int64_t plane_bytes_ = 0;  // of copied rows; 0: none are
  int64_t cost_ = 0;
  bool is_empty_;
  bool is_planar_ = false;  // neighbours are pixels, else channels
  bool is_direct_ = false;  // no epilogue
  engine::Runtime& runtime_;
};

class PoolingKernel final : public device::Kernel {
 public:
  PoolingKernel(std::shared_ptr<const Epilogue> epilogue, engine::Runtime& runtime)
      : epilogue_(std::move(epilogue)), runtime_(runtime) {}

  base::Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                          device::Addresses constants) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&]() -> Status {
      std::optional<ByteTable> table;
      if (!epilogue_->is_empty && DependsOnBytes(step, constants)) {
        ONNXIFI_ASSIGN_OR_RETURN(table, Tabulate(step, constants));
      }
      bound = std::make_unique<BoundPooling>(epilogue_, table, step, runtime_);
      return base::Ok();
    }));
    return bound;
  }

 private:
  // Whether the epilogue makes a byte of each byte, with numbers that are constant.
  static bool DependsOnBytes(const device::BoundStep& step, device::Addresses constants) {
    constexpr int64_t kMinElements = 1024;  // worth a table
    const auto is_byte = [](ElementType type) {
      return type == ElementType::kUint8 || type == ElementType::kInt8;
    };
    if (step.writes.size() != 1 || !is_byte(step.reads[0].type) || !is_byte(step.writes[0].type) ||
        tensor::ElementCount(step.domain) < kMinElements) {
      return false;
    }
    const program::ExprPool& pool = step.program->exprs;
    for (const program::ExprId id : program::Reachable(pool, step.step->As<Window>()->roots)) {
      const program::ExprNode& node = pool[id];
      if (node.op == program::ExprOp::kIndex || node.op == program::ExprOp::kDim ||
          node.op == program::ExprOp::kRandom) {
        return false;
      }
    }
    for (size_t read = 1; read < step.reads.size(); ++read) {
      const device::BoundView& view = step.reads[read];
      if (!view.guards.empty() || constants[static_cast<size_t>(view.buffer)] == nullptr) {
        return false;
      }
      for (size_t axis = 0; axis < step.domain.size(); ++axis) {
        if (step.domain[axis] != 1 && view.strides[axis] != 0) return false;
      }
    }
    return true;
  }

  // A window of one element over all bytes.
  base::Result<ByteTable> Tabulate(const device::BoundStep& step,
                                   device::Addresses constants) const {
    ByteTable bytes, results;
    const auto count = static_cast<int64_t>(bytes.size());
    for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(k);
    Window window = *step.step->As<Window>();
    std::ranges::fill(window.in_spatial, program::Dim(1));
    std::ranges::fill(window.kernel, program::Dim(1));
    std::ranges::fill(window.pads_begin, program::Dim(0));
    std::ranges::fill(window.pads_end, program::Dim(0));
    std::ranges::fill(window.strides, 1);
    std::ranges::fill(window.dilations, 1);
    program::Step one;
    one.body = std::move(window);
    device::BoundStep all = step;
    all.step = &one;
    std::ranges::fill(all.domain, 1);
    all.domain[1] = count;
    for (device::BoundView& read : all.reads) std::ranges::fill(read.strides, 0);
    std::vector<std::byte*> addresses(constants.begin(), constants.end());
    const auto place = [&](device::BoundView& view, ByteTable& table) {
      view.offset = 0;
      view.buffer_bytes = count;
      std::ranges::fill(view.strides, count);
      view.strides[1] = 1;
      addresses[static_cast<size_t>(view.buffer)] = reinterpret_cast<std::byte*>(table.data());
    };
    place(all.reads[0], bytes);
    place(all.writes[0], results);
    ONNXIFI_RETURN_IF_ERROR(BoundPooling(epilogue_, std::nullopt, all, runtime_).Run(addresses));
    return results;
  }

  const std::shared_ptr<const Epilogue> epilogue_;  // shared with what it bound
  engine::Runtime& runtime_;
};

std::vector<program::ExprId> AccumulatorsOf(const program::ExprPool& pool, const Window& window) {
  std::vector<program::ExprId> accumulators;
  for (program::ExprId id : program::Reachable(pool, window.roots)) {
    if (pool[id].op == program::ExprOp::kAccumulator) accumulators.push_back(id);
  }
  return accumulators;
}

std::unique_ptr<device::Kernel> BuildPooling(const device::Facts& facts, engine::Runtime& runtime) {
  const Window& window = *facts.step.As<Window>();
  const program::ExprPool& pool = facts.program.exprs;
  // What was reduced, of bfloat16 as such.
  const program::ExprNode* root = &pool[window.roots[0]];
  if (facts.step.reads[0].type != window.accumulator && root->op == program::ExprOp::kCast &&
      root->type == facts.step.reads[0].type) {
    root = &pool[root->operands[0]];
  }
  const bool is_empty = window.roots.size() == 1 && root->op == program::ExprOp::kAccumulator &&
                        facts.step.writes[0].type == facts.step.reads[0].type;
  engine::Code code = engine::Code::Compile(pool, window.roots, runtime.settings().loops,
                                            AccumulatorsOf(pool, window));
  return std::make_unique<PoolingKernel>(
      std::make_shared<const Epilogue>(Epilogue{std::move(code), is_empty}), runtime);
}

Status CheckSource(const program::View& source, const Window& window) {
  const bool is_byte = window.kind == Window::Kind::kMax &&
                       (source.type == ElementType::kUint8 || source.type == ElementType::kInt8);
  const bool is_float =
      source.type == ElementType::kFloat32 || source.type == ElementType::kFloat64;
  const bool is_bfloat16 = window.kind == Window::Kind::kMax &&
                           source.type == ElementType::kBfloat16 &&
                           window.accumulator == ElementType::kFloat32;
  if (!is_bfloat16 && (source.type != window.accumulator || (!is_float && !is_byte))) {
    return Status(Code::kUnsupportedDatatype,
                  "The window is over " + std::string(tensor::Name(source.type)) + ", reduced in " +
                      std::string(tensor::Name(window.accumulator)) +
                      "; both have to be float32 or float64, or bytes or bfloat16 of which the "
                      "maximum is wanted.");
  }
  if (!source.guards.empty()) {
    return Status(Code::kUnsupportedAttribute, "The tensor is seen through a guard.");
  }
  if (source.strides[1] != program::Dim(1) && source.strides.back() != program::Dim(1)) {
    return Status(Code::kUnsupportedShape, "Neither channels nor pixels lie side by side.");
  }
  return base::Ok();
}

}  // namespace

runtime::RecipeResult SelectPooling(const device::Facts& facts) {
  const Window* window = facts.step.As<Window>();
  if (window == nullptr ||
      (window->kind != Window::Kind::kMax && window->kind != Window::Kind::kAverage)) {
    return Status(Code::kUnsupportedOperator, "The step is no maximum and no average.");
  }
  if (window->kind == Window::Kind::kMax && facts.step.writes.size() == 2) {
    return Status(Code::kUnsupportedAttribute, "The positions of the maxima are wanted.");
  }
  if (window->in_spatial.empty() || window->in_spatial.size() > kSpatialAxes) {
    return Status(Code::kUnsupportedShape, "The number of spatial axes (" +
                                               std::to_string(window->in_spatial.size()) +
                                               ") is outside 1 to 3.");
  }
  ONNXIFI_RETURN_IF_ERROR(CheckSource(facts.step.reads[0], *window));
  const program::ExprPool& pool = facts.program.exprs;
  ONNXIFI_RETURN_IF_ERROR(
      engine::CheckExpressions(pool, window->roots, AccumulatorsOf(pool, *window)));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<engine::Recipe>("pooling", facts, BuildPooling));
}

}  // namespace onnxifi::pooling
