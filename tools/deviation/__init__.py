# SPDX-License-Identifier: Apache-2.0
"""Errors of operators against float64; make_deviation_report.py is the entry."""
