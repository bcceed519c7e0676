"""URL paths of resources."""

import pytest

from kube import resources
from kube.resources import CONFIG_MAPS, CRDS, LEASES, NAMESPACES, PODS, Resource

JOBS = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("x",), "/api/v1/namespaces/x/pods"),
        (PODS, ("x", "y"), "/api/v1/namespaces/x/pods/y"),
        (PODS, ("x", "y", "status"), "/api/v1/namespaces/x/pods/y/status"),
        (JOBS, ("x", "y"), "/apis/kubeflow.org/v1/namespaces/x/pytorchjobs/y"),
        (LEASES, ("x", "y"), "/apis/coordination.k8s.io/v1/namespaces/x/leases/y"),
        (NAMESPACES, (None, "x"), "/api/v1/namespaces/x"),
        (CRDS, (None, "a.b"), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.b"),
        (CONFIG_MAPS, ("x", "../pods/y"), "/api/v1/namespaces/x/configmaps/..%2Fpods%2Fy"),
        (CONFIG_MAPS, ("x", "a?b=c#d"), "/api/v1/namespaces/x/configmaps/a%3Fb%3Dc%23d"),
    ],
)
def test_path(resource, arguments, path):
    assert resource.path(*arguments) == path


@pytest.mark.parametrize(
    ("resource", "arguments"),
    [
        (PODS, (None, "y")),
        (PODS, ("x", None, "status")),
        (PODS, ("x", "")),
        (PODS, ("x", "..")),
        (PODS, ("",)),
        (CRDS, ("x", "y")),
    ],
)
def test_paths_that_do_not_exist_are_refused(resource, arguments):
    with pytest.raises(ValueError, match=r"."):
        resource.path(*arguments)


def test_api_version():
    assert (PODS.api_version, JOBS.api_version) == ("v1", "kubeflow.org/v1")


def test_constants_are_distinct():
    constants = [value for value in vars(resources).values() if isinstance(value, Resource)]
    assert len({(found.group, found.plural) for found in constants}) == len(constants) > 0
