// SPDX-License-Identifier: Apache-2.0
//
// Printable: what a terminal would obey is spelled out, and nothing else.

#include "client/printable.h"

#include <gtest/gtest.h>

namespace onnxifi::client {
namespace {

TEST(Printable, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("conv\x1b[2Jname\r"), "conv\\x1b[2Jname\\x0d");
  EXPECT_EQ(Printable(std::string_view("a\0b\x7f", 4)), "a\\x00b\\x7f");
  EXPECT_EQ(Printable("csi \xc2\x9b"
                      "31m"),
            "csi \\x9b31m");
}

TEST(Printable, LeavesAllOtherText) {
  const std::string text = "node 'größe/畳み込み'\n\tµs, 50 °C\xc2\xa0.";
  EXPECT_EQ(Printable(text), text);
  // The first byte of a character that is cut off.
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

}  // namespace
}  // namespace onnxifi::client
