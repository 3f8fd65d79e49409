// SPDX-License-Identifier: Apache-2.0
//
// Extension look-up, the atomic bind-and-run, the timed wait, and the SDK's own functions where a
// library offers them.

#include <onnx/onnxifi.h>
#include <onnx/onnxifi_ext.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/device_list.h"
#include "client/step_families.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"
#include "conformance/suites/interface/scene.h"
#include "conformance/suites/interface/small_models.h"

namespace onnxifi::suites {
namespace {

using std::chrono::milliseconds;

bool Needs(Check& check, bool is_offered, std::string_view function) {
  if (is_offered) return true;
  check.SetNotSupported(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                        "The library does not offer " + std::string(function) + ".");
  return false;
}

void BothSpellingsAreFound(Check& check) {
  const auto find = check.library().onnxGetExtensionFunctionAddress;
  if (!Needs(check, find != nullptr, "onnxGetExtensionFunctionAddress")) return;
  const std::string listed =
      " " +
      client::QueryText(check.library(), check.id(), ONNXIFI_BACKEND_EXTENSIONS).value_or("") + " ";
  check.Expect(listed.find(" onnx_extension_function ") != std::string::npos,
               "EXTENSIONS does not list onnx_extension_function (R16).");
  for (const char* name :
       {"onnxSetIOAndRunGraph", "onnxWaitEventFor", "onnxGetExtensionFunctionAddress"}) {
    onnxExtensionFunctionPointer plain = nullptr;
    onnxExtensionFunctionPointer suffixed = nullptr;
    const onnxStatus status = find(check.id(), name, &plain);
    const onnxStatus other = find(check.id(), (std::string(name) + "Function").c_str(), &suffixed);
    check.Expect(status == other && plain == suffixed,
                 std::string("The two spellings of ") + name + " are answered differently (R16).");
    check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_UNIDENTIFIED_NAME}, status,
                      std::string("onnxGetExtensionFunctionAddress for ") + name);
    check.Expect((status == ONNXIFI_STATUS_SUCCESS) == (plain != nullptr),
                 "onnxGetExtensionFunctionAddress succeeds without, or fails with, an address.");
  }
}

void LookUpChecksItsArguments(Check& check) {
  const auto find = check.library().onnxGetExtensionFunctionAddress;
  if (!Needs(check, find != nullptr, "onnxGetExtensionFunctionAddress")) return;
  int local = 0;
  const auto poison = reinterpret_cast<onnxExtensionFunctionPointer>(uintptr_t{8});
  onnxExtensionFunctionPointer found = poison;
  check.ExpectStatus(ONNXIFI_STATUS_UNIDENTIFIED_NAME,
                     find(check.id(), "onnxNoSuchFunction", &found),
                     "onnxGetExtensionFunctionAddress for an unknown name");
  check.Expect(found == nullptr, "A failed look-up leaves *function other than NULL.");
  found = poison;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, find(check.id(), nullptr, &found),
                     "onnxGetExtensionFunctionAddress with a NULL name");
  check.Expect(found == nullptr, "A failed look-up leaves *function other than NULL.");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     find(check.id(), "onnxSetIOAndRunGraph", nullptr),
                     "onnxGetExtensionFunctionAddress with a NULL result");
  found = poison;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, find(&local, "onnxSetIOAndRunGraph", &found),
                     "onnxGetExtensionFunctionAddress with a foreign ID");
  check.Expect(found == nullptr, "A failed look-up leaves *function other than NULL.");
}

void SetIoAndRunLeavesTheBinding(Check& check) {
  const auto run = check.extensions().set_io_and_run_graph;
  if (!Needs(check, run != nullptr, "onnxSetIOAndRunGraph")) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors standing(1);
  AddTensors passing(2);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, standing.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  onnxMemoryFenceV1 output = MakeFence(reinterpret_cast<onnxEvent>(uintptr_t{8}));
  if (!check.ExpectStatus(
          ONNXIFI_STATUS_SUCCESS,
          run(graph, 2, passing.inputs().data(), 1, passing.outputs().data(), &output),
          "onnxSetIOAndRunGraph with garbage in the fence")) {
    return;
  }
  scene.Keep(output.event);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(output.event),
                     "onnxWaitEvent");
  check.Expect(passing.IsSum(), "onnxSetIOAndRunGraph computes a wrong sum.");
  check.Expect(standing.z() == std::vector<float>(6, -1.0f),
               "onnxSetIOAndRunGraph writes to the standing binding.");
  scene.RunAndWait(graph);
  check.Expect(standing.IsSum(), "onnxSetIOAndRunGraph changes the standing binding (R19).");
}

void SetIoAndRunFaults(Check& check) {
  const auto run = check.extensions().set_io_and_run_graph;
  if (!Needs(check, run != nullptr, "onnxSetIOAndRunGraph")) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors tensors;
  const auto call = [&](onnxGraph where, onnxMemoryFenceV1* fence) {
    return run(where, 2, tensors.inputs().data(), 1, tensors.outputs().data(), fence);
  };
  onnxMemoryFenceV1 fence = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, call(nullptr, &fence),
                     "onnxSetIOAndRunGraph with a NULL graph");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, call(graph, nullptr),
                     "onnxSetIOAndRunGraph with a NULL fence (R18)");
  fence.tag = 1;
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_TAG, call(graph, &fence),
                     "onnxSetIOAndRunGraph with a fence of an unknown tag (R18)");
  fence = MakeFence(nullptr);
  fence.type = 12345;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_FENCE_TYPE, call(graph, &fence),
                     "onnxSetIOAndRunGraph with a fence of an unknown type (R18)");
  fence = MakeFence(nullptr);
  tensors.inputs()[0].name = "nothing";
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_NAME, call(graph, &fence),
                     "onnxSetIOAndRunGraph with an input that the graph does not have");
  check.Expect(fence.event == nullptr, "A failed onnxSetIOAndRunGraph stores an event (R9).");
}

void TimedWaitTellsTimeoutFromSignal(Check& check) {
  const auto wait = check.extensions().wait_event_for;
  if (!Needs(check, wait != nullptr, "onnxWaitEventFor")) return;
  Scene scene(check);
  const onnxEvent event = scene.InitEvent();
  if (event == nullptr) return;
  onnxEventState state = 77;
  onnxStatus status = 77;
  std::vector<char> message(200, '\x5A');
  size_t length = message.size();
  const auto start = std::chrono::steady_clock::now();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     wait(event, 60, &state, &status, message.data(), &length),
                     "onnxWaitEventFor that times out");
  const auto waited = std::chrono::steady_clock::now() - start;
  check.Expect(state == ONNXIFI_EVENT_STATE_NONSIGNALLED, "A time-out does not say NONSIGNALLED.");
  check.Expect(waited >= milliseconds(55), "onnxWaitEventFor returns before its time.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                     "onnxSignalEvent");
  state = 77;
  status = 77;
  length = message.size();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     wait(event, 60'000, &state, &status, message.data(), &length),
                     "onnxWaitEventFor on a signalled event");
  check.Expect(state == ONNXIFI_EVENT_STATE_SIGNALLED && status == ONNXIFI_STATUS_SUCCESS,
               "onnxWaitEventFor does not report the signal and its success.");
  check.Expect(length == 0, "onnxWaitEventFor gives a message for a success.");
}

void TimedWaitWithoutLimitWaits(Check& check) {
  const auto wait = check.extensions().wait_event_for;
  if (!Needs(check, wait != nullptr, "onnxWaitEventFor")) return;
  Scene scene(check);
  const onnxEvent event = scene.InitEvent();
  if (event == nullptr) return;
  std::jthread signaller([&] {
    std::this_thread::sleep_for(milliseconds(50));
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxSignalEvent(event),
                       "onnxSignalEvent");
  });
  onnxEventState state = 77;
  onnxStatus status = 77;
  size_t length = 0;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, wait(event, 0, &state, &status, nullptr, &length),
                     "onnxWaitEventFor without a limit");
  check.Expect(state == ONNXIFI_EVENT_STATE_SIGNALLED, "onnxWaitEventFor(0) does not wait.");
}

void TimedWaitCarriesTheErrorOfARun(Check& check) {
  const auto wait = check.extensions().wait_event_for;
  if (!Needs(check, wait != nullptr, "onnxWaitEventFor")) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeAddModel());
  if (graph == nullptr) return;
  AddTensors tensors;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  const onnxEvent event = scene.InitEvent();
  const onnxMemoryFenceV1 input = MakeFence(event);
  onnxMemoryFenceV1 output = MakeFence(nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxRunGraph(graph, &input, &output),
                     "onnxRunGraph");
  scene.Keep(output.event);
  scene.ReleaseNow(event);  // R15: the run can only fail.
  onnxEventState state = 77;
  onnxStatus status = ONNXIFI_STATUS_SUCCESS;
  std::vector<char> message(300, '\x5A');
  size_t length = message.size();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     wait(output.event, 0, &state, &status, message.data(), &length),
                     "onnxWaitEventFor on a failed run (R10)");
  check.Expect(state == ONNXIFI_EVENT_STATE_SIGNALLED && !client::IsAcceptance(status),
               "onnxWaitEventFor does not report that the run failed (R10).");
  check.Expect(length > 1 && length <= message.size() && message[length - 1] == '\0',
               "onnxWaitEventFor gives no sentence for a failed run.");
  // A small buffer gets a shorter sentence, ended all the same.
  std::vector<char> small(8, '\x5A');
  length = 5;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     wait(output.event, 0, &state, &status, small.data(), &length),
                     "onnxWaitEventFor with a small buffer");
  check.Expect(length <= 5 && small[5] == '\x5A' && small[length == 0 ? 0 : length - 1] == '\0',
               "onnxWaitEventFor writes beyond a small buffer, or no NUL.");
}

void TimedWaitChecksItsArguments(Check& check) {
  const auto wait = check.extensions().wait_event_for;
  if (!Needs(check, wait != nullptr, "onnxWaitEventFor")) return;
  Scene scene(check);
  const onnxEvent event = scene.InitEvent();
  onnxEventState state = 0;
  onnxStatus status = 0;
  size_t length = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT,
                     wait(nullptr, 1, &state, &status, nullptr, &length),
                     "onnxWaitEventFor with a NULL event");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     wait(event, 1, nullptr, &status, nullptr, &length),
                     "onnxWaitEventFor with a NULL state");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     wait(event, 1, &state, nullptr, nullptr, &length),
                     "onnxWaitEventFor with a NULL status");
}

void LastErrorKeepsTheSizeRule(Check& check) {
  const auto message_of = check.extensions().get_last_error_message;
  if (!Needs(check, message_of != nullptr, "onnxGetLastErrorMessage")) return;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, check.library().onnxReleaseBackendID(nullptr),
                     "onnxReleaseBackendID with NULL");
  size_t size_bytes = 0;
  check.Expect(message_of(nullptr, &size_bytes) == ONNXIFI_STATUS_FALLBACK && size_bytes > 1,
               "onnxGetLastErrorMessage has no sentence after an error.");
  std::vector<char> message(size_bytes + 8, '\x5A');
  size_t given = size_bytes;
  check.Expect(message_of(message.data(), &given) == ONNXIFI_STATUS_SUCCESS &&
                   given == size_bytes && std::strlen(message.data()) + 1 == size_bytes &&
                   message[size_bytes] == '\x5A',
               "onnxGetLastErrorMessage does not keep the two-call size rule.");
  std::jthread([&check, message_of] {
    size_t size = 99;
    check.Expect(message_of(nullptr, &size) == ONNXIFI_STATUS_FALLBACK && size == 1,
                 "The last error of one thread is seen in another.");
  }).join();
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, message_of(message.data(), nullptr),
                     "onnxGetLastErrorMessage with a NULL size");
}

struct Verdicts {
  std::vector<onnxStatus> statuses;
  bool all_have_sentences = true;
  bool all_have_operator_sets = true;
};

void ONNXIFI_ABI CollectVerdict(void* context, const onnxNodeVerdict* verdict) {
  auto& verdicts = *static_cast<Verdicts*>(context);
  verdicts.statuses.push_back(verdict->status);
  const bool is_refused = !client::IsAcceptance(verdict->status);
  verdicts.all_have_sentences &=
      (verdict->sentence != nullptr && *verdict->sentence != '\0') == is_refused;
  verdicts.all_have_operator_sets &= verdict->opset_version == ModelWriter::kDefaultOpset;
}

void ExplainAgreesWithTheClaim(Check& check) {
  const auto explain = check.extensions().explain_model;
  if (!Needs(check, explain != nullptr, "onnxExplainModel")) return;
  const std::string good = MakeAddModel();
  const std::string bad = ModelWriter()
                              .Input("x", ElementType::kFloat32, {kRows})
                              .Node("Relu", {"x"}, {"v"})
                              .Node("NoSuchOperator", {"v"}, {"y"})
                              .Output("y", ElementType::kFloat32, {kRows})
                              .Build();
  const std::string refused = ModelWriter()
                                  .Input("x", ElementType::kString, {kRows})
                                  .Node("Identity", {"x"}, {"y"})
                                  .Output("y", ElementType::kString, {kRows})
                                  .Build();
  for (const std::string* model : {&good, &bad, &refused}) {
    const onnxStatus claim =
        check.library().onnxGetBackendCompatibility(check.id(), model->size(), model->data());
    Verdicts verdicts;
    const onnxStatus explained =
        explain(check.id(), model->size(), model->data(), CollectVerdict, &verdicts);
    check.Expect(claim == explained, "onnxExplainModel answers " + client::StatusName(explained) +
                                         ", onnxGetBackendCompatibility " +
                                         client::StatusName(claim) + ".");
    // A model that cannot even be imported has no nodes to report; why is the last error then.
    check.Expect(!verdicts.statuses.empty() ||
                     (!client::IsAcceptance(explained) && !check.library().LastError().empty()),
                 "onnxExplainModel reports neither a node nor a reason.");
    check.Expect(client::IsAcceptance(explained) || verdicts.statuses.empty() ||
                     std::ranges::find(verdicts.statuses, explained) != verdicts.statuses.end(),
                 "onnxExplainModel refuses a model, and none of its nodes for that reason.");
    check.Expect(
        verdicts.all_have_sentences,
        "onnxExplainModel gives a sentence for a node that runs, or none for one that does not.");
    check.Expect(verdicts.all_have_operator_sets,
                 "onnxExplainModel gives another version of the operator set than the " +
                     std::to_string(ModelWriter::kDefaultOpset) + " that the model imports.");
  }
}

void ONNXIFI_ABI CollectExtents(void* context, const onnxTensorShape* shape) {
  static_cast<std::vector<int64_t>*>(context)->assign(shape->extents, shape->extents + shape->rank);
}

void ShapesBeforeAndAfterARun(Check& check) {
  const auto infer = check.extensions().infer_output_shapes;
  const auto after = check.extensions().get_run_output_shapes;
  if (!Needs(check, infer != nullptr && after != nullptr, "output shapes")) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeTwoSymbolsModel());
  if (graph == nullptr) return;
  AddTensors tensors(1, {5, 3});
  std::vector<int64_t> extents;
  check.ExpectStatus(
      ONNXIFI_STATUS_SUCCESS,
      infer(graph, tensors.inputs().count(), tensors.inputs().data(), CollectExtents, &extents),
      "onnxInferOutputShapes");
  check.Expect(extents == std::vector<int64_t>({5, 3}),
               "onnxInferOutputShapes gives a wrong shape.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                     "onnxSetGraphIO");
  const onnxEvent event = scene.StartRun(graph);
  if (event == nullptr) return;
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxWaitEvent(event), "onnxWaitEvent");
  extents.clear();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, after(event, CollectExtents, &extents),
                     "onnxGetRunOutputShapes");
  check.Expect(extents == std::vector<int64_t>({5, 3}),
               "onnxGetRunOutputShapes gives a wrong shape.");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_EVENT,
                     after(scene.InitEvent(), CollectExtents, &extents),
                     "onnxGetRunOutputShapes on an event that no run made");
}

void CountersCount(Check& check) {
  const auto read = check.extensions().get_graph_counters;
  if (!Needs(check, read != nullptr, "onnxGetGraphCounters")) return;
  Scene scene(check);
  const onnxGraph graph = scene.InitGraph(MakeTwoSymbolsModel());
  if (graph == nullptr) return;
  for (const int64_t rows : {2, 4, 2, 4, 4}) {
    AddTensors tensors(1, {rows, 3});
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                       "onnxSetGraphIO");
    scene.RunAndWait(graph);
    check.Expect(tensors.IsSum(), "The sum is wrong.");
  }
  struct {
    onnxGraphCounters counters;
    uint64_t tail;
  } read_back = {{}, 0x5A5A5A5A};
  read_back.counters.struct_size = sizeof(onnxGraphCounters);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, &read_back.counters),
                     "onnxGetGraphCounters");
  check.Expect(read_back.counters.runs == 5 && read_back.counters.lowerings == 1 &&
                   read_back.counters.bindings >= 1 && read_back.counters.bindings <= 2,
               "Five runs at two shapes are counted as " + std::to_string(read_back.counters.runs) +
                   " runs, " + std::to_string(read_back.counters.lowerings) + " lowerings, " +
                   std::to_string(read_back.counters.bindings) + " bindings.");
  check.Expect(read_back.tail == 0x5A5A5A5A, "onnxGetGraphCounters writes behind the structure.");
  // Of a shape that has run three times.
  const uint64_t recordings = read_back.counters.recordings;
  const uint64_t submissions = read_back.counters.submissions;
  AddTensors again(1, {4, 3});
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, again.Bind(check.library(), graph), "onnxSetGraphIO");
  for (int run = 0; run < 4; ++run) scene.RunAndWait(graph);
  check.Expect(again.IsSum(), "The sum is wrong where a run is done again.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, &read_back.counters),
                     "onnxGetGraphCounters");
  check.Expect(
      read_back.counters.recordings == recordings,
      "A shape that comes again and again is recorded anew: " + std::to_string(recordings) +
          ", then " + std::to_string(read_back.counters.recordings) + " recordings.");
  check.Expect(read_back.counters.submissions == submissions ||
                   read_back.counters.submissions - submissions == 4,
               "Four runs of one kernel are counted as " +
                   std::to_string(read_back.counters.submissions - submissions) + " submissions.");
  read_back.counters = {};
  read_back.counters.struct_size = sizeof(size_t) + sizeof(uint64_t);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, &read_back.counters),
                     "onnxGetGraphCounters with an older, smaller structure");
  check.Expect(read_back.counters.runs == 0, "onnxGetGraphCounters writes beyond struct_size.");
  read_back.counters.struct_size = 1;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_SIZE, read(graph, &read_back.counters),
                     "onnxGetGraphCounters with a structure too small to hold its size");
}

// What a profile says of one run, added up.
struct ProfileSums {
  uint32_t steps = 0;
  std::map<std::string, uint64_t> families;
  uint64_t last_end_ns = 0;
  uint64_t written_bytes = 0;
  bool is_sound = true;
};

void ONNXIFI_ABI AddStep(void* context, const onnxStepRecord* record) {
  ProfileSums& sums = *static_cast<ProfileSums*>(context);
  const bool has_texts = record->family != nullptr && record->implementation != nullptr &&
                         record->detail != nullptr && record->implementation[0] != '\0';
  sums.is_sound = sums.is_sound && has_texts && record->step_index == sums.steps &&
                  record->struct_size >= sizeof(size_t) &&
                  (record->rank == 0 || record->extents != nullptr) &&
                  (record->rejected_count == 0 || record->rejected != nullptr);
  ++sums.steps;
  if (record->family != nullptr) ++sums.families[record->family];
  sums.last_end_ns = std::max(sums.last_end_ns, record->start_ns + record->duration_ns);
  sums.written_bytes += record->written_bytes;
}

void ProfileTellsTheStepsOfTheLastRun(Check& check) {
  const auto read = check.extensions().get_graph_profile;
  if (!Needs(check, read != nullptr, "onnxGetGraphProfile")) return;
  Scene scene(check);
  if (!scene.is_ready()) return;
  const std::string model = MakeTwoSymbolsModel();
  const std::array<uint64_t, 3> list = {ONNXIFI_SDK_GRAPH_PROPERTY_PROFILE, 1,
                                        ONNXIFI_GRAPH_PROPERTY_NONE};
  onnxGraph graph = nullptr;
  if (!check.ExpectOneOf({ONNXIFI_STATUS_SUCCESS, ONNXIFI_STATUS_FALLBACK},
                         check.library().onnxInitGraph(scene.backend(), list.data(), model.size(),
                                                       model.data(), 0, nullptr, &graph),
                         "onnxInitGraph with the profile property")) {
    return;
  }
  ProfileSums sums;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_STATE, read(graph, AddStep, &sums),
                     "onnxGetGraphProfile before a run");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, read(graph, nullptr, &sums),
                     "onnxGetGraphProfile without a callback");
  for (const int64_t rows : {2, 5}) {
    AddTensors tensors(1, {rows, 3});
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), graph),
                       "onnxSetGraphIO");
    scene.RunAndWait(graph);
    sums = {};
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, AddStep, &sums), "onnxGetGraphProfile");
    check.Expect(sums.is_sound, "A step of the profile lacks a text, or they are misnumbered.");
    check.Expect(sums.steps > 0 && sums.last_end_ns > 0, "The profile of a run is empty.");
    check.Expect(sums.written_bytes == static_cast<uint64_t>(rows) * 3 * sizeof(float),
                 "The profile of a sum of " + std::to_string(rows) + " x 3 floats tells of " +
                     std::to_string(sums.written_bytes) + " bytes written.");
  }
  if (const auto counted = client::ReadStepFamilies(check.extensions().get_graph_counters, graph)) {
    for (const auto& [family, count] : *counted) {
      check.Expect(sums.families[family] == count,
                   "The graph is counted with " + std::to_string(count) + " steps of the family " +
                       family + ", of which the profile has " +
                       std::to_string(sums.families[family]) + ".");
    }
  }
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseGraph(graph),
                     "onnxReleaseGraph");
  const onnxGraph plain = scene.InitGraph(model);
  if (plain == nullptr) return;
  AddTensors tensors(1, {2, 3});
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, tensors.Bind(check.library(), plain),
                     "onnxSetGraphIO");
  scene.RunAndWait(plain);
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_STATE, read(plain, AddStep, &sums),
                     "onnxGetGraphProfile of a graph without the property");
}

// What a load profile says, added up.
struct LoadSums {
  uint64_t stages = 0;
  uint64_t duration_ns = 0;
  bool is_sound = true;
};

void ONNXIFI_ABI AddPass(void* context, const onnxLoadRecord* record) {
  LoadSums& sums = *static_cast<LoadSums*>(context);
  sums.is_sound = sums.is_sound && record->struct_size >= sizeof(size_t) &&
                  record->stage != nullptr && record->stage[0] != '\0' && record->count > 0;
  ++sums.stages;
  sums.duration_ns += record->duration_ns;
}

void LoadProfileTellsTheStagesOfInitialisation(Check& check) {
  const auto read = check.extensions().get_graph_load_profile;
  if (!Needs(check, read != nullptr, "onnxGetGraphLoadProfile")) return;
  Scene scene(check);
  if (!scene.is_ready()) return;
  const auto start = std::chrono::steady_clock::now();
  const onnxGraph graph = scene.InitGraph(MakeTwoSymbolsModel());
  if (graph == nullptr) return;
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  LoadSums sums;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, read(nullptr, AddPass, &sums),
                     "onnxGetGraphLoadProfile of no graph");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, read(graph, nullptr, &sums),
                     "onnxGetGraphLoadProfile without a callback");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, AddPass, &sums),
                     "onnxGetGraphLoadProfile");
  check.Expect(sums.stages > 0 && sums.is_sound,
               "The load profile is empty, or a stage lacks a name or never ran.");
  check.Expect(sums.duration_ns <= static_cast<uint64_t>(took.count()),
               "The stages of a load took " + std::to_string(sums.duration_ns) +
                   " ns where onnxInitGraph took " + std::to_string(took.count()) + ".");
}

// What a plan says, added up.
struct PlanSums {
  int64_t islands = 0;
  int64_t cuts = 0;
  bool is_sound = true;
};

void ONNXIFI_ABI AddIsland(void* context, const onnxPlanIsland* island) {
  PlanSums& sums = *static_cast<PlanSums*>(context);
  const bool has_arrays = (island->node_count == 0 || island->nodes != nullptr) &&
                          (island->after_count == 0 || island->after != nullptr);
  sums.is_sound = sums.is_sound && has_arrays && island->struct_size >= sizeof(size_t) &&
                  island->island_index == sums.islands && island->device_key != nullptr &&
                  island->device_key[0] != '\0' && sums.cuts == 0;
  for (uint32_t k = 0; has_arrays && k < island->after_count; ++k) {
    sums.is_sound = sums.is_sound && island->after[k] < sums.islands;
  }
  ++sums.islands;
}

void ONNXIFI_ABI AddCut(void* context, const onnxPlanCut* cut) {
  PlanSums& sums = *static_cast<PlanSums*>(context);
  const auto is_end = [&](int64_t end) {
    return end == ONNXIFI_SDK_UNKNOWN || (end >= 0 && end < sums.islands);
  };
  sums.is_sound = sums.is_sound && cut->value_name != nullptr && is_end(cut->from_island) &&
                  is_end(cut->to_island) && cut->from_island != cut->to_island;
  ++sums.cuts;
}

void PlanTellsWhichDeviceRunsWhat(Check& check) {
  const auto read = check.extensions().get_graph_plan;
  if (!Needs(check, read != nullptr, "onnxGetGraphPlan")) return;
  Scene scene(check);
  if (!scene.is_ready()) return;
  const onnxGraph graph = scene.InitGraph(MakeTwoSymbolsModel());
  if (graph == nullptr) return;
  PlanSums sums;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_GRAPH, read(nullptr, AddIsland, AddCut, &sums),
                     "onnxGetGraphPlan of no graph");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, read(graph, nullptr, AddCut, &sums),
                     "onnxGetGraphPlan without a callback for islands");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER, read(graph, AddIsland, nullptr, &sums),
                     "onnxGetGraphPlan without a callback for cuts");
  check.Expect(sums.islands == 0 && sums.cuts == 0, "A failing onnxGetGraphPlan calls back.");
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, read(graph, AddIsland, AddCut, &sums),
                     "onnxGetGraphPlan");
  check.Expect(sums.islands > 0 && sums.is_sound,
               "The plan has no island, or an island or cut of it has numbers that mean nothing.");
}

constexpr InterfaceCase kCases[] = {
    {"extensions", "both_spellings_are_found", BothSpellingsAreFound},
    {"extensions", "look_up_checks_its_arguments", LookUpChecksItsArguments},
    {"extensions", "set_io_and_run_leaves_the_binding", SetIoAndRunLeavesTheBinding},
    {"extensions", "set_io_and_run_faults", SetIoAndRunFaults},
    {"extensions", "timed_wait_tells_timeout_from_signal", TimedWaitTellsTimeoutFromSignal},
    {"extensions", "timed_wait_without_limit_waits", TimedWaitWithoutLimitWaits},
    {"extensions", "timed_wait_carries_the_error_of_a_run", TimedWaitCarriesTheErrorOfARun},
    {"extensions", "timed_wait_checks_its_arguments", TimedWaitChecksItsArguments},
    {"extensions", "last_error_keeps_the_size_rule", LastErrorKeepsTheSizeRule},
    {"extensions", "explain_agrees_with_the_claim", ExplainAgreesWithTheClaim},
    {"extensions", "output_shapes_before_and_after_a_run", ShapesBeforeAndAfterARun},
    {"extensions", "counters_count", CountersCount},
    {"extensions", "profile_tells_the_steps_of_the_last_run", ProfileTellsTheStepsOfTheLastRun},
    {"extensions", "load_profile_tells_the_stages", LoadProfileTellsTheStagesOfInitialisation},
    {"extensions", "plan_tells_which_device_runs_what", PlanTellsWhichDeviceRunsWhat},
};

}  // namespace

std::span<const InterfaceCase> ExtensionCases() { return kCases; }

}  // namespace onnxifi::suites
