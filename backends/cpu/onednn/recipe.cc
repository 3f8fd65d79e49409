// SPDX-License-Identifier: Apache-2.0
//
// Recipe and its kernel. A binding first tries the whole step as primitives, then the primitives
// without the epilogue, then the reference's loops, which take any extents and layout.

#include "backends/cpu/onednn/recipe.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "backends/core/reference/compiled_step.h"
#include "backends/core/reference/scratch.h"
#include "backends/cpu/onednn/call.h"

namespace onnxifi::onednn {

using base::Code;
using base::Result;
using base::Status;

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

}  // namespace

class Kernel final : public device::Kernel {
 public:
  Kernel(const Recipe& recipe, Runtime& runtime,
         std::shared_ptr<const reference::CompiledStep> loops,
         std::shared_ptr<const reference::Expression> roots)
      : implementation_(recipe.implementation_),
        lay_out_(recipe.lay_out_),
        epilogue_at_(recipe.epilogue_at_),
        post_ops_(recipe.post_ops_),
        runtime_(runtime),
        loops_(std::move(loops)),
        roots_(std::move(roots)) {}

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
    for (const EpilogueAt at : {EpilogueAt::kPrimitive, EpilogueAt::kLoops}) {
      if (at == EpilogueAt::kPrimitive && epilogue_at_ != at) continue;
      builder.Clear();
      const Task task = at == EpilogueAt::kPrimitive ? Fused(step) : Apart(step, builder);
      const Status status = Call("preparing primitives", [&] { return lay_out_(task, builder); });
      if (status.ok()) {
        std::optional<Sequence::Apart> apart;
        if (at == EpilogueAt::kLoops) {
          apart.emplace(Sequence::Apart{
              roots_,
              reference::Epilogue(*roots_, tensor::ElementType::kFloat32, step, runtime_.pool()),
              /*sums_offset_bytes=*/0});
        }
        ++(apart ? runtime_.counts().apart : runtime_.counts().fused);
        const int64_t work_bytes = builder.work_bytes();
        return std::unique_ptr<device::BoundKernel>(std::make_unique<Sequence>(
            runtime_, builder.TakeSteps(), work_bytes, std::move(apart), std::move(bound)));
      }
      if (!IsUnsupported(status)) return status;
      reasons += (reasons.empty() ? "" : " ") + std::string(status.sentence());
    }
    ++runtime_.counts().reference;
    if (runtime_.log().Enabled(base::LogLevel::kDebug)) {
      runtime_.log().Write(base::LogLevel::kDebug, "cpu",
                           std::string(implementation_) + " over " + tensor::ToString(step.domain) +
                               " runs as the reference's loops: " + reasons);
    }
    return bound;
  }

 private:
  Task Fused(const device::BoundStep& step) const { return {step, post_ops_, step.writes[0]}; }

  // The sums lie at the beginning of the work memory.
  static Task Apart(const device::BoundStep& step, SequenceBuilder& builder) {
    const Extents count = {tensor::ElementCount(step.domain)};
    const Place sums = builder.Work(Dense(count));
    device::BoundView result{sums.buffer,
                             tensor::ElementType::kFloat32,
                             sums.offset_bytes / static_cast<int64_t>(sizeof(float)),
                             tensor::DenseStrides(step.domain),
                             {},
                             {}};
    return {step, {}, std::move(result)};
  }

  const std::string_view implementation_;
  const LayOut lay_out_;
  const EpilogueAt epilogue_at_;
  const std::vector<PostOp> post_ops_;
  Runtime& runtime_;
  const std::shared_ptr<const reference::CompiledStep> loops_;  // shared with the kernels it bound
  const std::shared_ptr<const reference::Expression> roots_;    // shared with sequences
  PackedConstants packed_;
};

Result<std::unique_ptr<device::Kernel>> Recipe::Build(Runtime& runtime) const {
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const reference::CompiledStep> loops,
                           reference::CompileStep(facts_.program, facts_.step));
  const program::Contract* contract = facts_.step.As<program::Contract>();
  const std::vector<program::ExprId>& ids =
      contract != nullptr ? contract->roots : facts_.step.As<program::Window>()->roots;
  ONNXIFI_ASSIGN_OR_RETURN(reference::Expression roots,
                           reference::Expression::Compile(facts_.program.exprs, ids));
  return std::unique_ptr<device::Kernel>(
      std::make_unique<Kernel>(*this, runtime, std::move(loops),
                               std::make_shared<const reference::Expression>(std::move(roots))));
}

SelectResult MakeRecipe(std::string_view implementation, const device::Facts& facts, LayOut lay_out,
                        EpilogueAt epilogue_at, std::span<const program::ExprId> roots) {
  std::vector<PostOp> post_ops;
  if (epilogue_at == EpilogueAt::kPrimitive) {
    if (facts.step.writes.size() != 1 || roots.size() != 1) {
      return Status(Code::kUnsupportedAttribute, "The step has " +
                                                     std::to_string(facts.step.writes.size()) +
                                                     " results; a primitive has one.");
    }
    ONNXIFI_RETURN_IF_ERROR(CheckOperand(facts.step.writes[0], "The result"));
    ONNXIFI_ASSIGN_OR_RETURN(post_ops, TranslatePostOps(facts.program, facts.step, roots[0]));
  }
  return std::unique_ptr<const device::Recipe>(
      std::make_unique<Recipe>(implementation, facts, lay_out, epilogue_at, std::move(post_ops)));
}

Status CheckOperand(const program::View& view, std::string_view role) {
  if (view.type != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype, std::string(role) + " is " +
                                                  std::string(tensor::Name(view.type)) +
                                                  "; oneDNN's kernels are used for float32.");
  }
  if (!view.guards.empty()) {
    return Status(Code::kUnsupportedShape,
                  std::string(role) + " is padded by its view; a primitive reads whole tensors.");
  }
  return base::Ok();
}

Status CheckContract(const device::Facts& facts) {
  const program::Contract& contract = *facts.step.As<program::Contract>();
  if (contract.accumulator != tensor::ElementType::kFloat32) {
    return Status(Code::kUnsupportedDatatype, "Products are summed in " +
                                                  std::string(tensor::Name(contract.accumulator)) +
                                                  "; oneDNN's kernels are used for float32.");
  }
  for (const auto& [read, prologue, role] : {std::tuple(0, contract.a_prologue, "Operand A"),
                                             std::tuple(1, contract.b_prologue, "Operand B")}) {
    ONNXIFI_RETURN_IF_ERROR(CheckOperand(facts.step.reads[static_cast<size_t>(read)], role));
    const program::ExprNode& node = facts.program.exprs[prologue];
    const bool is_plain = node.op == program::ExprOp::kLoad && node.operands.empty() &&
                          node.payload == static_cast<uint64_t>(read);
    if (!is_plain) {
      return Status(Code::kUnsupportedAttribute, std::string(role) +
                                                     " is computed while it is read (" +
                                                     std::string(program::Name(node.op)) +
                                                     "); a primitive reads it from memory.");
    }
  }
  return base::Ok();
}

bool IsGood(const dnnl::primitive_desc_base& desc) {
  return desc && !std::string_view(desc.impl_info_str()).starts_with("ref");
}

Status NoGoodPrimitive(std::string_view primitive) {
  return Status(Code::kUnsupportedShape, "oneDNN has no optimised " + std::string(primitive) +
                                             " for these extents and layouts.");
}

}  // namespace onnxifi::onednn
