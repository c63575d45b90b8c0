"""Answers of a real API server that are lost after it has written, or that ask for the same request again: `muster operator` creates nothing
twice, and counts and reports each action once."""
import pytest

from program import wait_for
from proxy import AskAgain, Lose


@pytest.fixture()
def operator(cluster, jobs, proxy, operators):
    config = cluster.write_kubeconfig(f'lost-{jobs.namespace}', proxy.url, user={})
    return operators(config, '--namespace', jobs.namespace).start().wait_ready()


def told(jobs, name):
    """Returns {reason: how often}."""
    return {reason: sum(e['count'] for e in jobs.events(name) if e['reason'] == reason) for reason in jobs.reasons(name)}


@pytest.mark.parametrize('fault', [Lose, AskAgain])
def test_what_was_written_is_counted_and_told(jobs, operator, proxy, fault):
    """This holds for a whole life: the first status, both pods and Services, the end, and the deletions."""
    status = '/pytorchjobs/a/status'
    faults = [fault('PUT', status), fault('POST', '/pods$', times=2), fault('POST', '/services$', times=2), fault('DELETE', '/pods/', times=2),
              fault('POST', '/events$', times=4)]
    for each in faults:
        proxy.add(each)
    jobs.create('a', run={'cleanPodPolicy': 'All'})
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    wait_for(lambda: jobs.get('a')['status']['replicaStatuses']['Worker'].get('active') == 1, 'the worker is counted')
    faults.append(proxy.add(fault('PUT', status)))
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    jobs.wait_condition('a', 'Succeeded')
    wait_for(lambda: not jobs.list('pods') and not jobs.list('services'), 'cleanPodPolicy All')
    wait_for(lambda: operator.metrics()['muster_operator_live_jobs'] == 0, 'nothing is under way')
    counted, labels = operator.metrics(), f'{{job_namespace="{jobs.namespace}",framework="pytorch"}}'
    assert [counted.get(f'training_operator_jobs_{what}_total{labels}') for what in ('created', 'successful', 'failed')] == [1, 1, None]
    assert [counted[name] for name in ('created_pods_total', 'deleted_pods_total', 'succeeded_service_creation_total')] == [2, 2, 2]
    wait_for(lambda: told(jobs, 'a') == {'SuccessfulCreatePod': 2, 'SuccessfulCreateService': 2, 'SuccessfulDeletePod': 2, 'SuccessfulDeleteService': 2,
                                         'PyTorchJobSucceeded': 1}, 'each is told once')
    assert [each.times for each in faults] == [0] * len(faults)
    assert operator.end() == 0
