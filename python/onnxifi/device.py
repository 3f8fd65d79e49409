# SPDX-License-Identifier: Apache-2.0
"""A device of a library: what it is, what it claims, and the backend that sessions on it share."""

import ctypes
import threading
import weakref

from . import interface
from .errors import FALLBACK, SUCCESS, Error, make_error


class Backend:
    """An initialised device. Released with the last session that uses it."""

    def __init__(self, device):
        self.device = device
        library = device.library
        self.handle = ctypes.c_void_p()
        status = library.find("onnxInitBackend")(device.id, None, ctypes.byref(self.handle))
        library.check(status, f"initialising device '{device.key}'")
        weakref.finalize(self, library.find("onnxReleaseBackend"), self.handle)


class Device:
    """What onnxifi_info shows of a device: `key`, `name`, `type`, `memory_bytes`, `opsets`, `state`, `reason`."""

    def __init__(self, library, backend_id):
        self.library = library
        self.id = ctypes.c_void_p(backend_id)
        key = library.find("onnxGetBackendKey", self.id)
        self.key = self._read_text(lambda text, size: key(self.id, text, size))
        self._info = library.find("onnxGetBackendInfo")
        self._lock = threading.Lock()
        self._backend = lambda: None

    def __repr__(self):
        memory = f"{self.memory_bytes / 2**30:.1f} GiB"
        return f"<onnxifi.Device {self.key}: {self.type}, {memory}, {self.name}>"

    def _read_text(self, ask):
        size = ctypes.c_size_t(0)
        status = ask(None, ctypes.byref(size))
        if status == FALLBACK:
            text = ctypes.create_string_buffer(size.value + 1)
            status = ask(text, ctypes.byref(size))
        self.library.check(status, "asking about a device")
        return text.value.decode(errors="replace")

    def text(self, query):
        """The answer to a query of onnxGetBackendInfo for text."""
        return self._read_text(lambda text, size: self._info(self.id, query, text, size))

    def number(self, query):
        """The answer to a query for a number."""
        number, size = ctypes.c_uint64(0), ctypes.c_size_t(8)
        status = self._info(self.id, query, ctypes.byref(number), ctypes.byref(size))
        self.library.check(status, "asking about a device")
        return number.value

    @property
    def plugin(self):
        return self.key.partition(":")[0]

    @property
    def name(self):
        """What the device calls itself."""
        return self.text(interface.BACKEND_DEVICE)

    @property
    def type(self):
        bits = self.number(interface.BACKEND_DEVICE_TYPE)
        return "|".join(name for name, bit in interface.DEVICE_TYPES.items() if bits & bit)

    @property
    def memory_bytes(self):
        return self.number(interface.BACKEND_MEMORY_SIZE)

    @property
    def opsets(self):
        """The newest version of each domain's operator set, by the domain's name."""
        pairs = (entry.rpartition(":") for entry in self.text(interface.BACKEND_OPSET_VERSION).split())
        return {domain: int(version) for domain, _, version in pairs}

    @property
    def reason(self):
        """Why the device cannot be initialised; empty where it can. Initialises it."""
        try:
            self.backend()
        except Error as error:
            return error.sentence
        return ""

    @property
    def state(self):
        return "unusable" if self.reason else "ready"

    def takes(self, option):
        """Whether graphs of the device take an option of interface.GRAPH_PROPERTIES."""
        return bool(self.number(interface.BACKEND_GRAPH_INIT_PROPERTIES) & interface.GRAPH_PROPERTIES[option])

    def backend(self):
        """The backend that those use who keep it; a new one where nobody does."""
        with self._lock:
            backend = self._backend()
            if backend is None:
                backend = Backend(self)
                self._backend = weakref.ref(backend)
            return backend

    def compatibility(self, model):
        """SUCCESS, FALLBACK (by emulation) or the status of the reason for which the device does not run the
        bytes of a model, as a number; inputs and outputs of any kind where the device takes such."""
        name = "onnxGetBackendValueCompatibility" if self.takes("VALUES") else "onnxGetBackendCompatibility"
        is_extension = name in interface.EXTENSIONS
        return self.library.find(name, self.id if is_extension else None)(self.id, len(model), model)

    def check_compatibility(self, model):
        """Raises the reason for which the device does not run the bytes of a model; whether it emulates it."""
        status = self.compatibility(model)
        if status not in (SUCCESS, FALLBACK):
            raise make_error(status, self.library.sentence())
        return status == FALLBACK
