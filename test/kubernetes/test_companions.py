"""The objects that `muster operator` creates in addition to pods and Services, on a real kube-apiserver: HorizontalPodAutoscalers, and PodGroups. The
test creates the definitions of PodGroups; no scheduler serves them."""
import urllib.error

import pytest

from program import wait_for

SCALERS = '/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers'
CPU = {'type': 'Resource', 'resource': {'name': 'cpu', 'target': {'type': 'Utilization', 'averageUtilization': 80}}}
MEMORY = {'type': 'Resource', 'resource': {'name': 'memory', 'target': {'type': 'AverageValue', 'averageValue': '0.5Gi'}}}


class Companions:
    """The objects of one kind that belong to jobs."""

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
    """Creates an elastic job of two Workers."""
    from jobs import job
    made = job(name, master=0, workers=2)
    made['spec']['elasticPolicy'] = {'minReplicas': 1, 'maxReplicas': 3, 'metrics': list(metrics), **policy}
    return jobs.cluster.request('POST', jobs.at('jobs'), made)


def test_metrics_make_an_autoscaler(jobs, operator, scalers):
    """Name, target and bounds are upstream's; the autoscaler follows the job, and is not written when nothing has changed."""
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
    scalers.wait_spec('a', maxReplicas=5)  # the job's value is restored, whoever changed it


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
    jobs.wait_pods('a', 2)  # the job runs nevertheless
    wait_for(lambda: 'FailedCreateHorizontalPodAutoscaler' in jobs.reasons('a'), 'it is said')
    assert scalers.get('a')['spec']['maxReplicas'] == 7


def test_what_the_server_refuses_is_said(jobs, operator, scalers):
    """A metric without its resource is refused, and an event reports it."""
    elastic(jobs, 'a', [{'type': 'Resource'}])
    jobs.wait_pods('a', 2)
    wait_for(lambda: 'FailedCreateHorizontalPodAutoscaler' in jobs.reasons('a'), 'it is said')
    said = next(e['message'] for e in jobs.events('a') if e['reason'].startswith('FailedCreateHor'))
    assert 'spec.metrics[0].resource' in said


GROUPS = {'volcano': ('scheduling.volcano.sh', 'v1beta1'), 'plugins-scheduler': ('scheduling.x-k8s.io', 'v1alpha1')}
DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'


def definition(group, version):
    """Returns a definition of PodGroups with any spec and status, and without a status subresource."""
    schema = {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}
    return {'metadata': {'name': f'podgroups.{group}', 'annotations': {'api-approved.kubernetes.io': 'unapproved, for a test'}},
            'spec': {'group': group, 'scope': 'Namespaced', 'names': {'plural': 'podgroups', 'singular': 'podgroup', 'kind': 'PodGroup'},
                     'versions': [{'name': version, 'served': True, 'storage': True, 'schema': {'openAPIV3Schema': schema}}]}}


def is_served(cluster, path):
    try:
        return cluster.request('GET', path)
    except urllib.error.HTTPError as refused:
        assert refused.code in (404, 429, 503), refused  # it is being installed
        return None


def names(cluster):
    return [each['metadata']['name'] for each in cluster.request('GET', DEFINITIONS)['items']]


@pytest.fixture()
def define(cluster):
    """Returns a function that installs a definition of PodGroups, which is removed after the test."""
    made = []

    def install(group, version):
        cluster.request('POST', DEFINITIONS, definition(group, version))
        made.append(group)
        wait_for(lambda: is_served(cluster, f'/apis/{group}/{version}/podgroups'), 'podgroups are served')
    yield install
    for group in made:
        cluster.request('DELETE', f'{DEFINITIONS}/podgroups.{group}')
        wait_for(lambda group=group: f'podgroups.{group}' not in names(cluster), 'the definition is gone')


def groups_of(jobs, scheduler):
    group, version = GROUPS[scheduler]
    return Companions(jobs, f'/apis/{group}/{version}/namespaces/{{}}/podgroups')


def submit(jobs, name, **policy):
    from jobs import job
    made = job(name, master=1, workers=1)
    made['spec'].setdefault('runPolicy', {})['schedulingPolicy'] = policy
    return jobs.cluster.request('POST', jobs.at('jobs'), made)


def test_volcano_admits_the_pods_of_a_job(cluster, jobs, operators, define):
    """The definition is installed late: the job waits, an event says why, and the job continues when it exists."""
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace, '--gang-scheduler-name=volcano').start()
    running.wait_ready()
    wait_for(lambda: running.said('controller.absent'), 'the log says what is missing')
    made = submit(jobs, 'a', queue='fast', priorityClass='high', minResources={'cpu': '2'})
    wait_for(lambda: 'FailedCreatePodGroup' in jobs.reasons('a'), 'it is said')
    define(*GROUPS['volcano'])
    groups = groups_of(jobs, 'volcano')
    found = groups.wait('a')
    assert found['metadata']['ownerReferences'] == owner_of(made)
    assert found['spec'] == {'minMember': 2, 'queue': 'fast', 'priorityClassName': 'high', 'minResources': {'cpu': '2'}}
    assert not jobs.list('pods', 'a')
    jobs.cluster.request('PATCH', f'{groups.path}/a', {'status': {'phase': 'Inqueue'}}, 'application/merge-patch+json')
    jobs.wait_pods('a', 2)
    assert {pod['spec']['schedulerName'] for pod in jobs.list('pods', 'a').values()} == {'volcano'}
    notes = [pod['metadata']['annotations'] for pod in jobs.list('pods', 'a').values()]
    assert sorted(each['volcano.sh/task-spec'] for each in notes) == ['master', 'worker']
    assert {each['scheduling.k8s.io/group-name'] for each in notes} == {'a'}
    jobs.set_phases('a', 'Succeeded')
    jobs.wait_condition('a', 'Succeeded')
    groups.wait_gone('a')
    wait_for(lambda: [running.metrics()[f'{what}_pod_groups_total'] for what in ('created', 'deleted')] == [1, 1], 'both are counted')


def test_scheduler_plugins_has_a_group_of_its_own(cluster, jobs, operators, define):
    define(*GROUPS['plugins-scheduler'])
    running = operators(cluster.kubeconfig, '--namespace', jobs.namespace, '--gang-scheduler-name=plugins-scheduler').start()
    running.wait_ready()
    submit(jobs, 'a', minAvailable=1, scheduleTimeoutSeconds=9)
    groups = groups_of(jobs, 'plugins-scheduler')
    found = groups.wait('a')['spec']
    assert (found['minMember'], found['scheduleTimeoutSeconds']) == (1, 9)
    jobs.wait_pods('a', 2)
    for pod in jobs.list('pods', 'a').values():
        assert pod['spec']['schedulerName'] == 'plugins-scheduler'
        assert pod['metadata']['labels']['scheduling.x-k8s.io/pod-group'] == 'a'
    jobs.patch('a', {'spec': {'runPolicy': {'suspend': True}}})
    groups.wait_gone('a')


def test_each_replica_has_a_claim_of_its_own(jobs, operator):
    """There is one claim per index, mounted by the template's name; the claims outlive the job."""
    from jobs import job
    made = job('a', master=0, workers=2)
    made['spec']['pytorchReplicaSpecs']['Worker']['volumeClaimTemplates'] = [
        {'metadata': {'name': 'data'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}]
    jobs.cluster.request('POST', jobs.at('jobs'), made)
    jobs.wait_pods('a', 2)
    claims = jobs.list('persistentvolumeclaims')
    assert sorted(claims) == ['data-a-worker-0', 'data-a-worker-1']
    for name, pod in jobs.list('pods', 'a').items():
        volume = next(each for each in pod['spec']['volumes'] if each['name'] == 'data')
        assert volume['persistentVolumeClaim']['claimName'] == f'data-{name}'
        assert 'ownerReferences' not in claims[f'data-{name}']['metadata']
        assert claims[f'data-{name}']['spec']['resources'] == {'requests': {'storage': '1Gi'}}
    jobs.delete('a')
    wait_for(lambda: not jobs.get('a'), 'the job is gone')
    assert sorted(jobs.list('persistentvolumeclaims')) == sorted(claims)
