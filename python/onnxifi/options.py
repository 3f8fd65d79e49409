# SPDX-License-Identifier: Apache-2.0
"""Options of a session as properties of onnxInitGraph."""

import ctypes
import dataclasses
import os

from . import interface
from .errors import make_error


@dataclasses.dataclass
class GraphOptions:
    """As GraphOptions of onnxifi.hpp; docs/user_guide.md explains them."""

    # {name: array}: inputs of the model that become weights. They are copied, and are no longer inputs to give.
    weights: dict | None = None
    # Folder of the model's external data.
    base_folder: str | None = None
    # Runs record their steps for Session.profile.
    profile: bool = False
    # False: sums and 16-bit floats as operators are defined.
    fast_algorithms: bool = True
    # "tf32", "bfloat16" or "float16": to what operands of products may be rounded.
    precision: str = "float32"
    # Rows may be rounded to 8 bits before products with weights of 8 bits or less.
    dynamic_quantization: bool = False
    # The bytes of the model stay, unchanged, as long as the session; they are a private mapping of a file.
    # None: as the session itself holds them.
    lasting_model: bool | None = None
    mapped_model: bool | None = None
    # For the auto device: "prefer:KEY,KEY" or "strict:KEY,KEY"; {node: key}, a node by its name or number; a plan
    # as Session.placement returned it; whether another device takes over from one that fails in a run;
    # whether devices are measured (None: as ONNXIFI_MEASURE says).
    placement: str | list | None = None
    pins: dict | None = None
    fallback: bool = False
    measure: bool | None = None


def _key_of(device, library):
    """"cpu:0" for "cpu" and for a Device."""
    return getattr(device, "key", None) or library.device(device).key


class _PlacementRecord:
    """An onnxPlacement with what it points to."""

    def __init__(self, options, nodes, library):
        kind, keys, groups = "AUTO", [], []
        if isinstance(options.placement, str):
            word, _, names = options.placement.partition(":")
            if word not in ("prefer", "strict") or not names:
                raise make_error(
                    "INVALID_PROPERTY",
                    f"The placement '{options.placement}' is neither 'prefer:KEY,KEY' nor 'strict:KEY,KEY'.",
                )
            kind, keys = word.upper(), [_key_of(name, library) for name in names.split(",")]
        elif options.placement is not None:
            kind, groups = "PLAN", [(island.device, island.nodes) for island in options.placement]
        for key, nodes in self._group(options.pins or {}, nodes, library).items():
            groups.append((key, nodes))
        self._names = (ctypes.c_char_p * max(len(keys), 1))(*[key.encode() for key in keys])
        self._groups = [
            interface.DeviceNodes(
                ctypes.sizeof(interface.DeviceNodes), key.encode(), len(nodes), (ctypes.c_uint32 * max(len(nodes), 1))(*nodes)
            )
            for key, nodes in groups
        ]
        self._pointers = (ctypes.POINTER(interface.DeviceNodes) * max(len(groups), 1))(
            *[ctypes.pointer(group) for group in self._groups]
        )
        self.record = interface.Placement(
            ctypes.sizeof(interface.Placement), interface.PLACEMENTS[kind], len(keys), self._names, len(groups), self._pointers
        )

    @staticmethod
    def _group(pins, nodes, library):
        """The numbers of the nodes by the key of the device that they are pinned to."""
        groups = {}
        for node, device in pins.items():
            numbers = [node] if isinstance(node, int) else [found.index for found in nodes if found.name == node]
            if len(numbers) != 1 or not 0 <= numbers[0] < len(nodes):
                what = f"{len(nodes)} nodes, counted from 0" if isinstance(node, int) else f"{len(numbers)} nodes of that name"
                raise make_error("INVALID_PROPERTY", f"The pin of node '{node}' names no node: the model has {what}.")
            groups.setdefault(_key_of(device, library), []).append(numbers[0])
        return groups


def make_properties(options, device, nodes, takes_values):
    """The list for onnxInitGraph, and what it points to. `nodes` are those of the model, if there are pins."""
    pairs, kept = [], []

    def add(option, value, name):
        if not device.takes(option):
            raise make_error("UNSUPPORTED_PROPERTY", f"Device '{device.key}' does not take the option '{name}'.")
        pairs.extend((interface.GRAPH_PROPERTIES[option], value))

    if options.precision.upper() not in interface.PRECISIONS:
        names = ", ".join(name.lower() for name in interface.PRECISIONS)
        raise make_error("INVALID_PROPERTY", f"The precision '{options.precision}' is none of {names}.")
    if options.base_folder is not None:
        folder = ctypes.create_string_buffer(os.fsencode(options.base_folder))
        kept.append(folder)
        add("BASE_FOLDER", ctypes.addressof(folder), "base_folder")
    for option, is_set in (
        ("PROFILE", options.profile),
        ("VALUES", takes_values),
        ("DYNAMIC_QUANTIZATION", options.dynamic_quantization),
        ("LASTING_MODEL", options.lasting_model),
        ("MAPPED_MODEL", options.mapped_model),
        ("FALLBACK", options.fallback),
    ):
        if is_set:
            add(option, 1, option.lower())
    if not options.fast_algorithms:
        add("FAST_ALGORITHMS", 0, "fast_algorithms")
    if options.precision.lower() != "float32":
        add("PRECISION", interface.PRECISIONS[options.precision.upper()], "precision")
    if options.measure is not None:
        add("MEASURE", int(options.measure), "measure")
    if device.takes("CALLER_RUNS"):  # a session waits for its runs
        add("CALLER_RUNS", 1, "caller_runs")
    if options.placement is not None or options.pins:
        if not device.takes("PLACEMENT"):
            raise make_error(
                "UNSUPPORTED_PROPERTY", f"Device '{device.key}' has no others to place nodes on; device 'auto' has."
            )
        placement = _PlacementRecord(options, nodes, device.library)
        kept.append(placement)
        add("PLACEMENT", ctypes.addressof(placement.record), "placement")
    return (ctypes.c_uint64 * (len(pairs) + 1))(*pairs, 0), kept
