# SPDX-License-Identifier: Apache-2.0
"""Builds the package for pip (PEP 517 and 660) with Python alone, so that an installation needs no network but for
numpy: pip would fetch a build tool for it. A wheel is an archive of the files with what pyproject.toml says of them."""

import base64
import hashlib
import pathlib
import re
import tarfile
import tomllib
import zipfile

_HERE = pathlib.Path(__file__).resolve().parent


def _read_project():
    project = tomllib.loads((_HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = (_HERE / "onnxifi" / "__init__.py").read_text(encoding="utf-8")
    return project, re.search(r'^__version__ = "(.*)"$', source, re.MULTILINE)[1]


def _make_metadata(project, version):
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *[f"Requires-Dist: {needed}" for needed in project["dependencies"]],
    ]
    for extra, packages in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {needed}; extra == "{extra}"' for needed in packages]
    return "\n".join(lines) + "\n"


def _write_wheel(folder, files):
    """`files`: contents by name, beside the metadata."""
    project, version = _read_project()
    info = f"{project['name']}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": _make_metadata(project, version).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: onnxifi\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{project['name']}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    sources = sorted((_HERE / "onnxifi").glob("*.py"))
    return _write_wheel(wheel_directory, {f"onnxifi/{path.name}": path.read_bytes() for path in sources})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """For `pip install --editable`: the package is used where it lies."""
    del config_settings, metadata_directory
    return _write_wheel(wheel_directory, {"onnxifi.pth": f"{_HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    del config_settings
    project, version = _read_project()
    name = f"{project['name']}-{version}"
    with tarfile.open(pathlib.Path(sdist_directory, f"{name}.tar.gz"), "w:gz") as archive:
        for path in ("pyproject.toml", "build_backend.py", "README.md", *sorted((_HERE / "onnxifi").glob("*.py"))):
            path = _HERE / path
            archive.add(path, f"{name}/{path.relative_to(_HERE)}")
    return f"{name}.tar.gz"
