"""Requests that a real API server refuses for reasons outside of muster: quotas, limits, pod security, accounts, priorities, other projects'
webhooks, rights. In each case an event of the job gives the reason, in the server's words; the operator tries again at growing intervals; the job
continues when the cause is gone.
"""
import http.server
import json
import re
import ssl
import threading

import pytest

from cluster import HOST, Cluster
from jobs import Jobs, Operator, install, job
from program import LIMIT_S, wait_for

RBAC = '/apis/rbac.authorization.k8s.io/v1'
HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
JOBS_HELD_UP, HELD_UP = 40, 16
# The rights of the operator here; a test takes verbs away.
RULES = [{'apiGroups': ['kubeflow.org'], 'resources': ['pytorchjobs', 'pytorchjobs/status'], 'verbs': ['*']},
         {'apiGroups': [''], 'resources': ['pods', 'services', 'persistentvolumeclaims', 'events'], 'verbs': ['*']},
         {'apiGroups': ['autoscaling'], 'resources': ['*'], 'verbs': ['*']},
         {'apiGroups': [''], 'resources': ['nodes'], 'verbs': ['get', 'list', 'watch']}]


@pytest.fixture(scope='module')
def own():
    """A cluster for this file alone, in which each pod has an account."""
    with Cluster(**{'disable-admission-plugins': 'TaintNodesByCondition'}) as running:
        install(running)
        running.authority.issue('operator', '/CN=operator', 'extendedKeyUsage=clientAuth')
        running.request('POST', f'{RBAC}/clusterroles', {'metadata': {'name': 'operator'}, 'rules': RULES})
        running.request('POST', f'{RBAC}/clusterrolebindings', {
            'metadata': {'name': 'operator'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'operator'},
            'subjects': [{'kind': 'User', 'name': 'operator'}]})
        yield running


@pytest.fixture()
def jobs(own, request):
    name = re.sub('[^a-z0-9]+', '-', request.node.name.removeprefix('test_').lower())[:60].strip('-')
    own.namespace(name)
    own.request('POST', f'/api/v1/namespaces/{name}/serviceaccounts', {'metadata': {'name': 'default'}})
    return Jobs(own, name)


@pytest.fixture()
def operator(own, jobs, operators):
    """Starts an operator with the rights of its role, and no others."""
    file = own.authority.file
    config = own.write_kubeconfig('operator', own.url, user={'client-certificate': file('operator.crt'), 'client-key': file('operator.key')})
    return operators(config, '--namespace', jobs.namespace).start().wait_ready()


@pytest.fixture()
def without(own):
    """Returns a function that takes a verb away; at the end all rights are restored."""
    def take(resource, verb):
        rules = json.loads(json.dumps(RULES))
        rule = next(rule for rule in rules if resource in rule['resources'])
        rule['resources'].remove(resource)
        others = sorted({'get', 'list', 'watch', 'create', 'update', 'patch', 'delete'} - {verb})
        write([*rules, {'apiGroups': rule['apiGroups'], 'resources': [resource], 'verbs': others}])
        wait_for(lambda: not may(resource, verb), f'nobody may {verb} {resource}')
        taken.append((resource, verb))

    def give_back():
        write(RULES)
        wait_for(lambda: all(may(*each) for each in taken), 'all may be done again')

    def write(rules):
        role = own.request('GET', f'{RBAC}/clusterroles/operator')
        own.request('PUT', f'{RBAC}/clusterroles/operator', {**role, 'rules': rules})

    def may(resource, verb):
        what, _, part = resource.partition('/')
        about = {'verb': verb, 'resource': what, 'subresource': part, 'group': 'kubeflow.org' if what == 'pytorchjobs' else '', 'namespace': 'any'}
        review = own.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {'spec': {'user': 'operator', 'resourceAttributes': about}})
        return review['status']['allowed']
    taken, take.give_back = [], give_back
    yield take
    give_back()


def quota(jobs, **hard):
    """Creates a quota of which nothing is used. No controller manager runs, so this writes its status."""
    hard = {name.replace('__', '/'): count for name, count in hard.items()}
    made = jobs.cluster.request('POST', jobs.at('resourcequotas'), {'metadata': {'name': 'quota'}, 'spec': {'hard': hard}})
    made['status'] = {'hard': hard, 'used': {name: '0' for name in hard}}
    jobs.cluster.request('PUT', jobs.at('resourcequotas', 'quota') + '/status', made)


def wait_told(jobs, reason, words, name='a'):
    """Waits for the event with the reason and the words, and returns it."""
    return wait_for(lambda: next((e for e in jobs.events(name) if e['reason'] == reason and words in e['message']), None), f'{reason}: {words}')


def tries(operator, method='POST', code='403'):
    """Returns how many requests were refused."""
    return sum(int(count) for name, count in operator.metrics().items()
               if name.startswith('rest_client_requests_total') and f'method="{method}"' in name and f'code="{code}"' in name)


def change(jobs, name='a', **fields):
    """Creates a job whose pods have these fields of a PodSpec."""
    body = job(name)
    for replica in body['spec']['pytorchReplicaSpecs'].values():
        replica['template']['spec'].update(fields)
    return jobs.cluster.request('POST', jobs.at('jobs'), body)


@pytest.mark.parametrize('hard, reason', [({'pods': '2'}, 'FailedCreatePod'), ({'count__pods': '2'}, 'FailedCreatePod'), ({'services': '2'}, 'FailedCreateService')],
                         ids=['pods', 'count', 'services'])
def test_a_full_quota(jobs, operator, hard, reason):
    """Each further try sends one creation, not one for each missing object."""
    quota(jobs, **hard)
    wait_for(lambda: jobs.get('quota', 'resourcequotas')['status'].get('hard'), 'the quota counts')
    jobs.create('a', workers=9)
    first = wait_told(jobs, reason, 'exceeded quota: quota')
    wait_for(lambda: tries(operator) >= 8, 'the first try of all')
    before = tries(operator)
    wait_for(lambda: tries(operator) >= before + 2, 'further tries')
    kind = 'pods' if reason == 'FailedCreatePod' else 'services'
    assert len(jobs.list(kind)) == 2
    told = [e for e in jobs.events('a') if e['reason'] == reason]
    wait_for(lambda: max(e['count'] for e in jobs.events('a')) >= 2, 'it is counted')
    assert len(told) <= 8 and first['type'] == 'Warning'
    assert sum(e['count'] for e in jobs.events('a') if e['reason'] == reason) <= tries(operator) <= 8 + 8
    jobs.delete('quota', 'resourcequotas')
    jobs.wait_pods('a', 10)


def test_a_limit_of_containers(jobs, operator):
    """The API server adds defaults to pods; the pods are not created again because of these. A request above the limit is reported."""
    own = jobs.cluster
    limits = {'type': 'Container', 'max': {'cpu': '2'}, 'default': {'cpu': '2'}, 'defaultRequest': {'cpu': '1'}}
    own.request('POST', jobs.at('limitranges'), {'metadata': {'name': 'limits'}, 'spec': {'limits': [limits]}})
    jobs.create('a')
    pods = jobs.wait_pods('a', 2)
    assert all(pod['spec']['containers'][0]['resources']['limits'] == {'cpu': '2'} for pod in pods.values())
    greedy = {'name': 'pytorch', 'image': 'none', 'resources': {'limits': {'cpu': '4'}}}
    change(jobs, 'b', containers=[greedy])
    wait_told(jobs, 'FailedCreatePod', 'maximum cpu usage per Container is 2', 'b')
    jobs.delete('limits', 'limitranges')
    jobs.wait_pods('b', 2)
    assert {name: pod['metadata']['uid'] for name, pod in jobs.list('pods', 'a').items()} == {n: p['metadata']['uid'] for n, p in pods.items()}


def test_pod_security(jobs, operator):
    at = f'/api/v1/namespaces/{jobs.namespace}'
    label = 'pod-security.kubernetes.io/enforce'
    jobs.cluster.request('PATCH', at, {'metadata': {'labels': {label: 'restricted'}}}, 'application/merge-patch+json')
    jobs.create('a')
    wait_told(jobs, 'FailedCreatePod', 'must set securityContext.runAsNonRoot=true')
    jobs.cluster.request('PATCH', at, {'metadata': {'labels': {label: None}}}, 'application/merge-patch+json')
    jobs.wait_pods('a', 2)


def test_an_account_that_is_missing(jobs, operator):
    change(jobs, serviceAccountName='nobody')
    wait_told(jobs, 'FailedCreatePod', 'serviceaccount "nobody" not found')
    jobs.cluster.request('POST', jobs.at('serviceaccounts'), {'metadata': {'name': 'nobody'}})
    jobs.wait_pods('a', 2)


def test_a_priority_that_is_missing(jobs, operator):
    change(jobs, priorityClassName='high')
    wait_told(jobs, 'FailedCreatePod', 'no PriorityClass with name high was found')
    jobs.cluster.request('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {'metadata': {'name': 'high'}, 'value': 1000})
    jobs.wait_pods('a', 2)


def test_a_template_that_is_too_large(jobs, operator):
    """The API server accepts the job, but would refuse its pods: the operator reports this before it creates any, and continues when the user writes
    a smaller template."""
    body = json.loads(json.dumps(job('a')))  # the replicas share a template
    worker = body['spec']['pytorchReplicaSpecs']['Worker']['template']
    worker['metadata'] = {'annotations': {'note': 'x' * (300 << 10)}}
    jobs.cluster.request('POST', jobs.at('jobs'), body)
    wait_told(jobs, 'PyTorchJobInvalid', 'Worker.template.metadata.annotations: too long')
    jobs.wait_condition('a', 'Stalled')
    assert not jobs.list('pods')
    jobs.patch('a', {'spec': {'pytorchReplicaSpecs': {'Worker': {'template': {'metadata': None}}}}})
    jobs.wait_pods('a', 2)


def test_a_namespace_that_goes(jobs, operator):
    """Pods in the namespace are not touched; nothing can be created in it, and the operator does not try all the time."""
    jobs.create('a', policy='ExitCode')
    jobs.wait_pods('a', 2)
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    jobs.cluster.request('DELETE', f'/api/v1/namespaces/{jobs.namespace}')
    jobs.set_phase('a-worker-0', 'Failed', 137)
    wait_for(lambda: operator.said('controller.retry', 'because it is being terminated'), 'it is said')
    wait_for(lambda: tries(operator) >= 3, 'further tries')
    wait_for(lambda: operator.said('controller.event'), 'its events are refused')
    assert len([line for line in operator.lines() if line['event'] == 'controller.event']) == 1
    jobs.set_phase('a-master-0', 'Succeeded', 0)
    jobs.wait_condition('a', 'Succeeded')
    assert operator.end() == 0


class Reviewer(http.server.BaseHTTPRequestHandler):
    """Another project's webhook: it refuses, or answers when the test lets it."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        self.server.names.add(asked['request']['name'])
        assert self.server.may_answer.wait(LIMIT_S)
        answer = {'uid': asked['request']['uid'], 'allowed': self.server.allows, 'status': {'message': 'pods need the label team'}}
        body = json.dumps({'apiVersion': 'admission.k8s.io/v1', 'kind': 'AdmissionReview', 'response': answer}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture()
def hook(own, jobs):
    """A webhook that reviews the pods of the namespace; its server starts only with `up`."""
    server = http.server.ThreadingHTTPServer((HOST, 0), Reviewer, bind_and_activate=False)
    server.server_bind()
    server.allows, server.may_answer, server.names = True, threading.Event(), set()
    server.may_answer.set()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(own.authority.file('server.crt'), own.authority.file('server.key'))
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    bundle = json.loads(own.kubeconfig.read_text())['clusters'][0]['cluster']['certificate-authority-data']
    own.request('POST', HOOKS, {'metadata': {'name': 'team'}, 'webhooks': [{
        'name': 'pods.team.example', 'clientConfig': {'url': f'https://{HOST}:{server.server_address[1]}/', 'caBundle': bundle},
        'rules': [{'apiGroups': [''], 'apiVersions': ['v1'], 'operations': ['CREATE'], 'resources': ['pods']}],
        'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': jobs.namespace}}, 'admissionReviewVersions': ['v1'], 'sideEffects': 'None',
        'failurePolicy': 'Fail', 'timeoutSeconds': 30}]})

    def up():
        server.server_activate()
        threading.Thread(target=server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()
        server.is_up = True
    server.up, server.is_up = up, False
    yield server
    server.may_answer.set()
    if server.is_up:
        server.shutdown()
    server.server_close()
    own.request('DELETE', f'{HOOKS}/team')


def wait_asked(jobs):
    """Waits until the API server calls the webhook."""
    pod = {'metadata': {'name': 'probe'}, 'spec': {'containers': [{'name': 'c', 'image': 'none'}]}}

    def is_asked():
        try:
            jobs.cluster.request('POST', jobs.at('pods') + '?dryRun=All', pod)
        except OSError:
            return True
        return False
    wait_for(is_asked, 'the webhook counts')


def test_a_webhook_that_is_away(jobs, operator, hook):
    """An API server that cannot reach the webhook answers with 500, and with the reason."""
    wait_asked(jobs)
    jobs.create('a')
    wait_told(jobs, 'FailedCreatePod', 'failed calling webhook "pods.team.example"')
    hook.up()
    jobs.wait_pods('a', 2)


def test_a_webhook_that_refuses(jobs, operator, hook):
    hook.allows = False
    hook.up()
    wait_asked(jobs)
    jobs.create('a')
    wait_told(jobs, 'FailedCreatePod', 'pods need the label team')
    hook.allows = True
    jobs.wait_pods('a', 2)


def test_a_webhook_that_is_slow(own, jobs, operator, hook):
    """The pods wait, of more jobs than an operator works on at the same time; a job of another namespace does not wait."""
    wait_asked(jobs)
    hook.may_answer.clear()
    hook.up()
    other = Jobs(own, own.namespace('beside-the-slow-one'))
    own.request('POST', other.at('serviceaccounts'), {'metadata': {'name': 'default'}})
    config = operator.words[operator.words.index('--kubeconfig') + 1]
    assert operator.end() == 0
    second = Operator(config).start().wait_ready()  # for all namespaces
    try:
        for number in range(JOBS_HELD_UP):
            jobs.create(f'a-{number}')
        wait_for(lambda: len(hook.names) >= HELD_UP, 'as many requests are held up as a namespace may have')
        other.create('b')
        other.wait_pods('b', 2)
        assert not jobs.list('pods')
        hook.may_answer.set()
        for number in range(JOBS_HELD_UP):
            jobs.wait_pods(f'a-{number}', 2)
        assert second.end() == 0
    finally:
        second.close()


def test_events_are_forbidden(jobs, operator, without):
    """The log reports it once, not once for each event; the job runs."""
    without('events', 'create')
    for name in 'abc':
        jobs.create(name, workers=3)
        jobs.wait_pods(name, 4)
    wait_for(lambda: tries(operator) >= 24, 'all events were refused')
    said = [line['message'] for line in operator.lines() if line['event'] == 'controller.event']
    assert len(said) == 1 and 'cannot create resource "events"' in said[0]
    without.give_back()
    jobs.create('d')
    jobs.wait_pods('d', 2)
    wait_for(lambda: jobs.reasons('d'), 'events come again')


@pytest.mark.parametrize('resource, verb, reason', [('pods', 'create', 'FailedCreatePod'), ('services', 'create', 'FailedCreateService'),
                                                    ('pytorchjobs/status', 'update', 'FailedUpdateJobStatus')])
def test_a_verb_is_lost(jobs, operator, without, resource, verb, reason):
    """The lost right is reported by an event; this matters most if the status cannot be written, because the job shows nothing else."""
    without(resource, verb)
    jobs.create('a')
    told = wait_told(jobs, reason, f'cannot {verb} resource "{resource}"')
    assert told['type'] == 'Warning'
    wait_for(lambda: operator.said('controller.retry', f'cannot {verb}'), 'it is logged')
    without.give_back()
    jobs.wait_pods('a', 2)


def test_the_right_to_delete_is_lost(jobs, operator, without):
    jobs.create('a', policy='ExitCode')
    before = jobs.wait_pods('a', 2)['a-worker-0']['metadata']['uid']
    jobs.set_phases('a', 'Running')
    jobs.wait_condition('a', 'Running')
    without('pods', 'delete')
    jobs.set_phase('a-worker-0', 'Failed', 137)
    wait_told(jobs, 'FailedDeletePod', 'cannot delete resource "pods"')
    without.give_back()
    wait_for(lambda: (jobs.get('a-worker-0', 'pods') or {'metadata': {'uid': before}})['metadata']['uid'] != before, 'the worker is made again')
    jobs.set_phases('a', 'Running')
    assert jobs.get('a')['status']['counters']['failures'] == 1
