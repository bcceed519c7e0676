"""The one port to the API server: transport, configuration, reflector, store and work queue.

Pure plumbing: it knows resources, objects as dicts and resourceVersions, and nothing about jobs.
"""

import os

# The allocator inside pyreqwest asks for huge pages: 35 MB resident for some hundred KB in use. Read when it is loaded.
os.environ.setdefault("MIMALLOC_ALLOW_THP", "0")
