// SPDX-License-Identifier: Apache-2.0
//
// Recipe and its kernel. A binding first tries the whole step as primitives, then primitives
// between loops, then another kernel of this plugin, or else the reference's loops alone, which
// take any extents and layout.

#include "backends/cpu/onednn/recipe.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "backends/core/program/cost.h"
#include "backends/core/program/operand_extents.h"
#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/onednn/call.h"
#include "backends/cpu/runtime/plain_operand.h"

namespace onnxifi::onednn {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;

namespace {

bool IsUnsupported(const Status& status) {
  switch (status.code()) {
    case Code::kUnsupportedAttribute:
    case Code::kUnsupportedShape:
    case Code::kUnsupportedDatatype:
    case Code::kUnsupportedOperator:
      return true;
    default:
      return false;
  }
}

const program::ExprIds& RootsOf(const program::Step& step) {
  const program::Contract* contract = step.As<program::Contract>();
  return contract != nullptr ? contract->roots : std::get<program::Window>(step.body).roots;
}

// A view can expand one element to any extent; the reference's loops do not write that out.
Status CheckCopy(const Extents& extents) {
  constexpr int64_t kMaxElements = int64_t{1} << 28;
  if (tensor::ElementCount(extents) <= kMaxElements) return base::Ok();
  return Status(Code::kUnsupportedShape, "An operand of " + tensor::ToString(extents) +
                                             " exceeds what is written out for a primitive (" +
                                             std::to_string(kMaxElements) + " elements).");
}

// What the step stores, before it is rounded to the type of its result: a primitive rounds as it
// stores, to the type of its factors if it does.
Result<program::ExprId> FindSums(const program::Program& program, const program::Step& step,
                                 ElementType factor_type) {
  const program::ExprId root = RootsOf(step)[0];
  const ElementType type = step.writes[0].type;
  if (type == ElementType::kFloat32) return root;
  if (type != factor_type) {
    return Status(Code::kUnsupportedDatatype, "The result is " + std::string(tensor::Name(type)) +
                                                  "; a primitive with factors of " +
                                                  std::string(tensor::Name(factor_type)) +
                                                  " stores float32 or that.");
  }
  const program::ExprNode& node = program.exprs[root];
  const bool is_rounding =
      node.op == program::ExprOp::kCast &&
      static_cast<tensor::Rounding>(node.payload >> 1) == tensor::Rounding::kNearestEven;
  if (is_rounding) return node.operands[0];
  return Status(Code::kUnsupportedAttribute,
                "The epilogue computes in " + std::string(tensor::Name(type)) +
                    "; a primitive computes in float32 and rounds what it stores.");
}

Status CheckLoops(const device::Facts& facts) {
  reference::CompileResult loops = reference::CompileStep(facts.program, facts.step);
  return loops.ok() ? base::Ok() : std::move(loops).status();
}

// Whether the step is done in less than about eight microseconds, which waking a thread takes.
bool IsTiny(const device::BoundStep& step) {
  constexpr int64_t kMaxFlops = 400'000;
  constexpr int64_t kMaxBytes = 100'000;
  const program::StepCost cost = program::CostOf(*step.program, *step.step, step.dims);
  return cost.flops <= kMaxFlops && cost.read_bytes <= kMaxBytes && cost.written_bytes <= kMaxBytes;
}

// What is in the primitives' place, and why.
class Instead final : public device::BoundKernel {
 public:
  Instead(std::unique_ptr<device::BoundKernel> bound, std::string detail)
      : bound_(std::move(bound)), detail_(std::move(detail)) {}

  Status Run(device::Addresses addresses) const override { return bound_->Run(addresses); }
  bool ReadsAtRun(int read) const override { return bound_->ReadsAtRun(read); }
  std::string Detail() const override { return detail_; }

 private:
  const std::unique_ptr<device::BoundKernel> bound_;
  const std::string detail_;
};

}  // namespace

class Kernel final : public device::Kernel {
 public:
  Kernel(const Recipe& recipe, Runtime& runtime,
         std::shared_ptr<const reference::CompiledStep> loops, std::vector<Prologue> prologues,
         std::shared_ptr<const reference::Expression> roots,
         std::unique_ptr<device::Kernel> otherwise)
      : implementation_(recipe.implementation_),
        lay_out_(recipe.lay_out_),
        edge_placement_(recipe.edge_placement_),
        post_ops_(recipe.post_ops_),
        runtime_(runtime),
        loops_(std::move(loops)),
        prologues_(std::move(prologues)),
        roots_(std::move(roots)),
        otherwise_(std::move(otherwise)),
        otherwise_name_(otherwise_ == nullptr ? "" : recipe.otherwise_->implementation()) {
    for (int k = 0; k < program::OperandCount(recipe.facts_.step); ++k) {
      is_plain_.push_back(
          runtime::CheckPlain(recipe.facts_.program, recipe.facts_.step, k, recipe.factor_type_)
              .ok());
    }
  }

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses constants) override {
    std::unique_ptr<device::BoundKernel> bound;
    ONNXIFI_RETURN_IF_ERROR(reference::Guarded([&] {
      bound = loops_->Bind(step, runtime_.pool());
      return base::Ok();
    }));
    if (tensor::ElementCount(step.domain) == 0) return bound;
    runtime_.EnterThread();
    SequenceBuilder builder(runtime_, constants, packed_);
    std::string reasons;
    for (const EdgePlacement edge_placement :
         {EdgePlacement::kInPrimitive, EdgePlacement::kInLoops}) {
      if (edge_placement == EdgePlacement::kInPrimitive &&
          edge_placement_ == EdgePlacement::kInLoops)
        continue;
      builder.Clear();
      const Status status = Call("preparing primitives", [&] {
        return LayOutStep(edge_placement, step, constants, builder);
      });
      if (status.ok()) {
        const bool has_loops = edge_placement == EdgePlacement::kInLoops;
        ++(has_loops ? runtime_.counts().between_loops : runtime_.counts().alone);
        std::optional<reference::Epilogue> epilogue;
        if (has_loops) {
          epilogue.emplace(*roots_, ElementType::kFloat32, step, runtime_.pool());
        }
        Work work = builder.TakeWork();
        std::vector<bool> reads = ReadsOf(step, work, has_loops, constants);
        return std::unique_ptr<device::BoundKernel>(
            std::make_unique<Sequence>(runtime_, std::move(work), IsTiny(step), roots_,
                                       std::move(epilogue), std::move(bound), std::move(reads)));
      }
      if (!IsUnsupported(status)) return status;
      // What is wrong with the extents mostly is so with and without loops.
      if (reasons == status.sentence()) continue;
      reasons += (reasons.empty() ? "" : " ") + std::string(status.sentence());
    }
    if (otherwise_ != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(bound, otherwise_->Bind(step, constants));
      std::string detail =
          std::string(otherwise_name_) + ": " + reasons + " (" + bound->Detail() + ")";
      return std::unique_ptr<device::BoundKernel>(
          std::make_unique<Instead>(std::move(bound), std::move(detail)));
    }
    ++runtime_.counts().reference;
    if (runtime_.log().Enabled(base::LogLevel::kDebug)) {
      runtime_.log().Write(base::LogLevel::kDebug, "cpu",
                           std::string(implementation_) + " over " + tensor::ToString(step.domain) +
                               " runs as the reference's loops: " + reasons);
    }
    std::string detail = bound->Detail() + ": " + reasons;
    return std::unique_ptr<device::BoundKernel>(
        std::make_unique<Instead>(std::move(bound), std::move(detail)));
  }

 private:
  Status LayOutStep(EdgePlacement edge_placement, const device::BoundStep& step,
                    device::Addresses constants, SequenceBuilder& builder) {
    const bool has_loops = edge_placement == EdgePlacement::kInLoops;
    Task task{step, {}, {}, {}};
    if (has_loops) {
      ONNXIFI_RETURN_IF_ERROR(CheckCopy(step.domain));
      // First in the work memory, where Sequence looks for them.
      task.result.view = builder.WorkView(step.domain);
    } else {
      task.post_ops = post_ops_;
      task.result.view = step.writes[0];
    }
    for (size_t k = 0; k < prologues_.size(); ++k) {
      Tensor& operand = task.operands.emplace_back();
      // What loops write out is float32, and so are both factors then.
      const bool is_float32 = step.reads[k].type == ElementType::kFloat32;
      const bool is_read =
          is_plain_[k] && (!has_loops || (is_float32 && HasDescriptor(step, static_cast<int>(k))));
      if (is_read) {
        operand.view = step.reads[k];
        continue;
      }
      BoundPrologue prologue(prologues_[k], step, static_cast<int>(k));
      ONNXIFI_RETURN_IF_ERROR(CheckCopy(prologue.extents()));
      if (prologues_[k].is_constant()) {
        ONNXIFI_ASSIGN_OR_RETURN(operand, EvaluatedOnce(prologue, k, constants));
      } else {
        operand.view = builder.WorkView(prologue.extents());
        builder.AddPrologue(std::move(prologue), operand.view);
      }
    }
    return lay_out_(task, builder);
  }

  Result<Tensor> EvaluatedOnce(const BoundPrologue& prologue, size_t operand,
                               device::Addresses constants) {
    const Extents& extents = prologue.extents();
    const std::lock_guard lock(mutex_);
    PackedConstant& evaluated = evaluated_[{operand, extents}];
    if (evaluated == nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(PackedConstant memory,
                               runtime_.memory().Allocate(tensor::ElementCount(extents) *
                                                          static_cast<int64_t>(sizeof(float))));
      ONNXIFI_RETURN_IF_ERROR(prologue.Run(constants, memory->data(), runtime_.pool()));
      evaluated = std::move(memory);
    }
    return Tensor{
        {program::kNoBuffer, ElementType::kFloat32, 0, tensor::DenseStrides(extents), {}, {}},
        evaluated};
  }

  const std::string_view implementation_;
  const LayOut lay_out_;
  const EdgePlacement edge_placement_;
  const std::vector<epilogue::Operation> post_ops_;
  Runtime& runtime_;
  const std::shared_ptr<const reference::CompiledStep> loops_;  // shared with the kernels it bound
  const std::vector<Prologue> prologues_;                       // one per operand
  std::vector<bool> is_plain_;
  const std::shared_ptr<const reference::Expression> roots_;  // shared with sequences
  const std::unique_ptr<device::Kernel> otherwise_;
  const std::string_view otherwise_name_;
  PackedConstants packed_;
  std::mutex mutex_;
  std::map<std::pair<size_t, Extents>, PackedConstant> evaluated_;
};

Result<std::unique_ptr<device::Kernel>> Recipe::Build(const runtime::Runtimes& runtimes) const {
  std::unique_ptr<device::Kernel> otherwise;
  if (otherwise_ != nullptr) {
    // Of another folder of this plugin.
    const auto& recipe = dynamic_cast<const runtime::Recipe&>(*otherwise_);
    ONNXIFI_ASSIGN_OR_RETURN(otherwise, recipe.Build(runtimes));
  }
  return BuildKernel(runtimes.onednn, std::move(otherwise));
}

std::unique_ptr<const device::Recipe> WithOtherwise(
    std::unique_ptr<const device::Recipe> recipe, std::unique_ptr<const device::Recipe> otherwise) {
  auto both = std::make_unique<Recipe>(dynamic_cast<const Recipe&>(*recipe));
  both->SetOtherwise(std::move(otherwise));
  return both;
}

Result<std::unique_ptr<device::Kernel>> Recipe::BuildKernel(
    Runtime& runtime, std::unique_ptr<device::Kernel> otherwise) const {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const reference::CompiledStep> loops,
                           reference::CompileStep(facts_.program, facts_.step));
  std::vector<Prologue> prologues;
  for (int k = 0; k < program::OperandCount(facts_.step); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(Prologue prologue, Prologue::Compile(facts_.program, facts_.step, k));
    prologues.push_back(std::move(prologue));
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      reference::Expression roots,
      reference::Expression::Compile(facts_.program.exprs, RootsOf(facts_.step)));
  return std::unique_ptr<device::Kernel>(std::make_unique<Kernel>(
      *this, runtime, std::move(loops), std::move(prologues),
      std::make_shared<const reference::Expression>(std::move(roots)), std::move(otherwise)));
}

runtime::RecipeResult MakeRecipe(std::string_view implementation, const device::Facts& facts,
                                 LayOut lay_out, EdgePlacement edge_placement) {
  const program::Step& step = facts.step;
  const program::Contract* contract = step.As<program::Contract>();
  const ElementType accumulator = contract != nullptr
                                      ? contract->accumulator
                                      : std::get<program::Window>(step.body).accumulator;
  if (accumulator != ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype, "The step accumulates in " +
                                                  std::string(tensor::Name(accumulator)) +
                                                  "; the primitives are used for float32.");
  }
  std::vector<epilogue::Operation> post_ops;
  ElementType factor_type = ElementType::kFloat32;
  if (edge_placement == EdgePlacement::kInPrimitive) {
    if (contract != nullptr && step.reads[0].type == ElementType::kBfloat16 &&
        HasBfloat16Products()) {
      factor_type = ElementType::kBfloat16;
    }
    for (int k = 0; k < program::OperandCount(step); ++k) {
      ONNXIFI_RETURN_IF_ERROR(runtime::CheckPlain(facts.program, step, k, factor_type));
    }
    if (step.writes.size() != 1) {
      return Status(
          Code::kUnsupportedAttribute,
          "The step has " + std::to_string(step.writes.size()) + " results; a primitive has one.");
    }
    ONNXIFI_ASSIGN_OR_RETURN(const program::ExprId sums,
                             FindSums(facts.program, step, factor_type));
    const bool is_narrow = factor_type == ElementType::kBfloat16;
    ONNXIFI_ASSIGN_OR_RETURN(post_ops,
                             TranslatePostOps(facts.program, step, sums,
                                              is_narrow ? epilogue::ReadTypes::kFloat32OrBfloat16
                                                        : epilogue::ReadTypes::kFloat32));
  } else {
    // What surrounds the primitive has to be something that the loops can compute.
    ONNXIFI_RETURN_IF_ERROR(CheckLoops(facts));
  }
  return std::unique_ptr<const device::Recipe>(std::make_unique<Recipe>(
      implementation, facts, lay_out, edge_placement, factor_type, std::move(post_ops)));
}

bool IsGood(const dnnl::primitive_desc_base& desc) {
  if (!desc) return false;
  // A primitive made of others names them all: "conv:any+ref:any".
  std::string_view rest = desc.impl_info_str();
  while (true) {
    // The second are loops, too. The third, a wrapper that transposes plain tensors, leaves parts
    // of some results unwritten.
    if (rest.starts_with("ref") || rest.starts_with("simple") || rest.starts_with("jit_uni_ncsp")) {
      return false;
    }
    const size_t next = rest.find('+');
    if (next == std::string_view::npos) return true;
    rest.remove_prefix(next + 1);
  }
}

Status NoGoodPrimitive(std::string_view primitive) {
  return Status(Code::kUnsupportedShape, "oneDNN has no optimised " + std::string(primitive) +
                                             " for these extents and layouts.");
}

}  // namespace onnxifi::onednn
