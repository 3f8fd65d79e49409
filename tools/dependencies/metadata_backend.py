# SPDX-License-Identifier: Apache-2.0
#
# Answers in place of the build of a Python package, when pip asks for the package's name and version (PEP 517).
# Used by fetch.sh: pip asks before it keeps a source distribution, and what some packages' own builds do to
# answer is to compile all of it.

import pathlib
import tomllib


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    information = f"{name.replace('-', '_')}-{version}.dist-info"
    target = pathlib.Path(folder) / information
    target.mkdir()
    (target / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return information
