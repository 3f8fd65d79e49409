// SPDX-License-Identifier: Apache-2.0
//
// Draws: limits are six standard deviations of what is measured; numbers of narrow types are
// rounded on top.

#include "conformance/suites/draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "client/comparison/float_format.h"

namespace onnxifi::suites {
namespace {

using cases::Draws;
using onnx_file::DenseTensor;

constexpr double kDeviations = 6;
// P(sqrt(n) D > 2.5) = 2 exp(-2 * 2.5^2) = 7e-6.
constexpr double kKolmogorov = 2.5;
// Two units in the last place of bfloat16, as a share of a deviation.
constexpr double kRounding = 1.0 / 64;

base::Status Fault(std::string sentence) {
  return base::Status(base::Code::kInternalError, std::move(sentence));
}

std::vector<double> NumbersOf(const DenseTensor& tensor) {
  std::vector<double> numbers;
  for (int64_t index = 0; index < tensor.element_count(); ++index) {
    numbers.push_back(comparison::LoadNumber(tensor.type, tensor.bytes, index));
  }
  return numbers;
}

struct Moments {
  double mean;
  double variance;
  double fourth;  // central moment
};

Moments MomentsOf(const Draws& draws) {
  if (draws.kind == Draws::Kind::kUniform) {
    const double width = draws.high - draws.low;
    return {.mean = (draws.low + draws.high) / 2,
            .variance = width * width / 12,
            .fourth = std::pow(width, 4) / 80};
  }
  const double variance = draws.deviation * draws.deviation;
  return {.mean = draws.mean, .variance = variance, .fourth = 3 * variance * variance};
}

// The share of draws up to `value`.
double Cumulated(const Draws& draws, double value) {
  if (draws.kind == Draws::Kind::kUniform) {
    return std::clamp((value - draws.low) / (draws.high - draws.low), 0.0, 1.0);
  }
  return std::erfc((draws.mean - value) / (draws.deviation * std::sqrt(2.0))) / 2;
}

base::Status CheckContinuous(const std::string& name, std::vector<double> numbers,
                             const Draws& draws) {
  const auto count = static_cast<double>(numbers.size());
  const Moments moments = MomentsOf(draws);
  const double deviation = std::sqrt(moments.variance);
  for (const double number : numbers) {
    const bool is_outside =
        draws.kind == Draws::Kind::kUniform && !(number >= draws.low - kRounding * deviation &&
                                                 number <= draws.high + kRounding * deviation);
    if (!std::isfinite(number) || is_outside) {
      return Fault(
          fmt::format("Output '{}' has the element {:.9g}, which cannot be drawn.", name, number));
    }
  }
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  const double mean_limit = deviation * (kDeviations / std::sqrt(count) + kRounding);
  if (std::abs(mean - moments.mean) > mean_limit) {
    return Fault(
        fmt::format("Output '{}' has the mean {:.6g} instead of {:.6g}; {:.3g} is allowed.", name,
                    mean, moments.mean, mean_limit));
  }
  double variance = 0;
  for (const double number : numbers) variance += std::pow(number - moments.mean, 2) / count;
  const double variance_limit =
      kDeviations * std::sqrt((moments.fourth - std::pow(moments.variance, 2)) / count) +
      2 * kRounding * moments.variance;
  if (std::abs(variance - moments.variance) > variance_limit) {
    return Fault(
        fmt::format("Output '{}' has the variance {:.6g} instead of {:.6g}; {:.3g} is allowed.",
                    name, variance, moments.variance, variance_limit));
  }
  std::ranges::sort(numbers);
  double distance = 0;
  for (size_t index = 0; index < numbers.size(); ++index) {
    const double share = Cumulated(draws, numbers[index]);
    distance = std::max({distance, std::abs(share - static_cast<double>(index) / count),
                         std::abs(share - static_cast<double>(index + 1) / count)});
  }
  const double distance_limit = kKolmogorov / std::sqrt(count) + kRounding;
  if (distance <= distance_limit) return base::Ok();
  return Fault(fmt::format(
      "Output '{}' has a Kolmogorov-Smirnov distance of {:.4g}; {:.4g} is allowed for {} elements.",
      name, distance, distance_limit, numbers.size()));
}

base::Status CheckClasses(const std::string& name, const std::vector<double>& numbers,
                          const Draws& draws) {
  const auto count = static_cast<double>(numbers.size());
  int64_t known_count = 0;
  for (size_t index = 0; index < draws.values.size(); ++index) {
    const double value = draws.values[index];
    const double share = draws.shares[index];
    const auto drawn_count =
        std::ranges::count_if(numbers, [&](double number) { return number == value; });
    known_count += drawn_count;
    const double limit = kDeviations * std::sqrt(share * (1 - share) / count) + 1 / count;
    const double drawn = static_cast<double>(drawn_count) / count;
    if (std::abs(drawn - share) > limit) {
      return Fault(fmt::format(
          "{:.4g} of output '{}' are {:.6g} instead of {:.4g}; a difference of {:.3g} is allowed.",
          drawn, name, value, share, limit));
    }
  }
  const auto unknown_count = static_cast<int64_t>(numbers.size()) - known_count;
  if (unknown_count == 0) return base::Ok();
  return Fault(fmt::format("{} elements of output '{}' have a value that is not drawn.",
                           unknown_count, name));
}

base::Status CheckRows(const DenseTensor& drawn) {
  const auto rows = static_cast<size_t>(drawn.extents.empty() ? 1 : drawn.extents[0]);
  const size_t row_bytes = drawn.bytes.size() / std::max<size_t>(rows, 1);
  const auto row = [&](size_t index) {
    return std::span(drawn.bytes).subspan(index * row_bytes, row_bytes);
  };
  for (size_t later = 0; later < rows; ++later) {
    for (size_t index = 0; index < later; ++index) {
      if (!std::ranges::equal(row(index), row(later))) continue;
      return Fault(fmt::format("Rows {} and {} of output '{}' are the same draw.", index, later,
                               drawn.name));
    }
  }
  return base::Ok();
}

// What two runs of one graph draw.
base::Result<std::array<DenseTensor, 2>> DrawTwice(const Target& target,
                                                   const GraphRequest& request,
                                                   const DataSet& data_set, const Draws& draws,
                                                   const client::ExecutionOptions& options) {
  CaseGraph graph(target);
  ONNXIFI_RETURN_IF_ERROR(
      client::ExpectSuccess(target.library, "onnxInitGraph", graph.Init(request)));
  const std::vector<DenseTensor> inputs = TensorsOf(data_set.inputs);
  const std::vector<DenseTensor> expected = TensorsOf(data_set.outputs);
  std::array<DenseTensor, 2> runs;
  for (DenseTensor& run : runs) {
    ONNXIFI_ASSIGN_OR_RETURN(std::vector<DenseTensor> outputs,
                             graph.Run(inputs, expected, options));
    if (outputs.size() != 1 || outputs[0].extents != expected[0].extents) {
      return Fault(fmt::format("Output '{}' has the shape {} instead of {}.", expected[0].name,
                               onnx_file::ToString(outputs[0].extents),
                               onnx_file::ToString(expected[0].extents)));
    }
    run = std::move(outputs[0]);
    ONNXIFI_RETURN_IF_ERROR(CheckDistribution(run, draws));
  }
  if (runs[0].bytes == runs[1].bytes) {
    return Fault(fmt::format("The second run draws the numbers of the first for output '{}'.",
                             runs[0].name));
  }
  return runs;
}

}  // namespace

base::Status CheckDistribution(const DenseTensor& drawn, const Draws& draws) {
  if (drawn.element_count() == 0) return Fault("Nothing is drawn.");
  std::vector<double> numbers = NumbersOf(drawn);
  ONNXIFI_RETURN_IF_ERROR(draws.kind == Draws::Kind::kClasses
                              ? CheckClasses(drawn.name, numbers, draws)
                              : CheckContinuous(drawn.name, std::move(numbers), draws));
  return draws.has_rows ? CheckRows(drawn) : base::Ok();
}

base::Status CheckDraws(const Target& target, const GraphRequest& request, const DataSet& data_set,
                        const Draws& draws, const client::ExecutionOptions& options) {
  using Runs = std::array<DenseTensor, 2>;
  ONNXIFI_ASSIGN_OR_RETURN(const Runs first, DrawTwice(target, request, data_set, draws, options));
  ONNXIFI_ASSIGN_OR_RETURN(const Runs second, DrawTwice(target, request, data_set, draws, options));
  if (!draws.is_seeded) return base::Ok();
  for (size_t run = 0; run < first.size(); ++run) {
    if (first[run].bytes == second[run].bytes) continue;
    return Fault(fmt::format(
        "Run {} of a second graph draws other numbers for output '{}' with the same seed.", run + 1,
        first[run].name));
  }
  return base::Ok();
}

}  // namespace onnxifi::suites
