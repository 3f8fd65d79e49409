# SPDX-License-Identifier: Apache-2.0
"""What the profile of a run says about where its time goes: the reference's share, the longest step."""

# As devices name it (backends/core/reference/device.cc).
_REFERENCE = "reference"


def summarise(steps):
    """Of steps as onnxifi_library.Graph.profile returns them."""
    total_ns = sum(step["ns"] for step in steps) or 1
    slow_ns = sum(step["ns"] for step in steps if step["implementation"] == _REFERENCE)
    nothing = {"ns": 0, "implementation": "", "family": "", "extents": [], "flops": 0, "bytes": 0}
    longest = max(steps, key=lambda step: step["ns"], default=nothing)
    ns = longest["ns"] or 1
    return {
        "steps": len(steps),
        "total_ms": total_ns / 1e6,
        "reference_share": slow_ns / total_ns,
        "longest": {
            "share": longest["ns"] / total_ns,
            "implementation": longest["implementation"],
            "family": longest["family"],
            "extents": longest["extents"],
            "gflops": longest["flops"] / ns,
            "gbytes": longest["bytes"] / ns,
        },
    }


def find_largest(results):
    """The largest share of the reference among results of compare.py; None where none has a profile."""
    shares = [result["profile"]["reference_share"] for result in results if "profile" in result]
    return max(shares, default=None)
