"""What a run costs: processor seconds of every process that belongs to it, and the least wall time that allows.

The kernel adds the seconds of a process to those of its parent when the parent waits for it. The guardian is the parent
of all nodes and waits for each, the runner waits for its guardian, and where there are several runners the process that
started them waits for them. So the figure is complete once the guardian has been closed, and costs nothing to keep. A
target that Holdfast did not start is not in it.
"""

import os
import resource


def cores() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_seconds() -> float:
    """Returns the processor seconds of this process and of all that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(usage.ru_utime + usage.ru_stime for usage in usages), 2)


def least_wall(longest: float, cpu: float | None, cores: int | None) -> float:
    """Returns the seconds that no order of checks can beat: the longest check, or the work dealt over all cores."""
    return round(max(longest, (cpu or 0.0) / (cores or 1)), 3)


def ratio(wall: float | None, least: float) -> float | None:
    """Returns how many times the least possible a run has taken; None where one of the two is not known."""
    return round(wall / least, 3) if wall and least else None
