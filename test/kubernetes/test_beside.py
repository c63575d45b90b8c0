"""Containers that other programs add to pods and that never end: they do not keep a job from ending, and the job's policies for running pods apply to
them."""
import pytest

import beside
from jobs import Jobs
from program import wait_for


@pytest.fixture()
def jobs(cluster, served, namespace):
    """Jobs of a namespace in which every pod gets such a container."""
    beside.inject(cluster, namespace, {'image': 'none'})
    return Jobs(cluster, namespace)


def begin(jobs, **more):
    """Creates a job, and waits until both ranks and their added containers run."""
    jobs.create('a', **more)
    pods = jobs.wait_pods('a', 2)
    assert [[c['name'] for c in pod['spec']['containers']] for pod in pods.values()] == [['pytorch', 'mesh']] * 2
    jobs.set_phases('a', 'Running', mesh=None)
    jobs.wait_condition('a', 'Running')


@pytest.mark.parametrize('policy, left', [('None', 2), ('Running', 0), ('All', 0)])
def test_the_job_succeeds(jobs, operator, policy, left):
    begin(jobs, run={'cleanPodPolicy': policy})
    for pod in ('a-worker-0', 'a-master-0'):
        jobs.set_phase(pod, 'Running', 0, mesh=None)
    assert jobs.wait_condition('a', 'Succeeded')['reason'] == 'PyTorchJobSucceeded'
    wait_for(lambda: len(jobs.list('pods')) == left, f'{left} pods are left')
    statuses = jobs.get('a')['status']['replicaStatuses']
    assert [(statuses[role].get('succeeded'), statuses[role].get('active')) for role in ('Master', 'Worker')] == [(1, None)] * 2


def test_the_job_fails(jobs, operator):
    begin(jobs, policy='Never', run={'cleanPodPolicy': 'Running'})
    jobs.set_phase('a-worker-0', 'Running', 3, mesh=None)
    assert 'a-worker-0 (rank 1) exited with code 3' in jobs.wait_condition('a', 'Failed')['message']
    wait_for(lambda: not jobs.list('pods'), 'cleanPodPolicy Running')
    assert jobs.get('a')['status']['counters']['failures'] == 1


def test_a_rank_is_made_again(jobs, operator):
    begin(jobs, policy='ExitCode')
    before = jobs.get('a-worker-0', 'pods')['metadata']['uid']
    jobs.set_phase('a-worker-0', 'Running', 137, mesh=None)
    wait_for(lambda: (jobs.get('a-worker-0', 'pods') or {'metadata': {'uid': before}})['metadata']['uid'] != before, 'the worker is made again')
    jobs.set_phases('a', 'Running', mesh=None)
    wait_for(lambda: 'Restarting' not in jobs.conditions('a'), 'it runs again')
    assert jobs.get('a')['status']['counters']['failures'] == 1


def test_what_becomes_of_it_later_is_no_failure(jobs, operator):
    """If a pod's rank has succeeded and its other container is killed later, the kubelet reports the pod as Failed; the job does not count this."""
    begin(jobs, master=0, workers=2, policy='Never', run={'backoffLimit': 0})
    jobs.set_phase('a-worker-0', 'Running', 0, mesh=None)
    wait_for(lambda: jobs.get('a')['status']['replicaStatuses']['Worker'].get('succeeded') == 1, 'the rank has ended')
    jobs.set_phase('a-worker-0', 'Failed', 0, mesh=137)
    jobs.create('b')  # the operator examines it after the pod's change
    jobs.wait_pods('b', 2)
    assert list(jobs.conditions('a')) == ['Created', 'Running'] and len(jobs.list('pods', 'a')) == 2
    jobs.set_phase('a-worker-1', 'Running', 0, mesh=None)
    jobs.wait_condition('a', 'Succeeded')
