# SPDX-License-Identifier: Apache-2.0
"""Cases of ImageDecoder: image files of every format in the forms that programs write.

ONNX has one RGB image per format. Each case here decodes one file to RGB, BGR and grayscale; Pillow
says what is expected: its convert("RGB"), and convert("L") of that. Exceptions are gray samples of
16 bits, which Pillow clips, and YCbCr, which it rounds down. Pillow writes what it can; the rest is
written here, byte by byte. Files that are cut short or are no images give no pixels.
"""

import collections
import io
import itertools
import struct
import warnings
import zlib

import numpy
import PIL
from onnx import TensorProto, helper
from PIL import Image

KIND = "images"
PILLOW_VERSION = PIL.__version__

_OPSET = 20
_FORMATS = {"RGB": 3, "BGR": 3, "Grayscale": 1}
_SEED = 20

Case = collections.namedtuple("Case", "name model kind data_sets rtol atol")


def _make_model(name):
    nodes = [
        helper.make_node("ImageDecoder", ["file"], [key.lower()], pixel_format=key)
        for key in _FORMATS
    ]
    file = helper.make_tensor_value_info("file", TensorProto.UINT8, ["bytes"])
    outputs = [
        helper.make_tensor_value_info(key.lower(), TensorProto.UINT8, ["height", "width", channels])
        for key, channels in _FORMATS.items()
    ]
    graph = helper.make_graph(nodes, name, [file], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)


def _decode(file):
    image = Image.open(io.BytesIO(file))
    if image.mode.startswith("I;16"):
        return Image.fromarray((numpy.array(image) >> 8).astype(numpy.uint8)).convert("RGB")
    with warnings.catch_warnings():
        # Of a palette with transparency, which convert() drops.
        warnings.simplefilter("ignore", UserWarning)
        return image.convert("RGB")


def _ycbcr_to_rgb(image):
    """JFIF's formulas, rounded to nearest; Pillow rounds down."""
    y, cb, cr = numpy.moveaxis(numpy.array(image, numpy.float64), 2, 0)
    cb, cr = cb - 128, cr - 128
    rgb = (y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb)
    return numpy.clip(numpy.rint(numpy.stack(rgb, axis=2)), 0, 255).astype(numpy.uint8)


def _case(name, file, expected=None):
    """`expected`: an array [height, width, 3], where not Pillow decodes the file."""
    if expected is None:
        rgb = _decode(file)
    else:
        rgb = Image.fromarray(expected) if expected.size else None
    if rgb is None:
        outputs = [numpy.zeros((0, 0, channels), numpy.uint8) for channels in _FORMATS.values()]
    else:
        pixels = numpy.array(rgb)
        gray = numpy.array(rgb.convert("L"))[:, :, numpy.newaxis]
        outputs = [pixels, numpy.ascontiguousarray(pixels[:, :, ::-1]), gray]
    inputs = [numpy.frombuffer(file, numpy.uint8)]
    return Case(f"test_images_{name}", _make_model(name), KIND, [(inputs, outputs)], 0, 0)


def _pixels(width=37, height=29, channels=3):
    """Slopes and noise: neighbours differ, and every value comes."""
    random = numpy.random.default_rng(_SEED)
    y, x, c = numpy.ogrid[:height, :width, :channels]
    slope = (5 * x + 7 * y + 40 * c) % 256
    noise = random.integers(0, 32, (height, width, channels))
    return ((slope + noise) % 256).astype(numpy.uint8)


def _image(mode="RGB", **extents):
    rgba = Image.fromarray(_pixels(channels=4, **extents), "RGBA")
    if mode in ("RGBA", "LA"):
        return rgba.convert(mode)
    if mode == "I;16":
        wide = _pixels(channels=2, **extents).astype(numpy.uint16)
        return Image.fromarray(wide[:, :, 0] << 8 | wide[:, :, 1])
    return rgba.convert("RGB").convert(mode)


def _save(image, file_format, **options):
    file = io.BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


# --- written here -----------------------------------------------------------------------------------


def _pack_rows(samples, bits, pad_bytes=1):
    """Rows of samples [height, n] of 1 to 8 bits, upper bits first, in whole multiples of bytes."""
    rows = []
    for row in samples:
        text = "".join(f"{sample:0{bits}b}" for sample in row)
        size = -(-len(text) // (8 * pad_bytes)) * pad_bytes
        rows.append(int(text.ljust(8 * size, "0"), 2).to_bytes(size, "big"))
    return rows


def _png_rows(samples, bits):
    """Samples [height, width, channels] as rows without filter."""
    height, width, channels = samples.shape
    flat = samples.reshape(height, width * channels)
    rows = [row.astype(">u2").tobytes() for row in flat] if bits == 16 else _pack_rows(flat, bits)
    return b"".join(b"\0" + row for row in rows)


def _write_png(samples, bits, color_type, is_interlaced=False, chunks=()):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = samples.shape
    data = b""
    if is_interlaced:
        # Adam7: first row and column, and steps, of each pass.
        for y, x, down, right in (
            (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1),
        ):  # fmt: skip
            part = samples[y::down, x::right]
            data += _png_rows(part, bits) if part.size else b""
    else:
        data = _png_rows(samples, bits)
    header = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, int(is_interlaced))
    parts = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _write_bmp(rows, width, height, bits, compression=0, palette=b"", masks=b"", size=40, colors=0):
    """`rows`: bytes, as the file has them; a negative height means from the top."""
    if size == 12:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        header = struct.pack(
            "<IiiHHIIiiII", size, width, height, 1, bits, compression, len(rows), 0, 0, colors, 0
        )
        header += masks.ljust(size - 40, b"\0") if size > 40 else masks
    offset = 14 + len(header) + len(palette)
    start = struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset)
    return start + header + palette + rows


_TIFF_SIZES = {3: "H", 4: "I"}


def _write_tiff(tags, blocks, is_tiled=False, order="<"):
    """`tags`: {tag: (type, values)}; `blocks`: strips or tiles in their order."""
    tags = dict(tags)
    counts = [len(block) for block in blocks]
    offsets = [8 + sum(counts[:k]) for k in range(len(blocks))]
    tags[324 if is_tiled else 273] = (4, offsets)
    tags[325 if is_tiled else 279] = (4, counts)
    data = b"".join(blocks)
    data += b"\0" * (len(data) % 2)
    directory, behind = struct.pack(order + "H", len(tags)), b""
    start = 8 + len(data) + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        packed = struct.pack(f"{order}{len(values)}{_TIFF_SIZES[kind]}", *values)
        if len(packed) > 4:
            position = start + len(behind)
            behind += packed + b"\0" * (len(packed) % 2)
            packed = struct.pack(order + "I", position)
        directory += struct.pack(order + "HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
    header = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8 + len(data))
    return header + data + directory + struct.pack(order + "I", 0) + behind


def _tiff_tags(samples, bits, photometric, **others):
    height, width, channels = samples.shape
    names = {"orientation": 274, "planar": 284, "extra": 338, "rows_per_strip": 278}
    tags = {
        256: (4, [width]),
        257: (4, [height]),
        258: (3, [bits] * channels),
        259: (3, [1]),
        262: (3, [photometric]),
        277: (3, [channels]),
        278: (4, [height]),
        284: (3, [1]),
    }
    tags.update({names[name]: (3, [value]) for name, value in others.items()})
    return tags


def _make_tiff(samples, bits=8, photometric=2, order="<", **others):
    """In one strip."""
    height = samples.shape[0]
    if bits == 16:
        data = samples.astype(order + "u2").tobytes()
    else:
        data = b"".join(_pack_rows(samples.reshape(height, -1), bits))
    return _write_tiff(_tiff_tags(samples, bits, photometric, **others), [data], order=order)


def _make_tiled_tiff(samples, extent=16):
    height, width, channels = samples.shape
    blocks = []
    for y, x in itertools.product(range(0, height, extent), range(0, width, extent)):
        block = numpy.zeros((extent, extent, channels), numpy.uint8)
        part = samples[y : y + extent, x : x + extent]
        block[: part.shape[0], : part.shape[1]] = part
        blocks.append(block.tobytes())
    tags = _tiff_tags(samples, 8, 2)
    del tags[278]
    tags |= {322: (3, [extent]), 323: (3, [extent])}
    return _write_tiff(tags, blocks, is_tiled=True)


# --- the cases --------------------------------------------------------------------------------------


def _bmp_cases():
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        yield _case(f"bmp_{mode.lower()}", _save(_image(mode), "BMP"))
    random = numpy.random.default_rng(_SEED)
    palette = random.integers(0, 256, (16, 4), numpy.uint8)
    indices = random.integers(0, 16, (9, 13))
    rows = b"".join(_pack_rows(indices, 4, pad_bytes=4))
    yield _case("bmp_palette_4", _write_bmp(rows, 13, 9, 4, palette=palette.tobytes()))
    yield _case("bmp_top_down", _write_bmp(rows, 13, -9, 4, palette=palette.tobytes()))
    yield _case(
        "bmp_few_colors",
        _write_bmp(
            b"".join(_pack_rows(indices % 5, 4, pad_bytes=4)), 13, 9, 4,
            palette=palette[:5].tobytes(), colors=5,
        ),
    )  # fmt: skip
    yield _case(
        "bmp_os2",
        _write_bmp(rows, 13, 9, 4, palette=palette[:, :3].tobytes(), size=12),
    )
    words = numpy.zeros((9, 14), "<u2")
    words[:, :13] = random.integers(0, 65536, (9, 13))
    yield _case("bmp_555", _write_bmp(words.tobytes(), 13, 9, 16))
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    yield _case("bmp_565", _write_bmp(words.tobytes(), 13, 9, 16, 3, masks=masks))
    pixels = random.integers(0, 2**32, (9, 13), numpy.uint64).astype("<u4").tobytes()
    masks = struct.pack("<IIII", 0xFF000000, 0xFF0000, 0xFF00, 0xFF)
    yield _case("bmp_masks_32", _write_bmp(pixels, 13, 9, 32, 3, masks=masks, size=108))
    # Runs, absolute runs of odd length, the ends of rows and of the bitmap.
    runs8 = (
        b"\x05\x03\x00\x05\x01\x02\x03\x04\x05\x00\x03\x0f\x00\x00"
        b"\x0d\x07\x00\x00\x00\x03\x09\x08\x07\x00\x0a\x01\x00\x00\x0d\x0e\x00\x01"
    )
    yield _case("bmp_runs_8", _write_bmp(runs8, 13, 4, 8, 1, palette=palette.tobytes(), colors=16))
    runs4 = b"\x05\x34\x00\x05\x12\x34\x50\x00\x03\xfa\x00\x00\x0d\x71\x00\x00\x0d\xee\x00\x01"
    yield _case("bmp_runs_4", _write_bmp(runs4, 13, 3, 4, 2, palette=palette.tobytes()))


def _pnm_cases():
    pixels = _pixels(11, 7)
    gray = pixels[:, :, 0]

    def text(samples):
        return "\n".join(" ".join(map(str, row)) for row in samples.reshape(7, -1).tolist()).encode()

    yield _case("pnm_p1", b"P1 # bits\n11 7\n" + text(gray % 2))
    yield _case("pnm_p1_dense", b"P1\n11 7\n" + text(gray % 2).replace(b" ", b""))
    yield _case("pnm_p2", b"P2\n# a comment\n11\t7\n255\n" + text(gray))
    yield _case("pnm_p2_few", b"P2\n11 7\n10\n" + text(gray % 11))
    yield _case("pnm_p3", b"P3 11 7 255\n" + text(pixels))
    yield _case("pnm_p4", b"P4 11 7\n" + b"".join(_pack_rows(gray % 2, 1)))
    yield _case("pnm_p5", _save(Image.fromarray(gray), "PPM"))
    yield _case("pnm_p5_few", b"P5 11 7 100\n" + (gray % 101).tobytes())
    yield _case("pnm_p6", b"P6\n11 7\n255\n" + pixels.tobytes())
    wide = pixels.astype(">u2") * 250 + 7
    yield _case("pnm_p6_wide", b"P6 11 7 65000\n" + numpy.minimum(wide, 65000).astype(">u2").tobytes())
    # Pillow clips what is wider than 8 bits here, and scales it where there are colours.
    scaled = numpy.round(wide[:, :, :1] / 65535 * 255).astype(numpy.uint8)
    yield _case(
        "pnm_p5_wide",
        b"P5 11 7 65535\n" + wide[:, :, 0].astype(">u2").tobytes(),
        expected=numpy.repeat(scaled, 3, axis=2),
    )


def _png_cases():
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        yield _case(f"png_{mode.lower().replace(';', '_')}", _save(_image(mode), "PNG"))
    random = numpy.random.default_rng(_SEED)
    for bits in (1, 2, 4, 8, 16):
        samples = random.integers(0, 1 << bits, (13, 11, 1))
        if bits == 16:
            yield _case("png_gray_16", _write_png(samples, bits, 0))
            continue
        yield _case(f"png_gray_{bits}", _write_png(samples, bits, 0))
        palette = random.integers(0, 256, (1 << bits, 3), numpy.uint8).tobytes()
        yield _case(f"png_palette_{bits}", _write_png(samples, bits, 3, chunks=[(b"PLTE", palette)]))
    palette = random.integers(0, 256, (4, 3), numpy.uint8).tobytes()
    chunks = [(b"PLTE", palette), (b"tRNS", b"\0\x80")]
    samples = random.integers(0, 4, (13, 11, 1))
    yield _case("png_transparent_palette", _write_png(samples, 2, 3, chunks=chunks))
    for color_type, channels in ((2, 3), (4, 2), (6, 4)):
        samples = random.integers(0, 65536, (13, 11, channels))
        yield _case(f"png_wide_{channels}", _write_png(samples, 16, color_type))
    gamma = [(b"gAMA", struct.pack(">I", 100000))]
    samples = _pixels(11, 13)
    yield _case("png_gamma", _write_png(samples, 8, 2, chunks=gamma))
    yield _case("png_interlaced", _write_png(samples, 8, 2, is_interlaced=True))
    yield _case("png_interlaced_small", _write_png(samples[:1, :2], 8, 2, is_interlaced=True))
    bits = random.integers(0, 2, (13, 11, 1))
    yield _case("png_interlaced_bits", _write_png(bits, 1, 0, is_interlaced=True))
    frames = [_image("RGB").rotate(90 * k) for k in range(2)]
    yield _case("png_animated", _save(frames[0], "PNG", save_all=True, append_images=frames[1:]))


def _jpeg_cases():
    for mode in ("L", "RGB", "CMYK"):
        yield _case(f"jpeg_{mode.lower()}", _save(_image(mode), "JPEG", quality=90))
    for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
        name = subsampling.replace(":", "")
        file = _save(_image(), "JPEG", subsampling=subsampling)
        yield _case(f"jpeg_{name}", file)
    yield _case("jpeg_progressive", _save(_image(), "JPEG", progressive=True))
    yield _case("jpeg_restarts", _save(_image(), "JPEG", restart_marker_blocks=2))
    yield _case("jpeg_rgb_stored", _save(_image(), "JPEG", keep_rgb=True))
    exif = Image.Exif()
    exif[0x0112] = 6
    yield _case("jpeg_orientation", _save(_image(), "JPEG", exif=exif))


def _jpeg_2000_cases():
    # Small: the suite repeats them until threads keep no more of the pieces that OpenJPEG frees.
    small = {"width": 13, "height": 11}
    for mode in ("L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "I;16"):
        image = _image(mode, **small)
        name = mode.lower().replace(";", "_")
        expected = _ycbcr_to_rgb(image) if mode == "YCbCr" else None
        yield _case(f"jpeg_2000_{name}", _save(image, "JPEG2000"), expected)
    image = _image(**small)
    yield _case("jpeg_2000_codestream", _save(image, "JPEG2000", no_jp2=True))
    yield _case("jpeg_2000_tiles", _save(image, "JPEG2000", tile_size=(8, 8)))
    options = {"irreversible": True, "quality_mode": "dB", "quality_layers": [40]}
    yield _case("jpeg_2000_lossy", _save(image, "JPEG2000", **options))


def _tiff_cases():
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16"):
        image = _image(mode)
        name = mode.lower().replace(";", "_")
        expected = _ycbcr_to_rgb(image) if mode == "YCbCr" else None
        yield _case(f"tiff_{name}", _save(image, "TIFF"), expected)
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd", "lzma"):
        file = _save(_image(), "TIFF", compression=compression)
        yield _case(f"tiff_rgb_{compression.removeprefix('tiff_')}", file)
    for compression in ("group3", "group4", "tiff_ccitt"):
        file = _save(_image("1"), "TIFF", compression=compression)
        yield _case(f"tiff_bits_{compression.removeprefix('tiff_')}", file)
    for mode in ("L", "RGB", "CMYK"):
        file = _save(_image(mode), "TIFF", compression="jpeg")
        yield _case(f"tiff_jpeg_{mode.lower()}", file)
    yield _case("tiff_big", _save(_image(), "TIFF", big_tiff=True))
    yield _case("tiff_strips", _save(_image(), "TIFF", strip_size=400, compression="tiff_lzw"))
    frames = [_image(), _image().rotate(90)]
    yield _case("tiff_pages", _save(frames[0], "TIFF", save_all=True, append_images=frames[1:]))

    samples = _pixels(21, 18, 4)
    for orientation in range(1, 9):
        file = _make_tiff(samples[:, :, :3], orientation=orientation)
        yield _case(f"tiff_orientation_{orientation}", file)
    file = _save(_image(), "TIFF", compression="tiff_lzw", tiffinfo={274: 6})
    yield _case("tiff_orientation_packed", file)
    for bits in (1, 2, 4, 8):
        gray = samples[:, :, :1] >> (8 - bits)
        yield _case(f"tiff_black_is_most_{bits}", _make_tiff(gray, bits, photometric=0))
        yield _case(f"tiff_gray_{bits}", _make_tiff(gray, bits, photometric=1))
    wide = samples.astype(numpy.uint16) * 257 ^ 0x5A
    yield _case("tiff_wide_gray_big_endian", _make_tiff(wide[:, :, :1], 16, 1, order=">"))
    yield _case("tiff_wide_rgb", _make_tiff(wide[:, :, :3], 16))
    yield _case("tiff_wide_rgba_big_endian", _make_tiff(wide, 16, order=">", extra=2))
    yield _case("tiff_wide_cmyk", _make_tiff(wide, 16, photometric=5))
    yield _case("tiff_unused_sample", _make_tiff(samples, extra=0))
    # Colours never exceed the opacity that they are multiplied by.
    premultiplied = samples.copy()
    premultiplied[:, :, :3] = samples[:, :, :3].astype(int) * samples[:, :, 3:] // 255
    premultiplied[0, :5, 3] = 0
    yield _case("tiff_premultiplied", _make_tiff(premultiplied, extra=1))
    planes = [samples[:, :, k].tobytes() for k in range(3)]
    tags = _tiff_tags(samples[:, :, :3], 8, 2, planar=2)
    yield _case("tiff_planes", _write_tiff(tags, planes))
    yield _case("tiff_tiles", _make_tiled_tiff(_pixels(37, 29)))


def _webp_cases():
    for mode in ("RGB", "RGBA"):
        yield _case(f"webp_{mode.lower()}", _save(_image(mode), "WEBP", quality=80))
        yield _case(f"webp_lossless_{mode.lower()}", _save(_image(mode), "WEBP", lossless=True, exact=True))
    frames = [_image("RGBA").rotate(90 * k) for k in range(2)]
    options = {"save_all": True, "append_images": frames[1:], "lossless": True, "exact": True}
    yield _case("webp_animated", _save(frames[0], "WEBP", **options))


def _damaged_cases():
    """ONNX asks for a matrix without elements."""
    nothing = numpy.zeros((0, 0, 3), numpy.uint8)
    for file_format in ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP"):
        file = _save(_image(), file_format)
        yield _case(f"cut_short_{file_format.lower()}", file[: len(file) // 2], expected=nothing)
    # The marker that ends the file is needed.
    yield _case("cut_short_jpeg_end", _save(_image(), "JPEG")[:-2], expected=nothing)
    yield _case("none", b"GIF89a is no format of ONNX's", expected=nothing)
    yield _case("one_byte", b"B", expected=nothing)
    # A form that is not decoded: samples of 32 bits.
    floats = Image.fromarray(_pixels(channels=1)[:, :, 0].astype(numpy.float32))
    yield _case("tiff_float", _save(floats, "TIFF"), expected=nothing)


def list_cases():
    families = (
        _bmp_cases, _pnm_cases, _png_cases, _jpeg_cases, _jpeg_2000_cases, _tiff_cases, _webp_cases,
        _damaged_cases,
    )  # fmt: skip
    return [case for family in families for case in family()]
