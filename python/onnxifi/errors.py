# SPDX-License-Identifier: Apache-2.0
"""Statuses of the interface and the exceptions that carry them: a class for each family of statuses."""

# As include/onnxifi/statuses.h has them: the number's name.
STATUS_NAMES = {
    0x0000: "SUCCESS",
    0x0001: "FALLBACK",
    0x0101: "INVALID_ID",
    0x0102: "INVALID_SIZE",
    0x0103: "INVALID_POINTER",
    0x0104: "INVALID_PROTOBUF",
    0x0105: "INVALID_MODEL",
    0x0106: "INVALID_BACKEND",
    0x0107: "INVALID_GRAPH",
    0x0108: "INVALID_EVENT",
    0x0109: "INVALID_STATE",
    0x010A: "INVALID_NAME",
    0x010B: "INVALID_SHAPE",
    0x010C: "INVALID_DATATYPE",
    0x010D: "INVALID_MEMORY_TYPE",
    0x010E: "INVALID_MEMORY_LOCATION",
    0x010F: "INVALID_FENCE_TYPE",
    0x0110: "INVALID_PROPERTY",
    0x0201: "UNSUPPORTED_TAG",
    0x0202: "UNSUPPORTED_VERSION",
    0x0203: "UNSUPPORTED_OPERATOR",
    0x0204: "UNSUPPORTED_ATTRIBUTE",
    0x0205: "UNSUPPORTED_SHAPE",
    0x0206: "UNSUPPORTED_DATATYPE",
    0x0207: "UNSUPPORTED_MEMORY_TYPE",
    0x0208: "UNSUPPORTED_FENCE_TYPE",
    0x0209: "UNSUPPORTED_PROPERTY",
    0x0301: "UNIDENTIFIED_NAME",
    0x0302: "MISMATCHING_SHAPE",
    0x0303: "MISMATCHING_DATATYPE",
    0x0401: "NO_SYSTEM_MEMORY",
    0x0402: "NO_DEVICE_MEMORY",
    0x0403: "NO_SYSTEM_RESOURCES",
    0x0404: "NO_DEVICE_RESOURCES",
    0x0405: "BACKEND_UNAVAILABLE",
    0x0406: "INTERNAL_ERROR",
}
STATUSES = {name: number for number, name in STATUS_NAMES.items()}
SUCCESS, FALLBACK = STATUSES["SUCCESS"], STATUSES["FALLBACK"]


class Error(Exception):
    """What a call refused or could not do: `sentence` says why, `status` is a name of docs/errors.md."""

    def __init__(self, status, sentence, doing=""):
        self.status = status if isinstance(status, str) else name_of(status)
        self.sentence = sentence
        text = f"{sentence} ({self.status})"
        super().__init__(f"{doing}: {text}" if doing else text)


class InvalidError(Error):
    """INVALID_...: the model, an option or a value is none that can be."""


class UnsupportedError(Error):
    """UNSUPPORTED_...: legal, but this device does not run it."""


class MismatchError(Error):
    """UNIDENTIFIED_NAME, MISMATCHING_...: names, shapes or types are not those of the model."""


class UnavailableError(Error):
    """NO_..., BACKEND_UNAVAILABLE, INTERNAL_ERROR: memory, resources or the device fail, or the library."""


class LibraryError(UnavailableError):
    """There is no libonnxifi, or what there is cannot be used."""

    def __init__(self, sentence):
        super().__init__("BACKEND_UNAVAILABLE", sentence)


_FAMILIES = {1: InvalidError, 2: UnsupportedError, 3: MismatchError, 4: UnavailableError}


def name_of(status):
    status &= 0xFFFF
    return STATUS_NAMES.get(status, f"status 0x{status:04x}")


def make_error(status, sentence, doing=""):
    """The exception of a status, by its number or name."""
    number = STATUSES[status] if isinstance(status, str) else status & 0xFFFF
    return _FAMILIES.get(number >> 8, Error)(number, sentence, doing)
