# SPDX-License-Identifier: Apache-2.0
"""Random steps evaluated with numpy, apart from the code under test.

check_steps.py beside this folder is the entry. number_format.py says what buffers hold; value.py what is
known of a result; the arithmetic files what a node of an expression computes; step.py and a file per family
how a step runs; check.py compares.
"""
