# SPDX-License-Identifier: Apache-2.0
"""Memory of a CUDA device through the driver alone, so that nothing of PyTorch's is needed for it.

Work goes into the device's primary context, which the engines use too.
"""

import ctypes

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


class CudaError(Exception):
    """A call that failed, in a sentence."""


class Device:
    """A device by its number; the calling thread has its context until the process ends."""

    memory_type = 1  # ONNXIFI_MEMORY_TYPE_CUDA_BUFFER, of onnxifi.h

    def __init__(self, index=0):
        self._driver = self._open()
        if self._driver.cuInit(0) == _NO_DEVICE:
            raise CudaError("The CUDA driver finds no device.")
        self._check("cuInit", 0)
        count = ctypes.c_int()
        self._check("cuDeviceGetCount", ctypes.byref(count))
        if index >= count.value:
            raise CudaError(f"The CUDA driver has {count.value} devices, none of number {index}.")
        device = ctypes.c_int()
        self._check("cuDeviceGet", ctypes.byref(device), index)
        context = ctypes.c_void_p()
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._check("cuCtxPushCurrent_v2", context)

    @staticmethod
    def _open():
        try:
            return ctypes.CDLL("libcuda.so.1")
        except OSError as fault:
            raise CudaError(f"There is no CUDA driver: {fault}.") from fault

    def _check(self, function, *arguments):
        result = getattr(self._driver, function)(*arguments)
        if result != 0:
            raise CudaError(f"{function} gives {result}.")

    def put(self, array):
        """The address of a copy of a dense array, which lives as long as the process."""
        address = ctypes.c_uint64()
        self._check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
        if array.nbytes > 0:
            source = ctypes.c_void_p(array.ctypes.data)
            self._check("cuMemcpyHtoD_v2", address, source, ctypes.c_size_t(array.nbytes))
        return address.value

    def take(self, address, array):
        """Fills an array from an address."""
        if array.nbytes > 0:
            to = ctypes.c_void_p(array.ctypes.data)
            self._check("cuMemcpyDtoH_v2", to, ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))

    def used_bytes(self):
        """What all processes have of the device's memory now."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._check("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value


def is_on_device(key):
    """Whether a device's key, such as "cuda:1", is of this kind."""
    return key.partition(":")[0] == "cuda"


def index_of(key):
    return int(key.partition(":")[2] or 0)
