// SPDX-License-Identifier: Apache-2.0
//
// Expression: the scalar expressions of a program as statements of a kernel. Every family's
// generator writes what it computes per element through this.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_EXPRESSION_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_EXPRESSION_H_

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/codegen/access.h"
#include "backends/core/codegen/conversion.h"
#include "backends/core/codegen/writer.h"
#include "backends/core/program/program.h"

namespace onnxifi::codegen {

// What matrix units multiply at once: rows x depth by depth x columns.
struct MatrixBlock {
  int rows = 0;  // 0: they multiply no such elements
  int columns = 0;
  int depth = 0;

  auto operator<=>(const MatrixBlock&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The units of a device that multiply blocks of matrices.
struct MatrixUnits {
  enum class Kind : uint8_t {
    kNone,
    kFragments,    // items hold parts of the blocks that the text knows (matrix_unit_text.cc)
    kCooperative,  // a subgroup holds a block, nobody knows how (cooperative_matrix_text.cc)
  };
  Kind kind = Kind::kNone;
  // kCooperative: of elements of these types, summed in float32; and the items of a subgroup.
  MatrixBlock float16;
  MatrixBlock bfloat16;
  int subgroup_items = 0;
  // kFragments: sums of float32 at least so deep are made of three products of TF32
  // (split_product_text.cc); 0: none.
  int64_t split_depth = 0;

  // Of elements of `type`; has no rows where there are none.
  MatrixBlock BlockOf(tensor::ElementType type) const {
    if (type == tensor::ElementType::kFloat16) return float16;
    return type == tensor::ElementType::kBfloat16 ? bfloat16 : MatrixBlock{};
  }

  auto operator<=>(const MatrixUnits&) const = default;  // NOLINT(modernize-use-nullptr)
};

// What the languages of a device have beyond float32 and integers.
struct Capabilities {
  bool has_float64 = false;
  // At half the rate of float32 or more: only then do float32 steps sum in it.
  bool is_float64_fast = false;
  // How many neighbours along the last axis one item computes in a row: many where compilers make
  // vectors of loops, one where neighbouring items share what they read.
  int run_length = 1;
  int run_group_size = 64;
  // Where an item computes runs: the parts that it sums a long row in, and elements of 8 bits
  // beyond them in the arrays that hold them.
  int row_parts = 16;
  int byte_array_padding = 0;
  // Of a group that takes a row of more than 1,024 elements, and keeps it, or a tile of a Map: its
  // items, a power of two, and the shared memory that it may have.
  int row_group_size = 64;
  int64_t row_shared_bytes = int64_t{16} << 10;
  // Items of a group where each does a long row or block of elements by itself.
  int long_item_group_size = 64;
  // Rounds of loops that an item may do in all: a driver may leave a loop then and say nothing.
  int64_t most_rounds = INT64_MAX;
  // The product library has their functions.
  MatrixUnits matrix_units;
};

// Whether every operation below `roots` (kNoExpr among them is skipped) has a statement:
// UNSUPPORTED_DATATYPE with the operation and its type.
base::Status CheckExpressions(const program::ExprPool& pool, std::span<const program::ExprId> roots,
                              const Capabilities& capabilities);
// Whether elements of this type can be held at all.
base::Status CheckType(tensor::ElementType type, const Capabilities& capabilities);

// What the leaves of an expression stand for where it is written: names of variables.
struct Scope {
  // By axis of the loops, of type idx. Loads at the domain's coordinates go through these.
  std::vector<std::string> coordinates;
  // kIndex by axis of the domain, of type idx. May be longer or shorter than `coordinates`.
  std::vector<std::string> indices;
  std::map<int, std::string> loaded;  // by read: its element at `coordinates`, where that is known
  std::vector<std::string> state;
  std::vector<std::string> other;
  std::vector<std::vector<std::string>> rows;  // by pass and result
  std::string accumulator;
};

// Writes statements for all of `roots` and gives the names of their values, of LaneType(root's
// type); empty for kNoExpr.
std::vector<std::string> WriteExpressions(Writer& writer, const program::Program& program,
                                          const program::Step& step, const Scope& scope,
                                          std::span<const program::ExprId> roots);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_EXPRESSION_H_
