"""How the processes log: one JSON object a line on stderr, a constant message plus fields."""

import logging
import sys

import orjson
import structlog


def configure(level: str) -> None:
    """Everything logged through structlog from ``level`` (debug, info, warning, error) on."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", key="time"),
            structlog.processors.EventRenamer("message"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=lambda line, **_: orjson.dumps(line, default=str)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.BytesLoggerFactory(file=sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
