// SPDX-License-Identifier: Apache-2.0
//
// SchemaTable: a sorted table of functions that make a schema, and what they have made.

#include "backends/core/model/schema_table.h"

#include <onnx/defs/operator_sets.h>
#include <onnx/defs/operator_sets_ml.h>
#include <onnx/defs/operator_sets_preview.h>
#include <onnx/defs/operator_sets_training.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>

namespace onnxifi::model {
namespace {

struct Entry {
  std::string_view op_type;
  std::string_view domain;
  int since_version;
  onnx::OpSchema (*make)();
};

// Sorted by operator, domain and version.
constexpr Entry kEntries[] = {
#include <schema_table.inc>  // made while building
};

// The versions of one operator, oldest first.
std::span<const Entry> VersionsOf(std::string_view op_type, std::string_view domain) {
  const auto compare = [&](const Entry& entry) {
    const int order = entry.op_type.compare(op_type);
    return order != 0 ? order : entry.domain.compare(domain);
  };
  const Entry* first = std::partition_point(std::begin(kEntries), std::end(kEntries),
                                            [&](const Entry& entry) { return compare(entry) < 0; });
  const Entry* end = first;
  while (end != std::end(kEntries) && compare(*end) == 0) ++end;
  return {first, end};
}

class MadeSchemas {
 public:
  const onnx::OpSchema* Get(const Entry& entry) {
    Slot& slot = slots_[static_cast<size_t>(&entry - kEntries)];
    if (const onnx::OpSchema* known = slot.known.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock(mutex_);
    if (slot.made == nullptr) {
      auto made = std::make_unique<onnx::OpSchema>(entry.make());
      made->Finalize();
      slot.made = std::move(made);
      slot.known.store(slot.made.get(), std::memory_order_release);
    }
    return slot.made.get();
  }

 private:
  struct Slot {
    std::atomic<const onnx::OpSchema*> known = nullptr;
    std::unique_ptr<const onnx::OpSchema> made;  // guarded by mutex_
  };
  std::mutex mutex_;
  std::array<Slot, std::size(kEntries)> slots_;
};

}  // namespace

const onnx::OpSchema* FindSchema(std::string_view op_type, std::string_view domain, int opset) {
  static MadeSchemas made;
  const std::span<const Entry> versions = VersionsOf(op_type, domain);
  const auto newer = std::ranges::upper_bound(versions, opset, {}, &Entry::since_version);
  return newer == versions.begin() ? nullptr : made.Get(*std::prev(newer));
}

bool HasSchema(std::string_view op_type, std::string_view domain) {
  return !VersionsOf(op_type, domain).empty();
}

}  // namespace onnxifi::model
