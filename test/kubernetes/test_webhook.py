"""The webhooks of `muster operator` on a real API server: bad jobs are refused, images must be in a list, old versions are served, certificates are
renewed under load. deploy/overlays/images is installed as it is printed, and the operators run with its service account's rights; but no kube-proxy
runs here, so a URL replaces the Service, and leads to a balancer."""
import base64
import json
import ssl
import threading
import urllib.error

import pytest

from balancer import Balancer
from cluster import Cluster
from hostile import HOSTILE, TAKEN, rank, replicas
from jobs import Jobs, Operator, deployed, job, wait_served
from kubectl import Kubectl
from program import SOURCE, turns, wait_for

SYSTEM = 'muster-system'
HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org'
SECRET = f'/api/v1/namespaces/{SYSTEM}/secrets/muster-operator-webhook'
ALLOWED = '# of the tests\nnone\nok.example/team/\n'


def by_url(client, balancer):
    """Replaces the Service in a webhook's client configuration by the balancer's URL."""
    path = client.pop('service')['path']
    client['url'] = f'https://127.0.0.1:{balancer.port}{path}'


class Hooks:
    """A cluster with deploy/overlays/images, and operators that serve it."""

    def __init__(self, folder):
        self.cluster = Cluster()
        self.balancer = Balancer()
        self.allowed = folder / 'list'
        self.allowed.write_text(ALLOWED)
        self.operators = []

    def start(self):
        self.cluster.start()
        self.kubectl = Kubectl(self.cluster.kubeconfig)
        objects = deployed('--overlay', 'images')
        for each in objects:
            if each['kind'] == 'ValidatingWebhookConfiguration':
                for webhook in each['webhooks']:
                    by_url(webhook['clientConfig'], self.balancer)
            elif each['kind'] == 'CustomResourceDefinition':
                by_url(each['spec']['conversion']['webhook']['clientConfig'], self.balancer)
        self.kubectl('apply', '--server-side', '-f', '-', text=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects}))
        wait_served(self.cluster)
        token = self.cluster.request('POST', f'/api/v1/namespaces/{SYSTEM}/serviceaccounts/muster-operator/token',
                                     {'spec': {'expirationSeconds': 7200}})['status']['token']
        self.config = self.cluster.write_kubeconfig('operator', self.cluster.url, user={'token': token}, namespace=SYSTEM)
        return self

    def add(self, *words):
        """Starts another operator; it gets reviews once it is ready."""
        made = Operator(self.config, '--webhook-server-port=0', '--webhook-names=127.0.0.1', f'--image-allow-list={self.allowed}', *words,
                        env={'KUBEFLOW_NAMESPACE': ''})
        self.operators.append(made)
        made.start().wait_ready()
        self.balancer.ports.append(made.port('webhook-server-port'))
        return made

    def bundle(self, path, *way):
        """Returns the certificate authorities that an object names."""
        at = self.cluster.request('GET', path)
        for name in way:
            at = at[name]
        return base64.b64decode(at.get('caBundle', '')).decode()

    def bundles(self):
        return [self.bundle(f'{HOOKS}/muster-operator', 'webhooks', 0, 'clientConfig'),
                self.bundle(f'{HOOKS}/muster-operator-images', 'webhooks', 0, 'clientConfig'),
                self.bundle(DEFINITION, 'spec', 'conversion', 'webhook', 'clientConfig')]

    def secret(self):
        return {name: base64.b64decode(text).decode() for name, text in self.cluster.request('GET', SECRET).get('data', {}).items()}

    def end(self):
        self.balancer.ports.clear()
        while self.operators:
            running = self.operators.pop()
            assert running.process.poll() is not None or running.end() == 0, running.lines()[-3:]

    def close(self):
        for running in self.operators:
            running.close()
        self.balancer.close()
        self.cluster.close()


@pytest.fixture(scope='module')
def hooks(tmp_path_factory):
    made = Hooks(tmp_path_factory.mktemp('hooks'))
    try:
        made.start().add()
        yield made
        made.end()
    finally:
        made.close()


@pytest.fixture()
def jobs(hooks, request):
    name = ''.join(c if c.isalnum() else '-' for c in request.node.name.lower()).strip('-')[:50].rstrip('-')
    return Jobs(hooks.cluster, hooks.cluster.namespace(name))


def refusal(jobs, body, kind='jobs', method='POST', name='', part=''):
    """Returns the API server's message, or None if it accepts the request. An answer about a dead webhook is not a refusal."""
    try:
        jobs.cluster.request(method, jobs.at(kind, name) + part, body)
    except urllib.error.HTTPError as refused:
        text = json.loads(refused.read())['message']
        assert refused.code in (400, 403, 422) and 'failed calling webhook' not in text, (refused.code, text)
        return text
    return None


# --- certificates ---

def test_it_says_whose_its_certificate_is(hooks):
    """All objects name the same authorities; the server shows the Secret's certificate; no log has a key."""
    kept = hooks.secret()
    assert sorted(kept) == ['ca.crt', 'ca.key', 'tls.crt', 'tls.key']
    assert hooks.bundles() == [kept['ca.crt']] * 3
    assert ssl.get_server_certificate(('127.0.0.1', hooks.balancer.port)).strip() == kept['tls.crt'].strip()
    for running in hooks.operators:
        log = (running.folder / 'log').read_text()
        assert not any(line in log for name in ('ca.key', 'tls.key') for line in kept[name].splitlines()[1:-1])


# --- jobs ---

@pytest.mark.parametrize('number', range(len(HOSTILE)))
def test_a_hostile_job_is_a_message(hooks, jobs, number):
    """The definition or the webhook refuses the job; the operator continues to run."""
    says, spec = HOSTILE[number]
    said = refusal(jobs, {**job('a'), 'spec': spec})
    assert said and says in said, said
    assert hooks.operators[0].process.poll() is None


@pytest.mark.parametrize('number', range(len(TAKEN)))
def test_what_upstream_panics_on_runs(hooks, jobs, number):
    jobs.cluster.request('POST', jobs.at('jobs'), {**job('a'), 'spec': TAKEN[number]})
    jobs.wait_pods('a', 1)


def test_all_that_is_wrong_is_said_at_once_with_a_hint(hooks, jobs):
    body = job('a', template={'spec': {'containers': [{'name': 'trainer', 'image': 'none'}]}})
    said = hooks.kubectl.attempt('create', '-n', jobs.namespace, '-f', '-', text=json.dumps(body)).stderr
    assert said.startswith('The pytorchjobs "a" is invalid') or 'admission webhook "pytorchjobs.muster.dev" denied the request' in said, said
    assert said.count('one container must be called pytorch') == 2, said


def test_what_was_stored_before_can_still_be_labelled_and_deleted(hooks, jobs):
    """An unchanged job is not judged: users can still work with older objects."""
    at = f'{HOOKS}/muster-operator'
    before = hooks.cluster.request('GET', at)
    hooks.cluster.request('DELETE', at)
    bad = job('bad', template={'spec': {'containers': [{'name': 'other', 'image': 'none'}]}})
    wait_for(lambda: refusal(jobs, bad) is None, 'the API server has forgotten the webhook')
    for name in ('resourceVersion', 'uid', 'creationTimestamp', 'managedFields', 'generation'):
        before['metadata'].pop(name, None)
    hooks.cluster.request('POST', HOOKS, before)
    wait_for(lambda: refusal(jobs, {**bad, 'metadata': {'generateName': 'bad-'}}), 'the webhook is asked again')
    jobs.patch('bad', {'metadata': {'labels': {'a': 'b'}}})
    with pytest.raises(urllib.error.HTTPError):
        jobs.patch('bad', {'spec': {'nprocPerNode': '2'}})
    jobs.delete('bad')
    assert jobs.get('bad') is None


def test_a_good_job_is_taken_and_runs(jobs):
    jobs.create('a')
    jobs.wait_pods('a', 2)


# --- images ---

def pod(image, init=None, name='p'):
    spec = {'containers': [{'name': 'c', 'image': image}]}
    if init:
        spec['initContainers'] = [{'name': 'i', 'image': init}]
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': spec}


@pytest.fixture()
def listed(hooks, jobs):
    """Jobs of a namespace in which pods are judged, too."""
    hooks.cluster.request('PATCH', f'/api/v1/namespaces/{jobs.namespace}', {'metadata': {'labels': {'muster.dev/images': 'listed'}}},
                          'application/merge-patch+json')
    wait_for(lambda: refusal(jobs, pod('evil.example/x'), 'pods', part='?dryRun=All'), 'the label has an effect')
    return jobs


def test_images_of_jobs(jobs):
    foreign = replicas(Master=rank([{'name': 'pytorch', 'image': 'ok.example/other/a'}]))
    assert "'ok.example/other/a' is not among the images that may be run here" in refusal(jobs, {**job('a'), 'spec': foreign})
    spec = replicas(Master=rank([{'name': 'pytorch', 'image': 'ok.example/team/a:1'}]))
    spec['pytorchReplicaSpecs']['Master']['template']['spec']['initContainers'] = [{'name': 'i', 'image': 'evil.example/i'}]
    assert "initContainers[0].image: 'evil.example/i'" in refusal(jobs, {**job('a'), 'spec': spec})
    jobs.create('a')
    with pytest.raises(urllib.error.HTTPError) as refused:
        jobs.cluster.request('PATCH', jobs.at('jobs', 'a'),
                             [{'op': 'replace', 'path': '/spec/pytorchReplicaSpecs/Worker/template/spec/containers/0/image', 'value': 'evil.example/x'}],
                             'application/json-patch+json')
    assert refused.value.code == 403 and 'evil.example/x' in refused.value.read().decode()


def test_images_of_pods(listed):
    assert "spec.containers[0].image: 'evil.example/x'" in refusal(listed, pod('evil.example/x'), 'pods')
    assert "spec.initContainers[0].image: 'evil.example/i'" in refusal(listed, pod('none', init='evil.example/i'), 'pods')
    assert refusal(listed, pod('ok.example/team/a', init='none'), 'pods') is None
    with pytest.raises(urllib.error.HTTPError) as refused:
        listed.patch('p', {'spec': {'containers': [{'name': 'c', 'image': 'evil.example/x'}]}}, 'pods')
    assert refused.value.code == 403
    debug = {**listed.get('p', 'pods')}
    debug['spec']['ephemeralContainers'] = [{'name': 'd', 'image': 'evil.example/d'}]
    assert "spec.ephemeralContainers[0].image: 'evil.example/d'" in refusal(listed, debug, 'pods', 'PUT', 'p', '/ephemeralcontainers')
    debug['spec']['ephemeralContainers'][0]['image'] = 'ok.example/team/debug'
    assert refusal(listed, debug, 'pods', 'PUT', 'p', '/ephemeralcontainers') is None


def test_pods_of_other_namespaces_are_nobody_s_business(jobs):
    assert refusal(jobs, pod('evil.example/x'), 'pods') is None


def test_the_list_is_read_again(hooks, listed):
    """A list that cannot be read changes nothing."""
    try:
        hooks.allowed.write_text(ALLOWED + 'new.example/\n')
        wait_for(lambda: refusal(listed, pod('new.example/a', name='new'), 'pods') is None, 'the new list')
        hooks.allowed.write_text('a//b\n')
        wait_for(lambda: hooks.operators[0].said('webhook.files', 'is no pattern of images'), 'it is said')
        assert refusal(listed, pod('new.example/a', name='still'), 'pods') is None
    finally:
        hooks.allowed.write_text(ALLOWED)
    wait_for(lambda: refusal(listed, pod('new.example/a'), 'pods', part='?dryRun=All'), 'the list as it was')


def test_an_operator_can_start_where_none_answers(hooks):
    """Every namespace has the label, as after `kubectl label namespaces --all`."""
    hooks.kubectl('label', 'namespace', SYSTEM, 'muster.dev/images=listed')
    ports, hooks.balancer.ports[:] = list(hooks.balancer.ports), []
    try:
        made = json.loads(hooks.kubectl('create', '-n', SYSTEM, '--dry-run=server', '-o', 'json', '-f', '-', text=json.dumps(operators_pod())))
        assert made['spec']['serviceAccountName'] == 'muster-operator'
    finally:
        hooks.balancer.ports[:] = ports
        hooks.kubectl('label', 'namespace', SYSTEM, 'muster.dev/images-')


def operators_pod():
    """Returns an operator's pod, as its Deployment makes it."""
    spec = next(o for o in deployed() if o['kind'] == 'Deployment')['spec']['template']['spec']
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'operator'}, 'spec': spec}


# --- old versions ---

def test_an_old_job_is_stored_as_v1_and_runs(hooks, jobs):
    """The job is like that of the DDP tutorial, and kubectl creates it; both v1beta1 and v1beta2."""
    for version in ('v1beta1', 'v1beta2'):
        name = f'mnist-{version}'
        body = {**job(name), 'apiVersion': f'kubeflow.org/{version}'}
        body['spec']['cleanPodPolicy'] = 'All'
        if version == 'v1beta2':
            body['spec']['backoffLimit'] = 3
        hooks.kubectl('create', '-n', jobs.namespace, '-f', '-', text=json.dumps(body))
        stored = jobs.get(name)
        assert stored['apiVersion'] == 'kubeflow.org/v1' and stored['spec']['runPolicy']['cleanPodPolicy'] == 'All'
        assert stored['spec']['runPolicy'].get('backoffLimit') == (3 if version == 'v1beta2' else None)
        assert 'cleanPodPolicy' not in stored['spec']
        seen = json.loads(hooks.kubectl('get', f'pytorchjobs.{version}.kubeflow.org', name, '-n', jobs.namespace, '-o', 'json'))
        assert seen['apiVersion'] == f'kubeflow.org/{version}' and seen['spec']['cleanPodPolicy'] == 'All'
        jobs.wait_pods(name, 2)


@pytest.mark.parametrize('version', ['v1beta1', 'v1beta2'])
def test_the_files_of_the_ddp_tutorial_run(hooks, jobs, version):
    """`kubectl create -f` creates four pods with what the file gives each of them, and with the policies of its top level."""
    text = (SOURCE / 'test/seeds/data' / f'ddp-{version}.yaml').read_text().replace('example/mnist-ddp:1.0', 'ok.example/team/mnist-ddp:1.0')
    hooks.kubectl('create', '-n', jobs.namespace, '-f', '-', text=text)
    name = 'mnist-ddp' if version == 'v1beta1' else 'mnist-ddp-gpu'
    pods = jobs.wait_pods(name, 4)
    assert sorted(pods) == [f'{name}-master-0', *(f'{name}-worker-{at}' for at in range(3))]
    for pod in pods.values():
        container = pod['spec']['containers'][0]
        if version == 'v1beta1':
            assert {'name': 'kubeflow-gcfs', 'mountPath': '/mnt/kubeflow-gcfs'} in container['volumeMounts']
            assert {'name': 'kubeflow-gcfs', 'persistentVolumeClaim': {'claimName': 'kubeflow-gcfs'}} in pod['spec']['volumes']
        else:
            assert container['resources']['limits'] == {'nvidia.com/gpu': '1'}
    policy = {'cleanPodPolicy': 'None'} if version == 'v1beta1' else {'cleanPodPolicy': 'None', 'ttlSecondsAfterFinished': 600,
                                                                       'activeDeadlineSeconds': 300, 'backoffLimit': 2}
    stored = jobs.get(name)['spec']
    assert stored['runPolicy'].items() >= policy.items() and set(stored) == {'runPolicy', 'pytorchReplicaSpecs'}


def test_what_only_v1_has_survives_a_change_in_an_old_version(hooks, jobs):
    body = job('a', run={'suspend': True, 'activeDeadlineSeconds': 60})
    body['spec']['nprocPerNode'] = '2'
    jobs.cluster.request('POST', jobs.at('jobs'), body)
    before = jobs.get('a')['spec']
    for version in ('v1beta1', 'v1beta2'):
        kind = f'pytorchjobs.{version}.kubeflow.org'
        old = json.loads(hooks.kubectl('get', kind, 'a', '-n', jobs.namespace, '-o', 'json'))
        assert 'nprocPerNode' not in old['spec'] and 'muster.dev/v1-fields' in old['metadata']['annotations']
        old['spec']['cleanPodPolicy'] = version == 'v1beta1' and 'All' or 'Running'
        hooks.kubectl('replace', '-f', '-', text=json.dumps(old))
        after = jobs.get('a')
        assert after['spec'] == {**before, 'runPolicy': {**before['runPolicy'], 'cleanPodPolicy': old['spec']['cleanPodPolicy']}}
        assert 'muster.dev/v1-fields' not in after['metadata'].get('annotations', {})


def test_a_bad_old_job_is_refused_too(hooks, jobs):
    body = {**job('a', template={'spec': {'containers': [{'name': 'other', 'image': 'none'}]}}), 'apiVersion': 'kubeflow.org/v1beta2'}
    said = hooks.kubectl.attempt('create', '-n', jobs.namespace, '-f', '-', text=json.dumps(body))
    assert said.returncode != 0 and 'one container must be called pytorch' in said.stderr, said


# --- several operators, and new certificates ---

def test_two_operators_serve_one_certificate(hooks, jobs):
    """One operator makes the certificate, and the other reads it; when one ends, the other answers."""
    second = hooks.add('--leader-elect')
    for port in hooks.balancer.ports:
        assert ssl.get_server_certificate(('127.0.0.1', port)).strip() == hooks.secret()['tls.crt'].strip()
    hooks.balancer.ports[:] = [second.port('webhook-server-port')]
    assert 'Master' in refusal(jobs, {**job('a'), 'spec': replicas(Master=rank(replicas=0), Worker=rank())})
    hooks.balancer.ports[:] = [hooks.operators[0].port('webhook-server-port')]
    hooks.operators.remove(second)
    assert second.end() == 0
    assert 'pytorch' in refusal(jobs, {**job('a'), 'spec': replicas(Master=rank([{'name': 'x', 'image': 'none'}]))})


class Load:
    """Creates jobs and pods (in dry runs) as fast as one client can, and keeps the API server's messages about webhooks that did not answer."""

    def __init__(self, jobs):
        self.jobs, self.sent, self.failed, self.ended = jobs, 0, [], False
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def run(self):
        while not self.ended:
            for path, body in (('jobs', job('load')), ('pods', pod('none')), ('old', {**job('old'), 'apiVersion': 'kubeflow.org/v1beta1'})):
                at = self.jobs.at('jobs' if path == 'old' else path).replace('/v1/', '/v1beta1/' if path == 'old' else '/v1/')
                try:
                    self.jobs.cluster.request('POST', f'{at}?dryRun=All', body)
                except (OSError, urllib.error.HTTPError) as wrong:
                    self.failed.append(wrong.read().decode() if isinstance(wrong, urllib.error.HTTPError) else repr(wrong))
                self.sent += 1

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()


@pytest.mark.heavy
def test_certificates_are_renewed_under_load(hooks, listed):
    """Two operators have certificates that live for 24 s: authority, certificate and list change again and again, and no request fails."""
    hooks.end()
    hooks.cluster.request('PUT', SECRET, {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'muster-operator-webhook'}})
    for words in (('--leader-elect',), ('--leader-elect',)):
        hooks.add('--webhook-certificate-life=24s', *words)
    wait_for(lambda: hooks.bundles() == [hooks.secret().get('ca.crt')] * 3, 'the new authority is known')
    wait_for(lambda: refusal(listed, pod('evil.example/x'), 'pods', part='?dryRun=All'), 'the API server has read it')
    seen = {'authorities': set(), 'certificates': set(), 'both': False}

    def enough():
        kept = hooks.secret()
        listed_authorities = kept['ca.crt'].split('-----END')
        seen['authorities'].add(kept['ca.key'])
        seen['certificates'].add(kept['tls.crt'])
        seen['both'] = seen['both'] or len(listed_authorities) > 2
        return len(seen['authorities']) > 1 and len(listed_authorities) == 2
    with Load(listed) as load:
        wait_for(enough, 'an authority has come, and the one before is gone', limit_s=150)
    assert load.failed == [] and load.sent > 100
    assert seen['both'] and len(seen['certificates']) > 4
    assert len({running.process.pid for running in hooks.operators if running.process.poll() is None}) == 2
    print(f'{load.sent} requests, {len(seen["certificates"])} certificates, {len(seen["authorities"])} authorities')


def test_certificate_files_are_read_again(hooks, jobs, tmp_path):
    """The files come from outside; the operator then writes nothing into the cluster."""
    hooks.end()
    authority = hooks.cluster.authority
    for number in range(2):
        authority.issue(f'hook-{number}', '/CN=hook', 'subjectAltName=IP:127.0.0.1')

    def put(number):
        for here, there in (('crt', 'tls.crt'), ('key', 'tls.key')):
            (tmp_path / there).write_bytes((hooks.cluster.folder / f'hook-{number}.{here}').read_bytes())

    def shown():
        return ssl.get_server_certificate(('127.0.0.1', hooks.balancer.ports[0])).strip()
    before = hooks.cluster.request('GET', SECRET)['metadata']['resourceVersion']
    put(0)
    hooks.add(f'--webhook-cert-path={tmp_path}')
    assert shown() in (tmp_path / 'tls.crt').read_text()
    put(1)
    wait_for(lambda: shown() in (tmp_path / 'tls.crt').read_text(), 'the new certificate')
    assert hooks.cluster.request('GET', SECRET)['metadata']['resourceVersion'] == before


def test_it_costs_little(hooks):
    """An operator with webhooks needs at most 3 MiB more memory than one without."""
    hooks.end()
    with_hooks = hooks.add().metrics()['process_resident_memory_bytes']
    plain = Operator(hooks.config, env={'KUBEFLOW_NAMESPACE': ''})
    try:
        without = plain.start().wait_ready().metrics()['process_resident_memory_bytes']
    finally:
        plain.close()
    print(f'{with_hooks / 1e6:.1f} MB with webhooks, {without / 1e6:.1f} MB without')
    assert with_hooks < without + (3 << 20)
