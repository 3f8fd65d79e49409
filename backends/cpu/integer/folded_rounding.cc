// SPDX-License-Identifier: Apache-2.0
//
// FoldBehindRounding: Requantize itself computes both sides of the comparison, some columns at a
// time, with every integer as a row of sums. A column whose first line fails gets another one, in
// the middle of those that the results allow.

#include "backends/cpu/integer/folded_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/integer/requantize.h"

namespace onnxifi::integer {
namespace {

constexpr int64_t kSomeColumns = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a column does to an integer before it is rounded for the last time.
struct Line {
  double slope, summand;
};

Line LineOf(const Requantization& how, size_t round, size_t column) {
  const Link& rounded = how.links[round];
  const double scale = rounded.dequantizer.scale;
  Line line = {scale, scale * (rounded.quantizer.zero_point - rounded.dequantizer.zero_point)};
  for (size_t k = round + 1; k < how.links.size(); ++k) {
    const double number = how.links[k].table[column];
    switch (how.links[k].kind) {
      case LinkKind::kAdd:
        line.summand += number;
        break;
      case LinkKind::kSub:
        line.summand -= number;
        break;
      default:
        line.slope *= number;
        line.summand *= number;
    }
  }
  const double divisor = how.last.divisor;
  return {line.slope / divisor, line.summand / divisor + how.last.zero_point};
}

// Results of the integers from `first` on, of some columns, row by row.
class Results {
 public:
  Results(int32_t first, int32_t last, tensor::ElementType type)
      : first_(first),
        is_signed_(type == tensor::ElementType::kInt8),
        rows_(last - first + 1),
        sums_(static_cast<size_t>(rows_ * kSomeColumns + kSumSlack)),
        bytes_(static_cast<size_t>(rows_ * kSomeColumns)) {}

  void Compute(const Requantization& how, int32_t shift, int64_t first_column, int64_t columns) {
    for (int64_t row = 0; row < rows_; ++row) {
      std::fill_n(sums_.begin() + row * kSomeColumns, kSomeColumns,
                  first_ + static_cast<int32_t>(row) + shift);
    }
    SumBlock block{};
    block.sums = sums_.data();
    block.sum_stride = block.result_stride = kSomeColumns;
    block.rows = rows_;
    block.columns = columns;
    block.first_column = first_column;
    block.result = reinterpret_cast<std::byte*>(bytes_.data());
    Requantize(how, block);
  }
  int64_t rows() const { return rows_; }
  int32_t integer(int64_t row) const { return first_ + static_cast<int32_t>(row); }
  int32_t At(int64_t row, int64_t column) const {
    const uint8_t byte = bytes_[static_cast<size_t>(row * kSomeColumns + column)];
    return is_signed_ ? static_cast<int8_t>(byte) : byte;
  }

 private:
  const int32_t first_;
  const bool is_signed_;
  const int64_t rows_;
  std::vector<int32_t> sums_;
  std::vector<uint8_t> bytes_;
};

bool AreEqual(const Results& a, const Results& b, int64_t column) {
  for (int64_t row = 0; row < a.rows(); ++row) {
    if (a.At(row, column) != b.At(row, column)) return false;
  }
  return true;
}

// The middle of the summands that lead to the results; that of the line where there are none.
double MiddleSummand(const Results& results, int64_t column, const Quantizer& last,
                     const Line& line) {
  double low = -kInfinity, high = kInfinity;
  for (int64_t row = 0; row < results.rows(); ++row) {
    const int32_t result = results.At(row, column);
    const double without = result - line.slope * results.integer(row);
    if (result > last.low) low = std::max(low, without - 0.5);
    if (result < last.high) high = std::min(high, without + 0.5);
  }
  return low <= high && std::isfinite(low) && std::isfinite(high) ? low + (high - low) / 2
                                                                  : line.summand;
}

// The last link that rounds, if only sums and products with numbers follow it.
bool FindRound(const Requantization& how, size_t& round) {
  for (round = how.links.size(); round-- > 0;) {
    const LinkKind kind = how.links[round].kind;
    if (kind == LinkKind::kRound) return true;
    if (kind != LinkKind::kAdd && kind != LinkKind::kSub && kind != LinkKind::kMul) return false;
  }
  return false;
}

}  // namespace

void FoldBehindRounding(int64_t columns, Requantization& how) {
  size_t round = 0;
  if (how.result == tensor::ElementType::kFloat32 || !FindRound(how, round)) return;
  const Quantizer& quantizer = how.links[round].quantizer;
  const Dequantizer& dequantizer = how.links[round].dequantizer;
  const auto table_size = static_cast<size_t>(columns + kTableSlack);

  // Behind the quantizer, as it is.
  Requantization behind = how;
  behind.lookup.clear();
  behind.links.erase(behind.links.begin(), behind.links.begin() + static_cast<int64_t>(round));
  behind.offsets.clear();
  behind.links[0].kind = LinkKind::kMul;
  behind.links[0].table.assign(table_size, dequantizer.scale);

  Link link{};
  link.kind = LinkKind::kRescale;
  link.quantizer = quantizer;
  link.table.assign(table_size, 0);
  link.summands.assign(table_size, 0);
  // The same, of integers that need no quantizing any more.
  Requantization folded;
  folded.result = how.result;
  folded.last.low = how.last.low;
  folded.last.high = how.last.high;
  folded.links = {link};
  Quantizer& of_integers = folded.links[0].quantizer;
  of_integers.divisor = of_integers.below = of_integers.above = 1;
  std::vector<float>& slopes = folded.links[0].table;
  std::vector<float>& summands = folded.links[0].summands;

  const int32_t first = quantizer.low - quantizer.zero_point;
  const int32_t last = quantizer.high - quantizer.zero_point;
  if (first > last) return;
  Results expected(first, last, how.result), found(first, last, how.result);
  for (int64_t column = 0; column < columns; column += kSomeColumns) {
    const int64_t some = std::min(kSomeColumns, columns - column);
    expected.Compute(behind, quantizer.zero_point - dequantizer.zero_point, column, some);
    for (int64_t c = 0; c < some; ++c) {
      const auto at = static_cast<size_t>(column + c);
      const Line line = LineOf(how, round, at);
      slopes[at] = static_cast<float>(line.slope);
      summands[at] = static_cast<float>(line.summand);
    }
    found.Compute(folded, /*shift=*/0, column, some);
    bool has_others = false;
    for (int64_t c = 0; c < some; ++c) {
      if (AreEqual(expected, found, c)) continue;
      has_others = true;
      const auto at = static_cast<size_t>(column + c);
      const Line line = {slopes[at], summands[at]};
      summands[at] = static_cast<float>(MiddleSummand(expected, c, how.last, line));
    }
    if (!has_others) continue;
    found.Compute(folded, /*shift=*/0, column, some);
    for (int64_t c = 0; c < some; ++c) {
      if (!AreEqual(expected, found, c)) return;
    }
  }
  link.table = std::move(slopes);
  link.summands = std::move(summands);
  how.last = folded.last;
  how.links.resize(round);
  how.links.push_back(std::move(link));
}

}  // namespace onnxifi::integer
