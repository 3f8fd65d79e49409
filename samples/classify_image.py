#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the digit in images, as classify_image.cc does, through the Python package.

  classify_image.py MODEL IMAGE.png... [--device KEY]     needs numpy, Pillow and `pip install ./python`
"""

import argparse

import numpy
import onnxifi
from PIL import Image


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    with onnxifi.Session(arguments.model, arguments.device) as session:
        for path in arguments.images:
            image = numpy.asarray(Image.open(path).convert("L"), numpy.float32)[None, None] / 255
            (scores,) = session.run(["scores"], {"image": image})
            shares = numpy.exp(scores[0] - scores.max())
            best = scores[0].argmax()
            print(f"{path}: {best} ({100 * shares[best] / shares.sum():.1f} %)")


if __name__ == "__main__":
    main()
