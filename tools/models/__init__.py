# SPDX-License-Identifier: Apache-2.0
"""Real network topologies with seeded weights, and float64 values to expect from them.

make_models.py beside this folder is the entry. A network file draws its graph with a builder;
evaluator.py computes what to expect; output_check.py refuses answers that would check nothing.
"""
