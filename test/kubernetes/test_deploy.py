"""deploy/ on a real API server: the output of `muster deploy --print`, which jobs the definition accepts and refuses, and which account may do
what."""
import base64
import copy
import json
import pathlib
import re
import shutil
import subprocess
import urllib.error

import pytest

from cluster import Cluster
from kubectl import Kubectl
from pages import read_blocks, read_commands, type_line
from program import BUILD, LIMIT_S, SOURCE, wait_for

OVERLAYS = sorted(folder.name for folder in (SOURCE / 'deploy/overlays').iterdir())
OPERATOR = 'system:serviceaccount:muster-system:muster-operator'
JOBS = '/apis/kubeflow.org/v1/namespaces/default/pytorchjobs'


@pytest.fixture(scope='module')
def own():
    """A cluster for this file alone, because this file and others install the definition."""
    with Cluster() as running:
        yield running


@pytest.fixture(scope='module')
def kubectl(own):
    return Kubectl(own.kubeconfig)


def printed(overlay, *words):
    """Returns the output of `muster deploy --print`, as {(kind, name): object}."""
    done = subprocess.run([BUILD / 'bin/muster', 'deploy', '--print', '--overlay', overlay, '-o', 'json', *words], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return named(json.loads(done.stdout)['items'])


def named(objects):
    return {(o['kind'], o['metadata']['name']): o for o in objects}


def as_list(objects):
    return json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': list(objects.values())})


def served(own):
    try:
        return own.request('GET', JOBS)
    except urllib.error.HTTPError as refused:
        assert refused.code in (404, 429), refused  # 429: not ready yet
        return None


@pytest.fixture(scope='module')
def installed(own, kubectl):
    kubectl('apply', '--server-side', '-f', '-', text=as_list(printed('cluster')))
    wait_for(lambda: served(own), 'jobs are served')


def rank(**more):
    return {'template': {'spec': {'containers': [{'name': 'pytorch', 'image': 'trainer', 'command': ['true']}]}}, **more}


def job(name='a', **spec):
    return {'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': name},
            'spec': {'pytorchReplicaSpecs': {'Master': rank(replicas=1), 'Worker': rank(replicas=2)}, **spec}}


def changed(path, value):
    made = job()
    *parents, last = path.split('.')
    at = made['spec']
    for name in parents:
        at = at[int(name) if name.isdigit() else name]
    at[last] = value
    return made


def refusal(own, body, method='POST', path=f'{JOBS}?dryRun=All&fieldValidation=Strict', **more):
    try:
        own.request(method, path, body, **more)
    except urllib.error.HTTPError as refused:
        return json.loads(refused.read())['message']
    return None


# --- what is printed, and applied ---

@pytest.mark.parametrize('overlay', OVERLAYS)
def test_what_is_printed_is_what_kustomize_makes(kubectl, overlay):
    assert made_by_kustomize(kubectl, SOURCE / 'deploy/overlays' / overlay) == printed(overlay)


def made_by_kustomize(kubectl, folder):
    made = kubectl('kustomize', str(folder))
    return named(documents(kubectl('create', '--dry-run=client', '--validate=false', '-o', 'json', '-f', '-', text=made)))


def documents(text):
    """Yields the objects of JSON documents that follow each other, as kubectl prints them for a stream of YAML."""
    while text.strip():
        document, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        yield from document.get('items', [document])


@pytest.mark.parametrize('overlay', OVERLAYS)
def test_an_overlay_is_accepted(installed, kubectl, overlay):
    kubectl('apply', '--server-side', '--dry-run=server', '--force-conflicts', '-f', '-', text=as_list(printed(overlay)))


def test_a_namespace_and_an_image_may_be_chosen(kubectl):
    objects = printed('namespaced', '--namespace', 'team-a', '--image', 'registry.test/muster:2')
    assert objects['Deployment', 'muster-operator']['spec']['template']['spec']['containers'][0]['image'] == 'registry.test/muster:2'
    assert {o['metadata'].get('namespace', 'team-a') for o in objects.values()} == {'team-a'}


def test_to_apply_twice_changes_nothing(installed, own, kubectl):
    objects = as_list(printed('cluster'))

    def versions():
        found = json.loads(kubectl('get', '-o', 'json', '-f', '-', text=objects))['items']
        return {(o['kind'], o['metadata']['name']): o['metadata']['resourceVersion'] for o in found}

    before = wait_for(lambda: versions() if served(own) else None, 'jobs are served')
    kubectl('apply', '--server-side', '-f', '-', text=objects)
    assert versions() == before


def test_a_folder_of_ones_own_names_the_image_of_a_registry(kubectl, tmp_path):
    """As in docs/deploy.md: kustomize makes what `muster deploy --print` prints with these options."""
    shutil.copytree(SOURCE / 'deploy', tmp_path / 'muster/deploy')
    (tmp_path / 'kustomization.yaml').write_text('\n'.join(read_blocks('deploy.md', language='yaml')[0]))
    assert made_by_kustomize(kubectl, tmp_path) == printed('cluster', '--image', 'registry.example/muster-operator:0.1.0', '--image-pull-secret', 'login')


def test_a_folder_of_ones_own_names_the_namespace(kubectl, tmp_path):
    shutil.copytree(SOURCE / 'deploy', tmp_path / 'muster/deploy')
    (tmp_path / 'kustomization.yaml').write_text('resources: [muster/deploy/overlays/namespaced]\nnamespace: team-a\n')
    assert made_by_kustomize(kubectl, tmp_path) == printed('namespaced', '--namespace', 'team-a')


@pytest.mark.parametrize('overlay', OVERLAYS)
def test_an_operator_of_a_newer_version_does_not_meet_the_one_before(overlay):
    """If no Lease ensures that only one operator works, the old pod is removed first."""
    spec = printed(overlay)['Deployment', 'muster-operator']['spec']
    one = {'maxSurge': 0, 'maxUnavailable': 1}
    assert '--leader-elect' in spec['template']['spec']['containers'][0]['args'] or spec['strategy']['rollingUpdate'] == one


# --- from one overlay to another ---

def publish(own):
    """Writes the certificate authority into the definition, as operators that serve webhooks do."""
    certificate = base64.b64encode(pathlib.Path(own.authority.file('ca.crt')).read_bytes()).decode()
    at = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org?fieldManager=muster'
    definition = own.request('GET', at)
    definition['spec']['conversion']['webhook']['clientConfig']['caBundle'] = certificate
    own.request('PUT', at, definition)


@pytest.mark.parametrize('applied', [['--server-side', '--force-conflicts'], []], ids=['by the server', 'by kubectl'])
def test_back_from_webhooks(installed, own, kubectl, applied):
    """Runs the page's commands after operators have written their certificate authority. Without the first two commands, the definition is refused,
    or no job can be created."""
    kubectl('apply', *applied, '-f', '-', text=as_list(printed('images')))
    publish(own)
    own_job = job(f'stays-{len(applied)}')
    assert 'failed calling webhook' in refusal(own, own_job)
    for command in read_commands('deploy.md', 'From one overlay to another'):
        type_line(own, command, None if applied else {'apply --server-side': 'apply'})
    assert refusal(own, own_job) is None
    definition = own.request('GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org')
    assert definition['spec']['conversion'] == {'strategy': 'None'} and [v['name'] for v in definition['spec']['versions']] == ['v1']
    left = {key for key in printed('images').keys() - printed('ha').keys() if kubectl.attempt('get', *key, '-n', 'muster-system').returncode == 0}
    assert left == set()


def make_namespace(kubectl, name):
    """Creates the namespace if it does not exist."""
    kubectl('apply', '--server-side', '-f', '-', text=json.dumps({'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': name}}))


def test_one_of_several_operators_is_removed(installed, own, kubectl):
    """The removal deletes the objects of one operator's namespace; objects that all operators share stay."""
    for name in ('team-a', 'team-c'):
        make_namespace(kubectl, name)
        kubectl('apply', '--server-side', '--force-conflicts', '-f', '-', text=as_list(printed('namespaced', '--namespace', name)))
    type_line(own, read_commands('deploy.md', 'Remove it')[-1])

    def are_there(name):
        return {key for key in printed('namespaced', '--namespace', name) if kubectl.attempt('get', *key, '-n', name).returncode == 0}
    assert are_there('team-c') == set(printed('namespaced'))
    assert {kind for kind, _ in set(printed('namespaced')) - are_there('team-a')} == {'Deployment', 'Service', 'ServiceAccount', 'RoleBinding'}


# --- what the definition takes ---

APART = {'alias-bomb': 'kubectl cannot read it', 'several': 'it makes its own namespace, which a dry run does not'}


def job_files():
    """Returns the files of v1 in which lint finds no error: upstream's, the tutorials' and muster's."""
    files = [*(SOURCE / 'examples').glob('*/*.yaml'), *(SOURCE / 'test/data/jobs').glob('*.yaml'), *(SOURCE / 'test/data/lint').glob('*.yaml')]
    expected = {f: f.with_suffix('.expected') for f in files}
    return [pytest.param(f, id=str(f.relative_to(SOURCE))) for f in sorted(files)
            if not re.search(r'v1beta|v1alpha', f.read_text(errors='replace')) and f.stem not in APART
            and not (expected[f].exists() and ': error: ' in expected[f].read_text())]


@pytest.mark.parametrize('file', job_files())
def test_what_lint_takes_is_taken(installed, kubectl, file):
    """The file is sent as `kubectl create` does: nulls are dropped, and also the fields of an old layout, with a warning."""
    kubectl('create', '--dry-run=server', '--validate=warn', '-f', str(file))


REFUSED = {
    'no replicas': ('pytorchReplicaSpecs', {}, 'spec.pytorchReplicaSpecs in body should have at least 1 properties'),
    'a type that is none': ('pytorchReplicaSpecs', {'Master': rank(), 'Wroker': rank()}, 'unknown replica type: use Master and Worker'),
    'two masters': ('pytorchReplicaSpecs.Master.replicas', 2, 'Master.replicas must be 1'),
    'no worker': ('pytorchReplicaSpecs.Worker.replicas', 0, 'Worker.replicas must be at least 1'),
    'a replica type without a value': ('pytorchReplicaSpecs.Worker', 'x', 'Worker: Invalid value: "string"'),
    'a policy that is none': ('pytorchReplicaSpecs.Master.restartPolicy', 'Sometimes', 'supported values: "Always", "OnFailure", "Never", "ExitCode"'),
    'no template': ('pytorchReplicaSpecs.Master', {'replicas': 1}, 'spec.pytorchReplicaSpecs.Master.template: Required value'),
    'no image': ('pytorchReplicaSpecs.Master.template.spec.containers', [{'name': 'pytorch'}], 'containers[0].image: Required value'),
    'an empty image': ('pytorchReplicaSpecs.Master.template.spec.containers.0.image', '', 'should be at least 1 chars long'),
    'a field that is none': ('pytorchReplicaSpecs.Master.template.spec.containers.0.argz', ['x'], 'unknown field "spec.pytorchReplicaSpecs.Master.templa'),
    'two containers of a name': ('pytorchReplicaSpecs.Master.template.spec.containers', [{'name': 'pytorch', 'image': 'a'}] * 2, 'Duplicate value'),
    'a port out of range': ('pytorchReplicaSpecs.Master.template.spec.containers.0.ports', [{'containerPort': 99999}], 'less than or equal to 65535'),
    'a quantity that is none': ('pytorchReplicaSpecs.Master.template.spec.containers.0.resources', {'limits': {'memory': '4GB'}}, 'limits.memory'),
    'a negative limit': ('runPolicy', {'backoffLimit': -1}, 'spec.runPolicy.backoffLimit: Invalid value: -1'),
    'a negative deadline': ('runPolicy', {'activeDeadlineSeconds': -1}, 'spec.runPolicy.activeDeadlineSeconds: Invalid value: -1'),
    'a manager that is none': ('runPolicy', {'managedBy': 'me'}, 'spec.runPolicy.managedBy: Unsupported value: "me"'),
    'an old layout': ('cleanPodPolicy', 'None', 'unknown field "spec.cleanPodPolicy"'),
    'a number where text is meant': ('nprocPerNode', 2, 'spec.nprocPerNode: Invalid value: "integer"'),
}


@pytest.mark.parametrize('case', REFUSED)
def test_what_is_wrong_is_refused_and_named(installed, own, case):
    path, value, said = REFUSED[case]
    message = refusal(own, changed(path, value))
    assert message and said in message, message


def test_some_fields_cannot_change(installed, own):
    first = own.request('POST', JOBS, job('fixed', runPolicy={'managedBy': 'kueue.x-k8s.io/multikueue', 'schedulingPolicy': {'queue': 'a'}}))
    for path, value, said in (('schedulingPolicy', {'queue': 'b'}, 'spec.runPolicy.schedulingPolicy.queue is immutable'),
                              ('managedBy', 'kubeflow.org/training-operator', 'spec.runPolicy.managedBy is immutable')):
        second = copy.deepcopy(first)
        second['spec']['runPolicy'][path] = value
        assert said in (refusal(own, second, 'PUT', f'{JOBS}/fixed') or '')


def test_defaults_columns_scale_and_status(installed, own, kubectl):
    made = own.request('POST', JOBS, job('whole', runPolicy={}))
    assert made['spec']['runPolicy'] == {'suspend': False}
    status = {'conditions': [{'type': 'Created', 'status': 'True'}, {'type': 'Running', 'status': 'True', 'lastUpdateTime': '2026-01-01T00:00:00Z'}],
              'replicaStatuses': {'Worker': {'active': 2, 'selector': 'a=b'}}, 'counters': {'failures': 1}, 'startTime': '2026-01-01T00:00:00Z'}
    written = own.request('PUT', f'{JOBS}/whole/status', {**made, 'status': status, 'spec': {}} | {'spec': made['spec']})
    assert written['status'] == status
    assert re.search(r'^NAME +STATE +AGE\nwhole +Running +\S+\n', kubectl('get', 'pytorchjob', 'whole'))
    scale = own.request('GET', f'{JOBS}/whole/scale')
    assert (scale['spec']['replicas'], scale['status']) == (2, {'replicas': 2, 'selector': 'a=b'})
    kubectl('scale', '--replicas=3', 'pytorchjob/whole')
    assert own.request('GET', f'{JOBS}/whole')['spec']['pytorchReplicaSpecs']['Worker']['replicas'] == 3


def test_two_owners_apply_one_job(installed, kubectl, own):
    """Environment variables are merged by name, as in a Pod."""
    for manager, name in (('a', 'A'), ('b', 'B')):
        applied = job('shared')
        applied['spec']['pytorchReplicaSpecs'] = {'Master': rank(replicas=1)}
        applied['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['env'] = [{'name': name, 'value': '1'}]
        kubectl('apply', '--server-side', '--field-manager', manager, '-f', '-', text=json.dumps(applied))
    env = own.request('GET', f'{JOBS}/shared')['spec']['pytorchReplicaSpecs']['Master']['template']['spec']['containers'][0]['env']
    assert [entry['name'] for entry in env] == ['A', 'B']


# --- who may do what ---

EVERYWHERE = {
    'pytorchjobs.kubeflow.org': 'delete get list patch watch', 'pytorchjobs.kubeflow.org/status': 'get patch update',
    'pytorchjobs.kubeflow.org/finalizers': 'update', 'pods': 'create delete get list watch', 'services': 'create delete get list watch',
    'persistentvolumeclaims': 'create get list watch', 'events': 'create get patch',
    'horizontalpodautoscalers.autoscaling': 'create delete get list patch update watch',
    'podgroups.scheduling.volcano.sh': 'create delete get list patch update watch',
    'podgroups.scheduling.x-k8s.io': 'create delete get list patch update watch',
}
HOOKS = 'validatingwebhookconfigurations.admissionregistration.k8s.io'
CLUSTER = {'nodes': 'get list watch', f'{HOOKS} [validator.training-operator.kubeflow.org]': 'get', f'{HOOKS} [muster-operator]': 'get',
           'deployments.apps [training-operator]': 'get', 'customresourcedefinitions.apiextensions.k8s.io [pytorchjobs.kubeflow.org]': 'get'}
ANYBODY = {'selfsubjectreviews.authentication.k8s.io', 'selfsubjectaccessreviews.authorization.k8s.io', 'selfsubjectrulesreviews.authorization.k8s.io'}


def rights(kubectl, who, namespace):
    """Returns everything that an account may do with resources, as {resource: verbs}."""
    found = {}
    for line in kubectl('auth', 'can-i', '--list', '--as', who, '-n', namespace).splitlines()[1:]:
        match = re.match(r'(\S+) +\[([^\]]*)\] +\[([^\]]*)\] +\[([^\]]*)\]', line)
        if match and match[1] not in ANYBODY:
            key = f'{match[1]} [{match[3]}]' if match[3] else match[1]
            found[key] = ' '.join(sorted(set(found.get(key, '').split()) | set(match[4].split())))
    return found


def test_the_operator_may_do_what_it_needs_and_nothing_else(installed, kubectl):
    assert rights(kubectl, OPERATOR, 'default') == EVERYWHERE | CLUSTER
    for words in (('create', 'secrets'), ('get', 'secrets'), ('create', 'pods', '--subresource=exec'), ('update', 'pods'), ('create', 'deployments.apps'), ('impersonate', 'users'),
                  ('create', 'pytorchjobs.kubeflow.org'), ('delete', 'persistentvolumeclaims'), ('create', 'clusterrolebindings'), ('delete', 'nodes')):
        assert kubectl.attempt('auth', 'can-i', *words, '--as', OPERATOR, '--all-namespaces').stdout.strip() == 'no', words


def test_of_two_operators_each_may_hold_their_lease(installed, kubectl):
    kubectl('apply', '--server-side', '--force-conflicts', '-f', '-', text=as_list(printed('ha')))
    lease = {'leases.coordination.k8s.io': 'create', 'leases.coordination.k8s.io [muster-operator]': 'get update'}
    assert rights(kubectl, OPERATOR, 'muster-system') == EVERYWHERE | CLUSTER | lease
    assert rights(kubectl, OPERATOR, 'default') == EVERYWHERE | CLUSTER


def test_webhooks_need_four_names_more(installed, kubectl):
    """The operator may write its Secret in its namespace, and the objects of the cluster that have a caBundle. The test takes these rights away
    again."""
    kubectl('apply', '--server-side', '--force-conflicts', '-f', '-', text=as_list(printed('ha')))
    before = rights(kubectl, OPERATOR, 'muster-system'), rights(kubectl, OPERATOR, 'default')
    added = as_list({key: o for key, o in printed('images').items() if key[1] == 'muster-operator-webhook' and 'Role' in key[0]})
    kubectl('apply', '--server-side', '-f', '-', text=added)
    try:
        cluster = {f'{HOOKS} [muster-operator]': 'get update', f'{HOOKS} [muster-operator-images]': 'get update',
                   'customresourcedefinitions.apiextensions.k8s.io [pytorchjobs.kubeflow.org]': 'get update'}
        assert rights(kubectl, OPERATOR, 'muster-system') == before[0] | cluster | {'secrets [muster-operator-webhook]': 'get update'}
        assert rights(kubectl, OPERATOR, 'default') == before[1] | cluster
    finally:
        kubectl('delete', '-f', '-', text=added)


def test_an_operator_of_one_namespace_may_do_nothing_in_another(installed, own, kubectl):
    for name in ('team-a', 'team-b'):
        make_namespace(kubectl, name)
    kubectl('apply', '--server-side', '--force-conflicts', '-f', '-', text=as_list(printed('namespaced', '--namespace', 'team-a')))
    who = 'system:serviceaccount:team-a:muster-operator'
    assert rights(kubectl, who, 'team-a') == EVERYWHERE
    assert rights(kubectl, who, 'team-b') == {}


def test_roles_of_users(installed, own, kubectl):
    """On a real cluster a controller adds these roles to admin, edit and view by their labels; the test binds them directly."""
    for role in ('admin', 'edit', 'view'):
        kubectl('create', 'rolebinding', f'users-{role}', f'--clusterrole=muster-pytorchjobs-{role}', f'--user={role}')
        found = own.request('GET', f'/apis/rbac.authorization.k8s.io/v1/clusterroles/muster-pytorchjobs-{role}')
        assert found['metadata']['labels'][f'rbac.authorization.k8s.io/aggregate-to-{role}'] == 'true'
    whole = 'create delete deletecollection get list patch update watch'
    jobs, status, scale = ('pytorchjobs.kubeflow.org' + part for part in ('', '/status', '/scale'))
    assert rights(kubectl, 'admin', 'default') == {jobs: whole, status: 'get patch update', scale: 'get patch update'}
    assert rights(kubectl, 'edit', 'default') == {jobs: whole, status: 'get', scale: 'get patch update'}
    assert rights(kubectl, 'view', 'default') == dict.fromkeys((jobs, status, scale), 'get list watch')


def test_rights_of_who_submits_elastic_jobs(own, kubectl):
    own.namespace('elastic')
    kubectl('apply', '-n', 'elastic', '-f', str(pathlib.Path(SOURCE) / 'deploy/elasticdl-rbac.yaml'))
    read = 'get list watch'
    assert rights(kubectl, 'system:serviceaccount:elastic:default', 'elastic') == {
        'pytorchjobs.kubeflow.org': 'create delete get list patch watch', 'pytorchjobs.kubeflow.org/scale': 'get patch update', 'secrets': 'create delete',
        'pods': read, 'pods/log': read, 'events': read}
    assert rights(kubectl, 'system:serviceaccount:elastic:elasticdl-coordinator', 'elastic') == {'leases.coordination.k8s.io': 'create get update'}
