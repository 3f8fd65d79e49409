# SPDX-License-Identifier: Apache-2.0
"""The process that makes and runs cases: a line of JSON before each and one after it.

exported_models.py starts it with the keys of the cases, and starts another after one that crashed
or hung, so that a fault of a library costs one case.
"""

import argparse
import json
import os
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library")
    parser.add_argument("--device")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    # Exporters print; the lines are this process's alone.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    tools = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:0] = [tools, os.path.join(os.path.dirname(tools), "python")]
    from exported import catalogue, check_case, engines

    cases = {case.key: case for case in catalogue.list_cases()}
    ours = engines.Ours(arguments.library, arguments.device) if arguments.library else None
    peer = engines.OnnxRuntime(engines.thread_count())
    for key in sys.stdin.read().splitlines():
        print(json.dumps({"begins": key}), file=lines, flush=True)
        result = check_case.check(cases[key], ours, peer, arguments.keep)
        print(json.dumps(result), file=lines, flush=True)


if __name__ == "__main__":
    main()
