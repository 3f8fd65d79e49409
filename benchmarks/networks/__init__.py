# SPDX-License-Identifier: Apache-2.0
"""The networks of the population (../population.py), by what they are for."""
