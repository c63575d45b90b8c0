"""The asynchronous client against a real API server: every verb, watches, ways to log in."""
from conftest import CONFIG_MAPS, PODS


def config_map(name, **data):
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': name, 'labels': {'of': 'test'}}, 'data': data}


def pod(name):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name}, 'spec': {'containers': [{'name': 'main', 'image': 'none'}]}}


def ok(answer):
    assert answer['code'] == 0, answer
    return answer['object']


def test_every_verb(speaker, namespace):
    at = {'namespace': namespace}
    made = ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('a', x='1')))
    assert ok(speaker.call('get', CONFIG_MAPS, **at, name='a')) == made
    made['data']['x'] = '2'
    second = ok(speaker.call('replace', CONFIG_MAPS, **at, name='a', body=made))
    assert second['data'] == {'x': '2'}
    merged = ok(speaker.call('patch', CONFIG_MAPS, **at, name='a', body={'data': {'y': '3', 'x': None}}))
    assert merged['data'] == {'y': '3'}
    patched = ok(speaker.call('patch', CONFIG_MAPS, **at, name='a', patch='json', body=[{'op': 'add', 'path': '/data/z', 'value': '4'}]))
    assert patched['data'] == {'y': '3', 'z': '4'}
    applied = ok(speaker.call('patch', CONFIG_MAPS, **at, name='a', patch='apply', field_manager='test', force=True,
                              body={'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}, 'data': {'w': '5'}}))
    assert applied['data'] == {'y': '3', 'z': '4', 'w': '5'}
    ok(speaker.call('delete', CONFIG_MAPS, **at, name='a', uid=made['metadata']['uid']))
    assert speaker.call('get', CONFIG_MAPS, **at, name='a')['code'] == -3


def test_a_strategic_patch_and_a_subresource(speaker, namespace):
    at = {'namespace': namespace}
    ok(speaker.call('create', PODS, **at, lane='parts', body=pod('a')))
    patched = ok(speaker.call('patch', PODS, **at, name='a', patch='strategic',
                              body={'spec': {'containers': [{'name': 'main', 'image': 'other'}]}}))
    assert [c['image'] for c in patched['spec']['containers']] == ['other']
    status = ok(speaker.call('patch', PODS, **at, name='a', subresource='status', body={'status': {'phase': 'Running'}}))
    assert status['status']['phase'] == 'Running'
    going = ok(speaker.call('delete', PODS, **at, name='a', grace_s=0))
    assert going['metadata']['name'] == 'a'


def test_refusals_have_their_codes(speaker, namespace):
    at = {'namespace': namespace}
    made = ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('a')))
    refused = {
        (-14, 409, 'AlreadyExists'): ('create', {'body': config_map('a')}),
        (-15, 409, 'Conflict'): ('replace', {'name': 'a', 'body': {**made, 'metadata': {**made['metadata'], 'resourceVersion': '1'}}}),
        (-3, 404, 'NotFound'): ('get', {'name': 'b'}),
        (-1, 422, 'Invalid'): ('create', {'body': config_map('Not a name')}),
        (-1, 400, 'BadRequest'): ('create', {'body': {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a'}}}),
    }
    for (code, http, reason), (verb, more) in refused.items():
        answer = speaker.call(verb, CONFIG_MAPS, **at, **more)
        assert (answer['code'], answer['http'], answer['reason'], answer['unsure']) == (code, http, reason, False), answer
        assert answer['message']
    answer = speaker.call('delete', CONFIG_MAPS, **at, name='a', uid='00000000-0000-0000-0000-000000000000')
    assert (answer['code'], answer['reason']) == (-15, 'Conflict')
    assert speaker.call('delete', CONFIG_MAPS, **at, name='a', resource_version='1')['reason'] == 'Conflict'
    assert speaker.call('get', {'group': 'kubeflow.org', 'plural': 'pytorchjobs', 'kind': 'PyTorchJob'}, **at, name='a')['http'] == 404


def test_lists_come_in_pages(speaker, namespace):
    calls = [speaker.send('create', CONFIG_MAPS, namespace=namespace, body=config_map(f'm-{i:02}')) for i in range(25)]
    for call in calls:
        ok(speaker.answer(call))
    seen, page = [], {'limit': 10}
    while page:
        listed = ok(speaker.call('list', CONFIG_MAPS, namespace=namespace, labels='of=test', **page))
        seen += [item['metadata']['name'] for item in listed['items']]
        page = {'limit': 10, 'next': listed['metadata']['continue']} if listed['metadata'].get('continue') else None
    assert seen == [f'm-{i:02}' for i in range(25)]
    one = ok(speaker.call('list', CONFIG_MAPS, namespace=namespace, fields='metadata.name=m-07'))
    assert [item['metadata']['name'] for item in one['items']] == ['m-07']


def test_a_watch_lists_then_follows(speaker, namespace):
    at = {'namespace': namespace}
    for name in 'ab':
        ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map(name)))
    watch = speaker.watch(CONFIG_MAPS, **at, labels='of=test')
    assert speaker.next(watch)['news'] == 'BEGIN'
    assert speaker.synced(watch) == ['a', 'b']
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('c')))
    news = speaker.next(watch)
    assert (news['news'], news['object']['metadata']['name'], news['object']['kind']) == ('OBJECT', 'c', 'ConfigMap')
    ok(speaker.call('patch', CONFIG_MAPS, **at, name='a', body={'data': {'x': '1'}}))
    news = speaker.next(watch)
    assert (news['news'], news['object']['data']) == ('OBJECT', {'x': '1'})
    ok(speaker.call('delete', CONFIG_MAPS, **at, name='b'))
    news = speaker.next(watch)
    assert (news['news'], news['object']['metadata']['name']) == ('GONE', 'b')
    speaker.end('unwatch', watch)
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('d')))
    assert speaker.news[watch].empty()


def test_an_empty_collection_is_a_listing_too(speaker, namespace):
    watch = speaker.watch(CONFIG_MAPS, namespace=namespace)
    assert speaker.next(watch)['news'] == 'BEGIN'
    assert speaker.synced(watch) == []
