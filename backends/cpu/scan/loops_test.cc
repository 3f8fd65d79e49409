// SPDX-License-Identifier: Apache-2.0
//
// Loops of every operation and type against one state after the other.

#include "backends/cpu/scan/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/tensor/native_type.h"

namespace onnxifi::scan {
namespace {

using program::ExprOp;
using tensor::ElementType;

template <typename T>
T Combine(ExprOp op, T a, T b) {
  switch (op) {
    case ExprOp::kAdd:
      if constexpr (std::is_integral_v<T>) return program::WrapAdd(a, b);
      return static_cast<T>(a + b);
    case ExprOp::kMul:
      if constexpr (std::is_integral_v<T>) return program::WrapMul(a, b);
      return static_cast<T>(a * b);
    case ExprOp::kMin:
      return a < b || a != a ? a : b;
    default:
      return a > b || a != a ? a : b;
  }
}

template <typename T>
bool IsSame(T a, T b) {
  return a == b || (a != a && b != b);
}

template <typename T>
void Check(ExprOp op, ElementType type, bool is_exclusive, int64_t elements, int64_t lanes,
           bool lanes_are_inner) {
  const int64_t element_step = lanes_are_inner ? lanes + 3 : 2;
  const int64_t lane_step = lanes_are_inner ? 1 : 2 * elements + 1;
  const int64_t size = elements * element_step + lanes * lane_step;
  std::mt19937 random(static_cast<uint32_t>(elements + lanes));
  std::vector<T> source(static_cast<size_t>(size));
  for (T& value : source) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
  if constexpr (!std::is_integral_v<T>) {
    source[static_cast<size_t>(size / 2)] = std::numeric_limits<T>::quiet_NaN();
  }
  std::vector<T> target(source.size(), T{77});
  std::vector<T> states(static_cast<size_t>(lanes), T{1});
  std::vector<T> wanted = target;
  std::vector<T> wanted_states = states;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    T& state = wanted_states[static_cast<size_t>(lane)];
    for (int64_t element = 0; element < elements; ++element) {
      const auto at = static_cast<size_t>(element * element_step + lane * lane_step);
      const T next = Combine(op, state, source[at]);
      wanted[at] = is_exclusive ? state : next;
      state = next;
    }
  }
  const Loop loop = FindLoop(op, type, is_exclusive);
  ASSERT_NE(loop, nullptr);
  loop({reinterpret_cast<const std::byte*>(source.data()), element_step, lane_step,
        reinterpret_cast<std::byte*>(target.data()), element_step, lane_step,
        reinterpret_cast<std::byte*>(states.data()), elements, lanes});
  for (size_t k = 0; k < wanted.size(); ++k) {
    ASSERT_TRUE(IsSame(target[k], wanted[k]))
        << tensor::Name(type) << " " << program::Name(op) << ", element " << k << " of " << elements
        << " x " << lanes;
  }
  for (size_t k = 0; k < wanted_states.size(); ++k) {
    ASSERT_TRUE(IsSame(states[k], wanted_states[k]));
  }
}

TEST(LoopsTest, AreThoseOfOneStateAfterTheOther) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt8, ElementType::kUint16,
        ElementType::kInt32, ElementType::kInt64, ElementType::kUint64}) {
    for (const ExprOp op : {ExprOp::kAdd, ExprOp::kMul, ExprOp::kMin, ExprOp::kMax}) {
      for (const bool is_exclusive : {false, true}) {
        for (const int64_t lanes : {1, 2, 4, 7, 8, 33, 100}) {
          for (const bool lanes_are_inner : {false, true}) {
            tensor::VisitNative(type, [&]<typename T>(T) -> bool {
              Check<T>(op, type, is_exclusive, /*elements=*/9, lanes, lanes_are_inner);
              return true;
            });
          }
        }
      }
    }
  }
}

TEST(LoopsTest, BoolsAreJoined) {
  const std::vector<uint8_t> source = {0, 1, 0};
  std::vector<uint8_t> target(3);
  uint8_t state = 0;
  FindLoop(ExprOp::kOr, ElementType::kBool,
           /*is_exclusive=*/true)({reinterpret_cast<const std::byte*>(source.data()), 1, 0,
                                   reinterpret_cast<std::byte*>(target.data()), 1, 0,
                                   reinterpret_cast<std::byte*>(&state), 3, 1});
  EXPECT_EQ(target, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(state, 1);
  EXPECT_EQ(FindLoop(ExprOp::kAdd, ElementType::kBool, false), nullptr);
  EXPECT_EQ(FindLoop(ExprOp::kAdd, ElementType::kFloat16, false), nullptr);
}

}  // namespace
}  // namespace onnxifi::scan
