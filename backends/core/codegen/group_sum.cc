// SPDX-License-Identifier: Apache-2.0
//
// GroupSum: each round an item adds what the item twice as far before it has, so that 256 items
// have their sums after eight rounds.

#include "backends/core/codegen/group_sum.h"

namespace onnxifi::codegen {

GroupSum WriteGroupSum(Writer& writer, std::string_view type, const std::string& value, int items,
                       const std::string& shared) {
  const std::string summand =
      writer.Declare("int", Text("LANE < ", items, " ? LANE : ", items - 1));
  const std::string is_summand = writer.Declare("bool", Text("LANE < ", items));
  writer.Line("BARRIER;");
  writer.Line("if (", is_summand, ") ", shared, "[LANE] = ", value, ";");
  writer.Line("BARRIER;");
  const std::string distance = writer.NewName("j");
  writer.Open("for (int ", distance, " = 1; ", distance, " < ", items, "; ", distance, " *= 2)");
  const std::string other =
      writer.Declare(type, Text(is_summand, " && LANE >= ", distance, " ? ", shared, "[LANE - ",
                                distance, "] : AS(", type, ", 0)"));
  writer.Line("BARRIER;");
  writer.Line("if (", is_summand, ") ", shared, "[LANE] += ", other, ";");
  writer.Line("BARRIER;");
  writer.Close();
  GroupSum sum;
  sum.before = writer.Declare(type, Text(shared, "[", summand, "] - ", value));
  sum.all = writer.Declare(type, Text(shared, "[", items - 1, "]"));
  return sum;
}

}  // namespace onnxifi::codegen
