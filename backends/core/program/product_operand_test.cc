// SPDX-License-Identifier: Apache-2.0
//
// Operands of products: types before they are widened, zero points, and which casts keep every
// value, by all values of the narrow types.

#include "backends/core/program/product_operand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/core/program/testing/program_maker.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::program {
namespace {

using enum tensor::ElementType;

// A product of two inputs of these types with these sums; operands as `of` makes them.
class Product {
 public:
  Product(ElementType a, ElementType b, ElementType sum) {
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {3};
    contract.accumulator = sum;
    const Operand left = maker.Input({2, 3}, a);
    const Operand right = maker.Input({3, 4}, b);
    step.domain = {2, 4};
    step.reads = {left.view, right.view};
    contract.a_prologue = Cast(Load(pool(), a, 0), sum).id();
    contract.b_prologue = Cast(Load(pool(), b, 1), sum).id();
  }
  ExprPool& pool() { return maker.program.exprs; }
  ProductOperand Find(int operand) {
    step.body = contract;
    return FindProductOperand(maker.program, step, operand);
  }

  ProgramMaker maker;
  Step step;
  Contract contract;
};

TEST(ProductOperandTest, KeepsTheTypeThatIsInMemory) {
  for (const ElementType type : {kFloat16, kBfloat16, kFloat32}) {
    Product product(type, kFloat32, kFloat32);
    const ProductOperand a = product.Find(0);
    EXPECT_EQ(a.type, type);
    EXPECT_TRUE(a.is_stored);
    EXPECT_EQ(a.zero_point, kNoExpr);
    EXPECT_EQ(product.Find(1).type, kFloat32);
    EXPECT_EQ(SumType(product.step), kFloat32);
  }
  Product bytes(kUint8, kInt8, kInt32);
  EXPECT_EQ(bytes.Find(0).type, kUint8);
  EXPECT_EQ(bytes.Find(1).type, kInt8);
  EXPECT_TRUE(bytes.Find(1).is_stored);
  EXPECT_EQ(SumType(bytes.step), kInt32);
}

TEST(ProductOperandTest, FindsTheZeroPoint) {
  Product product(kUint8, kInt8, kInt32);
  product.step.reads.push_back(product.maker.Input({2, 1}, kUint8).view);
  product.contract.a_prologue = (Cast(Load(product.pool(), kUint8, 0), kInt32) -
                                 Cast(Load(product.pool(), kUint8, 2), kInt32))
                                    .id();
  product.contract.b_prologue = (Cast(Load(product.pool(), kInt8, 1), kInt32) -
                                 Cast(IntConstant(product.pool(), kInt8, 7), kInt32))
                                    .id();
  const ProductOperand a = product.Find(0);
  EXPECT_EQ(a.type, kUint8);
  EXPECT_TRUE(a.is_stored);
  EXPECT_EQ(a.zero_point_type, kUint8);
  EXPECT_EQ(a.zero_point_read, 2);
  const ProductOperand b = product.Find(1);
  EXPECT_EQ(b.type, kInt8);
  EXPECT_NE(b.zero_point, kNoExpr);
  EXPECT_EQ(b.zero_point_read, -1) << "a constant is no read";
}

TEST(ProductOperandTest, TakesNothingForAZeroPointThatRoundsOrIsComputed) {
  // A difference of floats rounds.
  Product floats(kFloat32, kFloat16, kFloat32);
  floats.contract.b_prologue =
      (Cast(Load(floats.pool(), kFloat16, 1), kFloat32) - Constant(floats.pool(), kFloat32, 1))
          .id();
  EXPECT_EQ(floats.Find(1).type, kFloat32);
  EXPECT_FALSE(floats.Find(1).is_stored);
  EXPECT_EQ(floats.Find(1).zero_point, kNoExpr);
  // Rounded to float16 while it is read: float16 has the values, and memory has others.
  Product rounded(kFloat32, kFloat32, kFloat32);
  rounded.contract.a_prologue =
      Cast(Cast(Load(rounded.pool(), kFloat32, 0), kFloat16), kFloat32).id();
  EXPECT_EQ(rounded.Find(0).type, kFloat16);
  EXPECT_FALSE(rounded.Find(0).is_stored);
  // The other operand's tensor.
  rounded.contract.a_prologue = Load(rounded.pool(), kFloat32, 1).id();
  EXPECT_FALSE(rounded.Find(0).is_stored);
  // A sum that does not have all values of its operand.
  Product wraps(kInt64, kInt32, kInt32);
  EXPECT_EQ(wraps.Find(0).type, kInt32);
  EXPECT_FALSE(wraps.Find(0).is_stored);
}

TEST(ProductOperandTest, KnowsThoseOfAttention) {
  ProgramMaker maker;
  Step step;
  Attention attention;
  ExprPool& pool = maker.program.exprs;
  attention.query_prologue = Load(pool, kFloat32, 0).id();
  attention.key_prologue = Cast(Load(pool, kFloat16, 1), kFloat32).id();
  attention.value_prologue = Cast(Load(pool, kBfloat16, 2), kFloat32).id();
  step.body = attention;
  EXPECT_EQ(FindProductOperand(maker.program, step, 0).type, kFloat32);
  EXPECT_EQ(FindProductOperand(maker.program, step, 1).type, kFloat16);
  EXPECT_EQ(FindProductOperand(maker.program, step, 2).type, kBfloat16);
  EXPECT_TRUE(FindProductOperand(maker.program, step, 2).is_stored);
}

double NumberOf(ElementType type, tensor::Scalar value) {
  if (tensor::IsFloat(type)) return value.f;
  return tensor::IsSigned(type) ? static_cast<double>(value.i) : static_cast<double>(value.u);
}

// Whether a cast keeps every value of `from`; NaN is as good as NaN.
bool KeepsEveryValue(ElementType from, ElementType to) {
  const int bits = tensor::BitWidth(from);
  for (uint32_t code = 0; code < uint32_t{1} << bits; ++code) {
    if (from == kBool && code > 1) break;
    std::byte stored[8] = {};
    std::memcpy(stored, &code, sizeof(code));
    const tensor::Scalar value = tensor::LoadScalar(from, stored, 0);
    const double before = NumberOf(from, value);
    const double after = NumberOf(to, tensor::CastScalar(from, to, value));
    if (before != after && !(std::isnan(before) && std::isnan(after))) return false;
  }
  return true;
}

TEST(ProductOperandTest, CallsACastAWideningWhereEveryValueStays) {
  for (const ElementType from : {kBool, kInt8, kUint8, kInt16, kUint16, kInt4, kUint4, kFloat16,
                                 kBfloat16, kFloat8E4M3Fn, kFloat8E5M2, kFloat8E8M0}) {
    for (const ElementType to :
         {kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kFloat32, kFloat64}) {
      EXPECT_EQ(IsWidening(from, to), KeepsEveryValue(from, to))
          << tensor::Name(from) << " to " << tensor::Name(to);
    }
  }
  EXPECT_TRUE(IsWidening(kFloat32, kFloat64));
  EXPECT_TRUE(IsWidening(kInt32, kFloat64));
  EXPECT_FALSE(IsWidening(kInt32, kFloat32));
  EXPECT_FALSE(IsWidening(kInt64, kFloat64));
  EXPECT_FALSE(IsWidening(kFloat64, kFloat32));
  EXPECT_FALSE(IsWidening(kFloat16, kBfloat16));
}

}  // namespace
}  // namespace onnxifi::program
