// SPDX-License-Identifier: Apache-2.0
//
// UnitRowsWriter: what attention of many queries has in common where matrix units
// (matrix_unit_text.cc) do its products: warps have 16 rows each, and items hold scores and sums as
// the units' fragments have them. The softmax is that of ManyRowsWriter. For attention*.cc alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_UNIT_ROWS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_UNIT_ROWS_H_

#include "backends/core/codegen/attention_many_rows.h"

namespace onnxifi::codegen {

class UnitRowsWriter : public ManyRowsWriter {
 public:
  UnitRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts)
      : ManyRowsWriter(writer, source, block, has_parts, kAttentionUnitItems),
        value_pitch_(block.columns + 8) {}

 protected:
  static constexpr int kUnitColumns = 8;  // of an instruction
  static constexpr int kScores = kKeys / kUnitColumns * 4;

  bool UsesProducts() const override { return true; }
  void PlaceItem() override;
  void ShareScores() override;
  void ShareSums(int first) override;
  // Sums shrink by what the highest score of their row has grown.
  void WriteShrinking();

  // Rows of words of a depth begin four apart modulo 32: the items of a warp, which read 8 rows of
  // 4 words, find 32 banks. Rows of values, which they read 4 of 8 words of, begin eight apart.
  const int value_pitch_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_UNIT_ROWS_H_
