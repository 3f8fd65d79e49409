# SPDX-License-Identifier: Apache-2.0
"""Random steps evaluated with numpy, apart from the code under test; README.md says what is where."""
