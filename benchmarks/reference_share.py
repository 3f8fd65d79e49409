# SPDX-License-Identifier: Apache-2.0
"""What the profile of a run says about where its time goes: the reference's share, slow steps, the longest one."""

# As devices name it (backends/core/reference/device.cc).
_REFERENCE = "reference"
# A step is slow below this share of what the machine's limits allow, and listed above that share of a run.
_SLOW, _LISTED = 0.15, 0.03


def _describe(step, total_ns):
    ns = step["ns"] or 1
    return {
        "share": step["ns"] / total_ns,
        "implementation": step["implementation"],
        "family": step["family"],
        "extents": step["extents"],
        "gflops": step["flops"] / ns,
        "gbytes": step["bytes"] / ns,
    }


def summarise(steps, limits=None):
    """Of steps as Engine.profile of engines.py returns them. Without `limits` it is not known which are slow."""
    total_ns = sum(step["ns"] for step in steps) or 1
    slow_ns = sum(step["ns"] for step in steps if step["implementation"] == _REFERENCE)
    nothing = {"ns": 0, "implementation": "", "family": "", "extents": [], "flops": 0, "bytes": 0}
    longest = max(steps, key=lambda step: step["ns"], default=nothing)
    slow = []
    for step in steps if limits is not None else ():
        of_limit = 1e6 * max(limits.milliseconds(step["flops"], step["bytes"])) / (step["ns"] or 1)
        if of_limit < _SLOW:
            slow.append({**_describe(step, total_ns), "of_limit": of_limit})
    return {
        "steps": len(steps),
        "total_ms": total_ns / 1e6,
        "reference_share": slow_ns / total_ns,
        "slow_share": None if limits is None else sum(step["share"] for step in slow),
        "slow": sorted((step for step in slow if step["share"] > _LISTED), key=lambda step: -step["share"]),
        "longest": _describe(longest, total_ns),
    }


def find_largest(results):
    """The largest share of the reference among results of compare.py; None where none has a profile."""
    shares = [result["profile"]["reference_share"] for result in results if "profile" in result]
    return max(shares, default=None)
