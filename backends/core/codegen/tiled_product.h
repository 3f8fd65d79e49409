// SPDX-License-Identifier: Apache-2.0
//
// TiledProduct: a Contract as three kernels, for devices with a fast way to sum one block of
// outputs in registers. Two kernels lay the operands out for the third: panels of the rows'
// elements, so that those of one block follow each other; panels of the columns' elements, or, for
// a convolution, images with their padding, taken apart by stride, so that each tap of the kernel
// is the same image a few elements on. Prologues are applied there, once per element. The third
// kernel sums a block of outputs and writes what the epilogue makes of it. Rows are a product's
// rows or a convolution's channels, columns a product's columns or a convolution's pixels; where
// it suits the extents better, a product's columns are the rows.
//
// The outputs of a transposed convolution that lie a stride apart have the same taps, and are the
// outputs of a convolution by those: on each axis output `o` is `o + pad = q * stride + phase`, it
// has the taps whose reach `tap * dilation` leaves that phase as well, and such a tap meets input
// `q - reach / stride`. So columns are the q of one phase, and there is a block for each phase.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_PRODUCT_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_PRODUCT_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/codegen/loop_nest.h"
#include "backends/core/device/device.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// The block of outputs that one item sums, and, where the items of a group sum one together, what
// the group does.
struct TileShape {
  int rows = 1;
  int vectors = 1;  // that its columns are held in
  int lanes = 1;    // of a vector
  int group_size = 1;
  // Items are the lanes of the device: neighbouring items write and read neighbouring elements.
  bool are_items_lanes = false;

  // Of the items of a group, how many lie along the rows and along the columns of its block; 0
  // where each item has a block of its own.
  int item_rows = 0;
  int item_columns = 0;
  // How much of the depth is in shared memory at once; divides group_size. 0: items read the
  // operands where they lie.
  int depth = 0;
  // Into how many parts, with items of their own, the depth is cut; 1 with shared memory.
  int parts = 1;
  // How many such groups keep the device busy. Where there are fewer blocks, their depth is shared
  // out among groups. 0: nobody knows.
  int64_t busy_groups = 0;

  int columns() const { return vectors * lanes; }
  bool is_of_group() const { return item_columns > 0; }
  int block_rows() const { return is_of_group() ? item_rows * rows : rows; }
  int block_columns() const { return is_of_group() ? item_columns * columns() : columns(); }
  auto operator<=>(const TileShape&) const = default;
};

// UNSUPPORTED_* with what keeps the step, which passed codegen::Check, from being cut into tiles.
base::Status CheckTiles(const program::Program& program, const program::Step& step);

class TiledProduct {
 public:
  // `step` passed CheckTiles and, like the program, outlives this.
  TiledProduct(const program::Program& program, const program::Step& step);

  // How many rows there are, and the bits of a sum: what a tile is chosen by. A lower bound where
  // rows are a symbol.
  int64_t least_rows() const;
  // Of a product, whether a symbol says how many there are, and how many a binding has.
  bool has_symbolic_rows() const;
  int64_t RowsOf(const device::BoundStep& step) const;
  // How deep the sums are that items may share out: INT64_MAX where a symbol says, and 1 of a
  // convolution, which has columns enough for all items.
  int64_t most_depth() const;
  int sum_bits() const;
  // How many products an item sums by itself, without a group that brings them: 0 where there is
  // one, or a symbol says.
  int64_t item_depth() const;
  // Of a product or an image; none where a symbol says.
  std::optional<int64_t> known_columns() const;
  // Products of a sum; 1 where a symbol says.
  int64_t known_depth() const;
  // How many such products there are side by side, those of a batch or of a convolution's images
  // and groups; 1 where a symbol says.
  int64_t known_count() const;
  // In a convolution, items for parts of the depth have columns instead. `units` are as in
  // Capabilities.
  void SetTile(const TileShape& tile, const MatrixUnits& units = {});

  enum class Part : uint8_t { kRows, kColumns, kSums, kDepthParts };
  // With numbers. Working memory 0 holds the rows' panels, 1 those of the columns. Where blocks are
  // too few for the device, or their depth is much work for a group, the depth is cut into parts,
  // of which each has a group that leaves its sums in working memory 2; kSums then adds these up.
  struct Bound {
    LoopNest rows, columns, sums;
    LoopNest depth_parts;  // where there are some
    int64_t row_bytes = 0;
    int64_t column_bytes = 0;
    int64_t part_bytes = 0;  // 0: there are none
    int64_t part_count = 1;
    // The columns lie in read `column_read()` as the sums want them: working memory 1 is that
    // buffer from `column_offset_bytes` on, and there is no kernel for it.
    bool has_columns_in_place = false;
    int64_t column_offset_bytes = 0;
    // The same of the rows, in read `row_read()` and working memory 0.
    bool has_rows_in_place = false;
    int64_t row_offset_bytes = 0;

    const LoopNest& loops(Part part) const {
      switch (part) {
        case Part::kRows:
          return rows;
        case Part::kColumns:
          return columns;
        case Part::kDepthParts:
          return depth_parts;
        default:
          return sums;
      }
    }
  };
  Bound Bind(const device::BoundStep& step) const;

  // The kernel of a part for loops of this form. `library` defines the functions that product.cl
  // of backends/opencl documents, and those of matrix units (cuda/kernels/matrix_product.cc) if
  // there are any.
  KernelText Generate(Part part, const LoopForm& form, const Capabilities& capabilities,
                      const Dialect& dialect, std::string_view library) const;

  // The type in which the sums find the elements of an operand, once there is a tile. Where the
  // items of a group sum together, elements of float16, bfloat16 and bytes are laid out as what
  // they are, bytes less a zero point as int16, and float32 as Program::precision permits: they are
  // widened when they are read. Else it is the sum's.
  tensor::ElementType stored_type(Part part) const;
  // To what operands are rounded by that, and by matrix_unit().
  tensor::Precision precision() const;
  // By which of a device's matrix units the sums are made. None where there
  // are none for the types and the precision, or the tile is not made of their blocks.
  struct MatrixUnit {
    std::string name;                   // of its function in the product library, of fragments
    tensor::ElementType rows, columns;  // of what it multiplies, float32 rounded
    int element_bytes = 0;              // of either
    tensor::Precision precision = tensor::Precision::kFloat32;  // to which float32 is rounded
    bool is_split = false;  // float32 is not rounded: it is a large and a small part
  };
  std::optional<MatrixUnit> matrix_unit() const;
  // Whether it multiplies fragments, so that items have the sums that these give them.
  bool has_fragments() const {
    return matrix_units_.kind == MatrixUnits::Kind::kFragments && matrix_unit().has_value();
  }
  // How many elements of the depth follow each other, for each row or column, in what is laid out:
  // a word of 16 bytes of them for fragments, else one. There the depth is filled up with zeros.
  int word_elements() const { return has_fragments() ? 16 / matrix_unit()->element_bytes : 1; }

  int row_read() const { return columns_are_a_ ? 1 : 0; }
  int column_read() const { return columns_are_a_ ? 0 : 1; }
  // Whether all that the kernel of an operand reads are constants.
  bool IsConstant(Part part) const;
  // Whether the kernel of a part looks at the step's read `read`.
  bool IsReadBy(Part part, int read) const;

  // A convolution, not a product of matrices.
  bool is_window() const { return contract_.form != program::Contract::Form::kMatMul; }
  bool is_transposed() const { return contract_.form == program::Contract::Form::kConvTranspose; }
  // Of a convolution of few rows: the sums read the tensor itself, padding left out, and columns
  // are outputs. Nothing is laid out of it, since little would be read twice.
  bool reads_tensor() const { return is_window() && tile_.is_of_group() && tile_.depth == 0; }
  // Of a product of few rows: items read the rows by themselves, wherever they lie.
  bool reads_rows_anywhere() const {
    return !is_window() && tile_.is_of_group() && tile_.depth == 0;
  }
  // Of those convolutions, a depthwise one in which neighbouring outputs share most of what they
  // read: an item sums neighbours.
  bool sums_runs() const;

 private:
  class Geometry;
  class PartWriter;

  // The operand's element is a load, of the type in which the sums find it.
  bool IsPlain(Part part) const;
  program::ExprId prologue(bool is_a) const {
    return is_a ? contract_.a_prologue : contract_.b_prologue;
  }
  // Domain axes, in the order batch, rows, columns.
  int batch_axes() const { return is_window() ? 1 : contract_.batch_axes; }
  int row_axes() const;
  int first_row_axis() const;
  int column_axes() const;
  // Whether a tap of a convolution in floating point may lie in the padding, where a weight that is
  // infinite or NaN must not meet the zeros of the image. Where extents are symbols it may.
  bool MeetsPadding() const;
  // Whether columns share elements: those of a convolution of more than one tap.
  bool HasTaps() const;
  // Whether sums of float32 are made of three products of TF32: only if all are known to be so
  // deep.
  bool SplitsFloats() const;

  const program::Program& program_;
  const program::Step& step_;
  const program::Contract& contract_;
  const LoopFacts facts_;
  bool columns_are_a_ = false;
  TileShape tile_;
  MatrixUnits matrix_units_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TILED_PRODUCT_H_
