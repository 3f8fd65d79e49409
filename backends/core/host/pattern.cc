// SPDX-License-Identifier: Apache-2.0
//
// Pattern: PCRE2's breadth-first matcher, which needs no stack and meets no text on which it takes
// exponential time; what PCRE2 has beyond RE2 is refused beforehand.

#include "backends/core/host/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <vector>

namespace onnxifi::host {
namespace {

using base::Code;
using base::Status;

struct ReleaseMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string Message(int error) {
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Constructs that RE2 does not know, by how they begin after "(" and after "\".
constexpr std::string_view kGroups[] = {"?=", "?!",  "?<=", "?<!", "?>", "?|",  "?(", "?R",
                                        "?&", "?P>", "?P=", "?C",  "?+", "?-1", "?'", "*"};
constexpr std::string_view kEscapes = "123456789gkKGZXRHhNVuU";

// What of the pattern RE2 would refuse and PCRE2 takes; empty if there is nothing.
std::string FindForeign(std::string_view text) {
  bool is_in_class = false;
  for (size_t k = 0; k < text.size(); ++k) {
    const std::string_view rest = text.substr(k + 1);
    if (text[k] == '\\') {
      if (rest.starts_with('Q')) {
        const size_t end = text.find("\\E", k);
        if (end == std::string_view::npos) return {};
        k = end + 1;
        continue;
      }
      if (!is_in_class && !rest.empty() && kEscapes.find(rest[0]) != std::string_view::npos) {
        return std::string(text.substr(k, 2));
      }
      ++k;
    } else if (is_in_class) {
      if (rest.empty() || text[k] == ']') is_in_class = false;
    } else if (text[k] == '[') {
      is_in_class = true;
      // A bracket that closes at once is one of the class.
      if (rest.starts_with('^')) ++k;
      if (text.substr(k + 1).starts_with(']')) ++k;
    } else if (text[k] == '(') {
      for (const std::string_view group : kGroups) {
        if (rest.starts_with(group)) return "(" + std::string(group);
      }
      const bool is_recursion =
          rest.size() > 1 && rest[0] == '?' && rest[1] >= '0' && rest[1] <= '9';
      if (is_recursion) return "(" + std::string(rest.substr(0, 2));
    } else if (rest.starts_with('+') &&
               (text[k] == '+' || text[k] == '*' || text[k] == '?' || text[k] == '}')) {
      return std::string(text.substr(k, 2));
    }
  }
  return {};
}

}  // namespace

void Pattern::Release::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

base::Result<Pattern> Pattern::Compile(const std::string& text) {
  if (const std::string foreign = FindForeign(text); !foreign.empty()) {
    return Status(Code::kInvalidModel,
                  "Pattern '" + text + "' uses '" + foreign + "', which RE2's syntax has not.");
  }
  int error = 0;
  PCRE2_SIZE position = 0;
  pcre2_code* code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE, &error,
      &position, /*ccontext=*/nullptr);
  if (code == nullptr) {
    return Status(Code::kInvalidModel, "Pattern '" + text + "' is at fault at byte " +
                                           std::to_string(position) + ": " + Message(error) + ".");
  }
  return Pattern(code);
}

base::Result<bool> Pattern::MatchesWhole(std::string_view text) const {
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<Match> match, Run(text, 0, PCRE2_ANCHORED));
  return match && match->end == text.size();
}

base::Result<std::optional<Pattern::Match>> Pattern::Find(std::string_view text,
                                                          size_t start) const {
  return Run(text, start, PCRE2_NO_UTF_CHECK);
}

base::Result<std::optional<Pattern::Match>> Pattern::Run(std::string_view text, size_t start,
                                                         unsigned options) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, ReleaseMatch> data(
      pcre2_match_data_create(/*ovecsize=*/1, /*gcontext=*/nullptr));
  if (data == nullptr) return Status(Code::kNoSystemMemory, "There is no memory for a match.");
  // Grows with the number of states that are alive at once, which the pattern bounds.
  constexpr size_t kMaxStates = size_t{1} << 22;
  for (size_t size = 1024; size <= kMaxStates; size *= 8) {
    std::vector<int> workspace(size);
    const int found = pcre2_dfa_match(
        code, reinterpret_cast<PCRE2_SPTR>(text.data() != nullptr ? text.data() : ""), text.size(),
        start, options, data.get(), /*mcontext=*/nullptr, workspace.data(), workspace.size());
    // The longest of all matches comes first.
    if (found >= 0) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
      return std::optional(Match{ends[0], ends[1]});
    }
    const bool is_no_utf8 = found <= PCRE2_ERROR_UTF8_ERR1 && found >= PCRE2_ERROR_UTF8_ERR21;
    if (found == PCRE2_ERROR_NOMATCH || is_no_utf8) return std::optional<Match>();
    if (found != PCRE2_ERROR_DFA_WSSIZE) {
      return Status(Code::kNoSystemResources,
                    "A pattern cannot be matched: " + Message(found) + ".");
    }
  }
  return Status(Code::kNoSystemResources,
                "A pattern keeps more than " + std::to_string(kMaxStates) +
                    " states alive at once, the largest number supported.");
}

}  // namespace onnxifi::host
