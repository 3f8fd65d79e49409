// SPDX-License-Identifier: Apache-2.0
//
// The pipeline: the list of passes, and the support check that claims and initialisation share.

#include "backends/core/plugin/pipeline.h"

#include <algorithm>

#include "backends/core/graph/constant_captures.h"
#include "backends/core/graph/constant_folding.h"
#include "backends/core/graph/dead_nodes.h"
#include "backends/core/graph/pass_runner.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/ops/rewrite/passes.h"
#include "backends/core/plugin/constant_evaluator.h"
#include "backends/core/plugin/constant_steps.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::plugin {
namespace {

using base::Result;
using base::Status;
using program::Program;

#ifdef NDEBUG
constexpr bool kVerifiesPasses = false;
#else
constexpr bool kVerifiesPasses = true;
#endif

// A recurrent step that the device does not prefer becomes a scan.
void ExpandRecurrent(Program& program, size_t first_step, const device::Selector& selector) {
  const auto prefers = [&selector](const Program& of, const program::Step& step) {
    return selector.PrefersRecurrent({of, step});
  };
  program::ExpandRecurrent(program, prefers, first_step);
}

// Selects every step from `first_step` on, those of sub-programs too. FALLBACK where some are
// emulated.
Status SelectSteps(const Program& program, size_t first_step, const device::Selector& selector) {
  bool is_emulated = false;
  for (size_t s = first_step; s < program.steps.size(); ++s) {
    const program::Step& step = program.steps[s];
    if (const program::Control* control = step.As<program::Control>()) {
      for (const std::unique_ptr<Program>& body : control->bodies) {
        const Status selected = SelectSteps(*body, 0, selector);
        is_emulated = is_emulated || selected.code() == base::Code::kFallback;
        if (!selected.ok() && selected.code() != base::Code::kFallback) return selected;
      }
    } else if (!program::IsRunByExecution(step)) {
      Result<device::Selection> selection = selector.Select({program, step});
      if (!selection.ok()) return std::move(selection).status();
      is_emulated = is_emulated || selection->is_emulated;
    }
  }
  return is_emulated ? Status(base::Code::kFallback, "The reference computes it.") : base::Ok();
}

ops::StepCheck Selects(const device::Selector& selector) {
  return [&selector](Program& program, size_t first_step) {
    ExpandRecurrent(program, first_step, selector);
    return SelectSteps(program, first_step, selector);
  };
}

// One program pass, timed, and verified after it ran.
Status RunPass(std::string_view name, LoadTimes& times, Program& program,
               const std::function<void(Program&)>& pass) {
  times.Time(name, [&] { pass(program); });
  if (kVerifiesPasses) return program::Verify(program);
  return base::Ok();
}

// `host` computes constants.
Status OptimizeProgram(Program& program, const device::Selector& selector, device::Device& host,
                       LoadTimes& times) {
  // A step that would fall to a slower implementation with the Map in it is better off without.
  program::Accepts accepts = [&selector](const Program& whole, const program::Step& before,
                                         const program::Step& after) {
    Result<device::Selection> now = selector.Select({whole, before});
    Result<device::Selection> then = selector.Select({whole, after});
    return now.ok() && then.ok() && now->recipe->implementation() == then->recipe->implementation();
  };
  ONNXIFI_RETURN_IF_ERROR(RunPass("dead_steps", times, program, program::RemoveDeadSteps));
  ONNXIFI_RETURN_IF_ERROR(RunPass("absorb_padding", times, program, program::AbsorbPadding));
  ONNXIFI_RETURN_IF_ERROR(RunPass("expand_recurrent", times, program, [&](Program& whole) {
    ExpandRecurrent(whole, /*first_step=*/0, selector);
  }));
  // Before constants are computed, and while no Map that rounds is a part of another.
  ONNXIFI_RETURN_IF_ERROR(RunPass("widen_floats", times, program, [&](Program& whole) {
    program::WidenFloats(whole, [&selector](const Program& of, const program::Step& step) {
      return selector.PrefersWideFloats({of, step});
    });
  }));
  if (program.has_fast_algorithms) {
    // While weights are bytes, and what dequantizes them a step of its own.
    ONNXIFI_RETURN_IF_ERROR(RunPass("integer_products", times, program, [&](Program& whole) {
      program::MakeIntegerProducts(whole,
                                   [&selector](const Program& of, const program::Step& step) {
                                     return selector.PrefersNarrowOperands({of, step});
                                   });
    }));
    // So that numbers are known by which bytes are taken apart.
    constexpr int64_t kFewBytes = 1024;
    ONNXIFI_RETURN_IF_ERROR(
        times.Time("constant_steps", [&] { return FoldConstantSteps(program, host, kFewBytes); }));
  }
  // Before the matrices are constants, and before the Maps that select them are parts of others.
  ONNXIFI_RETURN_IF_ERROR(RunPass("gathered_products", times, program, [&](Program& whole) {
    program::MakeGatheredProducts(whole, [&selector](const Program& of, const program::Step& step) {
      return selector.PrefersGatheredMatrices({of, step});
    });
  }));
  if (program.has_fast_algorithms) {
    ONNXIFI_RETURN_IF_ERROR(RunPass("weight_products", times, program, [&](Program& whole) {
      program::MakeWeightProducts(whole, [&selector](const Program& of, const program::Step& step) {
        return selector.PrefersQuantizedWeights({of, step});
      });
    }));
  }
  ONNXIFI_RETURN_IF_ERROR(
      times.Time("constant_steps", [&] { return FoldConstantSteps(program, host); }));
  if (program.has_fast_algorithms) {
    ONNXIFI_RETURN_IF_ERROR(RunPass("fold_factors", times, program, program::FoldFactors));
    ONNXIFI_RETURN_IF_ERROR(
        times.Time("constant_steps", [&] { return FoldConstantSteps(program, host); }));
  }
  // What the constants were made of.
  ONNXIFI_RETURN_IF_ERROR(RunPass("dead_steps", times, program, program::RemoveDeadSteps));
  // Before what dequantizes bytes is a part of the epilogue that makes them.
  ONNXIFI_RETURN_IF_ERROR(RunPass("inline_dequantizations", times, program, [&](Program& whole) {
    program::InlineDequantizations(whole, accepts);
  }));
  // What follows a kernel by itself is not to become a part of a function that it does not know.
  const auto fuse_epilogues = [&](Program& whole) { program::FuseEpilogues(whole, accepts); };
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_epilogues", times, program, fuse_epilogues));
  // So that a kernel knows the function that several nodes are.
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_functions", times, program,
                                  [&](Program& whole) { program::FuseFunctions(whole, accepts); }));
  // Before the maps are joined among themselves, so that a kernel can take the part of a chain that
  // it knows.
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_epilogues", times, program, fuse_epilogues));
  // Once no epilogue grows any more.
  ONNXIFI_RETURN_IF_ERROR(RunPass("store_bytes", times, program,
                                  [&](Program& whole) { program::StoreBytes(whole, accepts); }));
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_maps", times, program,
                                  [&](Program& whole) { program::FuseMaps(whole, accepts); }));
  // Once Maps that have the axes of the model are a part of what they follow.
  ONNXIFI_RETURN_IF_ERROR(RunPass("order_spatial_axes", times, program, program::OrderSpatialAxes));
  ONNXIFI_RETURN_IF_ERROR(RunPass("channels_last", times, program, [&](Program& whole) {
    program::LayOutChannelsLast(whole, [&selector](const Program& of, const program::Step& step) {
      return selector.PrefersChannelsLast({of, step});
    });
  }));
  // After the orders in memory are chosen, so that two buffers which become one never decide them.
  ONNXIFI_RETURN_IF_ERROR(RunPass("forward_copies", times, program,
                                  [&](Program& whole) { program::ForwardCopies(whole, accepts); }));
  if (program.has_fast_algorithms) {
    // Nothing is to be moved into the parts any more, or out of them.
    ONNXIFI_RETURN_IF_ERROR(times.Time("winograd", [&] {
      return program::ExpandWinograd(program, [&](const Program& of, const program::Step& step) {
        return selector.PrefersWinograd({of, step});
      });
    }));
    ONNXIFI_RETURN_IF_ERROR(RunPass("dead_steps", times, program, program::RemoveDeadSteps));
  }
  // Behind Winograd's algorithm, which wants float32.
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_widenings", times, program, [&](Program& whole) {
    program::FuseWidenings(whole, [&selector](const Program& of, const program::Step& step) {
      return selector.PrefersNarrowOperands({of, step});
    });
  }));
  // Masks and scales have moved to their places.
  const program::PrefersAttention prefers_attention = [&selector](const Program& of,
                                                                  const program::Step& step) {
    return selector.PrefersAttention({of, step});
  };
  ONNXIFI_RETURN_IF_ERROR(RunPass("fuse_attention", times, program, [&](Program& whole) {
    program::FuseAttention(whole, prefers_attention);
  }));
  // Attention writes in any order, other than the product that it began as.
  const bool has_attention = std::ranges::any_of(program.steps, [](const program::Step& step) {
    return step.As<program::Attention>() != nullptr;
  });
  if (has_attention) {
    ONNXIFI_RETURN_IF_ERROR(RunPass("forward_copies", times, program, [&](Program& whole) {
      program::ForwardCopies(whole, accepts);
    }));
    // Behind that, which finds the axis of heads whole.
    ONNXIFI_RETURN_IF_ERROR(RunPass(
        "inline_attention_operands", times, program,
        [&](Program& whole) { program::InlineAttentionOperands(whole, prefers_attention); }));
  }
  ONNXIFI_RETURN_IF_ERROR(RunPass("dead_steps", times, program, program::RemoveDeadSteps));
  ONNXIFI_RETURN_IF_ERROR(RunPass("order_fusable_steps", times, program, [&](Program& whole) {
    program::OrderFusableSteps(whole, [&selector](const Program& of, const program::Step& first,
                                                  const program::Step& second) {
      const device::Facts fusable[] = {{of, first}, {of, second}};
      return selector.SelectFused(fusable).steps == 2;
    });
  }));
  for (program::Step& step : program.steps) {
    program::Control* control = step.As<program::Control>();
    if (control == nullptr) continue;
    for (std::unique_ptr<Program>& body : control->bodies) {
      static_cast<tensor::Permissions&>(*body) = program;
      ONNXIFI_RETURN_IF_ERROR(OptimizeProgram(*body, selector, host, times));
    }
  }
  return base::Ok();
}

}  // namespace

ops::SupportAnswer CheckSupportOfNodes(const graph::Graph& graph, const device::Selector& selector,
                                       ops::Carrier carrier, const OperatorSource& operators) {
  return ops::LowerEachNode(graph, &operators, Selects(selector), carrier);
}

Status CheckSupport(const graph::Graph& graph, const device::Selector& selector,
                    ops::Carrier carrier, bool* out_is_emulated, const OperatorSource& operators) {
  ops::SupportAnswer answer = CheckSupportOfNodes(graph, selector, carrier, operators);
  if (out_is_emulated != nullptr) {
    *out_is_emulated = std::ranges::find(answer.is_emulated, true) != answer.is_emulated.end();
  }
  // A node's reason says more than that of an input which it reads.
  for (size_t k = 0; k < answer.nodes.size(); ++k) {
    if (!answer.nodes[k].ok()) {
      return std::move(answer.nodes[k]).Context("at " + graph::Describe(graph.nodes[k]));
    }
  }
  return std::move(answer.edges);
}

Result<std::unique_ptr<Program>> Compile(graph::Graph graph, device::Device& device,
                                         const base::Log& log, LoadTimes& times,
                                         const tensor::Permissions& permissions,
                                         const OperatorSource& operators,
                                         ops::BranchRequest* branches) {
  // The reference computes every sum as it is defined.
  ConstantEvaluator evaluator(&operators,
                              permissions.has_fast_algorithms ? device.constant_device() : nullptr);
  graph::PassOptions options;
  options.verify = kVerifiesPasses;
  if (log.Enabled(base::LogLevel::kDebug)) {
    options.dump = [&log](std::string_view pass, const graph::Graph& changed) {
      log.Write(base::LogLevel::kDebug, "graph",
                std::string(pass) + " leaves " + std::to_string(changed.nodes.size()) + " nodes");
    };
  }
  graph::PassRunner runner(std::move(options));
  graph::ConstantCaptures captures;
  graph::ConstantFolding folding(evaluator);
  graph::DeadNodes dead_nodes;
  ONNXIFI_RETURN_IF_ERROR(runner.Run(captures, graph));
  // Before the rewrites too, since exporters hide constants behind Constant, Unsqueeze or Cast.
  ONNXIFI_RETURN_IF_ERROR(runner.Run(folding, graph));
  for (const std::unique_ptr<graph::Pass>& rewrite : ops::MakeRewrites()) {
    ONNXIFI_RETURN_IF_ERROR(runner.Run(*rewrite, graph));
  }
  ONNXIFI_RETURN_IF_ERROR(runner.Run(folding, graph));
  ONNXIFI_RETURN_IF_ERROR(runner.Run(dead_nodes, graph));
  for (const graph::PassRecord& record : runner.records()) times.Add(record.pass, record.duration);

  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Program> program, times.Time("lower", [&] {
    return ops::LowerGraph(graph, &operators, /*check=*/nullptr, branches);
  }));
  if (kVerifiesPasses) ONNXIFI_RETURN_IF_ERROR(program::Verify(*program));
  static_cast<tensor::Permissions&>(*program) = permissions;
  reference::Device reference;
  device::Device* const host = device.constant_device();
  ONNXIFI_RETURN_IF_ERROR(
      OptimizeProgram(*program, device, host != nullptr ? *host : reference, times));
  return program;
}

}  // namespace onnxifi::plugin
