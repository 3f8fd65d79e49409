// SPDX-License-Identifier: Apache-2.0
//
// Specialisations: a short list of shapes, the newest first.

#include "backends/core/plugin/specialisations.h"

#include <algorithm>
#include <string>
#include <utility>

namespace onnxifi::plugin {
namespace {

using base::Result;

// Each keeps its own packed weights.
constexpr size_t kMaxKept = 4;
constexpr int64_t kMaxBytesOfConstants = int64_t{1} << 29;
// Shapes whose runs are counted.
constexpr size_t kMaxCounted = 64;

int64_t ConstantBytes(const program::Program& program) {
  int64_t bytes = 0;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.kind != program::Buffer::Kind::kConstant) continue;
    int64_t count = 1;
    for (const program::Dim& dim : buffer.shape) count *= dim.is_constant() ? dim.constant() : 1;
    bytes += tensor::SizeBytes(buffer.type, count);
  }
  return bytes;
}

// The axis along which elements of the result lie side by side, of a step whose kernels have a way
// of their own for one order or another; else -1.
int InnermostAxis(const program::Step& step) {
  if (step.As<program::Contract>() == nullptr && step.As<program::Window>() == nullptr) return -1;
  const program::Dims& strides = step.writes[0].strides;
  for (size_t axis = strides.size(); axis-- > 0;) {
    if (strides[axis] == program::Dim(1) && !(step.domain[axis] == program::Dim(1))) {
      return static_cast<int>(axis);
    }
  }
  return -1;
}

// By what the steps of a plan are done and in which order of memory, in alphabetical order.
std::vector<std::string> Implementations(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (size_t step = 0; step < plan.program().steps.size(); ++step) {
    const std::string_view name = plan.implementation(static_cast<int>(step));
    if (name.empty()) continue;
    names.push_back(std::string(name) + " along axis " +
                    std::to_string(InnermostAxis(plan.program().steps[step])));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Specialisations::Specialisations(Compile compile, const plan::Plan& general,
                                 plan::Counters& counters)
    : compile_(std::move(compile)), general_(general), counters_(counters) {
  const int64_t bytes = std::max<int64_t>(1, ConstantBytes(general.program()));
  max_kept_ =
      static_cast<size_t>(std::clamp<int64_t>(kMaxBytesOfConstants / bytes, 1, int64_t{kMaxKept}));
}

std::shared_ptr<const Specialisation> Specialisations::ForRun(
    const std::vector<int64_t>& symbols, std::span<const tensor::Extents> inputs) {
  {
    const std::lock_guard lock(mutex_);
    has_begun_ = true;
    if (is_useless_) return nullptr;
    Shape& shape = Touch(symbols);
    ++shape.runs;
    if (shape.specialisation != nullptr) return shape.specialisation;
    if (shape.runs < least_runs_ || is_making_) return nullptr;
    is_making_ = true;
  }
  return Keep(symbols, inputs);
}

std::shared_ptr<const Specialisation> Specialisations::ForBinding(
    const std::vector<int64_t>& symbols, std::span<const tensor::Extents> inputs) {
  {
    std::unique_lock lock(mutex_);
    is_made_.wait(lock, [&] { return first_ != symbols; });
    const auto found = Find(symbols);
    if (found != shapes_.end() && found->specialisation != nullptr) return found->specialisation;
    // What the general plan refuses it has the words for.
    if (has_begun_ || !general_.CheckExtents(symbols).ok()) return nullptr;
    has_begun_ = true;
    const auto is_convolution = [](const program::Step& step) {
      const auto* contract = step.As<program::Contract>();
      return contract != nullptr && contract->form != program::Contract::Form::kMatMul;
    };
    if (std::ranges::none_of(general_.program().steps, is_convolution)) return nullptr;
    first_ = symbols;
    is_making_ = true;
  }
  return Keep(symbols, inputs);
}

class Specialisations::Making {
 public:
  explicit Making(Specialisations& of) : of_(of) {}
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making() {
    const std::lock_guard lock(of_.mutex_);
    of_.is_making_ = false;
    of_.first_.reset();
    of_.is_made_.notify_all();
  }

 private:
  Specialisations& of_;
};

void Specialisations::Discard(const std::vector<int64_t>& symbols) {
  const std::lock_guard lock(mutex_);
  const auto found = Find(symbols);
  if (found != shapes_.end() && found->specialisation != nullptr) Drop(*found);
}

std::shared_ptr<const Specialisation> Specialisations::Keep(
    const std::vector<int64_t>& symbols, std::span<const tensor::Extents> inputs) {
  const Making making(*this);
  // Other runs go on meanwhile.
  Result<std::shared_ptr<const Specialisation>> made = Make(inputs);
  if (made.ok() && *made != nullptr) general_.Forget(symbols);
  const std::lock_guard lock(mutex_);
  // Without memory for it, or with nothing gained, the general plan does all that is asked.
  if (!made.ok() || *made == nullptr) {
    is_useless_ = true;
    shapes_.clear();
    compile_ = nullptr;  // and what it keeps
    return nullptr;
  }
  if (kept_ == max_kept_) DropOldest();
  Touch(symbols).specialisation = *made;
  ++kept_;
  if (++made_ == max_kept_) {
    made_ = 0;
    least_runs_ *= 2;
  }
  return *made;
}

std::list<Specialisations::Shape>::iterator Specialisations::Find(
    const std::vector<int64_t>& symbols) {
  return std::ranges::find(shapes_, symbols, &Shape::symbols);
}

Specialisations::Shape& Specialisations::Touch(const std::vector<int64_t>& symbols) {
  const auto found = Find(symbols);
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  if (shapes_.size() == kMaxCounted) {
    // What is kept stays; it goes when another takes its place.
    const auto oldest = std::find_if(shapes_.rbegin(), shapes_.rend(), [](const Shape& shape) {
      return shape.specialisation == nullptr;
    });
    shapes_.erase(std::next(oldest).base());
  }
  shapes_.push_front({symbols, 0, nullptr});
  return shapes_.front();
}

void Specialisations::DropOldest() {
  const auto oldest = std::find_if(shapes_.rbegin(), shapes_.rend(), [](const Shape& shape) {
    return shape.specialisation != nullptr;
  });
  Drop(*oldest);
}

void Specialisations::Drop(Shape& shape) {
  shape.specialisation = nullptr;
  shape.runs = 0;
  --kept_;
}

Result<std::shared_ptr<const Specialisation>> Specialisations::Make(
    std::span<const tensor::Extents> inputs) {
  auto made = std::make_shared<Specialisation>();
  ONNXIFI_ASSIGN_OR_RETURN(made->program, compile_(inputs));
  // Its runs are runs of the same graph.
  program::ShareDraws(*made->program, general_.program().draws);
  ++counters_.lowerings;
  ONNXIFI_ASSIGN_OR_RETURN(made->plan,
                           plan::Plan::Create(*made->program, general_.device(), counters_));
  if (!IsUseful(*made->plan)) return std::shared_ptr<const Specialisation>();
  program::DropConstants(*made->program);
  ONNXIFI_RETURN_IF_ERROR(made->plan->Prepare());
  made->executor = std::make_unique<execution::Executor>(*made->plan);
  ONNXIFI_ASSIGN_OR_RETURN(made->boundary, execution::HostBoundary::Create(*made->executor));
  return std::shared_ptr<const Specialisation>(std::move(made));
}

bool Specialisations::IsUseful(const plan::Plan& plan) const {
  return Implementations(plan) != Implementations(general_);
}

}  // namespace onnxifi::plugin
