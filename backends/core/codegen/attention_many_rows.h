// SPDX-License-Identifier: Apache-2.0
//
// ManyRowsWriter: attention of many queries, as attention_many_rows.cc describes it. Writers whose
// products are those of matrix units have what their items hold in its place. For attention*.cc
// alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_MANY_ROWS_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_MANY_ROWS_H_

#include <cstdint>
#include <string>

#include "backends/core/codegen/attention_writer.h"

namespace onnxifi::codegen {

class ManyRowsWriter : public AttentionWriter {
 public:
  ManyRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts,
                 int group_size);
  virtual ~ManyRowsWriter() = default;
  ManyRowsWriter(const ManyRowsWriter&) = delete;
  ManyRowsWriter& operator=(const ManyRowsWriter&) = delete;

  Launch Write();

 protected:
  static constexpr int kRows = kAttentionManyRowBlocks[0].rows;
  static constexpr int kKeys = kAttentionManyRowKeys;
  // Rows of shared memory are four longer, so that columns lie in more of its banks.
  static constexpr int kPitch = kRows + 4;

  // Whether it calls functions of the product library.
  virtual bool UsesProducts() const { return false; }
  // What an item has of operands, scores and sums, and where.
  virtual void ShareOperands();
  virtual void PlaceItem();
  // Sums of products of Q and K, of each item its own.
  virtual void WriteScores();
  virtual void ShareScores();
  // Adds the values of the block's keys. Keys behind the end are another group's, or none; their
  // values may be infinite, and are not read.
  virtual void WriteSums();
  // Puts sums of the columns from `first` on of the block, as many as there are rows, into
  // `weights` by row.
  virtual void ShareSums(int first);
  virtual std::string Unscaled(const std::string& sum) const { return sum; }

  const AttentionBlock block_;
  const bool has_parts_;
  const int group_size_;
  const int sums_;  // of an item

 private:
  int64_t SharedBytes(int query_depth) const;
  // Number `number`, an int, of what an item has.
  static std::string RowOf(const std::string& number);
  std::string ColumnOf(const std::string& number) const;
  // What an item has, to or from working memory: neighbours beside neighbours.
  void WriteCarried(bool is_store);
  // Fours of a row of shared memory from `first` on, so many elements of it in all.
  void LoadFours(const std::string& name, const std::string& array, const std::string& first,
                 int items, const std::string& item, int count);
  // Adds products of elements of two rows of shared memory: those of an item's rows and of its
  // `count` columns.
  void WriteProducts(const std::string& rows, const std::string& rows_at,
                     const std::string& columns_at, int count, const std::string& sums);
  // Whether a score reads anything beside the sum: neighbouring keys are neighbours in memory.
  bool HasReadsInScores() const;
  // Scores of the sums, then exponentials of these less the largest so far.
  void WriteWeights();
  void WriteOutputs();

  const int across_;     // items along the keys and the values
  const int item_keys_;  // of an item
  const int scanners_;   // items that share a row of the softmax
  const int tile_;
  const int query_depth_;  // of queries in shared memory
  std::string carried_;    // working memory
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_ATTENTION_MANY_ROWS_H_
