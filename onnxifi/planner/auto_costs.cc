// SPDX-License-Identifier: Apache-2.0
//
// AutoCosts: tables are replaced, never changed, so that plans under way keep theirs.

#include "onnxifi/planner/auto_costs.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <variant>

namespace onnxifi::planner {

using plugins::ForwardedBackendId;

namespace {

// All that tells the device and its software from others, in one line.
std::string IdentityOf(const ForwardedBackendId& device) {
  std::string identity = device.key() + " by " ONNXIFI_SDK_VERSION;
  for (const onnxBackendInfo query : {ONNXIFI_BACKEND_NAME, ONNXIFI_BACKEND_VENDOR,
                                      ONNXIFI_BACKEND_VERSION, ONNXIFI_BACKEND_DEVICE}) {
    const auto value = device.Info(query);
    if (!value.ok()) continue;
    if (const auto* text = std::get_if<std::string>(&*value)) identity += "; " + *text;
  }
  std::replace_if(
      identity.begin(), identity.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return identity;
}

}  // namespace

bool AutoCosts::MeasuresByDefault() {
  const char* const text = std::getenv("ONNXIFI_MEASURE");
  return text != nullptr && std::string_view(text) == "1";
}

void AutoCosts::Load() {
  if (!known_.empty()) return;
  for (const ForwardedBackendId* device : devices_) {
    KnownCosts& known = known_.emplace_back();
    known.identity = IdentityOf(*device);
    known.table = std::make_shared<const cost::DeviceTable>(store_.Read(known.identity));
  }
}

std::vector<KnownCosts> AutoCosts::Known() {
  const std::lock_guard lock(mutex_);
  Load();
  return known_;
}

bool AutoCosts::HasAny() {
  const std::lock_guard lock(mutex_);
  Load();
  return std::any_of(known_.begin(), known_.end(),
                     [](const KnownCosts& known) { return !known.table->empty(); });
}

void AutoCosts::Learn(size_t device, const cost::DeviceTable& newer) {
  if (newer.empty()) return;
  const std::lock_guard lock(mutex_);
  Load();
  cost::DeviceTable table = *known_[device].table;
  table.Merge(newer);
  known_[device].table = std::make_shared<const cost::DeviceTable>(std::move(table));
  store_.Add(known_[device].identity, newer);
}

}  // namespace onnxifi::planner
