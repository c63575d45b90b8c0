"""Rare requests of clients of the Kubernetes API, each test against the embedded cluster and a real API server: the answers are the same, and
so is each word of the errors.
"""
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from client_programs import SOURCES, sdk_python
from kubectl import Kubectl
from program import LIMIT_S, wait_for
from raw import Raw
from test_verbs import BOTH, job, sides  # noqa: F401 (a fixture)

counter = itertools.count(1)
both = pytest.mark.parametrize('kind', BOTH)
APPLY, MERGE = 'application/apply-patch+yaml', 'application/merge-patch+json'
OPTIONS = '{}.meta.k8s.io "" is invalid: {}'
FAR = 999999999


class Place:
    """A namespace with the ConfigMap `a`."""

    def __init__(self, side):
        self.side = side
        self.raw = Raw(side)
        self.namespace = side.namespace(f'gaps-{next(counter)}')
        self.maps = self.path('configmaps')
        assert self.raw('POST', self.maps, config_map('a')).code == 201

    def path(self, plural):
        return f'/api/v1/namespaces/{self.namespace}/{plural}'


def config_map(name, **more):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name}, 'data': {'k': 'v'}, **more}


@pytest.fixture()
def place(sides, kind):  # noqa: F811
    return Place(sides(kind))


def is_refused(answer, code, reason, message):
    status = answer.json
    assert (answer.code, status['kind'], status.get('reason')) == (code, 'Status', reason), answer.text
    assert status['message'] == message
    return status.get('details')


# ---- causes ----

def pod_with(**spec):
    return 'pods', {'kind': 'Pod', 'spec': {'containers': [{'name': 'c', 'image': 'i'}], **spec}}


def container_with(**more):
    return pod_with(containers=[{'name': 'c', 'image': 'i', **more}])


def claim_with(**spec):
    return 'persistentvolumeclaims', {'kind': 'PersistentVolumeClaim',
                                      'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}, **spec}}


def map_named(name):
    return 'configmaps', {'kind': 'ConfigMap', 'metadata': {'name': name}}


@both
@pytest.mark.parametrize('made, field, reason', [
    (map_named(''), 'metadata.name', 'Required'),
    (map_named('A_b'), 'metadata.name', 'Invalid'),
    (map_named('a' * 254), 'metadata.name', 'Invalid'),
    (('configmaps', {'kind': 'ConfigMap', 'data': {'a b': 'c'}}), 'data[a b]', 'Invalid'),
    (pod_with(containers=[]), 'spec.containers', 'Required'),
    (pod_with(containers=[{'name': 'c'}]), 'spec.containers[0].image', 'Required'),
    (pod_with(containers=[{'image': 'i'}]), 'spec.containers[0].name', 'Required'),
    (pod_with(containers=[{'name': 'c', 'image': 'i'}] * 2), 'spec.containers[1].name', 'Duplicate'),
    (pod_with(restartPolicy='Perhaps'), 'spec.restartPolicy', 'NotSupported'),
    (pod_with(volumes=[{'name': 'v', 'hostPath': {}}]), 'spec.volumes[0].hostPath.path', 'Required'),
    (pod_with(volumes=[{'name': 'v', 'emptyDir': {}}] * 2), 'spec.volumes[1].name', 'Duplicate'),
    (container_with(imagePullPolicy='Perhaps'), 'spec.containers[0].imagePullPolicy', 'NotSupported'),
    (container_with(env=[{'name': ''}]), 'spec.containers[0].env[0].name', 'Required'),
    (container_with(volumeMounts=[{'name': 'v', 'mountPath': '/x'}]), 'spec.containers[0].volumeMounts[0].name', 'NotFound'),
    (container_with(ports=[{'containerPort': 70000}]), 'spec.containers[0].ports[0].containerPort', 'Invalid'),
    (claim_with(accessModes=[]), 'spec.accessModes', 'Required'),
], ids=lambda each: each if isinstance(each, str) else '')
def test_a_cause_is_known_by_its_field_and_reason(place, made, field, reason):
    """The sentences are muster's: programs use the field, the reason and the kind of the object."""
    plural, body = made
    answer = place.raw('POST', place.path(plural), {'apiVersion': 'v1', 'metadata': {'name': 'x'}, **body})
    details = answer.json['details']
    assert (answer.code, answer.json['reason'], details['kind']) == (422, 'Invalid', body['kind']), answer.text
    assert [(cause['field'], cause['reason']) for cause in details['causes']] == [(field, f'FieldValue{reason}')], answer.text


@both
@pytest.mark.parametrize('made, reason', [
    (('services', {'kind': 'Service', 'spec': {'selector': {'a': 'b'}}}), 'Required'),
    (('services', {'kind': 'Service', 'spec': {'selector': {'a': 'b'}, 'ports': []}}), 'Required'),
    (('persistentvolumeclaims', {'kind': 'PersistentVolumeClaim', 'spec': {'accessModes': ['ReadWriteOnce']}}), 'Required'),
    (claim_with(resources={'requests': {}}), 'Required'),
    (('configmaps', {'kind': 'ConfigMap', 'data': {'a': 'b'}, 'binaryData': {'a': 'Yg=='}}), 'Invalid'),
], ids=lambda each: each if isinstance(each, str) else each[1]['kind'])
def test_what_cannot_work_is_refused(place, made, reason):
    """A Service without ports, a claim without storage, and a key that appears twice are refused."""
    plural, body = made
    answer = place.raw('POST', place.path(plural), {'apiVersion': 'v1', 'metadata': {'name': 'x'}, **body})
    assert (answer.code, answer.json['reason'], answer.json['details']['kind']) == (422, 'Invalid', body['kind']), answer.text
    assert [cause['reason'] for cause in answer.json['details']['causes']] == [f'FieldValue{reason}'], answer.text


@both
def test_what_is_being_deleted_gets_no_finalizer_more(place):
    at = f'{place.maps}/held'
    place.raw('POST', place.maps, {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'held', 'finalizers': ['example.com/one']}})
    assert place.raw('DELETE', at).code == 200
    answer = place.raw('PATCH', at, {'metadata': {'finalizers': ['example.com/one', 'example.com/two', 'example.com/three']}}, MERGE)
    message = 'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/three", "example.com/two"}'
    causes = answer.json['details']['causes']  # the API server lists it twice
    expected = {'reason': 'FieldValueForbidden', 'field': 'metadata.finalizers', 'message': message}
    assert answer.code == 422 and all(cause == expected for cause in causes), answer.text
    assert place.raw('PATCH', at, {'data': {'a': 'b'}}, MERGE).code == 200
    assert place.raw('PATCH', at, {'metadata': {'finalizers': None}}, MERGE).code == 200
    assert place.raw('GET', at).code == 404


@both
def test_all_causes_are_told(place):
    plural, body = pod_with(containers=[{'name': 'c'}, {'image': 'i'}], restartPolicy='Perhaps')
    answer = place.raw('POST', place.path(plural), {'apiVersion': 'v1', 'metadata': {'name': 'x'}, **body})
    assert {cause['field']: cause['reason'] for cause in answer.json['details']['causes']} == {
        'spec.containers[0].image': 'FieldValueRequired', 'spec.containers[1].name': 'FieldValueRequired', 'spec.restartPolicy': 'FieldValueNotSupported'}


@both
@pytest.mark.parametrize('field, value', [('replicas', 'x'), ('template', [])])
def test_a_field_of_a_job_that_has_another_type(place, field, value):
    spec = {'template': {'spec': {'containers': [{'name': 'pytorch', 'image': 'i', 'command': ['true']}]}}, field: value}
    answer = place.raw('POST', f'/apis/kubeflow.org/v1/namespaces/{place.namespace}/pytorchjobs', {
        'apiVersion': 'kubeflow.org/v1', 'kind': 'PyTorchJob', 'metadata': {'name': 'x'}, 'spec': {'pytorchReplicaSpecs': {'Worker': spec}}})
    causes = {cause['field']: cause['reason'] for cause in answer.json['details']['causes']}
    assert (answer.code, causes[f'spec.pytorchReplicaSpecs.Worker.{field}']) == (422, 'FieldValueTypeInvalid'), answer.text


@both
def test_who_am_i(place):
    answer = place.raw('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {'kind': 'SelfSubjectReview', 'apiVersion': 'authentication.k8s.io/v1'})
    assert (answer.code, answer.json['kind']) == (201, 'SelfSubjectReview')
    assert answer.json['status']['userInfo']['username'] and 'system:masters' in answer.json['status']['userInfo']['groups']


# ---- options ----

FORBIDDEN = 'Forbidden: {}'
UNSUPPORTED = 'Unsupported value: {}: supported values: {}'
WITHOUT_VERSION = FORBIDDEN.format('resourceVersionMatch is forbidden unless resourceVersion is provided')
WITHOUT_EVENTS = FORBIDDEN.format('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
WITHOUT_MATCH = FORBIDDEN.format('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
WITH_CONTINUE = FORBIDDEN.format('resourceVersionMatch is forbidden when continue is provided')


@both
@pytest.mark.parametrize('query, causes', [
    ('resourceVersionMatch=Exact', [('resourceVersionMatch', 'FieldValueForbidden', WITHOUT_VERSION)]),
    ('resourceVersionMatch=Never&resourceVersion=1',
     [('resourceVersionMatch', 'FieldValueNotSupported', UNSUPPORTED.format('"Never"', '"Exact", "NotOlderThan", ""'))]),
    ('resourceVersionMatch=Exact&resourceVersion=0',
     [('resourceVersionMatch', 'FieldValueForbidden', FORBIDDEN.format('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))]),
    ('resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x', [('resourceVersionMatch', 'FieldValueForbidden', WITH_CONTINUE)]),
    ('sendInitialEvents=true', [('sendInitialEvents', 'FieldValueForbidden', FORBIDDEN.format('sendInitialEvents is forbidden for list'))]),
    ('watch=1&resourceVersionMatch=NotOlderThan', [('resourceVersionMatch', 'FieldValueForbidden', WITHOUT_EVENTS)]),
    ('watch=1&sendInitialEvents=true', [('resourceVersionMatch', 'FieldValueForbidden', WITHOUT_MATCH)]),
    ('watch=1&sendInitialEvents=false', [('resourceVersionMatch', 'FieldValueForbidden', WITHOUT_MATCH)]),
    ('watch=1&continue=x', [('resourceVersionMatch', 'FieldValueForbidden', WITH_CONTINUE)]),
    ('watch=1&sendInitialEvents=true&resourceVersionMatch=Exact',
     [('resourceVersionMatch', 'FieldValueForbidden', WITHOUT_MATCH),
      ('resourceVersionMatch', 'FieldValueNotSupported', UNSUPPORTED.format('"Exact"', '"NotOlderThan"'))]),
])
def test_options_of_a_list_that_contradict_each_other(place, query, causes):
    for method in ('GET',) if 'watch' in query else ('GET', 'DELETE'):
        words = [f'{field}: {message}' for field, _, message in causes]
        details = is_refused(place.raw(method, f'{place.maps}?{query}'), 422, 'Invalid',
                             OPTIONS.format('ListOptions', words[0] if len(words) == 1 else f'[{", ".join(words)}]'))
        assert (details['group'], details['kind']) == ('meta.k8s.io', 'ListOptions')
        assert details['causes'] == [{'field': field, 'reason': reason, 'message': message} for field, reason, message in causes]


MANAGER = 'Too long: may not be more than 128 bytes'
DRY_RUN = UNSUPPORTED.format('["All","x"]', '"All"')


@both
@pytest.mark.parametrize('method, name, kind_of, query, field, reason, message', [
    ('PATCH', '/s', 'PatchOptions', '', 'fieldManager', 'FieldValueRequired', 'Required value: is required for apply patch'),
    ('PATCH', '/s', 'PatchOptions', 'fieldManager=', 'fieldManager', 'FieldValueRequired', 'Required value: is required for apply patch'),
    ('POST', '', 'CreateOptions', f'fieldManager={"m" * 129}', 'fieldManager', 'FieldValueTooLong', MANAGER),
    ('PUT', '/a', 'UpdateOptions', f'fieldManager={"m" * 129}', 'fieldManager', 'FieldValueTooLong', MANAGER),
    ('POST', '', 'CreateOptions', 'dryRun=All&dryRun=x', 'dryRun', 'FieldValueNotSupported', DRY_RUN),
    ('DELETE', '/a', 'DeleteOptions', 'dryRun=All&dryRun=x', 'dryRun', 'FieldValueNotSupported', DRY_RUN),
    ('POST', '', 'CreateOptions', 'fieldValidation=Maybe', 'fieldValidation', 'FieldValueNotSupported',
     UNSUPPORTED.format('"Maybe"', '"", "Ignore", "Strict", "Warn"')),
])
def test_options_of_what_is_written(place, method, name, kind_of, query, field, reason, message):
    body = None if method == 'DELETE' else config_map(name[1:] or 'new')
    answer = place.raw(method, f'{place.maps}{name}?{query}', body, APPLY if method == 'PATCH' else 'application/json')
    details = is_refused(answer, 422, 'Invalid', OPTIONS.format(kind_of, f'{field}: {message}'))
    assert details == {'group': 'meta.k8s.io', 'kind': kind_of, 'causes': [{'field': field, 'reason': reason, 'message': message}]}
    assert [item['metadata']['name'] for item in place.raw('GET', place.maps).json['items'] if item['metadata']['name'] != 'kube-root-ca.crt'] == ['a']


@both
def test_a_merge_patch_cannot_be_forced(place):
    answer = place.raw('PATCH', f'{place.maps}/a?force=true', {'data': {'k': 'w'}}, MERGE)
    is_refused(answer, 422, 'Invalid', OPTIONS.format('PatchOptions', 'force: Forbidden: may not be specified for non-apply patch'))


@both
@pytest.mark.parametrize('where', ['query', 'body'])
@pytest.mark.parametrize('options, message', [
    ({'propagationPolicy': 'Never'}, UNSUPPORTED.format('"Never"', '"Foreground", "Background", "Orphan", "nil"')),
    ({'propagationPolicy': 'Orphan', 'orphanDependents': True}, 'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set'),
])
def test_options_of_a_deletion_that_contradict_each_other(place, where, options, message):
    query = '&'.join(f'{name}={json.dumps(value).strip(chr(34))}' for name, value in options.items())
    answer = place.raw('DELETE', f'{place.maps}/a?{query}') if where == 'query' else place.raw('DELETE', f'{place.maps}/a', options)
    is_refused(answer, 422, 'Invalid', OPTIONS.format('DeleteOptions', f'propagationPolicy: {message}'))
    assert place.raw('GET', f'{place.maps}/a').code == 200


@both
@pytest.mark.parametrize('body', [{'gracePeriodSeconds': 'x'}, {'kind': 'Pod', 'apiVersion': 'v1'}, []], ids=str)
def test_what_is_no_body_of_a_deletion_deletes_nothing(place, body):
    answer = place.raw('DELETE', f'{place.maps}/a', body)
    assert (answer.code, answer.json['reason']) == (400, 'BadRequest')
    assert place.raw('GET', f'{place.maps}/a').code == 200


@both
@pytest.mark.parametrize('name, field, then', [('UID', 'uid', 'deleted and then recreated'), ('ResourceVersion', 'resourceVersion', 'modified')])
def test_preconditions_of_a_deletion_are_held(place, name, field, then):
    has = place.raw('GET', f'{place.maps}/a').json['metadata'][field]
    answer = place.raw('DELETE', f'{place.maps}/a', {'preconditions': {field: '1'}})
    assert (answer.code, answer.json['reason']) == (409, 'Conflict')
    assert answer.json['message'].endswith(f'the {name} in the precondition (1) does not match the {name} in record ({has}). '
                                           f'The object might have been {then}'), answer.text
    assert place.raw('DELETE', f'{place.maps}/a', {'preconditions': {field: has}}).code == 200


@both
def test_a_body_of_a_deletion_counts_before_the_query(place):
    assert place.raw('DELETE', f'{place.maps}/a?gracePeriodSeconds=x&propagationPolicy=Never', {'propagationPolicy': 'Background'}).code == 200
    assert place.raw('GET', f'{place.maps}/a').code == 404


# ---- resourceVersion ----

@both
@pytest.mark.parametrize('name, query', [('', f'resourceVersion={FAR}'), ('', f'resourceVersion={FAR}&resourceVersionMatch=Exact'),
                                         ('', f'resourceVersion={FAR}&resourceVersionMatch=NotOlderThan'), ('/a', f'resourceVersion={FAR}')])
def test_a_version_that_is_yet_to_come(place, name, query):
    answer = place.raw('GET', f'{place.maps}{name}?{query}')
    status = answer.json
    assert (answer.code, status['reason'], answer.headers['Retry-After']) == (504, 'Timeout', '1')
    assert status['message'].startswith(f'Timeout: Too large resource version: {FAR}, current: ')
    assert status['details'] == {'causes': [{'reason': 'ResourceVersionTooLarge', 'message': 'Too large resource version'}], 'retryAfterSeconds': 1}


@both
def test_a_version_that_is_no_number(place):
    answer = place.raw('GET', f'{place.maps}?resourceVersion=x')
    assert (answer.code, answer.json['reason']) == (400, 'BadRequest')
    assert answer.json['message'].startswith('invalid resource version: resourceVersion: Invalid value: "x": ')


@both
def test_a_list_of_exactly_a_version(place):
    version = place.raw('GET', place.maps).json['metadata']['resourceVersion']
    assert place.raw('POST', place.path('secrets'), {'metadata': {'name': 's'}}).code == 201
    listed = place.raw('GET', f'{place.maps}?resourceVersion={version}&resourceVersionMatch=Exact').json
    assert listed['metadata']['resourceVersion'] == version and 'a' in [item['metadata']['name'] for item in listed['items']]


@pytest.mark.parametrize('kind', BOTH[:1])
def test_an_older_state_is_not_kept(place):
    """A real API server keeps an older state for five minutes, and gives the same answer after that."""
    version = place.raw('GET', place.maps).json['metadata']['resourceVersion']
    place.raw('POST', place.maps, config_map('b'))
    answer = place.raw('GET', f'{place.maps}?resourceVersion={version}&resourceVersionMatch=Exact')
    is_refused(answer, 410, 'Expired', 'The resourceVersion for the provided list is too old.')


def watched(place, query):
    """Returns the events of a watch of one second."""
    lines = place.raw('GET', f'{place.maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a&{query}').lines
    return [(line['type'], line['object']['metadata'].get('name')) for line in lines]


@both
def test_initial_events_are_sent_where_they_are_asked_for(place):
    version = place.raw('GET', place.maps).json['metadata']['resourceVersion']
    ask = 'resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    assert watched(place, f'{ask}&sendInitialEvents=true&resourceVersion={version}')[:2] == [('ADDED', 'a'), ('BOOKMARK', None)]
    assert ('ADDED', 'a') not in watched(place, f'{ask}&sendInitialEvents=false')
    assert watched(place, '')[:1] == [('ADDED', 'a')]


# ---- the form of an answer ----

def form(name, version='v1', kind='application/json'):
    return f'{kind};as={name};g=meta.k8s.io;v={version}'


PARTIAL, PARTIAL_LIST, TABLE = (form(name) for name in ('PartialObjectMetadata', 'PartialObjectMetadataList', 'Table'))
PROTOBUF = 'application/vnd.kubernetes.protobuf'
SERVED = ['configmaps', 'events', 'persistentvolumeclaims', 'pods', 'secrets', 'services']


@both
@pytest.mark.parametrize('version', ['v1', 'v1beta1'])
def test_metadata_alone(place, version):
    """The requests of metadata.k8s.io clients in Go (informers of garbage collectors, Argo, Velero) get metadata alone; they prefer protobuf, which
    muster does not speak."""
    whole = place.raw('GET', f'{place.maps}/a').json
    one = place.raw('GET', f'{place.maps}/a', accept=f'{form("PartialObjectMetadata", version)},application/json').json
    assert one == {'kind': 'PartialObjectMetadata', 'apiVersion': f'meta.k8s.io/{version}', 'metadata': whole['metadata']}
    listed = place.raw('GET', place.maps, accept=f'{form("PartialObjectMetadataList", version)},application/json').json
    assert (listed['kind'], listed['apiVersion']) == ('PartialObjectMetadataList', f'meta.k8s.io/{version}')
    assert one in listed['items'] and all(set(item) == {'kind', 'apiVersion', 'metadata'} for item in listed['items'])
    told = place.raw('GET', f'{place.maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a', accept=form('PartialObjectMetadata', version)).lines
    assert told[0] == {'type': 'ADDED', 'object': one}


@both
def test_metadata_of_what_is_written(place):
    made = place.raw('POST', place.maps, config_map('b'), accept=PARTIAL).json
    assert made['kind'] == 'PartialObjectMetadata' and 'data' not in made
    patched = place.raw('PATCH', f'{place.maps}/b', {'metadata': {'labels': {'l': 'v'}}}, MERGE, PARTIAL).json
    assert patched['kind'] == 'PartialObjectMetadata' and patched['metadata']['labels'] == {'l': 'v'}
    assert place.raw('DELETE', f'{place.maps}/b', accept=PARTIAL).json['status'] == 'Success'


@both
@pytest.mark.parametrize('plural', [*SERVED, 'pytorchjobs', 'events.k8s.io'])
def test_every_kind_has_each_form(place, plural):
    path = {'pytorchjobs': f'/apis/kubeflow.org/v1/namespaces/{place.namespace}/pytorchjobs',
            'events.k8s.io': f'/apis/events.k8s.io/v1/namespaces/{place.namespace}/events'}.get(plural, place.path(plural))
    assert place.raw('GET', path, accept=PARTIAL_LIST).json['kind'] == 'PartialObjectMetadataList'
    table = place.raw('GET', path, accept=f'{TABLE},application/json').json
    assert table['kind'] == 'Table' and table['columnDefinitions'][0]['type'] == 'string'
    for scope in ('namespaces', 'nodes'):
        assert place.raw('GET', f'/api/v1/{scope}', accept=PARTIAL_LIST).json['kind'] == 'PartialObjectMetadataList'


@both
def test_rows_of_a_table_carry_what_is_asked_for(place):
    def row(include, version='v1'):
        table = place.raw('GET', f'{place.maps}/a{include}', accept=form('Table', version)).json
        assert table['apiVersion'] == f'meta.k8s.io/{version}'
        return table['rows'][0]
    assert row('')['object']['kind'] == row('?includeObject=Metadata')['object']['kind'] == 'PartialObjectMetadata'
    assert row('', 'v1beta1')['object']['apiVersion'] == 'meta.k8s.io/v1beta1'
    assert row('?includeObject=Object')['object']['data'] == {'k': 'v'}
    assert row('?includeObject=None').get('object') is None
    is_refused(place.raw('GET', f'{place.maps}?includeObject=All', accept=TABLE), 400, 'BadRequest',
               'Unable to convert to Table as requested: includeObject: Invalid value: "All": must be \'Metadata\', \'Object\', \'None\', or empty')


@both
@pytest.mark.parametrize('name, accept, message', [
    ('', PARTIAL, 'you requested PartialObjectMetadata, but the requested object is a list'),
    ('/a', PARTIAL_LIST, 'you requested PartialObjectMetadataList, but the requested object is not a list'),
    ('/a', form('Table', 'v2'), 'only the following media types are accepted: application/json'),
    ('/a', form('Other'), 'only the following media types are accepted: application/json'),
    ('/a', 'application/json;as=Table;g=other;v=v1', 'only the following media types are accepted: application/json'),
])
def test_a_form_that_is_not_to_be_had(place, name, accept, message):
    answer = place.raw('GET', place.maps + name, accept=accept)
    assert (answer.code, answer.json['reason']) == (406, 'NotAcceptable')
    assert answer.json['message'].startswith(message)


@both
@pytest.mark.parametrize('accept', ['text/html', 'application/xml'])
def test_a_media_type_that_nobody_speaks(place, accept):
    answer = place.raw('GET', f'{place.maps}/a', accept=accept)
    assert (answer.code, answer.json['reason']) == (406, 'NotAcceptable') and 'application/json' in answer.json['message']


@both
@pytest.mark.parametrize('accept', ['*/*', 'text/html, */*;q=0.8', f'{form("Other")}, application/json'])
def test_media_types_that_json_is_one_of(place, accept):
    answer = place.raw('GET', f'{place.maps}/a', accept=accept)
    assert answer.code == 200 and answer.json['data'] == {'k': 'v'}


@pytest.mark.parametrize('kind', BOTH[:1])
@pytest.mark.parametrize('media', ['application/*', 'Application/JSON', 'APPLICATION/Json;charset=UTF-8'])
def test_media_types_as_rfc_9110_has_them(place, media):
    """A real API server accepts only its own spelling."""
    assert place.raw('GET', f'{place.maps}/a', accept=media).code == 200
    if '*' not in media:
        assert place.raw('POST', place.maps, config_map('b'), media).code == 201


@pytest.mark.parametrize('kind', BOTH[:1])
def test_protobuf_is_not_spoken(place):
    """Clients that prefer protobuf accept JSON; a client that accepts nothing else gets an error."""
    first = f'{form("PartialObjectMetadata", kind=PROTOBUF)},{PARTIAL},application/json'
    assert place.raw('GET', f'{place.maps}/a', accept=first).json['kind'] == 'PartialObjectMetadata'
    answer = place.raw('GET', f'{place.maps}/a', accept=PROTOBUF)
    is_refused(answer, 406, 'NotAcceptable', 'only the following media types are accepted: application/json')


# ---- what may not change ----

POD_FIELDS = ('Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,'
              '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` '
              '(allow it to be set to 1 if it was previously negative)')
CONTAINERS = 'Pod "p" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers'
DEADLINE = 'Pod "p" is invalid: spec.activeDeadlineSeconds: Invalid value: {}'


@pytest.fixture()
def pod(place):
    """Creates a pod on a node that does not exist, so that nothing runs it; returns its path."""
    spec = {'nodeName': 'nowhere', 'activeDeadlineSeconds': 100, 'tolerations': [{'key': 'k', 'operator': 'Exists'}],
            'containers': [{'name': 'c', 'image': 'none', 'command': ['sleep', '1000']}]}
    assert place.raw('POST', place.path('pods'), {'metadata': {'name': 'p'}, 'spec': spec}).code == 201
    return place.path('pods') + '/p'


@both
@pytest.mark.parametrize('spec, message', [
    ({'containers': [{'name': 'c', 'image': 'none', 'command': ['sleep', '2']}]}, POD_FIELDS),
    ({'containers': [{'name': 'd', 'image': 'none', 'command': ['sleep', '1000']}]}, POD_FIELDS),
    ({'nodeName': 'other'}, POD_FIELDS), ({'nodeName': None}, POD_FIELDS), ({'restartPolicy': 'Never'}, POD_FIELDS),
    ({'terminationGracePeriodSeconds': 1}, POD_FIELDS), ({'tolerations': None}, 'Pod "p" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds'),
    ({'volumes': [{'name': 'v', 'emptyDir': {}}]}, POD_FIELDS),
    ({'containers': [{'name': 'c', 'image': 'none', 'command': ['sleep', '1000']}, {'name': 'd', 'image': 'none'}]}, CONTAINERS),
    ({'activeDeadlineSeconds': 200}, DEADLINE.format('200: must be less than or equal to previous value')),
    ({'activeDeadlineSeconds': None}, DEADLINE.format('null: must not update from a positive integer to nil value')),
])
def test_a_pod_stays_what_it_is(place, pod, spec, message):
    answer = place.raw('PATCH', pod, {'spec': spec}, MERGE)
    status = answer.json
    assert (answer.code, status['reason']) == (422, 'Invalid') and status['message'].startswith(message), status['message']
    kept = place.raw('GET', pod).json['spec']
    assert (kept['nodeName'], kept['containers'][0]['command'], len(kept['containers'])) == ('nowhere', ['sleep', '1000'], 1)


@both
def test_of_an_old_version_nothing_else_is_said(place, pod):
    old = place.raw('GET', pod).json
    assert place.raw('PATCH', pod, {'metadata': {'labels': {'l': 'v'}}}, MERGE).code == 200
    old['spec']['nodeName'] = 'other'
    is_refused(place.raw('PUT', pod, old), 409, 'Conflict', 'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your '
               'changes to the latest version and try again')


@both
def test_what_may_change_of_a_pod(place, pod):
    for spec in ({'containers': [{'name': 'c', 'image': 'other'}]}, {'activeDeadlineSeconds': 50},
                 {'tolerations': [{'key': 'k', 'operator': 'Exists'}, {'key': 'l', 'operator': 'Exists'}]}, {'volumes': []}):
        answer = place.raw('PATCH', pod, {'spec': spec}, 'application/strategic-merge-patch+json')
        assert answer.code == 200, answer.text
    whole = place.raw('GET', pod).json
    assert whole['spec']['activeDeadlineSeconds'] == 50 and len(whole['spec']['tolerations']) >= 2
    del whole['spec']['restartPolicy']  # a default value, which is set again
    del whole['metadata']['resourceVersion']
    whole['metadata']['labels'] = {'l': 'v'}
    answer = place.raw('PUT', pod, whole)
    assert answer.code == 200 and answer.json['spec']['restartPolicy'] == 'Always', answer.text


@both
@pytest.mark.parametrize('change', [{'immutable': False}, {'immutable': None}, {'data': {'k': 'w'}}, {'binaryData': {'b': 'Yg=='}}])
@pytest.mark.parametrize('plural, name', [('configmaps', 'ConfigMap'), ('secrets', 'Secret')])
def test_what_is_immutable_stays_so(place, plural, name, change):
    if plural == 'secrets' and 'binaryData' in change:
        change = {'data': {'b': 'Yg=='}}
    made = {'metadata': {'name': 'fixed'}, 'immutable': True, 'data': {'k': 'dg=='}}
    assert place.raw('POST', place.path(plural), made).code == 201
    if change.get('data') == {'k': 'w'}:
        change = {'data': {'k': 'dw=='}}
    answer = place.raw('PATCH', f'{place.path(plural)}/fixed', change, MERGE)
    field = next(iter(change))
    details = is_refused(answer, 422, 'Invalid', f'{name} "fixed" is invalid: {field}: Forbidden: field is immutable when `immutable` is set')
    assert details['causes'][0]['reason'] == 'FieldValueForbidden'
    assert place.raw('PATCH', f'{place.path(plural)}/fixed', {'metadata': {'labels': {'l': 'v'}}}, MERGE).code == 200


@both
def test_the_type_of_a_secret_stays(place):
    place.raw('POST', place.path('secrets'), {'metadata': {'name': 's'}})
    answer = place.raw('PATCH', f'{place.path("secrets")}/s', {'type': 'other'}, MERGE)
    is_refused(answer, 422, 'Invalid', 'Secret "s" is invalid: type: Invalid value: "other": field is immutable')


@both
def test_the_spec_of_a_claim_stays(place):
    claims = place.path('persistentvolumeclaims')
    spec = {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}
    assert place.raw('POST', claims, {'metadata': {'name': 'c'}, 'spec': spec}).code == 201
    answer = place.raw('PATCH', f'{claims}/c', {'spec': {'accessModes': ['ReadWriteMany']}}, MERGE)
    assert (answer.code, answer.json['reason']) == (422, 'Invalid')
    assert answer.json['message'].startswith('PersistentVolumeClaim "c" is invalid: spec: Forbidden: spec is immutable after creation except '
                                             'resources.requests and volumeAttributesClassName for bound claims')


@both
def test_an_update_of_a_custom_resource_says_its_version(place):
    jobs = f'/apis/kubeflow.org/v1/namespaces/{place.namespace}/pytorchjobs'
    assert place.raw('POST', jobs, job('j', suspend=True)).code == 201
    made = place.raw('GET', f'{jobs}/j').json
    version = made['metadata'].pop('resourceVersion')
    answer = place.raw('PUT', f'{jobs}/j', made)
    assert (answer.code, answer.json['reason']) == (422, 'Invalid')
    field = answer.json['details']['causes'][0]
    assert field['field'] == 'metadata.resourceVersion' and 'must be specified for an update' in answer.json['message']
    made['metadata']['resourceVersion'] = version
    made['metadata']['labels'] = {'l': 'v'}
    answer = place.raw('PUT', f'{jobs}/j', made)
    assert answer.code in (200, 409), answer.text  # a controller may have written it first


# ---- the node ----

@pytest.mark.parametrize('kind', BOTH[:1])
def test_a_node_that_is_deleted_comes_back(place):
    """The node is this machine. A kubelet, too, registers itself when it starts again."""
    node = place.raw('GET', '/api/v1/nodes').json['items'][0]['metadata']
    assert place.raw('PATCH', f'/api/v1/nodes/{node["name"]}', {'spec': {'unschedulable': True}}, MERGE).code == 200
    assert place.raw('DELETE', f'/api/v1/nodes/{node["name"]}').code == 200

    def found():
        again = place.raw('GET', f'/api/v1/nodes/{node["name"]}')
        return again.json if again.code == 200 else None
    again = wait_for(found, 'the node is there again')
    assert again['metadata']['uid'] != node['uid'] and not again['spec'].get('unschedulable')
    spec = {'containers': [{'name': 'c', 'image': 'none', 'command': ['true']}], 'restartPolicy': 'Never'}
    place.raw('POST', place.path('pods'), {'metadata': {'name': 'p'}, 'spec': spec})
    wait_for(lambda: place.raw('GET', place.path('pods/p')).json['status']['phase'] == 'Succeeded', 'a pod runs')
    assert place.raw('DELETE', place.path('pods/p')).code == 200


# ---- the Python client ----

ECHO = """
import socket, sys
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    connection.sendall(b'got ' + connection.recv(100))
    connection.close()
"""


def python_client(place, *words):
    done = subprocess.run([sdk_python(), SOURCES / 'core.py', place.side.kubeconfig(place.namespace), place.namespace, *words], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@both
def test_the_python_client_reads_nodes_and_the_version(place):
    if hasattr(place.side, 'cluster'):
        info = {name: 'x' for name in ('bootID', 'containerRuntimeVersion', 'kernelVersion', 'kubeProxyVersion', 'kubeletVersion', 'machineID', 'osImage',
                                       'operatingSystem', 'systemUUID')}
        place.raw('POST', '/api/v1/nodes', {'metadata': {'name': 'n'}})
        place.raw('PATCH', '/api/v1/nodes/n/status', {'status': {'nodeInfo': {**info, 'architecture': 'amd64'}}}, MERGE)
    told = python_client(place, 'node')
    assert told['listed'] == told['read'] and told['read'][0] in ('amd64', 'arm64') and all(told['read'])
    assert all(told['version'].values()), told


# The real API server forwards to kubelets, which this test does not have.
@pytest.mark.parametrize('kind', BOTH[:1])
def test_the_python_client_runs_commands_and_forwards_ports(place):
    spec = {'containers': [{'name': 'c', 'image': 'none', 'command': [sys.executable, '-c', ECHO]}]}
    assert place.raw('POST', place.path('pods'), {'metadata': {'name': 'p'}, 'spec': spec}).code == 201

    def said():
        log = place.raw('GET', place.path('pods/p/log'), accept='*/*')
        return log.text.strip() if log.code == 200 else None
    port = wait_for(said, 'the rank says its port')
    told = python_client(place, 'streams', 'p', port)
    assert told == {'exec': 'out\nerr\n', 'code': 3, 'forwarded': 'got hello', 'error': None, 'refused': True}


# ---- kubectl ----

@pytest.fixture()
def kubectl(place):
    return Kubectl(place.side.kubeconfig(place.namespace))


@both
@pytest.mark.parametrize('path, words', [
    ('pods', ['spec', 'status', 'metadata']), ('pod.spec.containers', ['args', 'command', 'env', 'volumeMounts']), ('configmaps', ['binaryData', 'immutable']),
    ('secret', ['stringData', 'type']), ('services.spec', ['clusterIP', 'ports', 'selector']), ('services.spec.ports', ['targetPort', 'protocol']),
    ('pvc.spec', ['accessModes', 'storageClassName']), ('namespaces', ['metadata']), ('nodes.spec', ['unschedulable']), ('nodes.status', ['capacity', 'nodeInfo']),
    ('events', ['involvedObject', 'reason', 'message']), ('pytorchjobs.spec.runPolicy', ['backoffLimit', 'cleanPodPolicy']), ('deployments', ['apps']),
])
def test_fields_are_explained(kubectl, path, words):
    explained = kubectl('explain', path)
    assert all(word in explained for word in words), explained


@both
def test_fields_of_the_other_group_of_events_are_explained(kubectl):
    explained = kubectl('explain', 'events', '--api-version=events.k8s.io/v1')
    assert 'regarding' in explained and 'deprecatedCount' in explained and 'involvedObject' not in explained


@both
def test_a_dump_of_the_cluster_comes_to_its_end(place, kubectl, tmp_path):
    place.raw('POST', place.path('services'), {'metadata': {'name': 's'}, 'spec': {'clusterIP': 'None', 'ports': [{'port': 80}]}})
    kubectl('cluster-info', 'dump', '--namespaces', place.namespace, '--output-directory', tmp_path)
    made = {path.stem: json.loads(path.read_text())['items'] for path in (tmp_path / place.namespace).glob('*.json')}
    assert {'daemonsets', 'deployments', 'events', 'pods', 'replicasets', 'replication-controllers', 'services'} <= set(made)
    assert made['services'][0]['metadata']['name'] == 's' and not made['deployments']


@both
def test_apply_prunes_what_is_not_in_the_files(place, kubectl):
    two = [config_map(name, metadata={'name': name, 'labels': {'by': 'prune'}}) for name in ('one', 'two')]
    kubectl('apply', '-f', '-', text='\n'.join(map(json.dumps, two)))
    done = kubectl('apply', '--prune', '-l', 'by=prune', '-f', '-', text=json.dumps(two[0]))
    assert 'configmap/two pruned' in done
    assert place.raw('GET', f'{place.maps}/one').code == 200 and place.raw('GET', f'{place.maps}/two').code == 404


@both
@pytest.mark.parametrize('plural, group', [('deployments', 'apps/v1'), ('jobs', 'batch/v1'), ('horizontalpodautoscalers', 'autoscaling/v2')])
def test_kinds_that_only_a_cluster_has_can_be_listed(place, kubectl, plural, group):
    path = f'/apis/{group}/namespaces/{place.namespace}/{plural}'
    listed = place.raw('GET', path).json
    assert (listed['apiVersion'], listed['items']) == (group, [])
    is_refused(place.raw('GET', f'{path}/a'), 404, 'NotFound', f'{plural}.{group.partition("/")[0]} "a" not found')
    refused = kubectl.attempt('delete', f'{plural}.{group.partition("/")[0]}', 'a')
    assert f'Error from server (NotFound): {plural}.{group.partition("/")[0]} "a" not found' in refused.stderr
    assert place.raw('GET', f'{path}?watch=1&timeoutSeconds=1').code == 200


@pytest.mark.parametrize('kind', BOTH[:1])
def test_kinds_that_only_a_cluster_has_cannot_be_made(place, kubectl):
    deployment = {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'd'}}
    for words in (['create'], ['apply'], ['apply', '--server-side']):
        refused = kubectl.attempt(*words, '-f', '-', text=json.dumps(deployment))
        assert '(MethodNotAllowed)' in refused.stderr and 'there are no deployments here: what makes pods is a PyTorchJob' in refused.stderr
    place.raw('POST', f'/apis/kubeflow.org/v1/namespaces/{place.namespace}/pytorchjobs', job('j', suspend=True))
    refused = kubectl.attempt('autoscale', 'pytorchjob/j', '--min=1', '--max=3')
    assert 'there are no horizontalpodautoscalers here: kubectl scale pytorchjob NAME' in refused.stderr


@both
def test_all_and_a_service_are_shown_whole(place, kubectl):
    kubectl('create', '-f', '-', text=json.dumps({'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 's'},
                                                  'spec': {'clusterIP': 'None', 'ports': [{'name': 'p', 'port': 80}]}}))
    assert 'service/s' in kubectl('get', 'all')
    described = kubectl('describe', 'service', 's').split()
    assert described[described.index('TargetPort:') + 1] == '80/TCP' and described[described.index('Affinity:') + 1] == 'None'


@pytest.mark.parametrize('kind', BOTH[:1])
def test_debug_says_what_there_is_instead(place, kubectl):
    """kubectl panicked when a NotFound had no details, and when a pod had no security context."""
    spec = {'containers': [{'name': 'c', 'image': 'none', 'command': ['sleep', '1000']}]}
    place.raw('POST', place.path('pods'), {'metadata': {'name': 'p'}, 'spec': spec})
    refused = kubectl.attempt('debug', 'p', '--image=none')
    assert 'kubectl exec POD -- COMMAND runs a command in a rank' in refused.stderr and 'panic' not in refused.stderr
    for words in (['debug', 'p', '--image=none', '--copy-to=copy'], ['debug', 'gone', '--image=none']):
        assert 'panic' not in kubectl.attempt(*words).stderr
    assert place.raw('GET', place.path('pods/copy')).json['spec']['containers'][0]['command'] == ['sleep', '1000']
    kubectl('delete', 'pods', '--all', '--grace-period=1')


# ---- who does not read ----

WATCHERS, CHANGES, CHANGE_BYTES = 50, 8, 700_000


def watch_and_do_not_read(place):
    """Returns a connection that has read only the head of a watch."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(('127.0.0.1', place.raw.port))
    stream = place.raw.tls.wrap_socket(plain, server_hostname='127.0.0.1')
    stream.settimeout(LIMIT_S)
    token = place.raw.headers['Authorization']
    stream.sendall(f'GET {place.maps}?watch=1 HTTP/1.1\r\nHost: muster\r\nAuthorization: {token}\r\n\r\n'.encode())
    assert b' 200 ' in stream.recv(100)
    return stream


@pytest.mark.parametrize('kind', BOTH[:1])
def test_watchers_that_do_not_read_share_a_bound(place):
    pid = place.raw('GET', '/muster/v1/status').json['pid']

    def resident_bytes():
        return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    before = resident_bytes()
    held = [watch_and_do_not_read(place) for _ in range(WATCHERS)]
    for change in range(CHANGES):
        assert place.raw('PATCH', f'{place.maps}/a', {'data': {'k': f'{change}' * CHANGE_BYTES}}, MERGE).code == 200
        assert resident_bytes() - before < 150 << 20, 'unread events are kept'
    for stream in held:
        stream.close()
    assert place.raw('GET', f'{place.maps}/a').code == 200
