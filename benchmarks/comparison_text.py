# SPDX-License-Identifier: Apache-2.0
"""A report of compare.py as text: times, load and memory, the means, and what is to be said of models."""


def format_ratio(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def _format_share(share):
    return "-" if share is None else f"{share:.1%}"


def _format_difference(value):
    return "-" if value is None else "same" if value == 0 else f"{value:.2g}"


def _format_step(step):
    return (
        f"{step['share']:.0%} {step['implementation']} ({step['family']}{step['extents']}, "
        f"{step['gflops']:.3g} GFLOP/s, {step['gbytes']:.3g} GB/s)"
    )


def make_tables(report):
    """The figures as text: times, then load and memory, then the sums."""
    names, results = report["engines"], report["results"]
    if not results:
        return "\n".join(["No model was compared.", *report["left_out"]])
    width = max(len(result["model"]) for result in results)

    def cells(result, *keys):
        for name in names:
            figures = result["engines"][name]
            texts = [f"{figures[key]:.4g}" if key in figures else "fails" for key in keys]
            yield " / ".join(texts)

    lines = ["Time of a run in ms: median / best; difference from the expected in tolerances"]
    header = f"{'MODEL':<{width}} THREADS " + " ".join(f"{name:>19}" for name in names)
    lines.append(header + f" {'RATIO':>6}  DIFFERENCE")
    for result in results:
        differences = ", ".join(
            _format_difference(result["engines"][name].get("difference")) for name in names
        )
        times = " ".join(f"{cell:>19}" for cell in cells(result, "median_ms", "best_ms"))
        lines.append(
            f"{result['model']:<{width}} {result['threads']:>7} {times} "
            f"{format_ratio(result['ratio']):>6}  {differences} (from {result['compared_with']}"
            f"{')' if result['is_checked'] else ', not checked)'}"
        )
    whose = "the device's memory" if report.get("has_device_memory") else "the process"
    lines += ["", f"Load to first result in ms / growth of {whose} until then in MiB"]
    lines.append(header + "   LOAD MEMORY")
    for result in results:
        figures = " ".join(f"{cell:>19}" for cell in cells(result, "first_result_ms", "peak_mib"))
        lines.append(
            f"{result['model']:<{width}} {result['threads']:>7} {figures} "
            f"{format_ratio(result['load_ratio']):>6} {format_ratio(result['memory_ratio']):>6}"
        )
    profiled = [result for result in results if "profile" in result]
    if profiled:
        lines += ["", "Share of a run in the reference's loops and in slow steps, and its longest step"]
        lines.append(f"{'MODEL':<{width}} THREADS  RATIO REFERENCE   SLOW  LONGEST STEP")
    for result in profiled:
        profile, longest = result["profile"], result["profile"]["longest"]
        lines.append(
            f"{result['model']:<{width}} {result['threads']:>7} {format_ratio(result['ratio']):>6} "
            f"{profile['reference_share']:>9.1%} {_format_share(profile['slow_share']):>6}  {_format_step(longest)}"
        )
    lines += [
        f"{result['model']}, {result['threads']} threads: slow, at {step['of_limit']:.0%} of its limit: "
        + _format_step(step)
        for result in profiled
        for step in result["profile"]["slow"]
    ]
    lines.append("")
    for summary in report["summaries"]:
        share = summary.get("reference_share")
        lines.append(
            f"{summary['kind']}, {summary['threads']} thread{'s' * (summary['threads'] > 1)}, "
            f"{summary['models']} models: geometric mean of the ratios {summary['ratio']:.2f}, "
            f"worst {summary['worst']:.2f}; load {summary['load_ratio']:.2f}, "
            f"memory {summary['memory_ratio']:.2f}"
            + ("" if share is None else f"; at most {share:.1%} of a run in the reference's loops")
        )
    for result in results:
        for name in names:
            fault = result["engines"][name].get("fault")
            if fault:
                lines.append(f"{result['model']}, {result['threads']} threads, {name}: {fault}")
            facts = result["engines"][name].get("facts", {})
            if facts.get("layers_elsewhere"):
                lines.append(
                    f"{result['model']}, {name}: of {facts['layers']} layers the processor runs "
                    + ", ".join(facts["layers_elsewhere"])
                )
            if facts.get("without_graph"):
                lines.append(
                    f"{result['model']}, {name}: without a CUDA graph: {facts['without_graph']}"
                )
    for name in names:
        devices = {
            result["engines"][name].get("facts", {}).get("device") for result in results
        } - {None}
        lines += [f"{name} runs on {device}" for device in sorted(devices)]
    lines += report["left_out"]
    return "\n".join(lines)
