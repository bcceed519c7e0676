"""A real Kubernetes control plane on this machine, for ``signalbox up``, ``down``, ``status`` and for the tests."""
