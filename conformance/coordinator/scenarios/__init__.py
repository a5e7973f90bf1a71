"""Chaos scenarios of coordinator: long runs under faults, C1 … C14 in the order of the wire sheet's X1 … X15.

Two of the sheet are one here: C7 is X7 and X8, a slow taker with two delays. So C8 … C14 are X9 … X15.
"""
