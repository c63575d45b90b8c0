"""What `muster operator` makes beside pods and Services, on a real kube-apiserver: HorizontalPodAutoscalers."""
import pytest

from jobs import Jobs, Operator
from program import wait_for

SCALERS = '/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers'
CPU = {'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 80}}}
MEMORY = {'type': 'Resource', 'resource': {'name': 'memory', 'target': {'type': 'AverageValue', 'averageValue': '0.5Gi'}}}


@pytest.fixture()
def jobs(cluster, served, namespace):
    return Jobs(cluster, namespace)


@pytest.fixture()
def operators():
    """Makes operators, and ends them after the test."""
    made = []

    def make(*words, **more):
        made.append(Operator(*words, **more))
        return made[-1]
    yield make
    for operator in made:
        operator.close()


@pytest.fixture()
def operator(cluster, jobs, operators):
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace).start()
    yield running.wait_ready()
    assert running.process.poll() is not None or running.end() == 0


class Companions:
    """The objects of one kind beside the jobs."""

    def __init__(self, jobs, path):
        self.jobs, self.path = jobs, path.format(jobs.namespace)

    def get(self, name):
        return next((each for each in self.jobs.cluster.request('GET', self.path)['items'] if each['metadata']['name'] == name), None)

    def wait(self, name):
        return wait_for(lambda: self.get(name), f'{self.path}/{name}')

    def wait_gone(self, name):
        wait_for(lambda: not self.get(name), f'{self.path}/{name} is gone')

    def wait_spec(self, name, **fields):
        wait_for(lambda: (self.get(name) or {'spec': {}})['spec'].items() >= fields.items(), f'{self.path}/{name} has {fields}')


@pytest.fixture()
def scalers(jobs):
    return Companions(jobs, SCALERS)


def owner_of(job):
    return [{'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': job['metadata']['name'], 'uid': job['metadata']['uid'],
             'controller': True, 'blockOwnerDeletion': True}]


def elastic(jobs, name, metrics=(CPU,), **policy):
    """An elastic job of two Workers."""
    from jobs import job
    made = job(name, master=0, workers=2)
    made['spec']['elasticPolicy'] = {'minReplicas': 1, 'maxReplicas': 3, 'metrics': list(metrics), **policy}
    return jobs.cluster.request('POST', jobs.at('jobs'), made)


def test_metrics_make_an_autoscaler(jobs, operator, scalers):
    """Name, target and bounds are upstream's; it follows the job, and is not written when nothing has changed."""
    made = elastic(jobs, 'a', [CPU, MEMORY])
    found = scalers.wait('a')
    assert found['metadata']['ownerReferences'] == owner_of(made)
    assert found['spec']['scaleTargetRef'] == {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'name': 'a'}
    assert (found['spec']['minReplicas'], found['spec']['maxReplicas'], found['spec']['metrics'][0]) == (1, 3, CPU)
    assert found['spec']['metrics'][1]['resource']['target']['averageValue'] == '512Mi'  # the server's spelling
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    assert scalers.get('a')['metadata']['resourceVersion'] == found['metadata']['resourceVersion']
    assert not operator.said('operator.update')
    jobs.patch('a', {'spec': {'elasticPolicy': {'maxReplicas': 5}}})
    scalers.wait_spec('a', maxReplicas=5, minReplicas=1)
    jobs.cluster.request('PATCH', f'{scalers.path}/a', {'spec': {'maxReplicas': 9}}, 'application/merge-patch+json')
    scalers.wait_spec('a', maxReplicas=5)  # whoever changed it: the job says


def test_the_scale_of_a_job_is_what_an_autoscaler_moves(jobs, operator, scalers):
    elastic(jobs, 'a')
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')

    def scale():
        return jobs.cluster.request('GET', jobs.at('jobs', 'a') + '/scale')
    wait_for(lambda: scale()['status'].get('replicas') == 2, 'both are counted')
    assert 'job-name=a' in scale()['status']['selector']
    jobs.patch('a', {'spec': {'replicas': 3}}, part='/scale')
    jobs.wait_pods('a', 3)


def test_an_autoscaler_goes_while_its_job_is_suspended(jobs, operator, scalers):
    elastic(jobs, 'a')
    scalers.wait('a')
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': True}}})
    scalers.wait_gone('a')
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': False}}})
    scalers.wait('a')
    jobs.patch('a', {'spec': {'elasticPolicy': {'metrics': None}}})
    scalers.wait_gone('a')


def test_an_autoscaler_of_somebody_else_is_left_alone(jobs, operator, scalers):
    theirs = {'metadata': {'name': 'a'}, 'spec': {'maxReplicas': 7, 'scaleTargetRef': {'kind': 'Deployment', 'name': 'web', 'apiVersion': 'apps/v1'}}}
    jobs.cluster.request('POST', scalers.path, theirs)
    elastic(jobs, 'a')
    jobs.wait_pods('a', 2)  # the job runs all the same
    wait_for(lambda: 'FailedCreateHorizontalPodAutoscaler' in jobs.reasons('a'), 'it is said')
    assert scalers.get('a')['spec']['maxReplicas'] == 7


def test_what_the_server_refuses_is_said(jobs, operator, scalers):
    """Bounds that only a feature gate allows."""
    elastic(jobs, 'a', minReplicas=4, maxReplicas=2)
    jobs.wait_pods('a', 2)
    wait_for(lambda: 'FailedCreateHorizontalPodAutoscaler' in jobs.reasons('a'), 'it is said')
    said = next(e['message'] for e in jobs.events('a') if e['reason'].startswith('FailedCreateHor'))
    assert 'maxReplicas' in said
