# SPDX-License-Identifier: Apache-2.0
"""Cases for versions of operators, one module per family; case.py has what they are made with."""
