"""Server-side apply: which manager owns which fields, what is a conflict, and what is removed when no manager applies it any more. Each test
runs against both clusters."""
import itertools
import json

import pytest

from kubectl import Kubectl
from raw import Raw
from test_verbs import BOTH, job, sides  # noqa: F401 (a fixture)

counter = itertools.count(1)
both = pytest.mark.parametrize('kind', BOTH)
APPLY, MERGE = 'application/apply-patch+yaml', 'application/merge-patch+json'


class Applied:
    """An object in a separate namespace, which several managers write."""

    def __init__(self, side, plural='configmaps', group='/api/v1'):
        self.raw = Raw(side)
        self.namespace = side.namespace(f'owners-{next(counter)}')
        self.path = f'{group}/namespaces/{self.namespace}/{plural}/m'

    def apply(self, manager, body, force=False):
        return self.raw('PATCH', f'{self.path}?fieldManager={manager}{"&force=true" if force else ""}', body, APPLY)

    def merge(self, manager, body, part=''):
        return self.raw('PATCH', f'{self.path}{part}?fieldManager={manager}', body, MERGE)

    def put(self, manager, **changes):
        return self.raw('PUT', f'{self.path}?fieldManager={manager}', {**self.raw('GET', self.path).json, **changes})


@pytest.fixture()
def side(sides, kind):  # noqa: F811
    return sides(kind)


@pytest.fixture()
def applied(side):
    return Applied(side)


def config_map(labels=None, **data):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'm', **({'labels': labels} if labels else {})}, 'data': data}


def owners(answer):
    """Returns {(manager, operation): its fields}."""
    assert answer.code in (200, 201), answer.text
    return {(entry['manager'], entry['operation']): entry['fieldsV1'] for entry in answer.json['metadata'].get('managedFields', [])}


def data(**fields):
    return {'f:data': {f'f:{field}': {} for field in fields}}


def is_conflict(answer, message, *causes):
    status = answer.json
    assert (answer.code, status['reason'], status['message']) == (409, 'Conflict', message), answer.text
    assert sorted((cause['field'], cause['message'], cause['reason']) for cause in status['details']['causes']) == sorted(
        (field, says, 'FieldManagerConflict') for field, says in causes)


@both
def test_a_field_of_another_value_is_a_conflict_until_it_is_forced(applied):
    assert owners(applied.apply('one', config_map(a='1', b='1'))) == {('one', 'Apply'): data(a=1, b=1)}
    assert owners(applied.apply('two', config_map(a='1'))) == {('one', 'Apply'): data(a=1, b=1), ('two', 'Apply'): data(a=1)}
    is_conflict(applied.apply('two', config_map(a='2')), 'Apply failed with 1 conflict: conflict with "one": .data.a', ('.data.a', 'conflict with "one"'))
    forced = applied.apply('two', config_map(a='2'), force=True)
    assert owners(forced) == {('one', 'Apply'): data(b=1), ('two', 'Apply'): data(a=1)} and forced.json['data'] == {'a': '2', 'b': '1'}
    is_conflict(applied.apply('one', config_map(a='1', b='1')), 'Apply failed with 1 conflict: conflict with "two": .data.a',
                ('.data.a', 'conflict with "two"'))


@both
def test_what_is_applied_no_more_goes_where_nobody_else_owns_it(applied):
    applied.apply('one', config_map(a='1', b='1', c='1', labels={'x': 'y'}))
    applied.apply('two', config_map(b='1'))
    less = applied.apply('one', config_map(a='1'))
    assert less.json['data'] == {'a': '1', 'b': '1'} and 'labels' not in less.json['metadata']
    assert owners(less) == {('one', 'Apply'): data(a=1), ('two', 'Apply'): data(b=1)}


@both
@pytest.mark.parametrize('how', ['patch', 'put'])
def test_a_change_in_another_way_owns_what_it_changed(applied, how):
    applied.apply('one', config_map(a='1', b='1'))
    changed = applied.merge('edit', {'data': {'a': '9'}}) if how == 'patch' else applied.put('edit', data={'a': '9', 'b': '1'})
    assert owners(changed) == {('one', 'Apply'): data(b=1), ('edit', 'Update'): data(a=1)}
    is_conflict(applied.apply('one', config_map(a='1', b='1')), 'Apply failed with 1 conflict: conflict with "edit" using v1: .data.a',
                ('.data.a', 'conflict with "edit" using v1'))
    removed = applied.merge('edit', {'data': {'a': None}})
    assert owners(removed) == {('one', 'Apply'): data(b=1)}
    assert applied.apply('one', config_map(a='1', b='1')).json['data'] == {'a': '1', 'b': '1'}


@both
def test_several_conflicts_are_told_at_once(applied):
    applied.apply('one', config_map(a='1', b='1', c='1'))
    applied.merge('edit', {'data': {'a': '9'}})
    answer = applied.apply('two', config_map(a='2', b='2', c='2'))
    assert answer.json['message'].startswith('Apply failed with 3 conflicts: conflicts with "')
    assert sorted(answer.json['message'].partition(': ')[2].split('\n')) == sorted([
        'conflicts with "edit" using v1:', '- .data.a', 'conflicts with "one":', '- .data.b', '- .data.c'])


@both
def test_who_applies_the_same_again_changes_nothing(applied):
    first = applied.apply('one', config_map(a='1')).json['metadata']
    again = applied.apply('one', config_map(a='1')).json['metadata']
    assert (again['resourceVersion'], again['managedFields']) == (first['resourceVersion'], first['managedFields'])


@both
def test_owners_cannot_be_applied(applied):
    body = config_map(a='1')
    assert applied.apply('one', body).code == 201
    body['metadata']['managedFields'] = [{'manager': 'two', 'operation': 'Apply', 'apiVersion': 'v1', 'fieldsType': 'FieldsV1', 'fieldsV1': data(a=1)}]
    answer = applied.apply('one', body)
    assert (answer.code, answer.json['message']) == (400, 'metadata.managedFields must be nil')


@both
def test_a_scaled_job_is_not_scaled_back(side):
    applied = Applied(side, 'pytorchjobs', '/apis/kubeflow.org/v1')
    made = job('m', workers=2, suspend=True)
    assert applied.apply('one', made).code == 201
    assert applied.merge('kubectl', {'spec': {'replicas': 3}}, part='/scale').code == 200
    field = '.spec.pytorchReplicaSpecs.Worker.replicas'
    is_conflict(applied.apply('one', made), f'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using kubeflow.org/v1: {field}',
                (field, 'conflict with "kubectl" with subresource "scale" using kubeflow.org/v1'))
    assert applied.apply('one', made, force=True).json['spec']['pytorchReplicaSpecs']['Worker']['replicas'] == 2


@both
def test_a_status_that_is_written_is_no_conflict(side):
    applied = Applied(side, 'pytorchjobs', '/apis/kubeflow.org/v1')
    made = job('m', suspend=True)
    assert applied.apply('one', made).code == 201
    assert applied.merge('operator', {'status': {'startTime': '2026-01-01T00:00:00Z'}}, part='/status').code == 200
    assert applied.apply('one', made).code == 200
    assert applied.apply('two', {**made, 'status': {'startTime': '2027-01-01T00:00:00Z'}}).json['status']['startTime'] == '2026-01-01T00:00:00Z'


@both
def test_kubectl_says_who_owns_a_field_and_takes_it_over(side):
    namespace = side.namespace(f'owners-{next(counter)}')
    kubectl = Kubectl(side.kubeconfig(namespace))
    apply = ('apply', '--server-side', '-f', '-', '--field-manager')
    assert 'configmap/m serverside-applied' in kubectl(*apply, 'one', text=json.dumps(config_map(a='1')))
    refused = kubectl.attempt(*apply, 'two', text=json.dumps(config_map(a='2')))
    assert refused.returncode == 1 and 'conflict with "one": .data.a' in refused.stderr and '--force-conflicts' in refused.stderr
    kubectl(*apply, 'two', '--force-conflicts', text=json.dumps(config_map(a='2')))
    assert json.loads(kubectl('get', 'configmap', 'm', '-o', 'json'))['data'] == {'a': '2'}
