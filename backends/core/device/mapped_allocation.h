// SPDX-License-Identifier: Apache-2.0
//
// MappedAllocation: a driver's memory, made or imported, under the addresses that stand for it.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_MAPPED_ALLOCATION_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_MAPPED_ALLOCATION_H_

#include <memory>
#include <utility>

#include "backends/core/device/address_space.h"
#include "backends/core/device/device.h"

namespace onnxifi::device {

// `Owner` has the handle as get() and releases it when it goes; the addresses are forgotten before.
// Drivers keep memory that commands still use.
template <typename Handle, typename Owner>
class MappedAllocation final : public Allocation {
 public:
  // NO_SYSTEM_RESOURCES. `map` outlives it; size_bytes > 0.
  static base::Result<std::unique_ptr<Allocation>> Create(AddressMap<Handle>& map, Owner owner,
                                                          int64_t size_bytes) {
    ONNXIFI_ASSIGN_OR_RETURN(AddressRange range, AddressRange::Reserve(size_bytes));
    return std::unique_ptr<Allocation>(
        new MappedAllocation(map, std::move(owner), std::move(range)));
  }
  ~MappedAllocation() override { map_.Erase(range_); }
  MappedAllocation(const MappedAllocation&) = delete;
  MappedAllocation& operator=(const MappedAllocation&) = delete;

  std::byte* data() override { return range_.begin(); }
  int64_t size_bytes() const override { return range_.size_bytes(); }

 private:
  MappedAllocation(AddressMap<Handle>& map, Owner owner, AddressRange range)
      : map_(map), owner_(std::move(owner)), range_(std::move(range)) {
    map_.Insert(range_, owner_.get());
  }

  AddressMap<Handle>& map_;
  const Owner owner_;
  const AddressRange range_;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_MAPPED_ALLOCATION_H_
