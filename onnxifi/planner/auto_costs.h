// SPDX-License-Identifier: Apache-2.0
//
// AutoCosts: what is known of how long the devices of the auto device take, in this process and in
// the cache folder.

#ifndef ONNXIFI_ONNXIFI_PLANNER_AUTO_COSTS_H_
#define ONNXIFI_ONNXIFI_PLANNER_AUTO_COSTS_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/base/cache_folder.h"
#include "onnxifi/cost/cost_store.h"
#include "onnxifi/cost/device_table.h"
#include "onnxifi/plugins/forwarded_backend_id.h"

namespace onnxifi::planner {

// Of one device; the table never changes.
struct KnownCosts {
  std::string identity;
  std::shared_ptr<const cost::DeviceTable> table;
};

// Threads: any.
class AutoCosts {
 public:
  // `devices` outlive it.
  explicit AutoCosts(std::vector<const plugins::ForwardedBackendId*> devices)
      : devices_(std::move(devices)), store_(base::CacheFolder()) {}

  // By device. The cache folder is read once.
  std::vector<KnownCosts> Known();
  bool HasAny();
  // Adds what was measured of a device, here and in the cache folder.
  void Learn(size_t device, const cost::DeviceTable& newer);

  // Whether ONNXIFI_MEASURE says that graphs are measured.
  static bool MeasuresByDefault();

 private:
  void Load();  // with the mutex held

  const std::vector<const plugins::ForwardedBackendId*> devices_;
  const cost::CostStore store_;
  std::mutex mutex_;
  // Guarded by mutex_; empty until the first question.
  std::vector<KnownCosts> known_;
};

}  // namespace onnxifi::planner

#endif  // ONNXIFI_ONNXIFI_PLANNER_AUTO_COSTS_H_
