// SPDX-License-Identifier: Apache-2.0
//
// step_fuzz: writes random steps with what the reference makes of them, for tools/check_steps.py to
// evaluate on its own with numpy. One line of JSON per step, the contents of buffers in a file of
// bytes beside it.
//
//   step_fuzz --out PREFIX [--seed N] [--family NAME] --count N     writes PREFIX.jsonl and
//   PREFIX.bin

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::reference {
namespace {

using program::ExprId;

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <typename Items, typename Text>
std::string List(const Items& items, Text&& text) {
  std::string list = "[";
  for (const auto& item : items) list += (list.size() > 1 ? "," : "") + text(item);
  return list + "]";
}

// The shortest text that is read as the same number.
std::string Number(double value) {
  char text[32];
  const auto result = std::to_chars(std::begin(text), std::end(text), value);
  return std::string(std::begin(text), result.ptr);
}

std::string Numbers(const std::vector<int64_t>& numbers) {
  return List(numbers, [](int64_t number) { return std::to_string(number); });
}

// Writes one step as JSON: views as numbers, expressions as one list of nodes in evaluation order.
class StepText {
 public:
  StepText(const RandomStep& step)  // NOLINT(google-explicit-constructor)
      : step_(step), body_(step.program.steps[0]) {}

  std::string Text(Family family) {
    const device::BoundStep bound = device::Bind(step_.program, body_, step_.dims);
    const std::string body = std::visit([this](const auto& b) { return BodyText(b); }, body_.body);
    return "\"family\":" + Quoted(Name(family)) + ",\"domain\":" + Numbers(bound.domain) +
           ",\"reads\":" + Views(bound.reads) + ",\"writes\":" + Views(bound.writes) +
           ",\"nodes\":" + Nodes() + ",\"body\":{" + body + "}";
  }

 private:
  static std::string Views(const std::vector<device::BoundView>& views) {
    return List(views, [](const device::BoundView& view) {
      const std::string guards = List(view.guards, [](const device::BoundGuard& guard) {
        return "[" + Numbers(guard.coefficients) + "," + std::to_string(guard.offset) + "," +
               std::to_string(guard.extent) + "]";
      });
      return "{\"buffer\":" + std::to_string(view.buffer) +
             ",\"type\":" + std::to_string(static_cast<int>(view.type)) +
             ",\"offset\":" + std::to_string(view.offset) +
             ",\"strides\":" + Numbers(view.strides) + ",\"guards\":" + guards +
             ",\"fill\":" + std::to_string(view.fill.u) + "}";
    });
  }

  // Remembers the root, to be written with all others by Nodes().
  std::string Root(ExprId id) {
    if (id != program::kNoExpr) roots_.push_back(id);
    return std::to_string(id);
  }
  std::string Roots(const program::ExprIds& ids) {
    return List(ids, [this](ExprId id) { return Root(id); });
  }
  std::string States(const program::Reduction& reduction) {
    return List(reduction.states, [this](const program::Reduction::State& state) {
      return "[" + std::to_string(static_cast<int>(state.type)) + "," + Root(state.init) + "," +
             Root(state.update) + "]";
    });
  }

  template <typename Dims>
  std::vector<int64_t> ValuesOf(const Dims& dims) const {
    std::vector<int64_t> values;
    for (const program::Dim& dim : dims) values.push_back(tensor::ValueOf(dim, step_.dims));
    return values;
  }

  std::string BodyText(const program::Map& map) { return "\"roots\":" + Roots(map.roots); }
  std::string BodyText(const program::Reduce& reduce) {
    return "\"axes\":" + std::to_string(reduce.axes) + ",\"states\":" + States(reduce.reduction) +
           ",\"roots\":" + Roots(reduce.roots);
  }
  std::string BodyText(const program::Row& row) {
    const std::string passes = List(row.passes, [this](const program::Row::Pass& pass) {
      return "[" + States(pass.reduction) + "," + Roots(pass.results) + "]";
    });
    return "\"axes\":" + std::to_string(row.axes) + ",\"passes\":" + passes +
           ",\"roots\":" + Roots(row.roots);
  }
  std::string BodyText(const program::Scan& scan) {
    return std::string("\"exclusive\":") + (scan.exclusive ? "true" : "false") +
           ",\"states\":" + States(scan.reduction) + ",\"roots\":" + Roots(scan.roots);
  }
  std::string BodyText(const program::Index& index) {
    return "\"kind\":" + std::to_string(static_cast<int>(index.kind)) +
           ",\"combine\":" + std::to_string(static_cast<int>(index.combine)) +
           ",\"target\":" + Numbers(ValuesOf(index.target)) +
           ",\"k\":" + std::to_string(tensor::ValueOf(index.k, step_.dims)) +
           ",\"largest\":" + (index.largest ? "true" : "false");
  }
  std::string BodyText(const program::Contract& contract) {
    return "\"form\":" + std::to_string(static_cast<int>(contract.form)) +
           ",\"batch_axes\":" + std::to_string(contract.batch_axes) +
           ",\"m_axes\":" + std::to_string(contract.m_axes) +
           ",\"inner\":" + Numbers(ValuesOf(contract.inner)) +
           ",\"accumulator\":" + std::to_string(static_cast<int>(contract.accumulator)) +
           ",\"a_prologue\":" + Root(contract.a_prologue) +
           ",\"b_prologue\":" + Root(contract.b_prologue) + ",\"roots\":" + Roots(contract.roots) +
           ",\"a_spatial\":" + Numbers(ValuesOf(contract.a_spatial)) +
           ",\"strides\":" + Numbers(contract.strides) +
           ",\"dilations\":" + Numbers(contract.dilations) +
           ",\"pads\":" + Numbers(ValuesOf(contract.pads_begin)) +
           ",\"group\":" + std::to_string(contract.group);
  }
  std::string BodyText(const program::Window& window) {
    return "\"kind\":" + std::to_string(static_cast<int>(window.kind)) +
           ",\"in_spatial\":" + Numbers(ValuesOf(window.in_spatial)) +
           ",\"kernel\":" + Numbers(ValuesOf(window.kernel)) +
           ",\"strides\":" + Numbers(window.strides) +
           ",\"dilations\":" + Numbers(window.dilations) +
           ",\"pads_begin\":" + Numbers(ValuesOf(window.pads_begin)) +
           ",\"pads_end\":" + Numbers(ValuesOf(window.pads_end)) +
           ",\"count_include_pad\":" + (window.count_include_pad ? "true" : "false") +
           ",\"p\":" + std::to_string(window.p) +
           ",\"column_major\":" + (window.column_major ? "true" : "false") +
           ",\"alpha\":" + Number(window.alpha) + ",\"beta\":" + Number(window.beta) +
           ",\"bias\":" + Number(window.bias) +
           ",\"accumulator\":" + std::to_string(static_cast<int>(window.accumulator)) +
           ",\"roots\":" + Roots(window.roots);
  }
  template <typename Body>
  std::string BodyText(const Body&) {
    return "";
  }

  std::string Nodes() const {
    return List(program::Reachable(step_.program.exprs, roots_), [this](ExprId id) {
      const program::ExprNode& node = step_.program.exprs[id];
      const std::string operands =
          List(node.operands, [](ExprId operand) { return std::to_string(operand); });
      return "[" + std::to_string(id) + "," + Quoted(Name(node.op)) + "," +
             std::to_string(static_cast<int>(node.type)) + "," + std::to_string(node.payload) +
             "," + std::to_string(tensor::ValueOf(node.dim, step_.dims)) + "," + operands + "]";
    });
  }

  const RandomStep& step_;
  const program::Step& body_;
  std::vector<ExprId> roots_;
};

// Appends a buffer's bytes and says where they are.
std::string Append(std::ofstream& bytes, int64_t& position, const tensor::Tensor& tensor) {
  bytes.write(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
  std::string text = "[" + std::to_string(static_cast<int>(tensor.type())) + "," +
                     std::to_string(tensor.element_count()) + "," + std::to_string(position) + "]";
  position += tensor.size_bytes();
  return text;
}

int Write(const std::string& prefix, const std::vector<Family>& families, uint64_t seed,
          int64_t count) {
  std::ofstream lines(prefix + ".jsonl");
  std::ofstream bytes(prefix + ".bin", std::ios::binary);
  Device device;
  int64_t position = 0;
  for (Family family : families) {
    for (int64_t k = 0; k < count; ++k) {
      const uint64_t step_seed = seed + static_cast<uint64_t>(k);
      const RandomStep step = MakeRandomStep(family, step_seed);
      const base::Result<std::vector<tensor::Tensor>> results = RunStep(device, step);
      if (!results.ok()) {
        std::cerr << Name(family) << " step of seed " << step_seed
                  << " does not run: " << results.status().Text() << "\n"
                  << ToString(step.program);
        return EXIT_FAILURE;
      }
      lines << "{\"seed\":" << step_seed << "," << StepText(step).Text(family) << ",\"buffers\":"
            << List(step.buffers,
                    [&](const tensor::Tensor& t) { return Append(bytes, position, t); })
            << ",\"results\":"
            << List(*results, [&](const tensor::Tensor& t) { return Append(bytes, position, t); })
            << "}\n";
    }
  }
  if (!lines.flush() || !bytes.flush()) {
    std::cerr << "The files " << prefix << ".{jsonl,bin} cannot be written.\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"--out", ""}, {"--seed", "1"}, {"--count", "100"}, {"--family", ""}};
  for (int k = 1; k + 1 < argc; k += 2) {
    if (!options.contains(argv[k])) {
      std::cerr << "The option '" << argv[k] << "' is none of --out, --seed, --count, --family.\n";
      return EXIT_FAILURE;
    }
    options[argv[k]] = argv[k + 1];
  }
  if (options["--out"].empty()) {
    std::cerr << "The option --out is missing.\n";
    return EXIT_FAILURE;
  }
  std::vector<Family> families;
  for (Family family : kFamilies) {
    // These are compared device against device, by CompareWithReference.
    if (family == Family::kAttention || family == Family::kRecurrent) continue;
    if (options["--family"].empty() || options["--family"] == Name(family)) {
      families.push_back(family);
    }
  }
  return Write(options["--out"], families, std::stoull(options["--seed"]),
               std::stoll(options["--count"]));
}

}  // namespace
}  // namespace onnxifi::reference

int main(int argc, char** argv) { return onnxifi::reference::Main(argc, argv); }
