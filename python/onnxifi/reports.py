# SPDX-License-Identifier: Apache-2.0
"""What the library tells of plugins, nodes, plans and steps, as Python's objects."""

import dataclasses

from . import interface
from .errors import FALLBACK, SUCCESS, name_of
from .interface import text_of


@dataclasses.dataclass(frozen=True)
class DiscoveryRecord:
    """What became of a plugin; see onnxDiscoveryRecord."""

    plugin: str
    path: str
    rule: str
    is_loaded: bool
    sentence: str
    detail: str
    priority: int
    device_count: int


def read_discovery(record):
    return DiscoveryRecord(
        text_of(record.plugin),
        text_of(record.path),
        text_of(record.rule),
        record.verdict == interface.VERDICT_LOADED,
        text_of(record.sentence),
        text_of(record.detail),
        record.priority,
        record.device_count,
    )


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a device says about a node, or about the whole model."""

    status: str
    # Why it does not run; empty where it does.
    sentence: str = ""

    @property
    def runs(self):
        return self.status in ("SUCCESS", "FALLBACK")

    @property
    def is_emulated(self):
        return self.status == "FALLBACK"

    def __str__(self):
        if not self.runs:
            return f"no ({self.status}: {self.sentence})"
        return "emulated" if self.is_emulated else "yes"


@dataclasses.dataclass
class NodeExplanation:
    """Where a node runs and what each device says about it."""

    index: int
    name: str
    operator: str
    # The key of the device that has it; empty where the library does not tell, or every island has it.
    device: str = ""
    # By the device's key.
    answers: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        said = ", ".join(f"{key}: {answer}" for key, answer in self.answers.items())
        place = f"on {self.device}" if self.device else "on no device by itself"
        return f"{self.index} {self.operator} '{self.name}' {place}; {said}"


@dataclasses.dataclass
class Explanation:
    """Which node runs where, and why not elsewhere; as a text, a line for each."""

    # The whole model, by the device's key.
    devices: dict
    nodes: list

    def __str__(self):
        lines = [f"{key}: {'runs the model' if answer.runs else answer}" for key, answer in self.devices.items()]
        return "\n".join(lines + [str(node) for node in self.nodes])


class ExplanationReader:
    """Callbacks of onnxExplainModelOnDevices."""

    def __init__(self):
        self.devices, self._nodes = {}, {}
        self._key = ""

    def add_device(self, _, pointer):
        answer = pointer.contents
        self._key = text_of(answer.device_key)
        self.devices[self._key] = Answer(name_of(answer.status), text_of(answer.sentence))

    def add_node(self, _, pointer):
        verdict = pointer.contents.verdict.contents
        domain, operator = text_of(verdict.domain), text_of(verdict.operator_type)
        node = self._nodes.setdefault(
            verdict.node_index,
            NodeExplanation(
                verdict.node_index,
                text_of(verdict.node_name),
                operator if domain == "ai.onnx" else f"{domain}.{operator}",
            ),
        )
        answer = Answer(name_of(verdict.status), text_of(verdict.sentence))
        before = node.answers.get(self._key)
        if before is not None and not before.runs:  # one of several reasons
            answer = Answer(before.status, f"{before.sentence} {answer.sentence}")
        node.answers[self._key] = answer

    def result(self):
        return Explanation(self.devices, [self._nodes[index] for index in sorted(self._nodes)])


@dataclasses.dataclass(frozen=True)
class Island:
    """Nodes that one device has as one graph. None are listed where the device has the whole model."""

    device: str
    nodes: list
    # Numbers of the islands before it.
    after: list
    estimated_ns: int
    measured_ns: int


def read_island(island):
    return Island(
        text_of(island.device_key),
        island.nodes[: island.node_count],
        island.after[: island.after_count],
        island.estimated_duration_ns,
        island.measured_duration_ns,
    )


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a run; see onnxStepRecord. `node` is -1 where it computes none by itself."""

    node: int
    family: str
    implementation: str
    detail: str
    extents: list
    rejected: list
    start_ns: int
    duration_ns: int
    flops: int
    read_bytes: int
    written_bytes: int
    precision: str


def read_step(record):
    precision = record.tell("precision", 0)
    return Step(
        record.node_index,
        text_of(record.family),
        text_of(record.implementation),
        text_of(record.detail),
        record.extents[: record.rank],
        [text_of(reason) for reason in record.rejected[: record.rejected_count]],
        record.start_ns,
        record.duration_ns,
        record.flops,
        record.read_bytes,
        record.written_bytes,
        next((name.lower() for name, number in interface.PRECISIONS.items() if number == precision), ""),
    )


def runs(status):
    """Whether a status of onnxInitGraph or a support check says that the model runs."""
    return status in (SUCCESS, FALLBACK)
