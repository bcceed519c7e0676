"""How long to wait before a caBundle is put right once more. Pure: times are seconds of a monotonic clock."""

from collections.abc import Sequence

AT_ONCE = 3
"""So many repairs are made at once: a manifest was applied, perhaps for each configuration by itself."""
MEMORY = 3600.0
"""Seconds after which a repair no longer counts."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0


def is_contested(repairs: Sequence[float], now: float) -> bool:
    """Whether somebody else changes the bundle again and again; ``repairs`` are the times of ours."""
    return len(_counting(repairs, now)) >= AT_ONCE


def pause(repairs: Sequence[float], now: float) -> float:
    """Seconds from ``now`` before the next repair: none at first, then twice as many each time."""
    counting = _counting(repairs, now)
    extra = len(counting) - AT_ONCE
    if extra < 0:
        return 0.0
    wanted: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(extra, 16))
    return max(0.0, counting[-1] + wanted - now)


def _counting(repairs: Sequence[float], now: float) -> list[float]:
    return [at for at in repairs if now - at < MEMORY]
