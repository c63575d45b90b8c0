"""Faulty bodies (faulty.py) to the embedded cluster and a real API server: the codes are the same, and so are the reasons and fields. The sentences
may differ."""
import json
import re

import pytest

import faulty
from raw import Raw
from test_verbs import BOTH, sides  # noqa: F401 (a fixture)

GROUPS = {'pytorchjobs': ('/apis/kubeflow.org/v1', 'kubeflow.org/v1')}
# A job that an API server accepts, and its operator refuses later: the embedded cluster refuses it at once.
OF_AN_OPERATOR = (422, 201)
# {body: (the embedded cluster's code, the real one's)}: docs/differences.md, "The embedded API and an API server".
CODES = {
    'claim: selector': (201, 422), 'claim: selector operator': (201, 422),  # the embedded cluster has nothing to select from
    'map: no value': (422, 201),
    'secret: account without a name': (201, 422),  # the embedded cluster has no accounts
    'pod: grace period below 0': (422, 201), 'pod: pull secret without a name': (422, 201),
    'pod: priority class': (201, 403), 'pod: preemption policy': (201, 403),  # the embedded cluster has no priorities
    **dict.fromkeys(('job: no containers', 'job: another container', 'job: elastic bounds', 'job: job name', 'job: request above the limit'), OF_AN_OPERATOR),
}
# Bodies for which the two report another field or another reason.
OWN_CAUSES = {
    'claim: no spec', 'claim: storage 0', 'claim: storage below 0', 'claim: data source without a name', 'map: too large', 'secret: key',
    'event: event time alone', 'pod: no spec', 'pod: container name of an init container', 'pod: container port 0',
    'pod: variable of a map without a name', 'pod: pod fields', 'pod: projection', 'pod: mount path twice', 'pod: folder size below 0',
    'pod: volume of two sources', 'pod: half a GPU', 'pod: resource that is none', 'pod: mounted part of the root', 'pod: mounted part going up', 'metadata: generated name',
    'metadata: owner without an ID', 'metadata: owner without a version', 'job: replicas below 0', 'job: replicas of text',
    'job: no template', 'job: no name',
}


@pytest.fixture(scope='module')
def answers(sides):  # noqa: F811
    """Returns {body: [the embedded cluster's answer, the real one's]}."""
    return {name: answer for name, *answer in zip(faulty.BODIES, *(list(send_all(sides(kind))) for kind in BOTH))}


def send_all(side):
    raw, namespace = Raw(side), side.namespace('faulty')
    for number, (plural, body) in enumerate(faulty.BODIES.values()):
        base, version = GROUPS.get(plural, ('/api/v1', 'v1'))
        sent = json.dumps({'apiVersion': version, 'metadata': {'name': f'x{number}'}, **body}).replace('{namespace}', namespace)
        yield raw('POST', f'{base}/namespaces/{namespace}/{plural}?dryRun=All', sent.encode())


def causes(answer):
    """Returns {(field, reason)}, with map[key] written as map.key. Causes of the real API server that are not about a field of the job are left
    out."""
    found = answer.json['details'].get('causes', []) if answer.code == 422 else []
    return {(re.sub(r'\[([^\]]*[^\]\d][^\]]*)\]', r'.\1', cause['field']), cause['reason']) for cause in found if cause['field'] != '<nil>'}


def fit(ours, theirs):
    """Whether each cause matches one of the other side; ours may be about a part of a map where theirs is about the whole map."""
    def is_same(one, other):
        return one[1] == other[1] and (one[0] == other[0] or one[0].startswith((f'{other[0]}.', f'{other[0]}[')))
    return all(any(is_same(one, other) for other in theirs) for one in ours) and all(any(is_same(one, other) for one in ours) for other in theirs)


@pytest.mark.parametrize('name', faulty.BODIES)
def test_both_clusters_answer_alike(answers, name):
    ours, theirs = answers[name]
    codes = ours.code, theirs.code
    assert codes == CODES.get(name, (theirs.code, theirs.code)), f'{ours.text}\n{theirs.text}'
    if codes[0] == codes[1]:
        assert ours.json.get('reason') == theirs.json.get('reason')
        assert fit(causes(ours), causes(theirs)) == (name not in OWN_CAUSES), f'{causes(ours)}\n{causes(theirs)}'


def test_the_list_of_differences_is_of_bodies_that_are_sent():
    assert (set(CODES) | OWN_CAUSES) - set(faulty.BODIES) == set() and set(CODES) & OWN_CAUSES == set()


def test_the_words_that_are_an_api_servers(answers):
    """For Services, events and pods the sentences that clients of an API server rely on are the same."""
    for name in ('service: no ports', 'service: port 70000', 'service: protocol', 'service: service type', 'event: about an object elsewhere',
                 'pod: probe of nothing'):
        ours, theirs = ([cause['message'] for cause in answer.json['details']['causes']] for answer in answers[name])
        assert ours == theirs
