# SPDX-License-Identifier: Apache-2.0
#
# The digit classifier through libonnxifi on all its held-out images: at least 97 % right, on each the class of the expected
# scores, and the scores themselves within the tolerance for float32 models.
#
#   accuracy_test.py CLASSIFY_IMAGE [DEVICE]

import json
import pathlib
import subprocess
import sys

REQUIRED_ACCURACY = 0.97
REQUIRED_IMAGES = 300
TOLERANCE = 1e-4  # of |expected| + rms(expected)


def main():
    program, device = sys.argv[1], (sys.argv[2:] or ["cpu"])[0]
    folder = pathlib.Path(__file__).parent
    images = json.loads((folder / "expected_scores.json").read_text())["images"]
    files = [str(folder / "images" / image["file"]) for image in images]
    command = [program, str(folder / "digits.onnx"), *files, "--device", device, "--scores"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    right, worst, faults = 0, 0.0, []
    for image, line in zip(images, lines[1::2], strict=True):
        scores = [float(score) for score in line.split()]
        expected = image["scores"]
        rms = (sum(score * score for score in expected) / len(expected)) ** 0.5
        worst = max(worst, *(abs(a - b) / (TOLERANCE * (abs(b) + rms))
                             for a, b in zip(scores, expected, strict=True)))
        answer = scores.index(max(scores))
        right += answer == image["label"]
        if answer != expected.index(max(expected)):
            faults.append(image["file"])
    accuracy = right / len(images)
    print(f"{device}: {right} of {len(images)} right ({accuracy:.2%}), "
          f"worst score at {worst:.4f} of the tolerance, other class than expected: {faults or 'none'}")
    passed = (len(images) >= REQUIRED_IMAGES and accuracy >= REQUIRED_ACCURACY
              and not faults and worst <= 1)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
