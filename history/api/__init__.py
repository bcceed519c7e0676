"""The REST interface of the history, read-only but for the ingest of other processes' records."""
