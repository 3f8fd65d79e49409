// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/testing/emulated/kernel_text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace emulated {
namespace {

bool IsOfName(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

size_t SkipSpace(const std::string& text, size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

std::string NameAt(const std::string& text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsOfName(text[end])) ++end;
  return text.substr(at, end - at);
}

// The place of the word from `at` on; npos if there is none.
size_t FindWord(const std::string& text, const std::string& word, size_t at) {
  for (at = text.find(word, at); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !IsOfName(text[at - 1]);
    const size_t end = at + word.size();
    if (begins && (end == text.size() || !IsOfName(text[end]))) return at;
  }
  return at;
}

// Behind the parenthesis that closes the one at `at`.
size_t Close(const std::string& text, size_t at) {
  int depth = 0;
  bool is_quoted = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '"' && text[at - 1] != '\\') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

bool IsInDirective(const std::string& text, size_t at) {
  const size_t line = text.rfind('\n', at);
  const size_t first = SkipSpace(text, line == std::string::npos ? 0 : line + 1);
  return first < text.size() && text[first] == '#';
}

// A number, or a macro of one.
unsigned NumberOf(const std::string& source, const std::string& text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
    return static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 0));
  }
  const size_t at = text.empty() ? std::string::npos : source.find("#define " + text + " ");
  if (at == std::string::npos) return 1024;
  const unsigned value =
      static_cast<unsigned>(std::strtoul(source.c_str() + at + 9 + text.size(), nullptr, 0));
  return value == 0 ? 1024 : value;
}

// Of what arrays in items' own memory take, which is registers as long as there are some: those of
// numbers of elements, as in "float sums[4][8]". What is shared, constant or elsewhere is left out.
unsigned WordsOfArrays(const std::string& source) {
  constexpr std::pair<const char*, unsigned> kTypes[] = {
      {"float", 1}, {"int", 1},    {"unsigned", 1}, {"f32", 1}, {"i32", 1},
      {"u32", 1},   {"double", 2}, {"f64", 2},      {"i64", 2}, {"u64", 2}};
  unsigned all = 0;
  for (const auto& [type, type_words] : kTypes) {
    for (size_t at = FindWord(source, type, 0); at != std::string::npos;
         at = FindWord(source, type, at + 1)) {
      const size_t statement = source.find_last_of(";{}\n", at) + 1;
      const std::string before = source.substr(statement, at - statement);
      if (before.find_first_not_of(' ') != std::string::npos) continue;
      const size_t name = SkipSpace(source, at + std::string(type).size());
      size_t next = name + NameAt(source, name).size();
      unsigned words = type_words;
      bool is_array = false;
      while (next > name && next < source.size() && source[next] == '[') {
        const std::string extent = NameAt(source, next + 1);
        if (extent.empty() || std::isdigit(static_cast<unsigned char>(extent[0])) == 0) break;
        words *= NumberOf(source, extent);
        is_array = true;
        next = SkipSpace(source, next + 1 + extent.size());
        if (next < source.size() && source[next] == ']') next = SkipSpace(source, next + 1);
      }
      if (is_array) all += words;
    }
  }
  return all;
}

// What is left to an item of blocks of so many: registers are given to warps, eight at a time.
unsigned RegistersFor(unsigned items) {
  const unsigned in_warps = (std::max(items, 1U) + 31) / 32 * 32;
  return kDeviceRegisters / in_warps / 8 * 8;
}

// extern __shared__ [__align__(n)] TYPE NAME[]; -> TYPE* const NAME = ...;
void TranslateDynamicShared(std::string* text) {
  for (size_t at = FindWord(*text, "extern", 0); at != std::string::npos;
       at = FindWord(*text, "extern", at + 1)) {
    size_t begin = SkipSpace(*text, at + 6);
    if (NameAt(*text, begin) != "__shared__") continue;
    begin = SkipSpace(*text, begin + 10);
    if (NameAt(*text, begin) == "__align__") begin = SkipSpace(*text, Close(*text, begin + 9));
    const size_t end = text->find('[', begin);
    const size_t behind = text->find(';', begin);
    if (end == std::string::npos || behind == std::string::npos) return;
    size_t name_end = end;
    while (std::isspace(static_cast<unsigned char>((*text)[name_end - 1])) != 0) --name_end;
    size_t name = name_end;
    while (IsOfName((*text)[name - 1])) --name;
    const std::string type = text->substr(begin, name - begin) + "*";
    text->replace(at, behind - at,
                  type + " const " + text->substr(name, name_end - name) + " = (" + type +
                      ")emulated_dynamic_shared");
  }
}

// Behind the quotation mark that ends what the one at `at` begins.
size_t CloseQuotes(const std::string& text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// asm("a.b.c ..." : "+f"(x) : "r"(y)) -> ptx_a_b_c(x, y)
void TranslateInstructions(std::string* text) {
  for (size_t at = FindWord(*text, "asm", 0); at != std::string::npos;
       at = FindWord(*text, "asm", at + 1)) {
    size_t begin = SkipSpace(*text, at + 3);
    if (NameAt(*text, begin) == "volatile") begin = SkipSpace(*text, begin + 8);
    if (begin >= text->size() || (*text)[begin] != '(') continue;
    const size_t behind = Close(*text, begin);
    size_t next = SkipSpace(*text, begin + 1);
    std::string call = "ptx_";
    for (size_t k = next + 1; k < behind && (IsOfName((*text)[k]) || (*text)[k] == '.'); ++k) {
      call += (*text)[k] == '.' ? '_' : (*text)[k];
    }
    call += '(';
    // A text may be written in pieces.
    while (next < behind && (*text)[next] == '"') next = SkipSpace(*text, CloseQuotes(*text, next));
    for (bool is_first = true; next < behind;) {
      const size_t constraint = text->find('"', next);
      if (constraint == std::string::npos || constraint >= behind) break;
      const size_t open = SkipSpace(*text, CloseQuotes(*text, constraint));
      if ((*text)[open] != '(') break;  // what else it changes
      next = Close(*text, open);
      call += (is_first ? "" : ", ") + text->substr(open + 1, next - open - 2);
      is_first = false;
    }
    text->replace(at, behind - at, call + ')');
  }
}

}  // namespace

std::vector<KernelEntry> FindKernels(const std::string& source, unsigned most_registers) {
  constexpr unsigned kForTheRest = 32;
  const unsigned wanted = kForTheRest + WordsOfArrays(source);
  std::vector<KernelEntry> kernels;
  for (size_t at = FindWord(source, "__global__", 0); at != std::string::npos;
       at = FindWord(source, "__global__", at + 1)) {
    if (IsInDirective(source, at)) continue;
    KernelEntry kernel;
    unsigned most = std::min(most_registers, kMaxRegisters);
    size_t next = at + 10;
    for (;;) {
      next = SkipSpace(source, next);
      const std::string name = NameAt(source, next);
      if (name.empty()) break;
      const size_t behind = SkipSpace(source, next + name.size());
      if (behind >= source.size() || source[behind] != '(') {
        next = behind;
        continue;
      }
      if (name == "__launch_bounds__") {
        kernel.most_items = NumberOf(source, NameAt(source, SkipSpace(source, behind + 1)));
        most = std::min(most, RegistersFor(kernel.most_items));
      } else if (name == "__maxnreg__") {
        most = std::min(most, NumberOf(source, NameAt(source, SkipSpace(source, behind + 1))));
      } else if (name != "__attribute__" && name != "__align__") {
        kernel.name = name;
        break;
      }
      next = Close(source, behind);
    }
    kernel.registers = std::min(wanted, most);
    const bool is_known =
        std::any_of(kernels.begin(), kernels.end(),
                    [&](const KernelEntry& known) { return known.name == kernel.name; });
    if (!kernel.name.empty() && !is_known) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::string Translate(const std::string& source) {
  std::string text = source;
  TranslateDynamicShared(&text);
  TranslateInstructions(&text);
  return text;
}

}  // namespace emulated
