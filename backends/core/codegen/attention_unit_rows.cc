// SPDX-License-Identifier: Apache-2.0
//
// Attention of many queries by matrix units that multiply operands of 16 bits.

#include "backends/core/codegen/attention_unit_rows.h"

#include <algorithm>
#include <string>
#include <vector>

namespace onnxifi::codegen {

void UnitRowsWriter::PlaceItem() {
  constexpr int kWarp = 32;
  constexpr int kWarpRows = 16;
  writer_.Line("const int warp_row = LANE / ", kWarp, " * ", kWarpRows, ";");
  writer_.Line("const int of_eight = LANE % ", kWarp, " / 4;");
  writer_.Line("const int of_four = LANE % 4;");
}

void UnitRowsWriter::ShareScores() {
  writer_.Open("UNROLL for (int n = 0; n < ", kKeys / kUnitColumns, "; ++n)");
  for (int k = 0; k < 4; ++k) {
    writer_.Line("weights[(n * ", kUnitColumns, " + of_four * 2 + ", k % 2, ") * ", kPitch,
                 " + warp_row + of_eight + ", k / 2 * 8, "] = scores[n * 4 + ", k, "];");
  }
  writer_.Close();
}

void UnitRowsWriter::ShareSums(int first) {
  writer_.Open("UNROLL for (int n = 0; n < ", kRows / kUnitColumns, "; ++n)");
  for (int k = 0; k < 4; ++k) {
    writer_.Line("weights[(warp_row + of_eight + ", k / 2 * 8, ") * ", kPitch, " + n * ",
                 kUnitColumns, " + of_four * 2 + ", k % 2, "] = sums[", first / 2, " + n * 4 + ", k,
                 "];");
  }
  writer_.Close();
}

void UnitRowsWriter::WriteShrinking() {
  writer_.Open("UNROLL for (int n = 0; n < ", sums_, "; ++n)");
  writer_.Line("sums[n] *= shrinks[warp_row + of_eight + n / 2 % 2 * 8];");
  writer_.Close();
}

namespace {

constexpr int kUnitWords = 8;   // of an instruction's depth
constexpr int kUnitKeys = 16;   // by which values are added up
constexpr int kUnitDepth = 64;  // that is in shared memory at a time
constexpr int kWordPitch = kUnitDepth / 2 + 4;
constexpr int kPairs = kAttentionManyRowKeys / 2;

// A weight is the sum of two numbers of 16 bits, a large one that is never all of it and a small
// one, so that sums are as of float32; of float16 weights are scaled, so that the small ones are
// not lost. An infinite value times a weight below 2^-27 of the largest is no number.
class HalfRowsWriter final : public UnitRowsWriter {
 public:
  HalfRowsWriter(Writer& writer, const Source& source, const AttentionBlock& block, bool has_parts)
      : UnitRowsWriter(writer, source, block, has_parts), type_(source.step.reads[0].type) {}

 private:
  bool is_half() const { return type_ == tensor::ElementType::kFloat16; }

  void ShareOperands() override {
    writer_.Share(Text("u32 queries[", kRows * kWordPitch, "]"));
    // Of K, by key, then words of the depth; or of V, by pairs of keys, then values.
    writer_.Share(Text("u32 tile[", std::max(kKeys * kWordPitch, kPairs * value_pitch_), "]"));
  }

  // Calls the unit for the sums from `sums` on.
  void Multiply(const std::string& sums, const std::string& a, const std::string& b0,
                const std::string& b1) {
    std::string arguments;
    for (int n = 0; n < 4; ++n) arguments += Text(sums, " + ", n, "], ");
    for (int n = 0; n < 4; ++n) arguments += Text(a, "[", n, "], ");
    writer_.Line(is_half() ? "MATRIX_f16(" : "MATRIX_bf16(", arguments, b0, ", ", b1, ");");
  }

  // Brings words of an operand whose depth is its fast axis.
  void BringWords(int operand, const std::string& row_begin, const std::string& row_end,
                  const std::string& array) {
    constexpr int kRowWords = kUnitDepth / 8;  // of 16 bytes
    constexpr int kRounds = kRows * kRowWords / kAttentionUnitItems;
    const std::string load = writer_.NewName("l");
    const std::string words = writer_.NewName("s");
    writer_.Line("u32x4 ", words, "[", kRounds, "];");
    const auto open = [&] {
      writer_.Open("UNROLL for (int ", load, " = 0; ", load, " < ", kRounds, "; ++", load, ")");
      return writer_.Declare("int", Text("LANE + ", load, " * ", kAttentionUnitItems));
    };
    std::string n = open();
    writer_.Line(words, "[", load, "] = MAKE4(u32, 0u, 0u, 0u, 0u);");
    const std::string row = writer_.Declare("idx", Text(row_begin, " + ", n, " / ", kRowWords));
    const std::string depth = writer_.Declare("idx", Text("depth + ", n, " % ", kRowWords, " * 8"));
    writer_.Open("if (", row, " < ", row_end, " && ", depth, " < ", width_, ")");
    LoadWord(operand, operand == 0 ? AtQuery(row, depth) : At(depth, row),
             Text(words, "[", load, "]"));
    writer_.Close();
    writer_.Close();
    n = open();
    for (int part = 0; part < 4; ++part) {
      writer_.Line(array, "[", n, " / ", kRowWords, " * ", kWordPitch, " + ", n, " % ", kRowWords,
                   " * 4 + ", part, "] = ", words, "[", load, "].", std::string(1, "xyzw"[part]),
                   ";");
    }
    writer_.Close();
  }
  void LoadWord(int operand, const std::vector<std::string>& at, const std::string& word) {
    const std::string buffer = writer_.UseBuffer(/*is_write=*/false, operand, type_);
    const std::string index = WriteIndex(writer_, source_.step, /*is_write=*/false, operand, at);
    writer_.Line(word, " = LOAD_WORD(", buffer, ", ", index, ");");
  }

  void WriteScores() override {
    writer_.Line("f32 scores[", kScores, "];");
    writer_.Line("UNROLL for (int n = 0; n < ", kScores, "; ++n) scores[n] = 0;");
    writer_.Open("for (idx depth = 0; depth < ", width_, "; depth += ", kUnitDepth, ")");
    writer_.Open("if (", width_, " > ", kUnitDepth, " || first_key == ", first_, ")");
    BringWords(0, first_row_, shared_rows_, "queries");
    writer_.Close();
    BringWords(1, "first_key", end_, "tile");
    writer_.Line("BARRIER;");
    writer_.Open("for (int k = 0; k < ", kUnitDepth / 2, "; k += ", kUnitWords, ")");
    writer_.Line("u32 a[4];");
    for (int n = 0; n < 4; ++n) {
      writer_.Line("a[", n, "] = queries[(warp_row + of_eight + ", n % 2 * 8, ") * ", kWordPitch,
                   " + k + of_four + ", n / 2 * 4, "];");
    }
    writer_.Open("UNROLL for (int n = 0; n < ", kKeys / kUnitColumns, "; ++n)");
    const std::string key = Text("(n * ", kUnitColumns, " + of_eight) * ", kWordPitch);
    const std::string b0 = writer_.Declare("u32", Text("tile[", key, " + k + of_four]"));
    const std::string b1 = writer_.Declare("u32", Text("tile[", key, " + k + of_four + 4]"));
    Multiply("scores[n * 4", "a", b0, b1);
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
    writer_.Close();
  }

  // Words of two neighbouring keys each, so that an instruction finds its depth in them.
  void BringValues() {
    const int row_words = block_.columns / 8;
    const int rounds = kPairs * row_words / kAttentionUnitItems;
    const std::string load = writer_.NewName("l");
    writer_.Line("u32x4 even[", rounds, "];");
    writer_.Line("u32x4 odd[", rounds, "];");
    const auto open = [&] {
      writer_.Open("UNROLL for (int ", load, " = 0; ", load, " < ", rounds, "; ++", load, ")");
      return writer_.Declare("int", Text("LANE + ", load, " * ", kAttentionUnitItems));
    };
    std::string n = open();
    const std::string key =
        writer_.Declare("idx", Text("first_key + ", n, " / ", row_words, " * 2"));
    const std::string value =
        writer_.Declare("idx", Text(first_value_, " + ", n, " % ", row_words, " * 8"));
    for (const char* const half : {"even", "odd"}) {
      const std::string own = half[0] == 'e' ? key : Text(key, " + 1");
      writer_.Line(half, "[", load, "] = MAKE4(u32, 0u, 0u, 0u, 0u);");
      writer_.Open("if (", own, " < ", end_, " && ", value, " < ", values_, ")");
      LoadWord(2, At("(" + own + ")", value), Text(half, "[", load, "]"));
      writer_.Close();
    }
    writer_.Close();
    n = open();
    for (int part = 0; part < 4; ++part) {
      const std::string a = Text("even[", load, "].", std::string(1, "xyzw"[part]));
      const std::string b = Text("odd[", load, "].", std::string(1, "xyzw"[part]));
      const std::string at = Text("tile[", n, " / ", row_words, " * ", value_pitch_, " + ", n,
                                  " % ", row_words, " * 8 + ");
      writer_.Line(at, 2 * part, "] = (", a, " & 0xffffu) | (", b, " << 16);");
      writer_.Line(at, 2 * part + 1, "] = (", a, " >> 16) | (", b, " & 0xffff0000u);");
    }
    writer_.Close();
  }

  void WriteSums() override {
    using tensor::ElementType;
    BringValues();
    writer_.Line("BARRIER;");
    WriteShrinking();
    writer_.Open("for (int k = 0; k < ", kKeys, "; k += ", kUnitKeys, ")");
    writer_.Line("u32 large[4];");
    writer_.Line("u32 small[4];");
    writer_.Open("UNROLL for (int n = 0; n < 4; ++n)");
    for (const int half : {0, 1}) {
      const std::string weight = Text("weight", half);
      const std::string code = Text("code", half);
      const std::string rest = Text("rest", half);
      writer_.Line("const f32 ", weight, " = weights[(k + of_four * 2 + n / 2 * 8 + ", half, ") * ",
                   kPitch, " + warp_row + of_eight + n % 2 * 8]",
                   is_half() ? " * FROM_BITS_f32(0x46800000u)" : "", ";");  // 2^14
      // Less by more than a rounding.
      writer_.Line("const f32 most", half, " = ", weight, " * FROM_BITS_f32(",
                   is_half() ? "0x3f7fc000u" : "0x3f7e0000u", ");");
      writer_.Line("const u16 ", code, " = ",
                   WriteCast(writer_, ElementType::kFloat32, type_, Text("most", half)), ";");
      writer_.Line("const f32 less", half, " = ",
                   WriteCast(writer_, type_, ElementType::kFloat32, code), ";");
      writer_.Line("const f32 left", half, " = ", weight, " - less", half, ";");
      writer_.Line("const u16 ", rest, " = ",
                   WriteCast(writer_, ElementType::kFloat32, type_, Text("left", half)), ";");
    }
    writer_.Line("large[n] = AS(u32, code0) | AS(u32, code1) << 16;");
    writer_.Line("small[n] = AS(u32, rest0) | AS(u32, rest1) << 16;");
    writer_.Close();
    writer_.Open("UNROLL for (int n = 0; n < ", block_.columns / kUnitColumns, "; ++n)");
    const std::string at =
        Text("(k / 2 + of_four) * ", value_pitch_, " + n * ", kUnitColumns, " + of_eight");
    const std::string b0 = writer_.Declare("u32", Text("tile[", at, "]"));
    const std::string b1 = writer_.Declare("u32", Text("tile[", at, " + ", 4 * value_pitch_, "]"));
    Multiply("sums[n * 4", "large", b0, b1);
    Multiply("sums[n * 4", "small", b0, b1);
    writer_.Close();
    writer_.Close();
    writer_.Line("BARRIER;");
  }

  std::string Unscaled(const std::string& sum) const override {
    return is_half() ? Text("(", sum, " * FROM_BITS_f32(0x38800000u))") : sum;  // 2^-14
  }

  const tensor::ElementType type_;
};

}  // namespace

Launch WriteAttentionByUnits(Writer& writer, const Source& source, const AttentionBlock& block,
                             bool has_parts) {
  return HalfRowsWriter(writer, source, block, has_parts).Write();
}

}  // namespace onnxifi::codegen
