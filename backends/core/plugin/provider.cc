// SPDX-License-Identifier: Apache-2.0
//
// The Provider of every hardware plugin: backend IDs that answer from their description, claims
// that are compile attempts, and backends that compile graphs.

#include <algorithm>
#include <bit>
#include <mutex>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/core/abi/last_error.h"
#include "backends/core/model/import.h"
#include "backends/core/model/operator_sets.h"
#include "backends/core/model/versions.h"
#include "backends/core/ops/lower_graph.h"
#include "backends/core/plugin/answer_cache.h"
#include "backends/core/plugin/branched_graph.h"
#include "backends/core/plugin/compiled_graph.h"
#include "backends/core/plugin/hardware.h"
#include "backends/core/plugin/pipeline.h"
#include "backends/core/tensor/file_pages.h"

namespace onnxifi::plugin {
namespace {

using abi::InfoValue;
using base::Code;
using base::Result;
using base::Status;

// The interface's limit for a backend's name, less its zero.
constexpr size_t kMaxNameBytes = 49;

ops::Carrier CarrierOf(bool takes_values) {
  return takes_values ? ops::Carrier::kValues : ops::Carrier::kDescriptors;
}

onnxEnum OnnxType(const graph::Type& type) { return static_cast<onnxEnum>(type.element); }

// What the value of a port is where no descriptor carries it, in words; else empty.
std::string NameOfWhole(const program::Buffer& buffer) {
  if (buffer.holds_strings) return "a tensor of strings";
  if (!buffer.value) return {};
  if (buffer.value->may_be_missing) return "an optional";
  return buffer.value->is_sequence() ? "a sequence" : "a map";
}

abi::DeclaredTensor Declare(const graph::Value& value, const program::Buffer& buffer) {
  abi::DeclaredTensor declared;
  declared.name = value.name;
  declared.whole = NameOfWhole(buffer);
  if (buffer.value) return declared;
  declared.data_type = OnnxType(value.type);
  declared.has_shape = value.type.extents.has_value();
  if (declared.has_shape) {
    for (const graph::Extent& extent : *value.type.extents) {
      abi::DeclaredDimension& dimension = declared.dimensions.emplace_back();
      if (extent.is_known()) dimension.extent = extent.number;
      dimension.symbol = extent.symbol;
    }
  }
  return declared;
}

// The tensors that a caller binds. Of outputs the program tells types and extents: exporters
// declare those of the input that they traced, other ranks, and symbols that stand for several
// numbers. A symbol of an output counts where an input gives it a number.
abi::Signature SignatureOf(const graph::Graph& graph, const program::Program& program) {
  abi::Signature signature;
  std::unordered_set<std::string> symbols;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    signature.inputs.push_back(
        Declare(graph.values[graph.inputs[k]], program.buffers[program.inputs[k].buffer]));
    for (const abi::DeclaredDimension& dimension : signature.inputs.back().dimensions) {
      symbols.insert(dimension.symbol);
    }
  }
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const program::Port& port = program.outputs[k];
    const program::Buffer& buffer = program.buffers[port.buffer];
    abi::DeclaredTensor declared = Declare(graph.values[graph.outputs[k]], buffer);
    if (!buffer.value) {
      declared.data_type = static_cast<onnxEnum>(buffer.element_type());
      declared.has_shape = true;
      if (declared.dimensions.size() != port.shape.size()) declared.dimensions.clear();
      declared.dimensions.resize(port.shape.size());
      for (size_t axis = 0; axis < port.shape.size(); ++axis) {
        abi::DeclaredDimension& dimension = declared.dimensions[axis];
        dimension.extent = port.shape[axis].is_constant() ? port.shape[axis].constant()
                                                          : abi::DeclaredDimension::kSymbolic;
        if (!symbols.contains(dimension.symbol)) dimension.symbol.clear();
      }
    }
    signature.outputs.push_back(std::move(declared));
  }
  return signature;
}

// Of the constants of a graph that is kept: what they were computed from is read again from the
// model's file, if a shape is compiled for itself.
void GiveBackFilePages(const graph::Graph& graph) {
  for (const graph::Value& value : graph.values) {
    if (value.constant && value.constant->backing() == tensor::Backing::kFile) {
      tensor::GiveBackPages(value.constant->bytes());
    }
  }
}

class PluginBackend : public abi::Backend {
 public:
  // `description`, `operators` and what `sharing` is for outlive it; `sharing` may be null.
  PluginBackend(std::unique_ptr<device::Device> device, device::Sharing* sharing,
                const DeviceDescription& description, const OperatorSource& operators,
                const abi::BackendProperties& properties)
      : device_(std::move(device)),
        sharing_(sharing),
        operators_(operators),
        description_(description),
        log_(properties.log_level) {}

  Result<std::unique_ptr<abi::Graph>> InitGraph(const abi::GraphRequest& request) override {
    model::ImportOptions options;
    options.base_folder = request.properties.base_folder;
    options.is_mapped_model = request.properties.is_mapped_model;
    options.is_lasting_model = request.properties.is_lasting_model;
    options.domains = &operators_.domains();
    for (const abi::TensorDescriptor& weight : request.weights) {
      std::optional<tensor::ElementType> type =
          tensor::ElementTypeFromOnnx(static_cast<int64_t>(weight.data_type));
      if (!type) {
        return Status(Code::kInvalidDatatype, "Weight '" + weight.name + "' has element type " +
                                                  std::to_string(weight.data_type) +
                                                  ", which ONNX does not define.");
      }
      options.weights.push_back({weight.name,
                                 *type,
                                 {weight.shape.begin(), weight.shape.end()},
                                 static_cast<const std::byte*>(weight.cpu_data())});
    }
    LoadTimes times;
    ONNXIFI_ASSIGN_OR_RETURN(graph::Graph graph, times.Time("import", [&] {
      return model::Import(request.model, options);
    }));
    for (const std::string& note : graph.notes) {
      log_.Write(base::LogLevel::kWarning, "model", note);
    }
    bool is_emulated = false;
    ONNXIFI_RETURN_IF_ERROR(times.Time("check_support", [&] {
      return CheckSupport(graph, *device_, CarrierOf(request.properties.takes_values), &is_emulated,
                          operators_);
    }));
    graph::Graph declared;  // what the caller sees, before passes rewrite it
    declared.values = graph.values;
    declared.inputs = graph.inputs;
    declared.outputs = graph.outputs;
    // Weights are not kept longer than the stages need them.
    for (graph::Value& value : declared.values) value.constant.reset();
    // Kept where a shape may be compiled for itself, or other branches; constants are shared.
    std::shared_ptr<const graph::Graph> imported;
    const bool depends_on_numbers = device_->DependsOnNumbers() && HasSymbols(graph);
    if (depends_on_numbers || (HasSymbols(graph) && ops::MayOpenRanks(graph))) {
      imported = std::make_shared<const graph::Graph>(graph);
    }
    ops::BranchRequest branches;
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<program::Program> program,
                             Compile(std::move(graph), *device_, log_, times, request.properties,
                                     operators_, &branches));
    if (imported != nullptr) GiveBackFilePages(*imported);
    const CompiledGraph::Services services = {*device_, sharing_, worker_};
    const auto for_shapes = [this, depends_on_numbers, imported, properties = request.properties](
                                const ops::SqueezedAxes& squeezed) -> Specialisations::Compile {
      // Numbers in place of symbols would remove what stays in a body.
      if (!depends_on_numbers || squeezed.are_in_bodies) return nullptr;
      return CompilerForShapes(imported, squeezed, properties);
    };
    abi::Signature signature = SignatureOf(declared, *program);
    ONNXIFI_ASSIGN_OR_RETURN(
        std::unique_ptr<CompiledGraph> compiled,
        CompiledGraph::Create(signature, std::move(program), services, request.properties,
                              std::move(times), is_emulated, for_shapes(branches.squeezed)));
    if (!branches.are_chosen || imported == nullptr) {
      return std::unique_ptr<abi::Graph>(std::move(compiled));
    }
    auto for_branches = [this, imported, signature, services, for_shapes, is_emulated,
                         properties = request.properties](
                            std::span<const tensor::Extents> inputs,
                            const CompiledGraph& first) -> Result<std::unique_ptr<CompiledGraph>> {
      ops::BranchRequest taken{.inputs = inputs};
      LoadTimes other_times;
      ONNXIFI_ASSIGN_OR_RETURN(
          std::unique_ptr<program::Program> other,
          Compile(*imported, *device_, log_, other_times, properties, operators_, &taken));
      return CompiledGraph::Create(signature, std::move(other), services, properties,
                                   std::move(other_times), is_emulated, for_shapes(taken.squeezed),
                                   &first);
    };
    return std::unique_ptr<abi::Graph>(std::make_unique<BranchedGraph>(
        std::move(signature), std::move(compiled), std::move(for_branches)));
  }

  Result<std::shared_ptr<abi::Event>> NewEvent() override {
    return std::shared_ptr<abi::Event>(
        std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller));
  }

  Result<std::shared_ptr<abi::Event>> ImportEvent(const abi::NativeEvent& native) override {
    if (!TakesEventKind(native.kind)) return abi::Backend::ImportEvent(native);
    auto event = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kDriver);
    ONNXIFI_RETURN_IF_ERROR(sharing_->WhenComplete(
        {native.handle, native.value}, [event](const Status& status) { event->Complete(status); }));
    const std::lock_guard lock(imported_mutex_);
    std::erase_if(imported_, [](const auto& known) { return known.expired(); });
    imported_.push_back(event);
    return std::shared_ptr<abi::Event>(std::move(event));
  }

  void Release() override {
    if (sharing_ != nullptr) sharing_->EndWaits();
    std::vector<std::weak_ptr<abi::LocalEvent>> imported;
    {
      const std::lock_guard lock(imported_mutex_);
      imported.swap(imported_);
    }
    for (const std::weak_ptr<abi::LocalEvent>& known : imported) {
      const std::shared_ptr<abi::LocalEvent> event = known.lock();
      if (event == nullptr) continue;
      event->Complete(Status(Code::kBackendUnavailable,
                             "The backend is released before the driver's event is complete."));
    }
  }

  Result<abi::NativeEvent> ExportEvent(uint32_t kind, std::shared_ptr<abi::Event> event) override {
    if (!TakesEventKind(kind)) return abi::Backend::ExportEvent(kind, std::move(event));
    ONNXIFI_ASSIGN_OR_RETURN(device::Sharing::NewEvent made, sharing_->MakeEvent());
    // Events of this backend are local: NewEvent, ImportEvent and Run make no others.
    static_cast<abi::LocalEvent&>(*event).OnSignal(std::move(made.complete));
    return abi::NativeEvent{kind, made.event.handle, made.event.value};
  }

  Result<abi::SharedMemory> AllocateSharedMemory(int64_t size_bytes) override {
    if (sharing_ == nullptr) return abi::Backend::AllocateSharedMemory(size_bytes);
    ONNXIFI_ASSIGN_OR_RETURN(device::Sharing::SharedMemory made,
                             sharing_->AllocateShared(size_bytes));
    // The handles of the device's driver are of one type, and nothing is shared by descriptors.
    constexpr uint64_t kDescriptors = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
    return abi::SharedMemory{reinterpret_cast<onnxPointer>(made.address),
                             static_cast<onnxEnum>(description_.memory_types & ~kDescriptors),
                             made.handle, std::move(made.owner)};
  }

  bool TakesImplicitFences() const override {
    return sharing_ != nullptr && sharing_->has_callers_queue();
  }

  bool TakesMemoryType(onnxEnum memory_type) const override {
    return memory_type == ONNXIFI_MEMORY_TYPE_CPU ||
           (sharing_ != nullptr && std::has_single_bit(memory_type) &&
            (memory_type & description_.memory_types) != 0);
  }

  bool TakesDataType(onnxEnum data_type) const override {
    std::optional<tensor::ElementType> type =
        tensor::ElementTypeFromOnnx(static_cast<int64_t>(data_type));
    return type && *type != tensor::ElementType::kString;
  }

 private:
  // Whether an extent of an input is no number.
  static bool HasSymbols(const graph::Graph& graph) {
    return std::ranges::any_of(graph.inputs, [&](graph::ValueId input) {
      const auto& extents = graph.values[input].type.extents;
      return extents && !std::ranges::all_of(*extents, &graph::Extent::is_known);
    });
  }
  // Compiles a graph for inputs of given extents. `squeezed`: of the graph with its symbols.
  Specialisations::Compile CompilerForShapes(std::shared_ptr<const graph::Graph> graph,
                                             ops::SqueezedAxes squeezed,
                                             const tensor::Permissions& permissions) {
    return [this, graph = std::move(graph), squeezed = std::move(squeezed),
            permissions](std::span<const tensor::Extents> inputs) {
      graph::Graph with_numbers = *graph;
      squeezed.Write(with_numbers);
      for (size_t k = 0; k < with_numbers.inputs.size(); ++k) {
        graph::Type& type = with_numbers.values[with_numbers.inputs[k]].type;
        for (size_t axis = 0; type.extents && axis < type.extents->size(); ++axis) {
          (*type.extents)[axis] = {.number = inputs[k][axis]};
        }
      }
      LoadTimes nobody_asks;
      Result<std::unique_ptr<program::Program>> program =
          Compile(std::move(with_numbers), *device_, log_, nobody_asks, permissions, operators_);
      GiveBackFilePages(*graph);
      return program;
    };
  }

  bool TakesEventKind(uint32_t kind) const {
    return sharing_ != nullptr && std::ranges::count(description_.event_kinds, kind) > 0;
  }

  std::mutex imported_mutex_;
  std::vector<std::weak_ptr<abi::LocalEvent>> imported_;  // guarded by the mutex
  std::unique_ptr<device::Device> device_;
  device::Sharing* const sharing_;
  const OperatorSource& operators_;
  const DeviceDescription& description_;
  const base::Log log_;
  Worker worker_;
};

class PluginBackendId : public abi::BackendId {
 public:
  // `hardware` and `operators` outlive it.
  PluginBackendId(Hardware& hardware, int index, DeviceDescription description,
                  const OperatorSource& operators)
      : hardware_(hardware),
        index_(index),
        description_(std::move(description)),
        operators_(operators) {}

  std::string key() const override {
    return hardware_.plugin_name() + ":" + std::to_string(index_);
  }

  Result<InfoValue> Info(onnxBackendInfo query) const override {
    for (const auto& [answered, value] : description_.more) {
      if (answered == query) return value;
    }
    constexpr uint64_t kCapabilities =
        ONNXIFI_CAPABILITY_THREAD_SAFE | ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE |
        ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS | ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE |
        ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS;
    switch (query) {
      case ONNXIFI_BACKEND_NAME:
        return InfoValue(description_.name.substr(0, kMaxNameBytes));
      case ONNXIFI_BACKEND_VENDOR:
        return InfoValue(description_.vendor);
      case ONNXIFI_BACKEND_VERSION:
        return InfoValue(description_.version);
      case ONNXIFI_BACKEND_EXTENSIONS:
        return InfoValue(std::string());
      case ONNXIFI_BACKEND_DEVICE:
        return InfoValue(description_.device);
      case ONNXIFI_BACKEND_DEVICE_TYPE:
        return InfoValue(uint64_t{description_.type});
      case ONNXIFI_BACKEND_ONNX_IR_VERSION:
        return InfoValue(model::SupportedIrVersions());
      case ONNXIFI_BACKEND_OPSET_VERSION:
        return InfoValue(operators_.domains().SupportedOpsets());
      case ONNXIFI_BACKEND_CAPABILITIES:
        return InfoValue(kCapabilities);
      case ONNXIFI_BACKEND_INIT_PROPERTIES: {
        // Of the standard's own keys the query does not tell.
        constexpr uint64_t kHighHalf = ~uint64_t{0xFFFFFFFF};
        uint64_t bits = 0;
        for (const uint64_t key : description_.backend_properties) bits |= key & kHighHalf;
        return InfoValue(bits);
      }
      case ONNXIFI_BACKEND_MEMORY_TYPES:
        return InfoValue(description_.memory_types);
      case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES:
        return InfoValue(description_.synchronization_types);
      case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
        return InfoValue(uint64_t{0});
      case ONNXIFI_BACKEND_MEMORY_SIZE:
      case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
        return InfoValue(description_.memory_bytes);
      case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
        return InfoValue(uint64_t{0xFFFFFFFF});
      default:
        return Status(Code::kUnsupportedAttribute, "Information query " + std::to_string(query) +
                                                       " is not answered by " + key() + ".");
    }
  }

  Status CheckCompatibility(std::span<const std::byte> model) const override {
    return Answer(model, ops::Carrier::kDescriptors, answers_);
  }

  Status CheckValueCompatibility(std::span<const std::byte> model) const override {
    return Answer(model, ops::Carrier::kValues, value_answers_);
  }

  Result<abi::Explanation> Explain(std::span<const std::byte> model) const override {
    abi::Explanation explanation;
    Result<graph::Graph> graph = ImportForClaim(model);
    if (!graph.ok()) {
      explanation.verdict = graph.status();
      return explanation;
    }
    ONNXIFI_ASSIGN_OR_RETURN(const auto operator_sets, model::OperatorSetsOf(model));
    ops::SupportAnswer answer = CheckSupportOfNodes(*graph, hardware_.selector(index_),
                                                    ops::Carrier::kDescriptors, operators_);
    std::vector<Status>& verdicts = answer.nodes;
    for (size_t k = 0; k < verdicts.size(); ++k) {
      const graph::Node& node = graph->nodes[k];
      abi::NodeVerdict& verdict = explanation.nodes.emplace_back();
      verdict.node_index = static_cast<uint32_t>(node.index);
      const bool is_emulated = verdicts[k].ok() && answer.is_emulated[k];
      verdict.code = is_emulated ? Code::kFallback : verdicts[k].code();
      verdict.node_name = node.name;
      verdict.domain = node.domain.empty() ? "ai.onnx" : node.domain;
      verdict.operator_type = node.op_type;
      const auto operator_set = operator_sets.find(node.domain);
      if (operator_set != operator_sets.end()) {
        verdict.opset_version = operator_set->second;
      } else if (const auto newest = operators_.domains().NewestOpset(node.domain)) {
        verdict.opset_version = *newest;
      }
      verdict.sentence = verdicts[k].Text();
      if (!verdicts[k].ok() && explanation.verdict.ok()) {
        explanation.verdict = std::move(verdicts[k]).Context("at " + graph::Describe(node));
      }
    }
    const auto sorted = [](abi::Explanation made) {
      std::ranges::stable_sort(made.nodes, {}, &abi::NodeVerdict::node_index);
      return made;
    };
    if (!explanation.verdict.ok()) return sorted(std::move(explanation));
    if (!answer.edges.ok() && answer.edge_node >= 0) {
      abi::NodeVerdict& verdict = explanation.nodes[answer.edge_node];
      verdict.code = answer.edges.code();
      verdict.sentence = answer.edges.Text();
    }
    explanation.verdict = std::move(answer.edges);
    const auto emulated = std::ranges::count(answer.is_emulated, true);
    if (explanation.verdict.ok() && emulated > 0) explanation.verdict = Emulated();
    return sorted(std::move(explanation));
  }

  Result<std::unique_ptr<abi::Backend>> InitBackend(
      const abi::BackendProperties& properties) const override {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device,
                             hardware_.Open(index_, properties));
    device::Sharing* const sharing = hardware_.SharingOf(*device);
    return std::unique_ptr<abi::Backend>(std::make_unique<PluginBackend>(
        std::move(device), sharing, description_, operators_, properties));
  }

  bool TakesBackendProperty(uint64_t key) const override {
    return std::ranges::count(description_.backend_properties, key) > 0;
  }

 private:
  // What a claim answers where the device has no kernels of its own for some of the nodes.
  static Status Emulated() {
    return {Code::kFallback, "The reference computes some of the nodes."};
  }

  Result<graph::Graph> ImportForClaim(std::span<const std::byte> model) const {
    model::ImportOptions options;
    options.lift_values = false;
    options.domains = &operators_.domains();
    return model::Import(model, options);
  }

  Status Answer(std::span<const std::byte> model, ops::Carrier carrier,
                AnswerCache& answers) const {
    const Question question(model);
    {
      std::lock_guard lock(answers.mutex());
      if (const Status* answer = answers.Find(question)) return *answer;
    }
    Result<graph::Graph> graph = ImportForClaim(model);
    bool is_emulated = false;
    Status answer = graph.ok() ? CheckSupport(*graph, hardware_.selector(index_), carrier,
                                              &is_emulated, operators_)
                               : graph.status();
    if (answer.ok() && is_emulated) answer = Emulated();
    std::lock_guard lock(answers.mutex());
    if (answers.Find(question) == nullptr) answers.Add(question, answer);
    return answer;
  }

  Hardware& hardware_;
  const int index_;
  const DeviceDescription description_;
  const OperatorSource& operators_;
  mutable AnswerCache answers_;
  mutable AnswerCache value_answers_;
};

class PluginProvider : public abi::Provider {
 public:
  explicit PluginProvider(std::unique_ptr<Hardware> hardware)
      : hardware_(std::move(hardware)), operators_(hardware_->domains()) {
    std::vector<DeviceDescription> found = hardware_->Enumerate();
    for (size_t k = 0; k < found.size(); ++k) {
      ids_.push_back(std::make_unique<PluginBackendId>(*hardware_, static_cast<int>(k),
                                                       std::move(found[k]), operators_));
    }
  }

  Result<std::vector<const abi::BackendId*>> EnumerateBackendIds() override {
    std::vector<const abi::BackendId*> ids;
    for (const std::unique_ptr<PluginBackendId>& id : ids_) ids.push_back(id.get());
    // No device is no error, but whoever asks next may read why.
    if (ids.empty()) abi::LastError::Set(hardware_->absence());
    return ids;
  }

 private:
  std::unique_ptr<Hardware> hardware_;
  const OperatorSource operators_;
  std::vector<std::unique_ptr<PluginBackendId>> ids_;
};

}  // namespace

std::unique_ptr<abi::Provider> MakeProvider(std::unique_ptr<Hardware> hardware) {
  return std::make_unique<PluginProvider>(std::move(hardware));
}

}  // namespace onnxifi::plugin
