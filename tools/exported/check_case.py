# SPDX-License-Identifier: Apache-2.0
"""One case from beginning to end: make the model, check that its answers tell faults, run it by both
engines, compare. Returns what the line of the case says, as a dict."""

import dataclasses
import pathlib
import tempfile
import time

import onnx

from exported import agreement, engines


def _describe(path):
    model = onnx.load(str(path), load_external_data=False)

    def count(graph):
        total = len(graph.node)
        for node in graph.node:
            for attribute in node.attribute:
                total += count(attribute.g) if attribute.HasField("g") else 0
                total += sum(count(part) for part in attribute.graphs)
        return total

    opsets = {item.domain or "ai.onnx": item.version for item in model.opset_import}
    domains = {node.domain for node in model.graph.node} - {"", "ai.onnx"}
    opset = f"{opsets.get('ai.onnx', '-')}"
    opset += "".join(f" {domain}:{opsets.get(domain, '?')}" for domain in sorted(domains))
    return {"opset": opset, "nodes": count(model.graph) + sum(len(f.node) for f in model.functions)}


def _is_declared(path, inputs):
    """Whether the file's declared extents allow a run's: exporters make some axes numbers."""
    model = onnx.load(str(path), load_external_data=False)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        extents = getattr(inputs.get(value.name), "shape", ())
        for dim, extent in zip(dims, extents):
            if dim.HasField("dim_value") and 0 <= dim.dim_value != extent:
                return False
    return True


def _worst(answers, expected, tolerance):
    pairs = [(a, b) for a, b in zip(answers, expected) if b is not None]
    if len(answers) != len(expected):
        return float("inf")
    return max((agreement.measure(a, b, tolerance) for a, b in pairs), default=0.0)


def _complete(expected, answers, is_extent_free):
    """The source's answers, with the peer's where it has none, or no extents."""
    if expected is None:
        return answers
    complete = []
    for own, other in zip(expected, answers):
        if own is None:
            own = other
        elif is_extent_free and hasattr(own, "reshape") and own.size == getattr(other, "size", -1):
            own = own.reshape(other.shape)
        complete.append(own)
    return complete if len(expected) == len(answers) else expected


def _reason(fault):
    text = " ".join(str(fault).split())
    return f"{type(fault).__name__}: {text}"[:600]


def check(case, ours, peer, keep=None):
    """The case's result: "status" is passed, or what stopped it: not made (the exporter refuses),
    vacuous (expected values tell nothing), refused, crashed, wrong."""
    result = {"name": case.name, "exporter": case.exporter}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(keep) / case.key.replace("/", "_") if keep else pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        start = time.perf_counter()
        try:
            exported = case.make(folder)
        except Exception as fault:  # noqa: BLE001 (an exporter may throw anything)
            return {**result, "status": "not made", "reason": _reason(fault)}
        result["export_s"] = round(time.perf_counter() - start, 2)
        result.update(_describe(exported.path))
        checked = _check_file(exported, ours, peer)
        if checked["status"] == "wrong" and exported.measure_rounding is not None:
            checked = _check_against_float64(exported, checked, ours, peer)
        return {**result, **checked}


def _check_against_float64(exported, checked, ours, peer):
    """The result of a file that lies beyond the usual tolerance of its source's float32: against
    the source's float64, with a tolerance that its float32 needs itself."""
    try:
        roundings = exported.measure_rounding()
        tolerance, fault = agreement.measured_tolerance(roundings, exported.tolerance)
    except Exception as cause:  # noqa: BLE001 (not every module has a float64)
        return {**checked, "reason": f"The source has no float64 to compare with: {_reason(cause)}"}
    if fault:
        return {**checked, "reason": fault}
    runs = [(inputs, each.exact) for (inputs, _), each in zip(exported.runs, roundings, strict=True)]
    exact = dataclasses.replace(exported, runs=runs, tolerance=tolerance)
    return {**_check_file(exact, ours, peer), "tolerance": tolerance}


def _consult(exported, runs, peer):
    """The runs as they are expected, and what the peer said.

    Tracing makes numbers of extents: such a file computes something else than its source does on
    other extents. Where the peer agrees with the source on the first run and not on a later one,
    the peer's answer counts for that one ("traced"); where it cannot run it, the run is left out.
    """
    if exported.peer_refusal:
        return runs, {"peer_refusal": exported.peer_refusal}
    try:
        peer.load(exported.path)
        first = peer.answer(runs[0][0])
    except Exception as fault:  # noqa: BLE001 (its own exception types)
        return runs, {"peer_refusal": _reason(fault)}
    kept, worst, traced = [], 0.0, 0
    for number, (inputs, expected) in enumerate(runs):
        try:
            answers = list(first if number == 0 else peer.answer(inputs))
        except Exception:  # noqa: BLE001
            traced += 1
            continue
        expected = _complete(expected, answers, exported.is_extent_free)
        error = _worst(answers, expected, exported.tolerance)
        if number and error > 1 and worst <= 1 and not exported.is_peer_rounding:
            traced += 1
            expected = answers
        else:
            worst = max(worst, error)
        kept.append((inputs, expected))
    return kept, {"peer_error": worst, **({"traced": traced} if traced else {})}


def _check_file(exported, ours, peer):
    runs = [
        (engines.as_inputs(inputs), expected)
        for inputs, expected in exported.runs
        if _is_declared(exported.path, inputs)
    ]
    result = {"sizes": len({tuple(a.shape for a in inputs.values()) for inputs, _ in runs})}
    if not runs:
        return {**result, "status": "not made", "reason": "No run fits the declared extents."}
    runs, seen = _consult(exported, runs, peer)
    result.update(seen)
    if "peer_refusal" in seen and any(expected is None for _, expected in runs):
        reason = f"Nobody answers: {seen['peer_refusal']}"
        return {**result, "status": "not made", "reason": reason}
    if exported.is_live:
        faults = agreement.list_faults([expected for _, expected in runs])
        if faults:
            return {**result, "status": "vacuous", "reason": " ".join(faults)}
    if ours is None:
        return {**result, "status": "passed"}
    try:
        return {**result, **_run_ours(exported, runs, ours, peer, result.get("peer_error"))}
    except Exception as fault:  # noqa: BLE001 (onnxifi.Error, and what ctypes raises)
        return {**result, "status": "refused", "reason": _reason(fault)}
    finally:
        ours.release()


def _run_ours(exported, runs, ours, peer, peer_error):
    """`peer_error` is None where the peer does not answer."""
    start = time.perf_counter()
    ours.load(exported.path)
    answers = [ours.answer(inputs) for inputs, _ in runs]
    result = {"first_s": round(time.perf_counter() - start, 3), "placement": ours.placement()}
    result["error"] = max(
        _worst(got, expected, exported.tolerance) for got, (_, expected) in zip(answers, runs)
    )
    result["status"] = "passed" if result["error"] <= 1 else "wrong"
    if result["status"] == "wrong" and peer_error is not None and peer_error > 1:
        # The peer's answers instead of the source's: an exporter's fault is the same for both.
        peers = [list(peer.answer(inputs)) for inputs, _ in runs]
        shared = max(_worst(got, other, exported.tolerance) for got, other in zip(answers, peers))
        if shared <= 1:
            result["status"] = "not made"
            result["reason"] = "The file does not compute what its source does; the peer agrees."
    if peer_error is not None and result["status"] == "passed":
        inputs = runs[0][0]
        mine, theirs = engines.compare_times([ours.bind(inputs), peer.bind(inputs)])
        result.update(ours_ms=mine * 1e3, peer_ms=theirs * 1e3, ratio=mine / theirs)
    return result
