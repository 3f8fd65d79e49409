// SPDX-License-Identifier: Apache-2.0
//
// FakeProvider: plain objects; one worker thread per graph runs what is queued, in order.

#include "backends/core/abi/fake_provider.h"

#include <onnxifi/sdk.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace onnxifi::abi {

using base::Code;
using base::Status;

namespace {

struct PlannedFault {
  FakeFault fault;
  Status status;
};

struct FaultPlan {
  std::mutex mutex;
  std::map<FakeStep, PlannedFault> faults;
};

FaultPlan& Plan() {
  static FaultPlan plan;
  return plan;
}

// The fault planned for a step, if any; throws where it is an exception.
Status TakeFault(FakeStep step) {
  std::optional<PlannedFault> fault;
  {
    std::lock_guard lock(Plan().mutex);
    const auto found = Plan().faults.find(step);
    if (found == Plan().faults.end()) return base::Ok();
    fault = found->second;
    Plan().faults.erase(found);
  }
  if (fault->fault == FakeFault::kOutOfMemory) throw std::bad_alloc();
  if (fault->fault == FakeFault::kException) throw std::runtime_error("planned by the test");
  return fault->status;
}

struct FakeModel {
  bool is_half = false;
  bool is_fixed = false;
  bool is_zero = false;
  bool is_matrix = false;
  bool is_emulated = false;
  bool needs_weights = false;
  bool fails = false;
  Code code = Code::kOk;
  uint32_t claimed = 10;
};

base::Result<FakeModel> Parse(std::span<const std::byte> bytes, std::string_view device_key) {
  const std::string device_word = std::string(device_key.substr(0, device_key.find(':'))) + "=";
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text[0] < 'a' || text[0] > 'z') {
    return Status(Code::kInvalidProtobuf, "The model is no text of the fake.");
  }
  FakeModel model;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word == "half") model.is_half = true;
    if (word == "fixed") model.is_fixed = true;
    if (word == "zero") model.is_zero = true;
    if (word == "matrix") model.is_matrix = true;
    if (word == "emulated") model.is_emulated = true;
    if (word == "weights") model.needs_weights = true;
    if (word == "fail") model.fails = true;
    if (word.starts_with("status=")) model.code = static_cast<Code>(std::stoi(word.substr(7)));
    if (word.starts_with("claims=")) {
      model.claimed = static_cast<uint32_t>(std::stoi(word.substr(7)));
    }
    if (word.starts_with(device_word)) {
      model.claimed = static_cast<uint32_t>(std::stoi(word.substr(device_word.size())));
      model.code = static_cast<Code>(std::stoi(word.substr(word.find('/') + 1)));
    }
  }
  return model;
}

Status VerdictOf(const FakeModel& model) {
  if (model.code == Code::kOk) return base::Ok();
  return Status(model.code, "The fake refuses the model.");
}

// A LocalEvent whose functions can be told to fail.
class FakeEvent final : public Event {
 public:
  explicit FakeEvent(LocalEvent::Origin origin) : local_(origin) {}

  Status Signal() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kSignal));
    return local_.Signal();
  }
  base::Result<bool> IsSignalled() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kIsSignalled));
    return local_.IsSignalled();
  }
  Status Wait() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kWait));
    return local_.Wait();
  }
  std::optional<Status> WaitFor(std::chrono::milliseconds timeout) override {
    return local_.WaitFor(timeout);
  }
  void Abandon() override { local_.Abandon(); }
  base::Result<std::vector<TensorShape>> OutputShapes() override { return local_.OutputShapes(); }
  base::Result<std::vector<KeptValue>> OutputValues() override { return local_.OutputValues(); }

  LocalEvent& local() { return local_; }

 private:
  LocalEvent local_;
};

DeclaredTensor Declare(std::string name, const FakeModel& model, bool has_columns) {
  DeclaredTensor tensor{std::move(name), ONNXIFI_DATATYPE_FLOAT32, /*has_shape=*/true, {}};
  DeclaredDimension rows{DeclaredDimension::kSymbolic, "N"};
  if (model.is_fixed) rows = {4, ""};
  if (model.is_zero) rows = {0, ""};
  tensor.dimensions.push_back(rows);
  if (has_columns) tensor.dimensions.push_back({3, ""});
  return tensor;
}

class FakeBinding final : public Binding {
 public:
  using Binding::Binding;
  bool ServesLaterRuns() const override { return true; }
};

class FakeGraph final : public Graph {
 public:
  FakeGraph(const FakeModel& model, const GraphProperties& properties)
      : model_(model), is_profiled_(properties.is_profiled), permissions_(properties) {
    signature_.inputs.push_back(Declare("x", model, model.is_matrix));
    if (model.is_matrix) signature_.inputs.push_back(Declare("w", model, /*has_columns=*/false));
    signature_.outputs.push_back(Declare("y", model, model.is_matrix));
    worker_ = std::thread([this] { Work(); });
  }
  ~FakeGraph() override { Stop(); }

  const Signature* signature() const override { return &signature_; }
  bool is_emulated() const override { return model_.is_emulated; }

  base::Result<std::shared_ptr<const Binding>> Bind(GraphTensors tensors) override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kBind));
    ++bindings_;
    return std::shared_ptr<const Binding>(std::make_shared<FakeBinding>(std::move(tensors)));
  }

  base::Result<std::shared_ptr<Event>> Run(std::shared_ptr<const Binding> binding,
                                           std::shared_ptr<Event> input) override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kRun));
    auto output = std::make_shared<FakeEvent>(LocalEvent::Origin::kRun);
    {
      std::lock_guard lock(mutex_);
      queue_.push_back({std::move(binding), std::move(input), output});
    }
    changed_.notify_one();
    return std::shared_ptr<Event>(std::move(output));
  }

  void Close() override {
    const Status fault = TakeFault(FakeStep::kClose);
    static_cast<void>(fault.ok());
    Stop();
  }

  base::Result<std::vector<TensorShape>> InferOutputShapes(
      std::span<const TensorDescriptor> inputs) override {
    std::vector<int64_t> extents(inputs[0].shape.begin(), inputs[0].shape.end());
    if (model_.is_half) extents[0] = ONNXIFI_SDK_UNKNOWN;
    return std::vector<TensorShape>{
        {"y", ONNXIFI_DATATYPE_FLOAT32, /*has_rank=*/true, std::move(extents)}};
  }

  base::Result<GraphCounters> Counters() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kCounters));
    GraphCounters counters;
    counters.lowerings = 1;
    counters.bindings = bindings_;
    counters.runs = runs_;
    counters.submissions = 11;
    counters.recordings = 12;
    return counters;
  }

  base::Result<std::vector<StepRecord>> Profile() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kProfile));
    if (!is_profiled_ || runs_ == 0) return Status(Code::kInvalidState, "There is no profile.");
    StepRecord doubling;
    doubling.node_index = 3;
    doubling.family = "Map";
    doubling.implementation = "fake";
    doubling.detail = permissions_.has_dynamic_quantization ? "bytes" : "one thread";
    doubling.data_type = ONNXIFI_DATATYPE_FLOAT32;
    doubling.extents = {4, 5};
    doubling.rejected = {"Faster is busy.", "Fastest is broken."};
    doubling.start_ns = 6;
    doubling.duration_ns = 7;
    doubling.flops = 8;
    doubling.read_bytes = 9;
    doubling.written_bytes = 10;
    doubling.precision = static_cast<uint32_t>(permissions_.precision);
    return std::vector<StepRecord>{doubling, StepRecord()};
  }

  base::Result<std::vector<LoadRecord>> LoadProfile() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kLoadProfile));
    return std::vector<LoadRecord>{{"parse", 1, 23}, {"double", 4, 567}};
  }

 private:
  struct QueuedRun {
    std::shared_ptr<const Binding> binding;
    std::shared_ptr<Event> input;
    std::shared_ptr<FakeEvent> output;
  };

  void Stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_one();
    if (worker_.joinable()) worker_.join();
  }

  void Work() {
    while (true) {
      QueuedRun run;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        run = std::move(queue_.front());
        queue_.pop_front();
      }
      Finish(run);
    }
  }

  void Finish(const QueuedRun& run) {
    ++runs_;
    if (run.input != nullptr) {
      Status status = run.input->Wait();
      if (!status.ok()) {
        run.output->local().Complete(
            std::move(status).Context("while waiting for the inputs of the run"));
        return;
      }
    }
    if (model_.fails) {
      run.output->local().Complete(
          Status(Code::kNoDeviceMemory, "The fake has 0 bytes of device memory."));
      return;
    }
    const TensorDescriptor& x = run.binding->tensors().inputs[0];
    const TensorDescriptor& y = run.binding->tensors().outputs[0];
    const auto* source = static_cast<const float*>(x.cpu_data());
    auto* target = static_cast<float*>(y.mutable_cpu_data());
    size_t element_count = 1;
    for (uint64_t extent : x.shape) element_count *= extent;
    if (model_.is_half) element_count /= 2;
    for (size_t index = 0; index < element_count; ++index) target[index] = 2 * source[index];
    std::vector<TensorShape> shapes;
    if (model_.is_half) {
      shapes.push_back({"y",
                        ONNXIFI_DATATYPE_FLOAT32,
                        /*has_rank=*/true,
                        {static_cast<int64_t>(element_count)}});
    }
    run.output->local().Complete(base::Ok(), {.shapes = std::move(shapes)});
  }

  const FakeModel model_;
  const bool is_profiled_;
  const tensor::Permissions permissions_;
  Signature signature_;
  std::atomic<uint64_t> bindings_ = 0;
  std::atomic<uint64_t> runs_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedRun> queue_;
  bool is_stopping_ = false;
  std::thread worker_;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(std::string device_key) : device_key_(std::move(device_key)) {}

  base::Result<std::unique_ptr<Graph>> InitGraph(const GraphRequest& request) override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kInitGraph));
    ONNXIFI_ASSIGN_OR_RETURN(const FakeModel model, Parse(request.model, device_key_));
    ONNXIFI_RETURN_IF_ERROR(VerdictOf(model));
    if (model.needs_weights) {
      const auto has = [&](size_t index, std::string_view name, std::vector<uint64_t> shape) {
        return index < request.weights.size() && request.weights[index].name == name &&
               request.weights[index].shape == shape;
      };
      if (!has(0, "a", {2, 3}) || !has(1, "b", {4})) {
        return Status(Code::kInvalidShape, "The weights are not a[2, 3] and b[4].");
      }
    }
    return std::unique_ptr<Graph>(std::make_unique<FakeGraph>(model, request.properties));
  }
  base::Result<std::shared_ptr<Event>> NewEvent() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kNewEvent));
    return std::shared_ptr<Event>(std::make_shared<FakeEvent>(LocalEvent::Origin::kCaller));
  }
  bool TakesDataType(onnxEnum data_type) const override {
    return data_type == ONNXIFI_DATATYPE_FLOAT32 || data_type == ONNXIFI_DATATYPE_INT64;
  }

 private:
  const std::string device_key_;
};

class FakeBackendId final : public BackendId {
 public:
  explicit FakeBackendId(FakeDevice device) : device_(std::move(device)) {}

  std::string key() const override { return device_.key; }

  base::Result<InfoValue> Info(onnxBackendInfo query) const override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kInfo));
    switch (query) {
      case ONNXIFI_BACKEND_NAME:
        return InfoValue(std::string("Fake"));
      case ONNXIFI_BACKEND_EXTENSIONS:
        return InfoValue(std::string("fake_extension"));
      case ONNXIFI_BACKEND_DEVICE_TYPE:
        return InfoValue(uint64_t{device_.device_type});
      case ONNXIFI_BACKEND_OPSET_VERSION:
        return InfoValue(std::string("ai.onnx:17"));
      case ONNXIFI_BACKEND_ONNX_IR_VERSION:
        return InfoValue(std::string("3 4"));
      case ONNXIFI_BACKEND_CAPABILITIES:
        return InfoValue(uint64_t{ONNXIFI_CAPABILITY_THREAD_SAFE});
      case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
        return InfoValue(uint64_t{0});
      default:
        return Status(Code::kUnsupportedAttribute, "The fake does not know the query.");
    }
  }

  Status CheckCompatibility(std::span<const std::byte> bytes) const override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kCheckCompatibility));
    ONNXIFI_ASSIGN_OR_RETURN(const FakeModel model, Parse(bytes, device_.key));
    return VerdictOf(model);
  }

  base::Result<Explanation> Explain(std::span<const std::byte> bytes) const override {
    constexpr uint32_t kNodeCount = 10;
    ONNXIFI_ASSIGN_OR_RETURN(const FakeModel model, Parse(bytes, device_.key));
    Explanation explanation;
    explanation.verdict = VerdictOf(model);
    for (uint32_t index = 0; index < kNodeCount; ++index) {
      NodeVerdict node;
      node.node_index = index;
      node.domain = "ai.onnx";
      node.operator_type = "Double";
      if (model.code != Code::kOk && index >= model.claimed) {
        node.code = model.code;
        node.subject_kind = ONNXIFI_SDK_SUBJECT_ATTRIBUTE;
        node.subject = "axis";
        node.sentence = device_.key + " refuses node " + std::to_string(index) + ".";
        node.limit = "3";
      }
      explanation.nodes.push_back(std::move(node));
    }
    return explanation;
  }

  base::Result<std::unique_ptr<Backend>> InitBackend(
      const BackendProperties& /*properties*/) const override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kInitBackend));
    return std::unique_ptr<Backend>(std::make_unique<FakeBackend>(device_.key));
  }

 private:
  const FakeDevice device_;
};

class FakeProvider final : public Provider {
 public:
  explicit FakeProvider(std::vector<FakeDevice> devices) {
    for (FakeDevice& device : devices) {
      ids_.push_back(std::make_unique<FakeBackendId>(std::move(device)));
    }
  }

  base::Result<std::vector<const BackendId*>> EnumerateBackendIds() override {
    ONNXIFI_RETURN_IF_ERROR(TakeFault(FakeStep::kEnumerate));
    std::vector<const BackendId*> ids;
    for (const auto& id : ids_) ids.push_back(id.get());
    return ids;
  }

 private:
  std::vector<std::unique_ptr<FakeBackendId>> ids_;
};

}  // namespace

void FailNext(FakeStep step, FakeFault fault, Status status) {
  std::lock_guard lock(Plan().mutex);
  Plan().faults[step] = {fault, std::move(status)};
}

std::unique_ptr<Provider> MakeFakeProvider(std::vector<FakeDevice> devices) {
  return std::make_unique<FakeProvider>(std::move(devices));
}

}  // namespace onnxifi::abi
