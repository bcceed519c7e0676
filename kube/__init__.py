"""The one port to the API server: transport, configuration, reflector, store and work queue.

Pure plumbing: it knows resources, objects as dicts and resourceVersions, and nothing about jobs.
"""
