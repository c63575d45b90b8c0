"""Fixtures of tests whose pods run: a cluster with one node, for all tests of a file, and a kubectl. A file uses them by importing their
names, and defines its own in place of those that are not sufficient.
"""
import pytest

from kubectl import Kubectl
from node_jobs import node_cluster


@pytest.fixture(scope='module')
def cluster(tmp_path_factory):
    with node_cluster(tmp_path_factory.mktemp('images')) as made:
        yield made


@pytest.fixture(scope='module')
def kubectl(cluster):
    return Kubectl(cluster.kubeconfig)
