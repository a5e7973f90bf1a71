"""Load campaigns: when requests are due, what became of them, and whether the target kept its budgets and its rules.

The pure parts run anywhere: `arrivals`, `latency`, `sequential`, `campaign`, `ledger`, `fold`, `rules`.
"""
