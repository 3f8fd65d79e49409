// SPDX-License-Identifier: Apache-2.0
//
// Chains against the loops of their operations one after the other: the same bits, for any number
// of lanes, every link on both sides, and results written over an input.

#include "backends/cpu/engine/chain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/engine/loop.h"

namespace onnxifi::engine {
namespace {

using program::ExprOp;
using tensor::ElementType;

constexpr ExprOp kOps[] = {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul,
                           ExprOp::kDiv, ExprOp::kMin, ExprOp::kMax};

class RandomChain {
 public:
  explicit RandomChain(uint32_t seed) : random_(seed), lanes_(Roll(1, 400)) {
    value_ = MakeColumn();
    expected_ = value_;
    const int64_t count = Roll(1, kMostLinks);
    for (int64_t k = 0; k < count; ++k) {
      const ExprOp op = kOps[Roll(0, 5)];
      const bool value_is_first = Roll(0, 1) == 0;
      operands_.push_back(MakeColumn());
      links_.push_back(*FindLink(op, value_is_first));
      RunAlone(op, value_is_first ? expected_ : operands_.back(),
               value_is_first ? operands_.back() : expected_);
    }
  }

  void Check() {
    ChainOperands chain{};
    chain.count = static_cast<int>(links_.size());
    chain.links = links_.data();
    chain.lanes = lanes_;
    for (size_t k = 0; k < operands_.size(); ++k) chain.operands[k] = Bytes(operands_[k]);
    chain.first = Bytes(value_);
    // Over the first input, one of the operands, or neither; nothing behind the lanes changes.
    std::vector<float> apart(value_.size(), kBehind);
    std::vector<float>* results[] = {&apart, &operands_.back(), &value_};
    std::vector<float>& result = *results[Roll(0, 2)];
    chain.result = Bytes(result);
    RunChain(chain);
    for (size_t k = 0; k < result.size(); ++k) {
      if (std::isnan(expected_[k]) && std::isnan(result[k])) continue;
      EXPECT_EQ(std::memcmp(&expected_[k], &result[k], sizeof(float)), 0)
          << "lane " << k << " of " << lanes_ << ": " << result[k] << " instead of "
          << expected_[k];
    }
  }

 private:
  static constexpr float kBehind = -777;

  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  static std::byte* Bytes(std::vector<float>& column) {
    return reinterpret_cast<std::byte*>(column.data());
  }

  std::vector<float> MakeColumn() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float specials[] = {0.0F, -0.0F, kInfinity, -kInfinity,
                              std::numeric_limits<float>::quiet_NaN()};
    std::vector<float> column(static_cast<size_t>(lanes_) + 5, kBehind);
    for (int64_t k = 0; k < lanes_; ++k) {
      column[static_cast<size_t>(k)] = Roll(0, 9) == 0
                                           ? specials[Roll(0, 4)]
                                           : std::uniform_real_distribution<float>(-2, 2)(random_);
    }
    return column;
  }

  void RunAlone(ExprOp op, std::vector<float>& a, std::vector<float>& b) {
    std::vector<float> result(a.size(), kBehind);
    LoopOperands operands{Bytes(result),         {Bytes(a), Bytes(b)}, lanes_, 0,
                          ElementType::kFloat32, ElementType::kFloat32};
    FindLoop(op, ElementType::kFloat32, ElementType::kFloat32, LoopSet::kReference)(operands);
    expected_ = std::move(result);
  }

  std::mt19937 random_;
  const int64_t lanes_;
  std::vector<float> value_, expected_;
  std::vector<std::vector<float>> operands_;
  std::vector<Link> links_;
};

TEST(ChainTest, GivesTheBitsOfItsOperations) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomChain(seed).Check();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace onnxifi::engine
