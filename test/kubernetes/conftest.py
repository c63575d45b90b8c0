"""Fixtures: one cluster for all tests of a run, a namespace and a client for each test."""
import itertools

import pytest

from cluster import Cluster
from jobs import Jobs, Operator, install
from program import limited  # noqa: F401 (each test has a limit)
from proxy import Proxy
from speaker import Speaker

CONFIG_MAPS = {'plural': 'configmaps', 'kind': 'ConfigMap'}
PODS = {'plural': 'pods', 'kind': 'Pod'}
SERVICES = {'plural': 'services', 'kind': 'Service'}
counter = itertools.count(1)


@pytest.fixture(scope='session')
def cluster():
    with Cluster() as running:
        yield running


@pytest.fixture(scope='session')
def served(cluster):
    """Installs the definition of PyTorchJobs."""
    install(cluster)


@pytest.fixture()
def namespace(cluster):
    return cluster.namespace(f'test-{next(counter)}')


@pytest.fixture()
def jobs(cluster, served, namespace):
    return Jobs(cluster, namespace)


def maker(kind):
    """Yields a function, for a fixture, that makes objects of the kind; they are closed in order after the test."""
    made = []

    def make(*args, **kwargs):
        made.append(kind(*args, **kwargs))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture()
def operators():
    yield from maker(Operator)


@pytest.fixture()
def operator(cluster, jobs, operators):
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace).start()
    yield running.wait_ready()
    assert running.process.poll() is not None or running.end() == 0


@pytest.fixture()
def speakers():
    yield from maker(Speaker)


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
    """Returns a function that makes a client whose requests go through the proxy."""
    config = cluster.write_kubeconfig(f'through-{next(counter)}', proxy.url, user={})
    return lambda *options: speakers('--kubeconfig', config, *options)
