// SPDX-License-Identifier: Apache-2.0
//
// The passes over a tensor program, in the order in which core/plugin runs them. Each keeps what
// the program computes.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_PASSES_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_PASSES_H_

#include <functional>

#include "backends/core/program/program.h"

namespace onnxifi::program {

// Whether the device does `after`, which a pass would like to put in the place of `before` (and of
// a Map that it takes in), as well as it does `before`.
using Accepts = std::function<bool(const Program& program, const Step& before, const Step& after)>;

// Removes steps whose results nobody reads, and forgets constants that no step reads.
void RemoveDeadSteps(Program& program);

// Turns what a view adds around the image of a convolution or window into padding of the step's
// own, where the step computes the same: zeros for a convolution and a mean, for a maximum the
// lowest value, or zeros around what is never negative.
void AbsorbPadding(Program& program);

// Whether the device does a step of the family Recurrent by a kernel of its own.
using PrefersRecurrent = std::function<bool(const Program& program, const Step& step)>;

// Puts a scan over time in the place of each Recurrent, of the steps from `first_step` on, that the
// device does not prefer: a Control step per direction, whose body is a cell.
void ExpandRecurrent(Program& program, const PrefersRecurrent& prefers, size_t first_step = 0);

// Inlines a Map that only dequantizes bytes, with one scale, into each Map that combines its result
// with another tensor, which then reads the bytes: the epilogue of what computes them ends in
// bytes.
void InlineDequantizations(Program& program, const Accepts& accepts);

// Moves the Map that follows a Contract or Window, element for element, into its epilogue, as long
// as the device accepts the step with it; the rest of a chain stays a Map.
void FuseEpilogues(Program& program, const Accepts& accepts);

// Has a Contract that ends in quantizing and dequantizing store the bytes, where Maps that read
// each element once, and maxima, alone read its result: each of them dequantizes it. As long as the
// device accepts all of them.
void StoreBytes(Program& program, const Accepts& accepts);

// Joins Maps that together are a function of one tensor, such as x * sigmoid(x), into one Map,
// which reads it once.
void FuseFunctions(Program& program, const Accepts& accepts);

// Inlines a Map into the only step that reads its result (Map, Reduce or Row), where that reads it
// along whole axes in any order, so that the result never goes through memory.
void FuseMaps(Program& program, const Accepts& accepts);

// Moves spatial axes of convolutions and windows outward along which image, kernel and result have
// one element, as exporters of convolutions along one axis write them: [N, C, L, 1] is [N, C, 1,
// L]. Of three axes such a one is left out; a depthwise convolution along one axis gets one.
void OrderSpatialAxes(Program& program);

// Whether the device does a step faster with the channels of the tensors that it reads and writes
// innermost.
using PrefersChannelsLast = std::function<bool(const Program& program, const Step& step)>;

// Gives temporaries of shape [N, C, spatial] the order [N, spatial, C] in memory, where the steps
// that touch them prefer it, all of them can say so with their strides, and N alone is not a
// number. Inputs, outputs and constants stay as they are. A Map that enlarges such a temporary into
// one in the plain order reads a copy of it in the plain order.
void LayOutChannelsLast(Program& program, const PrefersChannelsLast& prefers);

// Removes a Map that copies a temporary into a part of another buffer, in the same order: the
// temporary moves there, and every step that looks at it looks at the part instead, as long as the
// device accepts all of them so. Only where they can say that with their strides and nobody else
// needs the part meanwhile. What Attention alone writes may be copied in another order of axes.
void ForwardCopies(Program& program, const Accepts& accepts);

// Whether the device computes a product or window of narrow floats faster on float32 tensors.
using PrefersWideFloats = std::function<bool(const Program& program, const Step& step)>;

// Has Maps widen the tensors of narrow floats that such steps read, once for all readers, and round
// their results, where the device prefers it. Of a constant that is a matter of loading. With fast
// algorithms, element-wise steps and rows of bfloat16, where all its products are widened, stay in
// float32 too, and only what leaves them is rounded; of float16 where a program multiplies by
// weights.
void WidenFloats(Program& program, const PrefersWideFloats& prefers);

// Moves what a Map multiplies each output channel of a product by into the product's weights, where
// both are constants of float32, and leaves the Map nothing but a summand per channel. The new
// constants are steps, to be computed once.
void FoldFactors(Program& program);

// Whether the device multiplies operands of narrow types as they are in memory, at least as fast as
// when they are widened first. `step` is a product with such operands.
using PrefersNarrowOperands = std::function<bool(const Program& program, const Step& step)>;

// Multiplies the bytes themselves where both operands of a product are tensors that Maps
// dequantize, with one scale and zero point, or one per row or column, and the device prefers it.
// Sums are of integers then, and rounded once. Of no more elements than an int32 holds for certain.
void MakeIntegerProducts(Program& program, const PrefersNarrowOperands& prefers);

// Whether the device multiplies with weights that it dequantizes at least as fast as with those in
// float32. `step` is a product that does so in its prologue.
using PrefersQuantizedWeights = std::function<bool(const Program& program, const Step& step)>;

// Moves a Map that dequantizes weights of at most 8 bits, which are computed from constants alone,
// into the product that reads them as B, where the device prefers it: the weights stay as narrow as
// they are, and each is dequantized where it is multiplied.
void MakeWeightProducts(Program& program, const PrefersQuantizedWeights& prefers);

// Whether the device does a product whose prologue selects a constant matrix for each row, by
// positions that are data, without copying the matrices.
using PrefersGatheredMatrices = std::function<bool(const Program& program, const Step& step)>;

// Moves a Map that copies entries of a constant tensor, selected by positions that are data, into
// the product that multiplies with them, where the device prefers it: read 1 is the positions then,
// and the prologue loads from the tensor. What dequantizes the tensor moves there too. Where the
// device does not prefer it, and not fewer matrices are copied than there are, all rows are
// multiplied with all matrices, and a Map selects among the results.
void MakeGatheredProducts(Program& program, const PrefersGatheredMatrices& prefers);

// Moves a Map that only widens a tensor (IsWidening of product_operand.h) into the prologue of the
// product that alone reads its result, where the device prefers it.
void FuseWidenings(Program& program, const PrefersNarrowOperands& prefers);

// Whether the device does a step of the family Attention by a kernel of its own, and faster than
// the steps that it is to stand for.
using PrefersAttention = std::function<bool(const Program& program, const Step& step)>;

// Puts one step in the place of a matrix product, the softmax of its rows (a Row) and the product
// of that with a third matrix, where nobody else reads what is between them and the device prefers
// it. A Map that zeroes rows of the softmax may follow that. What is rounded to narrower types
// within the softmax no longer is, so that such a softmax stays where sums may not round
// differently. The steps that go are left without views.
void FuseAttention(Program& program, const PrefersAttention& prefers);

// Has Attention read keys and values where they lie, instead of what a Map makes of them that only
// repeats them for heads that share them, or multiplies them by a number, where the device prefers
// it. Such heads become a batch axis of their own; with fast algorithms the number moves to the
// sums.
void InlineAttentionOperands(Program& program, const PrefersAttention& prefers);

// Whether the device does both steps at once, if they follow each other.
using Joins = std::function<bool(const Program& program, const Step& first, const Step& second)>;

// Puts a step directly before its sole consumer, where the device does both at once.
void OrderFusableSteps(Program& program, const Joins& joins);

// Whether the device does a convolution faster by Winograd's algorithm, as ExpandWinograd does it.
using PrefersWinograd = std::function<bool(const Program& program, const Step& step)>;

// Puts steps in the place of a convolution of float32 with constant kernels of 3 x 3, stride 1 and
// known extents, where the device prefers it: a Map that transforms tiles of the image, products
// with the transformed kernels, and up to four Maps that transform these back and do what the
// convolution did to its sums: one for the whole tiles of 4 x 4 results, the others for those that
// the lower and the right edge cut. Rounds differently. Resource codes where there is no memory for
// the kernels.
base::Status ExpandWinograd(Program& program, const PrefersWinograd& prefers);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_PASSES_H_
