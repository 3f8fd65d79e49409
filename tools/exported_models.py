#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs models that exporters make on the spot, and compares with their sources.

Each case of exported/ trains or draws a model, exports it, runs the file by the C interface, and
compares with what the source itself answers: PyTorch's eager mode, a predictor's own predict(), a
quantizer's runtime. ONNX Runtime gives a second opinion and a time to compare with. Needs
`tools/setup --exporters` once and a release build.

One line per model: status; name; exporter; versions of operator sets; nodes; how many extents it
ran with; where it ran; the largest error as a share of the tolerance, ours and ONNX Runtime's; our
time as a share of ONNX Runtime's. Statuses: passed; not made (the exporter refuses, which is not
ours); vacuous (the expected values would tell no fault); refused; crashed; wrong. "(traced)" stands where
the exporter made numbers of extents, so that ONNX Runtime's answers count on other extents. What lies
beyond the usual tolerance of a torch module is held against the module's float64, with 8 times the
largest error of its own float32 as the tolerance; the line says so ("of 0.004 against float64"). The last
line is "N passed, N failed, N not supported"; exported/known.py holds what is not supported.

Exit status: 0 no case failed; 1 some did; 2 the command line is wrong or
something needed is missing.
"""

import argparse
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import time

_HERE = pathlib.Path(__file__).resolve().parent
_ENTERED = "ONNXIFI_EXPORTED_PYTHON"
_SLOW = 2.0


def enter_private_python():
    """Continues in the environment of `tools/setup --exporters` where this is another."""
    if os.environ.get(_ENTERED):
        return
    finder = [str(_HERE / "setup"), "--exporters", "--print-python"]
    private = subprocess.run(finder, capture_output=True, text=True, check=True).stdout.strip()
    if not pathlib.Path(private).exists():
        print("exported_models.py: run 'tools/setup --exporters' first.", file=sys.stderr)
        sys.exit(2)
    os.environ[_ENTERED] = private
    os.execv(private, [private, __file__, *sys.argv[1:]])


def parse_shard(text):
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is no shard such as 1/4.")
    return int(match[1]), int(match[2])


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    library = _HERE.parent / "build" / "release" / "lib" / "libonnxifi.so"
    parser.add_argument("--library", type=pathlib.Path, default=library)
    parser.add_argument("--device", default="auto", help="default: %(default)s")
    parser.add_argument("--only", metavar="RE", help="cases whose 'name [exporter]' matches")
    parser.add_argument("--shard", type=parse_shard, metavar="I/N", help="every Nth case")
    parser.add_argument("--json", type=pathlib.Path, help="also write the results to this file")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the models in this folder")
    parser.add_argument("--timeout", type=float, default=300, help="seconds per case")
    parser.add_argument("--list", action="store_true", help="only print the names of the cases")
    parser.add_argument("--peer-only", action="store_true", help="only ONNX Runtime, not ours")
    return parser, parser.parse_args()


class Worker:
    """A process of exported/worker.py with the cases that are left."""

    def __init__(self, arguments, keys):
        command = [sys.executable, str(_HERE / "exported" / "worker.py")]
        if not arguments.peer_only:
            command += ["--library", str(arguments.library), "--device", arguments.device]
        if arguments.keep:
            command += ["--keep", str(arguments.keep)]
        self._errors = open(os.devnull, "wb")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        self._process.stdin.write("\n".join(keys).encode())
        self._process.stdin.close()
        self._pending = b""

    def read(self, timeout_s):
        """The next line; None at the end; TimeoutError."""
        end = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0, end - time.monotonic())
            )
            if not ready:
                raise TimeoutError
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                return None
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return json.loads(line)

    def end(self):
        self._process.kill()
        return self._process.wait()


def run_cases(arguments, keys):
    """Yields a result per case, with a new worker after each that does not survive its case."""
    left = list(keys)
    while left:
        worker, current = Worker(arguments, left), None
        while True:
            try:
                line = worker.read(arguments.timeout)
            except TimeoutError:
                line = {"status": "crashed", "reason": f"No answer in {arguments.timeout:.0f} s."}
                worker.end()
                if current is None:
                    if left:
                        said = f"the worker begins no case within {arguments.timeout:g} s (--timeout)"
                        raise SystemExit(f"exported_models.py: {said}.") from None
                    return
            if line is None:
                status = worker.end()
                if current is None:
                    if left:
                        raise SystemExit("exported_models.py: the worker ends without a case.")
                    return
                line = {"status": "crashed", "reason": f"The process ended with {status}."}
            if "begins" in line:
                current = line["begins"]
                continue
            name, _, exporter = current.rpartition(" [")
            yield {"name": name, "exporter": exporter[:-1], **line}
            left.remove(current)
            is_over = line["status"] == "crashed"
            current = None
            if is_over:
                break


def describe(result, number, count):
    def show(key, form):
        return format(result[key], form) if key in result else "-"

    ratio = show("ratio", ".2f")
    if result.get("ratio", 0) > _SLOW:
        ratio += " slow"
    traced = " (traced)" if result.get("traced") else ""
    tolerance = f" of {result['tolerance']:.2g} against float64" if "tolerance" in result else ""
    line = (
        f"{number:3}/{count} {result['status']:8} {result['name']} [{result['exporter']}] "
        f"opset {show('opset', '')}, {show('nodes', 'd')} nodes, {show('sizes', 'd')} sizes{traced}, "
        f"on {show('placement', '')}, error {show('error', '.3g')} "
        f"(peer {show('peer_error', '.3g')}){tolerance}, time {ratio}"
    )
    return line + (f"\n            {result['reason']}" if "reason" in result else "")


def main():
    parser, arguments = parse_arguments()
    sys.path.insert(0, str(_HERE))
    from exported import catalogue, known

    keys = [case.key for case in catalogue.list_cases()]
    if arguments.only:
        keys = [key for key in keys if re.search(arguments.only, key)]
    if arguments.shard:
        keys = keys[arguments.shard[0] - 1 :: arguments.shard[1]]
    if not keys:
        parser.error("No case is chosen; --list names them.")
    if arguments.list:
        print("\n".join(keys))
        return 0
    if not arguments.peer_only and not arguments.library.exists():
        parser.error(f"There is no '{arguments.library}'; build the preset release first.")

    results, verdicts = [], []
    for result in run_cases(arguments, keys):
        results.append(result)
        verdicts.append("passed" if arguments.peer_only else known.verdict_of(result))
        print(describe(result, len(results), len(keys)), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1))
    slow = [result for result in results if result.get("ratio", 0) > _SLOW]
    names = {result["name"] for result in results if result["status"] == "passed"}
    print(f"{len(names)} architectures pass; {len(slow)} models take over {_SLOW:g} times as long")
    counts = {word: verdicts.count(word) for word in ("passed", "failed", "not supported")}
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    enter_private_python()
    sys.exit(main())
