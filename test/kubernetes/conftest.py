"""Fixtures: one cluster for all tests of a run, a namespace and a client for each test."""
import itertools

import pytest

from cluster import Cluster
from jobs import install
from program import limited  # noqa: F401 (each test has a limit)
from proxy import Proxy
from speaker import Speaker

CONFIG_MAPS = {'plural': 'configmaps', 'kind': 'ConfigMap'}
PODS = {'plural': 'pods', 'kind': 'Pod'}
SERVICES = {'plural': 'services', 'kind': 'Service'}
counter = itertools.count(1)


@pytest.fixture(scope='session')
def cluster():
    running = Cluster()
    try:
        yield running.start()
    finally:
        running.close()


@pytest.fixture(scope='session')
def served(cluster):
    """PyTorchJobs are."""
    install(cluster)


@pytest.fixture()
def namespace(cluster):
    return cluster.namespace(f'test-{next(counter)}')


@pytest.fixture()
def speakers():
    """Makes clients, and ends them in order after the test."""
    made = []

    def make(*options, **more):
        made.append(Speaker(*options, **more))
        return made[-1]
    yield make
    for speaker in made:
        speaker.close()


@pytest.fixture()
def speaker(cluster, speakers):
    return speakers('--kubeconfig', cluster.kubeconfig)


@pytest.fixture()
def proxy(cluster):
    made = Proxy(cluster)
    yield made
    made.close()


@pytest.fixture()
def through(cluster, proxy, speakers):
    """A client whose requests go through the proxy."""
    config = cluster.write_kubeconfig(f'through-{next(counter)}', proxy.url, user={})
    return lambda *options: speakers('--kubeconfig', config, *options)
