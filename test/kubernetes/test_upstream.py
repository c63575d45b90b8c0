"""Kubeflow's training-operator runs here as the peer: it creates a job's pods and Services, and ends the job."""
import pytest

import upstream
from cluster import Cluster
from jobs import Jobs


@pytest.fixture(scope='module')
def peer():
    """Returns (a separate cluster, the training-operator in it)."""
    cluster = Cluster().start()
    try:
        upstream.install(cluster)
        running = upstream.Upstream(cluster, cluster.kubeconfig).start()
        try:
            yield cluster, running.wait_ready()
        finally:
            running.close()
    finally:
        cluster.close()


def test_it_runs_a_job(peer):
    cluster, _ = peer
    jobs = Jobs(cluster, cluster.namespace('a'))
    jobs.create('a', workers=2)
    pods = jobs.wait_pods('a', 3)
    assert pods['a-worker-0']['spec']['initContainers'][0]['name'] == 'init-pytorch'
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    jobs.wait_condition('a', 'Succeeded')


@pytest.mark.parametrize('name', upstream.EXAMPLES)
def test_its_examples_are_read(peer, name):
    cluster, _ = peer
    assert upstream.example(cluster, name)['spec']['pytorchReplicaSpecs']
