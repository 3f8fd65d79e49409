// SPDX-License-Identifier: Apache-2.0
//
// Listing devices and asking about them: the two-call size rule, stable IDs, required queries.

#include <fmt/format.h>
#include <onnx/onnxifi.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "client/device_list.h"
#include "conformance/suites/interface/case_groups.h"
#include "conformance/suites/interface/check.h"

namespace onnxifi::suites {
namespace {

constexpr std::array<onnxBackendInfo, 7> kTextQueries = {
    ONNXIFI_BACKEND_NAME,         ONNXIFI_BACKEND_VENDOR, ONNXIFI_BACKEND_VERSION,
    ONNXIFI_BACKEND_EXTENSIONS,   ONNXIFI_BACKEND_DEVICE, ONNXIFI_BACKEND_ONNX_IR_VERSION,
    ONNXIFI_BACKEND_OPSET_VERSION};
constexpr std::array<onnxBackendInfo, 10> kNumberQueries = {
    ONNXIFI_BACKEND_ONNXIFI_VERSION,       ONNXIFI_BACKEND_DEVICE_TYPE,
    ONNXIFI_BACKEND_CAPABILITIES,          ONNXIFI_BACKEND_INIT_PROPERTIES,
    ONNXIFI_BACKEND_MEMORY_TYPES,          ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES,
    ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES, ONNXIFI_BACKEND_MEMORY_SIZE,
    ONNXIFI_BACKEND_MAX_GRAPH_SIZE,        ONNXIFI_BACKEND_MAX_GRAPH_COUNT};
constexpr onnxBackendInfo kUnknownQuery = 0x7FFF;

std::vector<onnxBackendID> ListIds(Check& check) {
  size_t count = 0;
  if (!check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                          check.library().onnxGetBackendIDs(nullptr, &count),
                          "onnxGetBackendIDs with a NULL array")) {
    return {};
  }
  std::vector<onnxBackendID> ids(count, nullptr);
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxGetBackendIDs(ids.data(), &count),
                     "onnxGetBackendIDs with room for all");
  check.Expect(count == ids.size(), "The two calls of onnxGetBackendIDs give different counts.");
  return ids;
}

void NullArrayGivesTheCount(Check& check) {
  size_t count = SIZE_MAX;  // Legal: the capacity of a NULL array is not read.
  check.ExpectStatus(ONNXIFI_STATUS_FALLBACK, check.library().onnxGetBackendIDs(nullptr, &count),
                     "onnxGetBackendIDs with a NULL array and count SIZE_MAX");
  check.Expect(count >= 1 && count < 1000,
               fmt::format("onnxGetBackendIDs counts {} devices.", count));
}

void SmallArrayIsLeftAlone(Check& check) {
  const std::vector<onnxBackendID> ids = ListIds(check);
  if (ids.empty()) return;
  std::vector<onnxBackendID> poisoned(ids.size() + 1, reinterpret_cast<onnxBackendID>(&check));
  size_t count = ids.size() - 1;
  check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                     check.library().onnxGetBackendIDs(poisoned.data(), &count),
                     "onnxGetBackendIDs with an array that is too small");
  check.Expect(count == ids.size(),
               "A FALLBACK of onnxGetBackendIDs does not give the true count.");
  check.Expect(std::ranges::all_of(
                   poisoned,
                   [&](onnxBackendID id) { return id == reinterpret_cast<onnxBackendID>(&check); }),
               "onnxGetBackendIDs stores IDs into an array that is too small (R26).");
}

void LargeArrayKeepsItsTail(Check& check) {
  const std::vector<onnxBackendID> ids = ListIds(check);
  std::vector<onnxBackendID> poisoned(ids.size() + 3, reinterpret_cast<onnxBackendID>(&check));
  size_t count = poisoned.size();
  check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                     check.library().onnxGetBackendIDs(poisoned.data(), &count),
                     "onnxGetBackendIDs with a larger array");
  check.Expect(count == ids.size(), "onnxGetBackendIDs does not give the true count.");
  check.Expect(std::equal(ids.begin(), ids.end(), poisoned.begin()),
               "onnxGetBackendIDs gives other IDs in a larger array.");
  check.Expect(
      std::all_of(poisoned.begin() + static_cast<ptrdiff_t>(ids.size()), poisoned.end(),
                  [&](onnxBackendID id) { return id == reinterpret_cast<onnxBackendID>(&check); }),
      "onnxGetBackendIDs writes behind the last ID.");
}

void NullCountIsInvalid(Check& check) {
  onnxBackendID id = nullptr;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     check.library().onnxGetBackendIDs(nullptr, nullptr),
                     "onnxGetBackendIDs with two NULLs");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     check.library().onnxGetBackendIDs(&id, nullptr),
                     "onnxGetBackendIDs with a NULL count");
}

void IdsAreStableAndDistinct(Check& check) {
  std::vector<onnxBackendID> first = ListIds(check);
  for (const onnxBackendID id : first) {
    check.Expect(id != nullptr, "onnxGetBackendIDs gives a NULL ID.");
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseBackendID(id),
                       "onnxReleaseBackendID on a valid ID");
  }
  const std::vector<onnxBackendID> second = ListIds(check);
  check.Expect(first == second, "Listing again after all IDs are released gives other IDs (R3).");
  std::ranges::sort(first);
  check.Expect(std::ranges::adjacent_find(first) == first.end(), "Two devices have the same ID.");
  uint64_t type = 0;
  size_t size_bytes = sizeof(type);
  for (const onnxBackendID id : second) {
    check.ExpectStatus(
        ONNXIFI_STATUS_SUCCESS,
        check.library().onnxGetBackendInfo(id, ONNXIFI_BACKEND_DEVICE_TYPE, &type, &size_bytes),
        "onnxGetBackendInfo on an ID that was listed again");
  }
}

void ReleasingAnIdTwiceSucceeds(Check& check) {
  for (int time = 0; time < 2; ++time) {
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS, check.library().onnxReleaseBackendID(check.id()),
                       "onnxReleaseBackendID on an ID that was released before (R3)");
  }
}

void ReleasingNoIdIsInvalid(Check& check) {
  int local = 0;
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, check.library().onnxReleaseBackendID(nullptr),
                     "onnxReleaseBackendID with NULL");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_ID, check.library().onnxReleaseBackendID(&local),
                     "onnxReleaseBackendID with a foreign pointer");
}

void RequiredTextsAreAnswered(Check& check) {
  for (const onnxBackendInfo query : kTextQueries) {
    size_t size_bytes = 12345;
    const std::string what = fmt::format("onnxGetBackendInfo for text query {}", query);
    check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                       check.library().onnxGetBackendInfo(check.id(), query, nullptr, &size_bytes),
                       what + " without a buffer");
    if (!check.Expect(size_bytes >= 1 && size_bytes < 65536,
                      fmt::format("{} gives the size {}.", what, size_bytes))) {
      continue;
    }
    std::vector<char> exact(size_bytes + 8, '\x5A');
    size_t given = size_bytes;
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxGetBackendInfo(check.id(), query, exact.data(), &given),
                       what + " with a buffer of the exact size");
    check.Expect(given == size_bytes, what + " gives two sizes.");
    check.Expect(exact[size_bytes - 1] == '\0', what + " gives no NUL within its size (R1).");
    check.Expect(std::strlen(exact.data()) + 1 == size_bytes,
                 what + " gives a size that is not that of the text with its NUL (R1).");
    check.Expect(std::all_of(exact.begin() + static_cast<ptrdiff_t>(size_bytes), exact.end(),
                             [](char tail) { return tail == '\x5A'; }),
                 what + " writes behind the text.");
    // A larger buffer also gives the exact size.
    given = exact.size();
    check.ExpectStatus(ONNXIFI_STATUS_SUCCESS,
                       check.library().onnxGetBackendInfo(check.id(), query, exact.data(), &given),
                       what + " with a larger buffer");
    check.Expect(given == size_bytes, what + " does not give the exact size for a larger buffer.");
    // A smaller one is left alone.
    std::vector<char> small(size_bytes, '\x5A');
    given = size_bytes - 1;
    check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                       check.library().onnxGetBackendInfo(check.id(), query, small.data(), &given),
                       what + " with a buffer that is too small");
    check.Expect(given == size_bytes, what + " does not give the exact size for a small buffer.");
    check.Expect(std::ranges::all_of(small, [](char byte) { return byte == '\x5A'; }),
                 what + " writes into a buffer that is too small.");
  }
}

void RequiredNumbersAreAnswered(Check& check) {
  for (const onnxBackendInfo query : kNumberQueries) {
    const std::string what = fmt::format("onnxGetBackendInfo for number query {}", query);
    size_t size_bytes = 0;
    check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                       check.library().onnxGetBackendInfo(check.id(), query, nullptr, &size_bytes),
                       what + " without a buffer");
    check.Expect(size_bytes == 8,
                 fmt::format("{} gives the size {} instead of 8.", what, size_bytes));
    std::array<uint64_t, 2> value = {0, 0x5A5A5A5A5A5A5A5A};
    size_bytes = 8;
    check.ExpectStatus(
        ONNXIFI_STATUS_SUCCESS,
        check.library().onnxGetBackendInfo(check.id(), query, value.data(), &size_bytes),
        what + " with 8 bytes");
    check.Expect(value[1] == 0x5A5A5A5A5A5A5A5A, what + " writes more than 8 bytes.");
    uint32_t small = 0x5A5A5A5A;
    size_bytes = 4;
    check.ExpectStatus(ONNXIFI_STATUS_FALLBACK,
                       check.library().onnxGetBackendInfo(check.id(), query, &small, &size_bytes),
                       what + " with 4 bytes");
    check.Expect(small == 0x5A5A5A5A && size_bytes == 8,
                 what + " does not keep the size rule for 4 bytes.");
  }
}

void ValuesAreSensible(Check& check) {
  const auto number = [&](onnxBackendInfo query) {
    return client::QueryNumber(check.library(), check.id(), query).value_or(0);
  };
  const auto text = [&](onnxBackendInfo query) {
    return client::QueryText(check.library(), check.id(), query).value_or("");
  };
  check.Expect(number(ONNXIFI_BACKEND_ONNXIFI_VERSION) == 0x0000000100000000,
               fmt::format("The version of the interface is {:#x} instead of 1.0.",
                           number(ONNXIFI_BACKEND_ONNXIFI_VERSION)));
  const uint64_t type = number(ONNXIFI_BACKEND_DEVICE_TYPE);
  check.Expect(type != 0 && (type & (type - 1)) == 0 && type <= ONNXIFI_DEVICE_TYPE_HETEROGENEOUS,
               fmt::format("The device type {:#x} is not one of the interface's.", type));
  const std::string name = text(ONNXIFI_BACKEND_NAME);
  check.Expect(
      !name.empty() && name.size() < 50,
      fmt::format("The name '{}' does not fit into the 50 bytes that callers have.", name));
  check.Expect(text(ONNXIFI_BACKEND_DEVICE).find("Caffe2") == std::string::npos,
               "The device text contains 'Caffe2', by which a known caller picks another format.");
  check.Expect(text(ONNXIFI_BACKEND_OPSET_VERSION).find("ai.onnx:") != std::string::npos,
               fmt::format("The operator sets '{}' lack the default domain.",
                           text(ONNXIFI_BACKEND_OPSET_VERSION)));
  const std::string ir = " " + text(ONNXIFI_BACKEND_ONNX_IR_VERSION) + " ";
  check.Expect(ir.find(" 3 ") != std::string::npos,
               fmt::format("The IR versions '{}' lack 3, the minimum of the interface.", ir));
  const uint64_t capabilities = number(ONNXIFI_BACKEND_CAPABILITIES);
  const auto requires_bits = [&](uint64_t bit, uint64_t needed) {
    return (capabilities & bit) == 0 || (capabilities & needed) == needed;
  };
  check.Expect(
      requires_bits(ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS,
                    ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE) &&
          requires_bits(ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE,
                        ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE) &&
          requires_bits(
              ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS,
              ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS | ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE),
      fmt::format("Capabilities {:#x} lack a bit that another one requires.", capabilities));
  constexpr uint64_t kLowHalf = 0xFFFFFFFF;
  check.Expect((number(ONNXIFI_BACKEND_INIT_PROPERTIES) & kLowHalf) == 0 &&
                   (number(ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES) & kLowHalf) == 0,
               "The property queries report standard keys beside the vendor's (R27).");
  check.Expect(number(ONNXIFI_BACKEND_MAX_GRAPH_COUNT) > 0, "The device takes no graph at all.");
}

void UnknownQueryIsUnsupported(Check& check) {
  uint64_t value = 0x5A;
  size_t size_bytes = 8;
  check.ExpectStatus(
      ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE,
      check.library().onnxGetBackendInfo(check.id(), kUnknownQuery, &value, &size_bytes),
      "onnxGetBackendInfo for an unknown query");
  check.Expect(value == 0x5A && size_bytes == 8,
               "onnxGetBackendInfo writes although the query is unknown.");
  size_bytes = 0;
  check.ExpectStatus(
      ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE,
      check.library().onnxGetBackendInfo(check.id(), kUnknownQuery, nullptr, &size_bytes),
      "onnxGetBackendInfo for an unknown query without a buffer");
  check.ExpectStatus(ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE,
                     check.library().onnxGetBackendInfo(check.id(), -1, nullptr, &size_bytes),
                     "onnxGetBackendInfo for query -1");
}

void InfoChecksItsArguments(Check& check) {
  uint64_t value = 0;
  size_t size_bytes = 8;
  int local = 0;
  check.ExpectStatus(
      ONNXIFI_STATUS_INVALID_ID,
      check.library().onnxGetBackendInfo(nullptr, ONNXIFI_BACKEND_NAME, &value, &size_bytes),
      "onnxGetBackendInfo with a NULL ID");
  check.ExpectStatus(
      ONNXIFI_STATUS_INVALID_ID,
      check.library().onnxGetBackendInfo(&local, ONNXIFI_BACKEND_NAME, &value, nullptr),
      "onnxGetBackendInfo with a foreign ID and a NULL size");
  check.ExpectStatus(ONNXIFI_STATUS_INVALID_POINTER,
                     check.library().onnxGetBackendInfo(check.id(), kUnknownQuery, &value, nullptr),
                     "onnxGetBackendInfo with a NULL size and an unknown query");
}

constexpr InterfaceCase kCases[] = {
    {"discovery", "ids_null_array_gives_the_count", NullArrayGivesTheCount},
    {"discovery", "ids_small_array_is_left_alone", SmallArrayIsLeftAlone},
    {"discovery", "ids_large_array_keeps_its_tail", LargeArrayKeepsItsTail},
    {"discovery", "ids_null_count_is_invalid", NullCountIsInvalid},
    {"discovery", "ids_are_stable_and_distinct", IdsAreStableAndDistinct},
    {"discovery", "release_id_twice_succeeds", ReleasingAnIdTwiceSucceeds},
    {"discovery", "release_id_of_nothing_is_invalid", ReleasingNoIdIsInvalid},
    {"discovery", "info_required_texts_keep_the_size_rule", RequiredTextsAreAnswered},
    {"discovery", "info_required_numbers_keep_the_size_rule", RequiredNumbersAreAnswered},
    {"discovery", "info_values_are_sensible", ValuesAreSensible},
    {"discovery", "info_unknown_query_is_unsupported", UnknownQueryIsUnsupported},
    {"discovery", "info_checks_its_arguments_in_order", InfoChecksItsArguments},
};

}  // namespace

std::span<const InterfaceCase> DiscoveryCases() { return kCases; }

}  // namespace onnxifi::suites
