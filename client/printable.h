// SPDX-License-Identifier: Apache-2.0
//
// Printable: text with names out of a model or plugin, as it may go to a terminal.

#ifndef ONNXIFI_CLIENT_PRINTABLE_H_
#define ONNXIFI_CLIENT_PRINTABLE_H_

#include <string>
#include <string_view>

namespace onnxifi::client {

// The text with control characters spelled out ("\x1b"), so that no name moves the cursor, changes
// colours or hides a line. Newlines, tabs and all other characters of UTF-8 stay.
std::string Printable(std::string_view text);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_PRINTABLE_H_
