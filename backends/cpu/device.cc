// SPDX-License-Identifier: Apache-2.0
//
// Device: the list of implementations, fastest first. The first that takes a step has it; the
// reasons of those before are kept for reports.

#include "backends/cpu/device.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/attention/recipe.h"
#include "backends/cpu/convolution/recipe.h"
#include "backends/cpu/engine/recipe.h"
#include "backends/cpu/gemm/bfloat16_gemm.h"
#include "backends/cpu/integer/product.h"
#include "backends/cpu/matmul/constant_matrix.h"
#include "backends/cpu/matmul/double_products.h"
#include "backends/cpu/matmul/few_rows.h"
#include "backends/cpu/matmul/gathered_product.h"
#include "backends/cpu/matmul/packed_matrix.h"
#include "backends/cpu/matmul/quantized_weights.h"
#include "backends/cpu/matmul/recipe.h"
#include "backends/cpu/matmul/small_products.h"
#include "backends/cpu/non_zero/non_zero.h"
#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/pooling/pooling.h"
#include "backends/cpu/ranking/ranking.h"
#include "backends/cpu/recurrent/recipe.h"
#include "backends/cpu/runtime/left_out.h"
#include "backends/cpu/runtime/recipe.h"
#include "backends/cpu/scan/scan.h"
#include "backends/cpu/scatter/scatter.h"
#include "backends/cpu/split_step.h"
#include "backends/cpu/summed_products.h"

namespace onnxifi::cpu {
namespace {

using onednn::EdgePlacement;
using program::Contract;
using runtime::RecipeResult;

// A step on its way through the implementations.
struct Question {
  const device::Facts& facts;
  device::Selection& selection;
  // Made by the first convolution that asks.
  std::optional<base::Result<convolution::ConvolutionQuery>> convolution = std::nullopt;
};

// Kernels that are named more than once.
constexpr std::string_view kFewChannels = "few channels";
constexpr std::string_view kQuantizedWeights = "quantized weights";
constexpr std::string_view kGatheredProduct = "rows times gathered matrices";
constexpr std::string_view kByteProduct = "byte product";
constexpr std::string_view kAttention = "attention";
constexpr std::string_view kMatrixTimesVector = "matrix times vector";
constexpr std::string_view kSmallProducts = "small products";
constexpr std::string_view kFused = "fused convolutions";

base::Status LeftOut() {
  return base::Status(base::Code::kUnsupportedOperator, "ONNXIFI_CPU_WITHOUT leaves it out.");
}

constexpr EdgePlacement kInPrimitive = EdgePlacement::kInPrimitive;
constexpr EdgePlacement kInLoops = EdgePlacement::kInLoops;

bool IsConvolution(const program::Step& step) {
  const auto* contract = step.As<Contract>();
  return contract != nullptr && contract->form == Contract::Form::kConv;
}
bool IsAlongThreeAxes(const program::Step& step) {
  return IsConvolution(step) && step.As<Contract>()->a_spatial.size() == 3;
}
bool IsTransposed(const program::Step& step) {
  const auto* contract = step.As<Contract>();
  return contract != nullptr && contract->form == Contract::Form::kConvTranspose;
}
// Along one axis or three, and along two where that is cheap.
bool IsGathered(const program::Step& step) {
  return IsConvolution(step) &&
         (step.As<Contract>()->a_spatial.size() != 2 || convolution::IsCheapToGather(step));
}
bool IsAnyConvolution(const program::Step& step) {
  return IsConvolution(step) || IsTransposed(step);
}
bool IsMatMul(const program::Step& step) {
  const auto* contract = step.As<Contract>();
  return contract != nullptr && contract->form == Contract::Form::kMatMul;
}
bool IsContract(const program::Step& step) { return step.As<Contract>() != nullptr; }
bool IsAttention(const program::Step& step) { return step.As<program::Attention>() != nullptr; }
bool IsIndex(const program::Step& step) { return step.As<program::Index>() != nullptr; }
bool IsScan(const program::Step& step) { return step.As<program::Scan>() != nullptr; }
bool IsRecurrent(const program::Step& step) { return step.As<program::Recurrent>() != nullptr; }
bool IsWindow(const program::Step& step) { return step.As<program::Window>() != nullptr; }

template <RecipeResult (*select)(const convolution::ConvolutionQuery&)>
RecipeResult OwnConvolution(Question& question, std::string_view /*name*/) {
  if (!question.convolution) question.convolution = convolution::QueryConvolution(question.facts);
  const base::Result<convolution::ConvolutionQuery>& query = *question.convolution;
  return query.ok() ? select(*query) : query.status();
}

RecipeResult SelectWinogradFrames(Question& question, std::string_view /*name*/) {
  return convolution::SelectWinogradFrames(question.facts);
}

// By an implementation for two axes.
RecipeResult SelectMergedAxes(Question& question, std::string_view /*name*/);
// By another implementation, without the epilogue.
RecipeResult SelectSplitEpilogue(Question& question, std::string_view name);

RecipeResult SelectSplitPadding(Question& question, std::string_view name) {
  return SplitPadding(question.facts, name, [](const device::Facts& facts) -> RecipeResult {
    RecipeResult recipe = pooling::SelectPooling(facts);
    if (recipe.ok()) return recipe;
    return onednn::SelectPooling(facts, kInPrimitive, "onednn pooling");
  });
}

RecipeResult SelectGathered(Question& question, std::string_view /*name*/) {
  return convolution::SelectGathered(question.facts);
}

RecipeResult SelectFewChannels(Question& question, std::string_view /*name*/) {
  return convolution::SelectFewChannels(question.facts);
}

RecipeResult SelectFewOutputs(Question& question, std::string_view /*name*/) {
  return convolution::SelectFewOutputs(question.facts);
}

// Of pixels with their channels side by side, and of windows that are not mostly padding; others
// are oneDNN's.
RecipeResult SelectTransposed(Question& question, std::string_view /*name*/) {
  const program::Step& step = question.facts.step;
  const Contract& contract = *step.As<Contract>();
  for (const program::View* view : {&step.reads[0], &step.writes[0]}) {
    if (!(view->strides[1] == program::Dim(1))) {
      return base::Status(base::Code::kUnsupportedShape,
                          "Channels of the input or the result do not lie side by side.");
    }
  }
  const auto number = [](const program::Dim& dim) {
    return dim.is_constant() ? dim.constant() : 0;
  };
  tensor::Extents in, kernel;
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    in.push_back(number(contract.a_spatial[axis]));
    kernel.push_back(number(contract.inner[1 + axis]));
  }
  const tensor::Extents strides = convolution::TransposedStrides(in, kernel, contract.strides);
  program::Dim needed = 1, gathered = 1;
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    needed = needed * contract.a_spatial[axis] * contract.inner[1 + axis];
    gathered = gathered * step.domain[2 + axis] * CeilDiv(contract.inner[1 + axis], strides[axis]);
  }
  if (needed.is_constant() && gathered.is_constant() &&
      gathered.constant() / 2 > needed.constant()) {
    return base::Status(base::Code::kUnsupportedShape, "Most of each window is padding.");
  }
  return convolution::SelectTransposed(question.facts);
}

// A matrix of constants: few rows where it lies, more of them with a packed copy. The number of
// rows may be known only once the step is bound.
RecipeResult SelectConstantMatrix(Question& question, std::string_view /*name*/) {
  const device::Facts& facts = question.facts;
  ONNXIFI_ASSIGN_OR_RETURN(const matmul::ConstantMatrix matrix,
                           matmul::DescribeConstantMatrix(facts));
  matmul::Recipe::Methods methods;
  base::Result<matmul::FewRowsProduct> few_rows = LeftOut();
  if (!runtime::IsLeftOut(kMatrixTimesVector)) few_rows = matmul::DescribeFewRows(facts, matrix);
  if (few_rows.ok()) {
    methods.push_back(matmul::MakeMethod(*few_rows));
  } else {
    question.selection.rejected.push_back(
        base::Status(few_rows.status()).Context("for " + std::string(kMatrixTimesVector)));
  }
  if (!few_rows.ok() || !few_rows->rows) methods.push_back(matmul::MakePackedMatrix(matrix));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<matmul::Recipe>(std::move(methods)));
}

// Weights of few bits, which are dequantized where they are multiplied.
RecipeResult SelectQuantizedWeights(Question& question, std::string_view /*name*/) {
  ONNXIFI_ASSIGN_OR_RETURN(const matmul::QuantizedProduct weights,
                           matmul::DescribeQuantizedWeights(question.facts));
  ONNXIFI_RETURN_IF_ERROR(matmul::CheckConstant(question.facts, weights));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<matmul::Recipe>(matmul::Recipe::Methods{matmul::MakeMethod(weights)}));
}

// Matrices that data selects.
RecipeResult SelectGatheredProduct(Question& question, std::string_view /*name*/) {
  ONNXIFI_ASSIGN_OR_RETURN(const matmul::GatheredMatrices product,
                           matmul::DescribeGatheredProduct(question.facts));
  ONNXIFI_RETURN_IF_ERROR(matmul::CheckConstant(question.facts, product));
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<matmul::Recipe>(matmul::Recipe::Methods{matmul::MakeMethod(product)},
                                       /*otherwise=*/nullptr, product.numbers));
}

// Not where adding products up is most of the work and oneDNN does well: of a single pixel, and of
// few channels to several outputs.
RecipeResult SelectFewTransposed(Question& question, std::string_view /*name*/) {
  const program::Step& step = question.facts.step;
  const Contract& contract = *step.As<Contract>();
  const auto is_one = [](const program::Dim& dim) { return dim == program::Dim(1); };
  if (std::all_of(contract.a_spatial.begin(), contract.a_spatial.end(), is_one)) {
    return base::Status(base::Code::kUnsupportedShape, "The input is a single pixel.");
  }
  const program::Dim& channels = contract.inner[0];
  const program::Dim& outputs = step.domain[1];
  if (channels.is_constant() && outputs.is_constant() && outputs.constant() > 1) {
    const bool has_volume = contract.a_spatial.size() == 3;
    int64_t least = 0;
    if (std::any_of(contract.strides.begin(), contract.strides.end(),
                    [](int64_t stride) { return stride != 1; })) {
      if (outputs.constant() > 3) least = outputs.constant() * outputs.constant() / 3 + 1;
    } else if (has_volume || is_one(step.reads[0].strides[1])) {
      least = has_volume ? 32 : 12;
    }
    if (channels.constant() < least) {
      return base::Status(base::Code::kUnsupportedShape,
                          "There are " + std::to_string(channels.constant()) + " channels; below " +
                              std::to_string(least) +
                              " adding up their products is most of the work.");
    }
  }
  return convolution::SelectFewTransposed(question.facts);
}

RecipeResult SelectDoubleProducts(Question& question, std::string_view /*name*/) {
  return matmul::SelectDoubleProducts(question.facts);
}

RecipeResult SelectSums(Question& question, std::string_view name) {
  return SelectSummedProducts(question.facts, name);
}

RecipeResult SelectDoubleConvolution(Question& question, std::string_view /*name*/) {
  return convolution::SelectDouble(question.facts);
}

RecipeResult SelectPooling(Question& question, std::string_view /*name*/) {
  return pooling::SelectPooling(question.facts);
}

template <RecipeResult (*select)(const device::Facts&, EdgePlacement, std::string_view),
          EdgePlacement edge_placement>
RecipeResult OneDnn(Question& question, std::string_view name) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe,
                           select(question.facts, edge_placement, name));
  // Whether products are small is known once the step is bound.
  auto small = matmul::DescribeSmallProducts(question.facts);
  if (!small.ok() || runtime::IsLeftOut(kSmallProducts)) return recipe;
  return std::unique_ptr<const device::Recipe>(std::make_unique<matmul::Recipe>(
      matmul::Recipe::Methods{*std::move(small)}, std::move(recipe)));
}

// Whether a kernel is known to reach over the whole of an image, which oneDNN computes wrong.
bool ReachesOverInput(const program::Step& step) {
  const Contract& contract = *step.As<Contract>();
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const program::Dim& in = contract.a_spatial[axis];
    const program::Dim& kernel = contract.inner[1 + axis];
    if (!in.is_constant() || !kernel.is_constant()) continue;
    if ((kernel.constant() - 1) * contract.dilations[axis] + 1 > in.constant()) return true;
  }
  return false;
}

// Whether a window is known to see less than half of its taps, as the first ones of a causal
// convolution do: oneDNN's primitives would leave the step to loops.
bool SeesFewTaps(const program::Step& step) {
  const Contract& contract = *step.As<Contract>();
  for (size_t axis = 0; axis < contract.a_spatial.size(); ++axis) {
    const program::Dim& taps = contract.inner[1 + axis];
    const program::Dim& pad = contract.pads_begin[axis];
    if (!taps.is_constant() || !pad.is_constant()) continue;
    const int64_t kernel = taps.constant(), dilation = contract.dilations[axis];
    const int64_t skipped = (pad.constant() + dilation - 1) / dilation;
    if (2 * (kernel - skipped) < kernel) return true;
    const program::Dim& in = contract.a_spatial[axis];
    const program::Dim& out = step.domain[2 + axis];
    if (!in.is_constant() || !out.is_constant()) continue;
    const int64_t last = (out.constant() - 1) * contract.strides[axis] - pad.constant();
    const int64_t seen = last >= in.constant() ? 0 : (in.constant() - 1 - last) / dilation + 1;
    if (2 * seen < kernel) return true;
  }
  return false;
}

// Windows that lie beyond an image of few pixels are no good primitives; which images are as small
// may be known only once the step is bound.
template <EdgePlacement edge_placement>
RecipeResult SelectOneDnnConvolution(Question& question, std::string_view name) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe,
                           onednn::SelectConvolution(question.facts, edge_placement, name));
  RecipeResult gathered = convolution::SelectGathered(question.facts, /*takes_few_outputs=*/true);
  if (gathered.ok()) return onednn::WithOtherwise(std::move(recipe), *std::move(gathered));
  if (IsConvolution(question.facts.step) && ReachesOverInput(question.facts.step)) {
    return base::Status(base::Code::kUnsupportedShape,
                        "The kernel reaches over the whole of the input.");
  }
  if (IsConvolution(question.facts.step) && SeesFewTaps(question.facts.step)) {
    return base::Status(base::Code::kUnsupportedShape,
                        "A window sees less than half of the kernel's taps.");
  }
  return recipe;
}

RecipeResult SelectOneDnnDeconvolution(Question& question, std::string_view name) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<const device::Recipe> recipe,
                           onednn::SelectDeconvolution(question.facts, kInPrimitive, name));
  RecipeResult transposed = convolution::SelectTransposed(question.facts);
  if (!transposed.ok()) return recipe;
  return onednn::WithOtherwise(std::move(recipe), *std::move(transposed));
}

RecipeResult SelectAttention(Question& question, std::string_view /*name*/) {
  return attention::SelectAttention(question.facts);
}

RecipeResult SelectRanking(Question& question, std::string_view /*name*/) {
  return ranking::SelectRanking(question.facts);
}

RecipeResult SelectNonZero(Question& question, std::string_view /*name*/) {
  return non_zero::SelectNonZero(question.facts);
}

RecipeResult SelectScan(Question& question, std::string_view /*name*/) {
  return scan::SelectScan(question.facts);
}

RecipeResult SelectScatter(Question& question, std::string_view /*name*/) {
  return scatter::SelectScatter(question.facts);
}

RecipeResult SelectRecurrent(Question& question, std::string_view /*name*/) {
  return recurrent::SelectRecurrent(question.facts);
}

RecipeResult SelectByteProduct(Question& question, std::string_view /*name*/) {
  return integer::SelectProduct(question.facts);
}

RecipeResult SelectEngine(Question& question, std::string_view /*name*/) {
  return engine::Select(question.facts);
}

// Whether a product of bfloat16 is oneDNN's, whatever its extents will be.
bool MultipliesBfloat16(const device::Facts& facts) {
  if (facts.step.reads[0].type != tensor::ElementType::kBfloat16) return false;
  if (IsMatMul(facts.step)) {
    return onednn::SelectMatMul(facts, kInPrimitive, "").ok();
  }
  return IsConvolution(facts.step) && onednn::HasUsualWindows(facts.step) &&
         onednn::SelectConvolution(facts, kInPrimitive, "").ok();
}

struct Implementation {
  std::string_view name;
  bool (*is_for)(const program::Step& step);
  RecipeResult (*select)(Question& question, std::string_view name);
};

// Of those for convolutions along two axes the last that is faster than kernels for any number.
constexpr std::string_view kLastForTwoAxes = "planar";
// The last of all.
constexpr std::string_view kSplitEpilogue = "split epilogue";

// All of them, in the order in which they are asked: the first that takes the step has it. What
// none takes is left to the reference.
constexpr Implementation kImplementations[] = {
    {"merged axes", IsAlongThreeAxes, SelectMergedAxes},
    {"winograd of frames", IsAlongThreeAxes, SelectWinogradFrames},
    {kFewChannels, IsConvolution, SelectFewChannels},
    {"winograd", IsConvolution, OwnConvolution<convolution::SelectWinograd>},
    {"pointwise", IsConvolution, OwnConvolution<convolution::SelectPointwise>},
    {"depthwise", IsConvolution, OwnConvolution<convolution::SelectDepthwise>},
    {"direct", IsConvolution, OwnConvolution<convolution::SelectDirect>},
    {kLastForTwoAxes, IsConvolution, OwnConvolution<convolution::SelectPlanar>},
    {"few outputs", IsConvolution, SelectFewOutputs},
    {"gathered", IsGathered, SelectGathered},
    {"transposed", IsTransposed, SelectTransposed},
    {"transposed to few outputs", IsTransposed, SelectFewTransposed},
    {"rows times packed matrix", IsMatMul, SelectConstantMatrix},
    {kQuantizedWeights, IsMatMul, SelectQuantizedWeights},
    {kGatheredProduct, IsMatMul, SelectGatheredProduct},
    {kByteProduct, IsContract, SelectByteProduct},
    {"float64 product", IsMatMul, SelectDoubleProducts},
    {"summed products", IsMatMul, SelectSums},
    {"float64 convolution", IsAnyConvolution, SelectDoubleConvolution},
    {"pooling", IsWindow, SelectPooling},
    {"onednn matmul", IsContract, OneDnn<onednn::SelectMatMul, kInPrimitive>},
    {"onednn convolution", IsContract, SelectOneDnnConvolution<kInPrimitive>},
    {"onednn deconvolution", IsTransposed, SelectOneDnnDeconvolution},
    {"onednn matmul between loops", IsContract, OneDnn<onednn::SelectMatMul, kInLoops>},
    {"onednn convolution between loops", IsContract, SelectOneDnnConvolution<kInLoops>},
    {"onednn deconvolution between loops", IsContract,
     OneDnn<onednn::SelectDeconvolution, kInLoops>},
    {"onednn pooling", IsWindow, OneDnn<onednn::SelectPooling, kInPrimitive>},
    {"onednn normalisation", IsWindow, OneDnn<onednn::SelectLrn, kInPrimitive>},
    {"split padding", IsWindow, SelectSplitPadding},
    {"onednn pooling between loops", IsWindow, OneDnn<onednn::SelectPooling, kInLoops>},
    {"onednn normalisation between loops", IsWindow, OneDnn<onednn::SelectLrn, kInLoops>},
    {kAttention, IsAttention, SelectAttention},
    {"ranking", IsIndex, SelectRanking},
    {"scatter", IsIndex, SelectScatter},
    {"non-zero elements", IsIndex, SelectNonZero},
    {"scan", IsScan, SelectScan},
    {"recurrent", IsRecurrent, SelectRecurrent},
    {"the tile engine", engine::HasFamily, SelectEngine},
    {kSplitEpilogue, IsAnyConvolution, SelectSplitEpilogue},
};

// Kernels that are parts of implementations.
constexpr std::string_view kParts[] = {kFused,
                                       convolution::kSlabs,
                                       convolution::kPlanes,
                                       convolution::kTaps,
                                       kMatrixTimesVector,
                                       kSmallProducts};

RecipeResult Ask(const Implementation& implementation, Question& question) {
  if (runtime::IsLeftOut(implementation.name)) return LeftOut();
  return implementation.select(question, implementation.name);
}

RecipeResult SelectMergedAxes(Question& question, std::string_view /*name*/) {
  return convolution::WithMergedAxes(question.facts, [&](const device::Facts& facts) {
    Question merged{facts, question.selection};
    RecipeResult recipe = base::Status(base::Code::kUnsupportedShape, "No kernel takes two axes.");
    for (const Implementation& implementation : kImplementations) {
      if (!implementation.is_for(facts.step)) continue;
      recipe = Ask(implementation, merged);
      if (recipe.ok() || implementation.name == kLastForTwoAxes) break;
    }
    return recipe;
  });
}

RecipeResult SelectSplitEpilogue(Question& question, std::string_view name) {
  return SplitEpilogue(question.facts, name, [&](const device::Facts& facts) -> RecipeResult {
    Question sums{facts, question.selection};
    for (const Implementation& implementation : kImplementations) {
      if (implementation.name == kSplitEpilogue || !implementation.is_for(facts.step)) continue;
      RecipeResult recipe = Ask(implementation, sums);
      if (recipe.ok()) return recipe;
    }
    if (!IsConvolution(facts.step)) {
      return base::Status(base::Code::kUnsupportedShape, "No kernel takes the sums alone.");
    }
    return convolution::SelectGathered(facts, /*takes_few_outputs=*/true);
  });
}

}  // namespace

base::Result<device::Selection> Selector::Select(const device::Facts& facts) const {
  device::Selection selection;
  Question question{facts, selection};
  for (const Implementation& implementation : kImplementations) {
    if (!implementation.is_for(facts.step)) continue;
    RecipeResult recipe = Ask(implementation, question);
    if (recipe.ok()) {
      selection.recipe = *std::move(recipe);
      return selection;
    }
    selection.rejected.push_back(
        std::move(recipe).status().Context("for " + std::string(implementation.name)));
  }
  ONNXIFI_ASSIGN_OR_RETURN(device::Selection last, reference_.Select(facts));
  selection.recipe = std::move(last.recipe);
  return selection;
}

std::vector<std::string_view> Selector::ListKernels() {
  std::vector<std::string_view> names(std::begin(kParts), std::end(kParts));
  for (const Implementation& implementation : kImplementations)
    names.push_back(implementation.name);
  return names;
}

device::FusedSelection Selector::SelectFused(device::FusableSteps fusable) const {
  if (runtime::IsLeftOut(kFused)) return {};
  constexpr size_t kMaxSteps = 3;
  std::vector<base::Result<convolution::ConvolutionQuery>> steps;
  for (const device::Facts& facts : fusable.first(std::min(kMaxSteps, fusable.size()))) {
    steps.push_back(convolution::QueryConvolution(facts));
  }
  return convolution::SelectFused(steps);
}

// Every implementation of a convolution reads and writes this order fastest, without a reorder
// before and after it, but for that of few channels; oneDNN's takes whatever the others do, and
// more.
bool Selector::PrefersChannelsLast(const device::Facts& facts) const {
  if (IsConvolution(facts.step) && !runtime::IsLeftOut(kFewChannels) &&
      convolution::SelectFewChannels(facts).ok()) {
    return false;
  }
  return onednn::SelectConvolution(facts, EdgePlacement::kInPrimitive, "").ok() ||
         (IsConvolution(facts.step) && integer::SelectProduct(facts).ok()) ||
         (IsTransposed(facts.step) && (convolution::SelectTransposed(facts).ok() ||
                                       convolution::SelectFewTransposed(facts).ok()));
}

// Of bytes alone; 16-bit floats are widened. Groups of few outputs fill no vector, but for a kernel
// per channel and where several are multiplied together.
bool Selector::PrefersNarrowOperands(const device::Facts& facts) const {
  constexpr int64_t kMinOutputs = 16;
  if (runtime::IsLeftOut(kByteProduct) || !integer::SelectProduct(facts).ok()) return false;
  const Contract& contract = *facts.step.As<Contract>();
  if (contract.group == 1) return true;
  if (!facts.step.domain[1].is_constant()) return false;
  const int64_t outputs = facts.step.domain[1].constant() / contract.group;
  return outputs >= kMinOutputs || (outputs == 1 && contract.inner[0] == program::Dim(1)) ||
         integer::WalksInGroups(facts);
}

bool Selector::PrefersQuantizedWeights(const device::Facts& facts) const {
  return IsMatMul(facts.step) && !runtime::IsLeftOut(kQuantizedWeights) &&
         matmul::DescribeQuantizedWeights(facts).ok();
}

bool Selector::PrefersGatheredMatrices(const device::Facts& facts) const {
  return IsMatMul(facts.step) && !runtime::IsLeftOut(kGatheredProduct) &&
         matmul::DescribeGatheredProduct(facts).ok();
}

// Sums are in another order than those of the steps that it stands for.
bool Selector::PrefersAttention(const device::Facts& facts) const {
  return facts.program.has_fast_algorithms && !runtime::IsLeftOut(kAttention) &&
         attention::SelectAttention(facts).ok();
}

// All kernels of products and windows are of float32, or of bytes, but for oneDNN's of bfloat16.
bool Selector::PrefersWideFloats(const device::Facts& facts) const {
  if (MultipliesBfloat16(facts)) return false;
  // Between products of bfloat16 the largest of some is one of them.
  if (IsWindow(facts.step) && gemm::HasBfloat16Gemm() && pooling::SelectPooling(facts).ok()) {
    return false;
  }
  const auto* contract = facts.step.As<Contract>();
  const auto* window = facts.step.As<program::Window>();
  return (contract != nullptr ? contract->accumulator : window->accumulator) ==
         tensor::ElementType::kFloat32;
}

base::Result<std::unique_ptr<Device>> Device::Create(std::shared_ptr<threads::ThreadPool> pool,
                                                     const base::Log& log) {
  std::unique_ptr<Device> device(new Device(std::move(pool)));
  ONNXIFI_ASSIGN_OR_RETURN(device->onednn_, onednn::Runtime::Create(device->runtime_, log));
  return device;
}

base::Result<std::unique_ptr<device::Kernel>> Device::Build(const device::Recipe& recipe) {
  const auto* own = dynamic_cast<const runtime::Recipe*>(&recipe);
  return own != nullptr ? own->Build({runtime_, engine_, *onednn_}) : reference_.Build(recipe);
}

}  // namespace onnxifi::cpu
