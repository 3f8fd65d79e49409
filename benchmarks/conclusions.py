# SPDX-License-Identifier: Apache-2.0
"""What follows from the figures of a comparison: ratios to the peers, their means, and the exit status."""

import measurements
import reference_share


def compare_with_peers(figures):
    """Our figures over those of the better peer, each of its own; None where one is missing."""
    peers = [its for name, its in figures.items() if name != measurements.OURS and "median_ms" in its]
    ours = figures.get(measurements.OURS, {})
    result = {"best_peer_ms": min((peer["median_ms"] for peer in peers), default=None)}
    for key, source in (
        ("ratio", "median_ms"),
        ("load_ratio", "first_result_ms"),
        ("memory_ratio", "peak_mib"),
    ):
        is_known = peers and source in ours
        result[key] = ours[source] / min(peer[source] for peer in peers) if is_known else None
    return result


def summarise(results):
    """Geometric means per number of threads and kind of model."""
    summaries = []
    known = [result for result in results if result["ratio"] is not None]
    for threads in sorted({result["threads"] for result in known}):
        kinds = dict.fromkeys(result["kind"] for result in known)
        for kind in [*kinds, "all"]:
            chosen = [
                result
                for result in known
                if result["threads"] == threads and kind in (result["kind"], "all")
            ]
            if not chosen:
                continue
            summaries.append(
                {
                    "kind": kind,
                    "threads": threads,
                    "models": len(chosen),
                    "reference_share": reference_share.find_largest(chosen),
                    "ratio": measurements.geometric_mean([r["ratio"] for r in chosen]),
                    "worst": max(r["ratio"] for r in chosen),
                    "load_ratio": measurements.geometric_mean([r["load_ratio"] for r in chosen]),
                    # A process that does not grow at all counts as 1 KiB.
                    "memory_ratio": measurements.geometric_mean(
                        [max(r["memory_ratio"], 1e-3) for r in chosen]
                    ),
                }
            )
    return summaries


def is_wrong(result, figures):
    return result["is_checked"] and (figures["difference"] or 0) > result["allowed"]


def _exceeds_mean(report, limit):
    """Whether a mean of runs is above the limit, or that of loads where these are compared."""
    means = [summary for summary in report["summaries"] if summary["kind"] == "all"]
    # Few loads at fewer threads than the most say nothing.
    most = max((summary["threads"] for summary in means), default=0)
    return any(
        summary["ratio"] > limit or (summary["threads"] == most and summary["load_ratio"] > limit)
        for summary in means
    )


def find_exit_status(report, require_ratio=None, require_mean=None):
    """1 before 3: a wrong answer is worse than a slow one."""
    for result in report["results"]:
        ours = result["engines"].get(measurements.OURS)
        if ours is not None and ("fault" in ours or is_wrong(result, ours)):
            return 1
    if require_ratio is not None and any(
        result["ratio"] is not None and result["ratio"] > require_ratio
        for result in report["results"]
    ):
        return 3
    if require_mean is not None and _exceeds_mean(report, require_mean):
        return 3
    return 0
