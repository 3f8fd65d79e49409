# SPDX-License-Identifier: Apache-2.0
"""libonnxifi, or one plugin by its path: how it is found, its functions, its devices and what became of its
plugins. Objects keep alive what they were made from."""

import ctypes
import functools
import os
import sys
import threading

from . import interface, reports
from .device import Device
from .errors import FALLBACK, SUCCESS, LibraryError, make_error

FILE_NAME = "libonnxifi.so.1"


class _Functions:
    """The functions of a library by name: of the table `interface.FUNCTIONS` as exported symbols, of
    `interface.EXTENSIONS` as the library tells their addresses for a backend ID."""

    def __init__(self, path, opened):
        self._path = path
        self._addresses = {}
        for name in interface.FUNCTIONS:
            try:
                self._addresses[name] = ctypes.cast(getattr(opened, name), ctypes.c_void_p).value
            except AttributeError:
                raise LibraryError(f"The library '{path}' lacks the function {name} of ONNXIFI 1.0.") from None

    def find(self, name, backend_id=None, keeps_lock=False, takes_objects=False):
        """A function that returns a status. One that `keeps_lock` has to return at once: other threads of
        Python wait for it. One that `takes_objects` gets objects of ctypes as they are, which is faster."""
        kind = ctypes.PYFUNCTYPE if keeps_lock else ctypes.CFUNCTYPE
        is_extension = name in interface.EXTENSIONS
        types = () if takes_objects else (interface.EXTENSIONS if is_extension else interface.FUNCTIONS)[name]
        if not is_extension:
            return kind(ctypes.c_int32, *types)(self._addresses[name])
        address = ctypes.c_void_p()
        ask = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            self._addresses["onnxGetExtensionFunctionAddress"]
        )
        if ask(backend_id, name.encode(), ctypes.byref(address)) != SUCCESS or not address.value:
            raise LibraryError(f"The library '{self._path}' does not offer the extension {name}.")
        return kind(ctypes.c_int32, *types)(address.value)


def _open(path):
    """The library, and by which name it was opened. LibraryError says where it was looked for."""
    if path is not None:
        tried, ways = [os.path.abspath(os.fspath(path))], ["The library"]
    elif given := os.environ.get("ONNXIFI_LIBRARY"):
        tried, ways = [os.path.abspath(given)], ["The library that ONNXIFI_LIBRARY names,"]
    else:
        tried = [FILE_NAME, os.path.join(sys.prefix, "lib", FILE_NAME)]
        ways = []
    reasons = []
    for name in tried:
        try:
            return ctypes.CDLL(name), name
        except OSError as fault:
            reasons.append(str(fault))
    if ways:
        raise LibraryError(f"{ways[0]} '{tried[0]}' cannot be opened: {reasons[0]}.")
    raise LibraryError(
        f"There is no libonnxifi: no path is given, ONNXIFI_LIBRARY is not set, the system's linker does not find "
        f"{FILE_NAME} (LD_LIBRARY_PATH and its own folders), and '{tried[1]}' cannot be opened either: {reasons[1]}."
    )


class Library:
    """The library at `path`, else the one that ONNXIFI_LIBRARY names, else the one that the system's linker
    finds, else that of the Python environment's folder `lib`. It stays loaded as long as the process."""

    def __init__(self, path=None):
        opened, self.path = _open(path)
        self._functions = _Functions(self.path, opened)
        self._last_error = self.find("onnxGetLastErrorMessage")
        self._lock = threading.Lock()
        self._devices = None

    def __repr__(self):
        return f"<onnxifi.Library '{self.path}'>"

    def find(self, name, backend_id=None, keeps_lock=False, takes_objects=False):
        """A function of the C interface; for Python code that needs more than this package offers."""
        return self._functions.find(name, backend_id, keeps_lock, takes_objects)

    def sentence(self):
        """What the library says about the last call of this thread that failed; may be empty."""
        size = ctypes.c_size_t(0)
        self._last_error(None, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value or 1)
        self._last_error(text, ctypes.byref(size))
        return text.value.decode(errors="replace")

    def check(self, status, doing=""):
        """Raises what a status other than SUCCESS means."""
        if status != SUCCESS:
            raise make_error(status, self.sentence() or "The library gives no reason.", doing)

    def devices(self):
        """All of them, the auto device first where there is one."""
        with self._lock:
            if self._devices is None:
                self._devices = [Device(self, backend_id) for backend_id in self._list_ids()]
        return list(self._devices)

    def _list_ids(self):
        list_ids, count = self.find("onnxGetBackendIDs"), ctypes.c_size_t(0)
        status = list_ids(None, ctypes.byref(count))
        ids = []
        # Devices may appear in the meantime; then once more with room for all.
        while status == FALLBACK:
            ids = (ctypes.c_void_p * max(count.value, 1))()
            count.value = len(ids)
            status = list_ids(ids, ctypes.byref(count))
        self.check(status, "listing devices")
        return ids[: count.value]

    def device(self, name=None):
        """By its key ("cpu:0"), or its plugin ("cpu") for the first device of it; without a name the first of
        all, which is the auto device where there is one."""
        devices = self.devices()
        if name is None and devices:
            return devices[0]
        for device in devices:
            if name in (device.key, device.plugin):
                return device
        keys = ", ".join(device.key for device in devices) or "none"
        sentence = f"There is no device '{name}'; " if name is not None else "There is no device; "
        sentence += f"the {len(devices)} present are: {keys}."
        plugin = (name or "").partition(":")[0]
        for record in self._discovery_or_nothing():
            if record.device_count == 0 and (not devices or record.plugin == plugin):
                sentence += f" Plugin '{record.plugin}': {record.detail or record.sentence}"
        raise make_error("INVALID_ID", sentence)

    def discovery(self):
        """What became of each plugin that was found: loaded, or the reason."""
        records = []

        def add(_, pointer):
            records.append(reports.read_discovery(pointer.contents))

        report = self.find("onnxGetDiscoveryReport")
        self.check(report(interface.DiscoveryCallback(add), None), "asking for the discovery report")
        return records

    def _discovery_or_nothing(self):
        """A plugin that was opened by its path finds no others."""
        try:
            return self.discovery()
        except LibraryError:
            return []


@functools.cache
def default_library():
    """The library that sessions use which are given none."""
    return Library()


def devices():
    """The devices of the library that sessions use."""
    return default_library().devices()
