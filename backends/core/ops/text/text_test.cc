// SPDX-License-Identifier: Apache-2.0
//
// Tensors of strings: operators on their text, those that only move or compare elements, and the
// tables of ai.onnx.ml, against what plain loops over std::string say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using tensor::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;
using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

struct TextNode {
  std::string op_type;
  int version = 0;
  Attributes attributes = {};
  std::string domain = {};
  int outputs = 1;
};

// One node on these inputs, whose extents are symbols until it runs if `is_symbolic`.
base::Result<std::vector<Value>> RunNode(const TextNode& description,
                                         const std::vector<Tensor>& inputs,
                                         bool is_symbolic = false) {
  graph::Graph graph;
  graph::Node node{.op_type = description.op_type,
                   .domain = description.domain,
                   .since_version = description.version};
  node.attributes = description.attributes;
  std::vector<Value> values;
  for (const Tensor& input : inputs) {
    graph::Type type{.kind = graph::Type::Kind::kTensor, .element = input.type()};
    type.extents.emplace();
    for (const int64_t extent : input.extents()) {
      type.extents->push_back({is_symbolic ? -1 : extent, ""});
    }
    node.inputs.push_back(graph.AddValue(
        {.name = "x" + std::to_string(graph.values.size()), .type = std::move(type)}));
    values.emplace_back(input);
  }
  graph.inputs = node.inputs;
  for (int k = 0; k < description.outputs; ++k) {
    node.outputs.push_back(graph.AddValue({.name = "y" + std::to_string(k)}));
  }
  graph.outputs = node.outputs;
  graph.nodes.push_back(std::move(node));
  return RunGraphOnValues(graph, values);
}

Tensor Strings(Extents extents, Texts texts) {
  return Tensor::FromStrings(std::move(extents), std::move(texts));
}

Tensor Int64s(Extents extents, const std::vector<int64_t>& numbers) {
  return Tensor::FromValues<int64_t>(ElementType::kInt64, std::move(extents), numbers);
}

Texts RandomTexts(std::mt19937& random, size_t count) {
  Texts texts(count);
  for (std::string& text : texts) {
    for (unsigned length = random() % 3; length > 0; --length) {
      text += static_cast<char>('a' + random() % 2);
    }
  }
  return texts;
}

TEST(StringConcatTest, BroadcastsLikeNumbers) {
  for (const bool is_symbolic : {false, true}) {
    const auto result = RunNode(
        {"StringConcat", 20},
        {Strings({2, 1}, {"a", "b"}), Strings({3}, {"x", "", std::string("\0", 1)})}, is_symbolic);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].tensor.extents(), (Extents{2, 3}));
    EXPECT_EQ((*result)[0].tensor.strings(),
              (Texts{"ax", "a", std::string("a\0", 2), "bx", "b", std::string("b\0", 2)}));
  }
  EXPECT_FALSE(RunNode({"StringConcat", 20}, {Strings({2}, {"a", "b"}), Strings({3}, {"", "", ""})},
                       /*is_symbolic=*/true)
                   .ok());
}

TEST(StringSplitTest, SplitsAsPythonDoes) {
  struct Case {
    std::string text;
    std::string delimiter;
    int64_t most;
    Texts parts;
  };
  const Case cases[] = {
      {"a  b\tc", "", -1, {"a", "b", "c"}},
      {"  a b ", "", -1, {"a", "b"}},
      {"  a  b c ", "", 1, {"a", "b c "}},
      {"  a  ", "", 0, {"a  "}},
      {"", "", -1, {}},
      {"   ", "", -1, {}},
      {"", ",", -1, {""}},
      {"a,,b", ",", -1, {"a", "", "b"}},
      {",a,", ",", -1, {"", "a", ""}},
      {"a,b,c", ",", 1, {"a", "b,c"}},
      {"a,b", ",", 0, {"a,b"}},
      {"aaa", "aa", -1, {"", "a"}},
      {"x--y-z", "--", -1, {"x", "y-z"}},
  };
  for (const Case& one : cases) {
    Attributes attributes = {{"delimiter", one.delimiter}};
    if (one.most >= 0) attributes.emplace("maxsplit", one.most);
    const auto result = RunNode({"StringSplit", 20, attributes, "", 2},
                                {Strings({1, 2}, {one.text, "p,q r--s aa t"})});
    ASSERT_TRUE(result.ok()) << result.status().Text();
    const Texts& all = (*result)[0].tensor.strings();
    const int64_t width = (*result)[0].tensor.extents().back();
    EXPECT_EQ((*result)[0].tensor.extents(), (Extents{1, 2, width}));
    Texts padded = one.parts;
    padded.resize(static_cast<size_t>(width));
    EXPECT_EQ(Texts(all.begin(), all.begin() + width), padded) << "'" << one.text << "'";
    EXPECT_EQ((*result)[1].tensor.values<int64_t>()[0], static_cast<int64_t>(one.parts.size()));
  }
  const auto none = RunNode({"StringSplit", 20, {}, "", 2}, {Strings({0, 2}, {})});
  ASSERT_TRUE(none.ok()) << none.status().Text();
  EXPECT_EQ((*none)[0].tensor.extents(), (Extents{0, 2, 0}));
}

TextNode Tokenizer(Attributes attributes) {
  for (const auto& [name, number] : {std::pair("mark", 0), std::pair("mincharnum", 1)}) {
    attributes.emplace(name, int64_t{number});
  }
  attributes.emplace("pad_value", std::string("#"));
  return {"Tokenizer", 1, std::move(attributes), "com.microsoft"};
}

TEST(TokenizerTest, FindsTokensOfEveryRule) {
  struct Case {
    Attributes attributes;
    Texts tokens;  // of "ab, cde" and of "x"
  };
  const Case cases[] = {
      {{{"tokenexp", std::string("[a-z]+")}}, {"ab", "cde", "x", "#"}},
      {{{"tokenexp", std::string("[a-z]+")}, {"mincharnum", int64_t{3}}}, {"cde", "#"}},
      {{{"separators", Texts{",", " "}}}, {"ab", "cde", "x", "#"}},
      {{{"separators", Texts{", "}}, {"mark", int64_t{1}}},
       {"\x02", "ab", "cde", "\x03", "\x02", "x", "\x03", "#"}},
      {{{"separators", Texts{""}}},
       {"a", "b", ",", " ", "c", "d", "e", "x", "#", "#", "#", "#", "#", "#"}},
      {{{"tokenexp", std::string("q")}, {"mark", int64_t{1}}}, {}},
  };
  for (const bool is_symbolic : {false, true}) {
    for (const Case& one : cases) {
      const auto result =
          RunNode(Tokenizer(one.attributes), {Strings({2, 1}, {"ab, cde", "x"})}, is_symbolic);
      ASSERT_TRUE(result.ok()) << result.status().Text();
      const Tensor& tokens = (*result)[0].tensor;
      EXPECT_EQ(tokens.extents(), (Extents{2, 1, static_cast<int64_t>(one.tokens.size()) / 2}));
      EXPECT_EQ(tokens.strings(), one.tokens);
    }
  }
}

TEST(TokenizerTest, SaysWhatIsWrong) {
  const auto sentence = [](Attributes attributes, Texts texts) {
    const auto count = static_cast<int64_t>(texts.size());
    const auto result =
        RunNode(Tokenizer(std::move(attributes)), {Strings({count}, std::move(texts))});
    return result.ok() ? std::string() : result.status().Text();
  };
  const Attributes words = {{"tokenexp", std::string("[a-z]+")}};
  for (const std::string text : {"\xFF", "a\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_THAT(sentence(words, {"ok", text}), HasSubstr("String 1 of input 0 is no UTF-8."));
  }
  EXPECT_EQ(sentence(words, {"\u00E4\u0800\U0010FFFF"}), "");
  EXPECT_THAT(sentence({}, {"a"}), HasSubstr("separators and tokenexp are both missing or empty"));
  EXPECT_THAT(sentence({{"tokenexp", std::string("(")}}, {"a"}), HasSubstr("Pattern '('"));
  EXPECT_THAT(sentence({{"tokenexp", std::string(".")}, {"mincharnum", int64_t{2}}}, {"a"}),
              HasSubstr("mincharnum is 2"));
  EXPECT_THAT(sentence({{"tokenexp", std::string("a")}, {"mincharnum", int64_t{0}}}, {"a"}),
              HasSubstr("mincharnum is 0, below the smallest (1)"));
}

TEST(StringNormalizerTest, DropsStopWordsAndChangesCase) {
  struct Case {
    Attributes attributes;
    Texts expected;
  };
  const Texts given = {"Monday", "monday", "ÄPFEL", "der", "\xFFZ"};
  const auto stop = [](Texts words) { return graph::Attribute(std::move(words)); };
  const Case cases[] = {
      {{}, given},
      {{{"stopwords", stop({"monday"})}}, {"ÄPFEL", "der", "\xFFZ"}},
      {{{"stopwords", stop({"monday"})}, {"is_case_sensitive", int64_t{1}}},
       {"Monday", "ÄPFEL", "der", "\xFFZ"}},
      {{{"stopwords", stop({"äpfel"})}, {"case_change_action", std::string("UPPER")}},
       {"MONDAY", "MONDAY", "DER", "\xFFZ"}},
      {{{"stopwords", stop({"MONDAY", "Monday"})},
        {"is_case_sensitive", int64_t{1}},
        {"case_change_action", std::string("LOWER")}},
       {"monday", "äpfel", "der", "\xFFz"}},
      {{{"stopwords", stop({"MONDAY", "DER", "Äpfel", "\xFFz"})}}, {""}},
  };
  for (const Case& one : cases) {
    for (const Extents& extents : {Extents{5}, Extents{1, 5}}) {
      const auto result =
          RunNode({"StringNormalizer", 10, one.attributes}, {Strings(extents, given)});
      ASSERT_TRUE(result.ok()) << result.status().Text();
      EXPECT_EQ((*result)[0].tensor.strings(), one.expected);
      Extents expected = extents;
      expected.back() = static_cast<int64_t>(one.expected.size());
      EXPECT_EQ((*result)[0].tensor.extents(), expected);
    }
  }
  const auto tall = RunNode({"StringNormalizer", 10}, {Strings({2, 1}, {"a", "b"})});
  EXPECT_EQ(tall.status().code(), Code::kMismatchingShape) << tall.status().Text();
  const auto odd = RunNode({"StringNormalizer", 10, {{"case_change_action", std::string("Title")}}},
                           {Strings({1}, {"a"})});
  EXPECT_EQ(odd.status().code(), Code::kInvalidModel);
  const auto nowhere =
      RunNode({"StringNormalizer", 10, {{"locale", std::string("xx_YY")}}}, {Strings({1}, {"a"})});
  EXPECT_EQ(nowhere.status().code(), Code::kUnsupportedAttribute);
  EXPECT_THAT(nowhere.status().Text(), HasSubstr("'xx_YY.UTF-8' is not installed"));
}

// Operators that move elements, or ask whether they are empty; nothing is the empty text.
TEST(MovedTextTest, MovesAsNumbersDo) {
  const Tensor square = Strings({2, 2}, {"a", "b", "c", "d"});
  for (const bool is_symbolic : {false, true}) {
    const auto upper = RunNode({"Trilu", 14}, {square}, is_symbolic);
    ASSERT_TRUE(upper.ok()) << upper.status().Text();
    EXPECT_EQ((*upper)[0].tensor.strings(), (Texts{"a", "b", "", "d"}));
    const auto lower = RunNode({"Trilu", 14, {{"upper", int64_t{0}}}}, {square}, is_symbolic);
    ASSERT_TRUE(lower.ok()) << lower.status().Text();
    EXPECT_EQ((*lower)[0].tensor.strings(), (Texts{"a", "", "c", "d"}));
    const auto filled =
        RunNode({"NonZero", 13}, {Strings({2, 2}, {"a", "", "c", "d"})}, is_symbolic);
    ASSERT_TRUE(filled.ok()) << filled.status().Text();
    EXPECT_EQ(Numbers((*filled)[0].tensor), (std::vector<double>{0, 1, 1, 0, 0, 1}));
  }
  const auto middle = RunNode({"CenterCropPad", 18}, {square, Int64s({2}, {3, 1})});
  ASSERT_TRUE(middle.ok()) << middle.status().Text();
  EXPECT_EQ((*middle)[0].tensor.strings(), (Texts{"a", "c", ""}));
  const auto cache = RunNode({"TensorScatter", 24}, {Strings({1, 3, 1}, {"a", "b", "c"}),
                                                     Strings({1, 1, 1}, {"x"}), Int64s({1}, {1})});
  ASSERT_TRUE(cache.ok()) << cache.status().Text();
  EXPECT_EQ((*cache)[0].tensor.strings(), (Texts{"a", "x", "c"}));
}

TEST(CastTextTest, GivesEveryNumberBack) {
  std::mt19937_64 random(8);
  const ElementType types[] = {ElementType::kFloat64,  ElementType::kFloat32, ElementType::kFloat16,
                               ElementType::kBfloat16, ElementType::kInt64,   ElementType::kUint64,
                               ElementType::kInt8,     ElementType::kUint16,  ElementType::kBool};
  for (const ElementType type : types) {
    Tensor numbers = *Tensor::Allocate(type, {200});
    for (int64_t k = 0; k < numbers.size_bytes(); ++k) {
      numbers.mutable_data()[k] =
          static_cast<std::byte>(random() % (tensor::IsBool(type) ? 2 : 256));
    }
    const auto texts =
        RunNode({"Cast", 25, {{"to", static_cast<int64_t>(ElementType::kString)}}}, {numbers});
    ASSERT_TRUE(texts.ok()) << texts.status().Text();
    const auto back =
        RunNode({"Cast", 25, {{"to", static_cast<int64_t>(type)}}}, {(*texts)[0].tensor});
    ASSERT_TRUE(back.ok()) << back.status().Text();
    for (int64_t k = 0; k < 200; ++k) {
      const double was = numbers.AsDouble(k);
      const double is = (*back)[0].tensor.AsDouble(k);
      EXPECT_TRUE(was == is || (std::isnan(was) && std::isnan(is)))
          << Name(type) << " " << (*texts)[0].tensor.strings()[static_cast<size_t>(k)];
    }
  }
}

TEST(CastTextTest, ReadsWhatOnnxNames) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<std::string, double> spellings[] = {
      {"3.14", 3.14F},     {"1000", 1000},     {"1e-5", 1e-5F},      {"1E8", 1e8},
      {"+2", 2},           {" 7 ", 7},         {"INF", infinity},    {"+inf", infinity},
      {"-INF", -infinity}, {"1e99", infinity}, {"-1e99", -infinity}, {"1e-99", 0}};
  for (const auto& [text, number] : spellings) {
    const auto result = RunNode({"Cast", 13, {{"to", int64_t{1}}}}, {Strings({}, {text})});
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].tensor.AsDouble(0), number) << text;
  }
  const std::pair<std::string, ElementType> faults[] = {
      {"Hello", ElementType::kFloat32}, {"", ElementType::kFloat64},
      {"1.5", ElementType::kInt32},     {"128", ElementType::kInt8},
      {"-1", ElementType::kUint64},     {"1 2", ElementType::kFloat32},
      {"+-1", ElementType::kInt64}};
  for (const auto& [text, type] : faults) {
    const auto result =
        RunNode({"Cast", 13, {{"to", static_cast<int64_t>(type)}}}, {Strings({2}, {"1", text})});
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), Code::kMismatchingDatatype);
    EXPECT_THAT(result.status().Text(),
                HasSubstr("String 1 ('" + text + "') is no number of " + std::string(Name(type))));
  }
}

TEST(CastTextTest, WritesPlainDigits) {
  const auto result =
      RunNode({"Cast", 13, {{"to", int64_t{8}}}},
              {MakeTensor(ElementType::kFloat32, {4}, {314.15926, 1e-5, -0.5, 1e10})});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_THAT((*result)[0].tensor.strings(),
              ElementsAre("314.15927", "0.00001", "-0.5", "10000000000"));
}

TEST(EqualTextTest, ComparesTextNotPlaces) {
  std::mt19937 random(4);
  const Texts a = RandomTexts(random, 12);
  const Texts b = RandomTexts(random, 4);
  const auto result = RunNode({"Equal", 19}, {Strings({3, 4}, a), Strings({4}, b)});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  for (size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ((*result)[0].tensor.AsInt(static_cast<int64_t>(k)), a[k] == b[k % 4] ? 1 : 0) << k;
  }
}

// What moves numbers moves strings: each operator runs on positions, then on strings, which must
// end where the positions say.
TEST(MovedTextTest, GoesWhereNumbersGo) {
  std::mt19937 random(6);
  Texts texts = RandomTexts(random, 12);
  for (size_t k = 0; k < texts.size(); ++k) texts[k] += std::to_string(k);
  std::vector<int64_t> positions(12);
  for (size_t k = 0; k < positions.size(); ++k) positions[k] = static_cast<int64_t>(k);
  struct Moving {
    TextNode node;
    std::vector<Tensor> others;  // after the first input
    bool takes_two = false;      // the first input again as the second
  };
  const Tensor mask = MakeTensor(ElementType::kBool, {3, 1}, {1, 0, 1});
  const Moving moves[] = {
      {{"Transpose", 21, {{"perm", std::vector<int64_t>{1, 0}}}}, {}},
      {{"Reshape", 21}, {Int64s({2}, {6, 2})}},
      {{"Slice", 13}, {Int64s({1}, {-1}), Int64s({1}, {-13}), Int64s({1}, {1}), Int64s({1}, {-2})}},
      {{"Gather", 13, {{"axis", int64_t{1}}}}, {Int64s({2, 2}, {3, -1, 0, 2})}},
      {{"GatherElements", 13}, {Int64s({1, 4}, {2, 0, -1, 1})}},
      {{"Expand", 13}, {Int64s({3}, {2, 3, 4})}},
      {{"Tile", 13}, {Int64s({2}, {2, 1})}},
      {{"Concat", 13, {{"axis", int64_t{1}}}}, {}, true},
      {{"ReverseSequence", 10, {{"time_axis", int64_t{1}}, {"batch_axis", int64_t{0}}}},
       {Int64s({3}, {4, 2, 1})}},
      {{"Compress", 11, {{"axis", int64_t{0}}}}, {MakeTensor(ElementType::kBool, {3}, {0, 1, 1})}},
  };
  for (const Moving& move : moves) {
    std::vector<Tensor> numbers = {Int64s({3, 4}, positions)};
    std::vector<Tensor> strings = {Strings({3, 4}, texts)};
    for (std::vector<Tensor>* inputs : {&numbers, &strings}) {
      if (move.takes_two) inputs->push_back(inputs->front());
      inputs->insert(inputs->end(), move.others.begin(), move.others.end());
    }
    const auto moved = RunNode(move.node, numbers);
    const auto result = RunNode(move.node, strings);
    ASSERT_TRUE(moved.ok()) << moved.status().Text();
    ASSERT_TRUE(result.ok()) << move.node.op_type << ": " << result.status().Text();
    EXPECT_EQ((*result)[0].tensor.extents(), (*moved)[0].tensor.extents());
    for (int64_t k = 0; k < (*moved)[0].tensor.element_count(); ++k) {
      EXPECT_EQ((*result)[0].tensor.strings()[static_cast<size_t>(k)],
                texts[static_cast<size_t>((*moved)[0].tensor.AsInt(k))])
          << move.node.op_type << " " << k;
    }
  }
  const auto chosen = RunNode({"Where", 16}, {mask, Strings({3, 4}, texts), Strings({1}, {"no"})});
  ASSERT_TRUE(chosen.ok()) << chosen.status().Text();
  for (size_t k = 0; k < texts.size(); ++k) {
    EXPECT_EQ((*chosen)[0].tensor.strings()[k], k / 4 == 1 ? "no" : texts[k]) << k;
  }
}

TEST(MovedTextTest, IsRefusedWhereNumbersAreNeeded) {
  const auto result = RunNode({"Add", 14}, {Strings({1}, {"a"}), Strings({1}, {"b"})});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kUnsupportedDatatype);
  EXPECT_THAT(result.status().Text(), HasSubstr("is a tensor of strings, which Add does not take"));
}

// Counts by going through all places where an n-gram could lie.
std::vector<float> CountByHand(const std::vector<int64_t>& row,
                               const std::vector<std::vector<int64_t>>& grams, int64_t shortest,
                               int64_t longest, int64_t most_skipped) {
  std::vector<float> counts;
  const auto length = static_cast<int64_t>(row.size());
  for (const std::vector<int64_t>& gram : grams) {
    const auto size = static_cast<int64_t>(gram.size());
    float count = 0;
    for (int64_t step = 1; step <= (size == 1 ? 1 : most_skipped + 1); ++step) {
      for (int64_t start = 0; size >= shortest && size <= longest && start < length; ++start) {
        bool fits = true;
        for (int64_t item = 0; item < size; ++item) {
          const int64_t at = start + item * step;
          fits = fits && at < length &&
                 row[static_cast<size_t>(at)] == gram[static_cast<size_t>(item)];
        }
        count += fits ? 1 : 0;
      }
    }
    counts.push_back(count);
  }
  return counts;
}

TEST(TfIdfVectorizerTest, CountsAsByHand) {
  std::mt19937 random(12);
  // One item, then two, then three.
  const std::vector<std::vector<int64_t>> grams = {{0},    {2},       {0, 1},   {1, 1},
                                                   {2, 0}, {0, 1, 2}, {1, 1, 1}};
  const std::vector<int64_t> starts = {0, 2, 8};
  const std::vector<float> weights = {0.5F, 2, 3, 4, 5, 6, 7};
  std::vector<int64_t> pool;
  Texts text_pool;
  for (const auto& gram : grams) {
    for (const int64_t item : gram) {
      pool.push_back(item);
      text_pool.push_back("w" + std::to_string(item));
    }
  }
  for (int round = 0; round < 60; ++round) {
    // Each its own, or several in one.
    const std::vector<int64_t> columns = round % 3 == 0 ? std::vector<int64_t>{6, 0, 3, 0, 2, 5, 6}
                                                        : std::vector<int64_t>{6, 0, 3, 1, 2, 5, 4};
    const int64_t rows = 1 + static_cast<int64_t>(random() % 2);
    const int64_t length = static_cast<int64_t>(random() % 9);
    std::vector<int64_t> items(static_cast<size_t>(rows * length));
    Texts words;
    for (int64_t& item : items) {
      item = static_cast<int64_t>(random() % 3);
      words.push_back("w" + std::to_string(item));
    }
    const int64_t shortest = 1 + static_cast<int64_t>(random() % 3);
    const int64_t longest = shortest + static_cast<int64_t>(random() % 3);
    const auto skipped = static_cast<int64_t>(random() % 4);
    const std::string mode = std::vector<std::string>{"TF", "IDF", "TFIDF"}[random() % 3];
    const bool is_text = random() % 2 == 0;
    Attributes attributes = {{"min_gram_length", shortest}, {"max_gram_length", longest},
                             {"max_skip_count", skipped},   {"mode", mode},
                             {"ngram_counts", starts},      {"ngram_indexes", columns},
                             {"weights", weights}};
    if (is_text) {
      attributes.emplace("pool_strings", text_pool);
    } else {
      attributes.emplace("pool_int64s", pool);
    }
    const Extents extents = rows == 1 ? Extents{length} : Extents{rows, length};
    const auto result =
        RunNode({"TfIdfVectorizer", 9, attributes},
                {is_text ? Strings(extents, words) : Int64s(extents, items)}, random() % 2 == 0);
    ASSERT_TRUE(result.ok()) << result.status().Text();
    EXPECT_EQ((*result)[0].tensor.extents(), rows == 1 ? Extents{7} : (Extents{rows, 7}));
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<float> counts =
          CountByHand({items.begin() + row * length, items.begin() + (row + 1) * length}, grams,
                      shortest, longest, skipped);
      std::vector<float> expected(7);
      for (size_t g = 0; g < grams.size(); ++g) {
        float count = counts[g];
        if (mode == "IDF") count = count > 0 ? weights[g] : 0;
        if (mode == "TFIDF") count *= weights[g];
        expected[static_cast<size_t>(columns[g])] += count;
      }
      for (size_t column = 0; column < expected.size(); ++column) {
        EXPECT_EQ((*result)[0].tensor.AsDouble(row * 7 + static_cast<int64_t>(column)),
                  expected[column])
            << mode << " column " << column << " of round " << round;
      }
    }
  }
}

// A vocabulary of a corpus has many thousand columns, most of them 0 in a row.
TEST(TfIdfVectorizerTest, HasACountAndAResultPerColumn) {
  constexpr int64_t kRows = 3, kWords = 50;
  std::vector<int64_t> pool(kWords);
  std::iota(pool.begin(), pool.end(), 0);
  OneNode node{"TfIdfVectorizer", 9};
  for (const char* name : {"min_gram_length", "max_gram_length"})
    node.attributes[name] = int64_t{1};
  node.attributes["max_skip_count"] = int64_t{0};
  node.attributes["mode"] = std::string("TF");
  node.attributes["ngram_counts"] = std::vector<int64_t>{0};
  node.attributes["ngram_indexes"] = pool;
  node.attributes["pool_int64s"] = pool;
  node.inputs = {Given({kRows, 2}, {7, 7, 1, 2, 49, 60}, ElementType::kInt64)};
  int wide = 0;
  node.rewrite = [&](program::Program& program) {
    for (const program::Buffer& buffer : program.buffers) {
      const tensor::Dim count = tensor::Product(buffer.shape);
      if (count == tensor::Dim(kRows * kWords)) ++wide;
    }
  };
  const auto out = RunOperator(node);
  ASSERT_TRUE(out.ok()) << out.status().Text();
  const std::vector<double> found = Numbers((*out)[0]);
  ASSERT_EQ(found.size(), static_cast<size_t>(kRows * kWords));
  EXPECT_EQ(found[7], 2);
  EXPECT_EQ(found[kWords + 1] + found[kWords + 2] + found[2 * kWords + 49], 3);
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0.0), 5);
  EXPECT_EQ(wide, 2);
}

TEST(LabelEncoderTest, LooksUpWhatIsListed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto to_number = RunNode({"LabelEncoder",
                                  2,
                                  {{"keys_strings", Texts{"a", "b"}},
                                   {"values_int64s", std::vector<int64_t>{5, 6}},
                                   {"default_int64", int64_t{42}}},
                                  "ai.onnx.ml"},
                                 {Strings({2, 2}, {"b", "", "a", "ab"})});
  ASSERT_TRUE(to_number.ok()) << to_number.status().Text();
  EXPECT_THAT(Numbers((*to_number)[0].tensor), ElementsAre(6, 42, 5, 42));
  EXPECT_EQ((*to_number)[0].tensor.extents(), (Extents{2, 2}));
  const auto to_text = RunNode({"LabelEncoder",
                                4,
                                {{"keys_floats", std::vector<float>{0, nan, 2}},
                                 {"values_strings", Texts{"zero", "none", "two"}}},
                                "ai.onnx.ml"},
                               {MakeTensor(ElementType::kFloat32, {4}, {-0.0, nan, 2, 3})});
  ASSERT_TRUE(to_text.ok()) << to_text.status().Text();
  EXPECT_THAT((*to_text)[0].tensor.strings(), ElementsAre("zero", "none", "two", "_Unused"));
  const auto classes =
      RunNode({"LabelEncoder", 1, {{"classes_strings", Texts{"x", "y"}}}, "ai.onnx.ml"},
              {Strings({3}, {"y", "z", "x"})});
  ASSERT_TRUE(classes.ok()) << classes.status().Text();
  EXPECT_THAT(Numbers((*classes)[0].tensor), ElementsAre(1, -1, 0));
  const auto mapped = RunNode({"CategoryMapper",
                               1,
                               {{"cats_strings", Texts{"x", "y"}},
                                {"cats_int64s", std::vector<int64_t>{9, 3}},
                                {"default_string", std::string("?")}},
                               "ai.onnx.ml"},
                              {Int64s({3}, {3, 4, 9})});
  ASSERT_TRUE(mapped.ok()) << mapped.status().Text();
  EXPECT_THAT((*mapped)[0].tensor.strings(), ElementsAre("y", "?", "x"));
}

TEST(LabelEncoderTest, RefusesTablesThatDoNotFit) {
  const std::pair<Attributes, Code> faults[] = {
      {{{"keys_strings", Texts{"a"}}, {"values_int64s", std::vector<int64_t>{5, 6}}},
       Code::kInvalidModel},
      {{{"keys_strings", Texts{"a"}}}, Code::kInvalidModel},
      {{{"keys_strings", Texts{"a"}},
        {"keys_int64s", std::vector<int64_t>{5}},
        {"values_int64s", std::vector<int64_t>{5}}},
       Code::kInvalidModel},
      {{{"keys_int64s", std::vector<int64_t>{5}}, {"values_int64s", std::vector<int64_t>{5}}},
       Code::kMismatchingDatatype},
      {{{"keys_strings", Texts{"a"}},
        {"values_int64s", std::vector<int64_t>{5}},
        {"default_tensor", MakeTensor(ElementType::kFloat32, {1}, {1})}},
       Code::kInvalidModel},
  };
  for (const auto& [attributes, code] : faults) {
    const auto result =
        RunNode({"LabelEncoder", 4, attributes, "ai.onnx.ml"}, {Strings({1}, {"a"})});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().Text();
  }
}

TEST(FeatureTest, ExtractsColumnsAndBinarizes) {
  const auto columns =
      RunNode({"ArrayFeatureExtractor", 1, {}, "ai.onnx.ml"},
              {Strings({2, 3}, {"a", "b", "c", "d", "e", "f"}), Int64s({1, 4}, {2, 0, -1, 1})});
  ASSERT_TRUE(columns.ok()) << columns.status().Text();
  EXPECT_EQ((*columns)[0].tensor.extents(), (Extents{2, 4}));
  EXPECT_THAT((*columns)[0].tensor.strings(), ElementsAre("c", "a", "c", "b", "f", "d", "f", "e"));
  const auto row = RunNode({"ArrayFeatureExtractor", 1, {}, "ai.onnx.ml"},
                           {MakeTensor(ElementType::kFloat32, {3}, {7, 8, 9}), Int64s({2}, {1, 2})},
                           /*is_symbolic=*/true);
  ASSERT_TRUE(row.ok()) << row.status().Text();
  EXPECT_EQ((*row)[0].tensor.extents(), (Extents{1, 2}));
  EXPECT_THAT(Numbers((*row)[0].tensor), ElementsAre(8, 9));
  for (const ElementType type : {ElementType::kFloat32, ElementType::kInt64}) {
    const auto bits = RunNode({"Binarizer", 1, {{"threshold", 1.0F}}, "ai.onnx.ml"},
                              {MakeTensor(type, {2, 2}, {1, 2, 0, -3})});
    ASSERT_TRUE(bits.ok()) << bits.status().Text();
    EXPECT_EQ((*bits)[0].tensor.type(), type);
    EXPECT_THAT(Numbers((*bits)[0].tensor), ElementsAre(0, 1, 0, 0));
  }
}

}  // namespace
}  // namespace onnxifi::ops
