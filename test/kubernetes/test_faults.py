"""The asynchronous client through a proxy that breaks things, against a real API server."""
from conftest import CONFIG_MAPS, PODS
from proxy import Cut, End, Hold, Lose, Refuse
from test_client import config_map, ok

UNAVAILABLE, LATE = -5, -18
MAPS = '/configmaps'
GONE_EVENT = {'type': 'ERROR', 'object': {'kind': 'Status', 'code': 410, 'reason': 'Expired', 'message': 'too old'}}


def names(cluster, namespace):
    return sorted(item['metadata']['name'] for item in cluster.request('GET', f'/api/v1/namespaces/{namespace}/configmaps')['items'])


def test_a_write_whose_answer_was_lost_is_told_as_unsure_and_not_repeated(cluster, namespace, proxy, through):
    """This also holds on a connection that was used before, where curl by itself would send the request again."""
    speaker = through('--under-way', 1)
    at = {'namespace': namespace}
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('first')))
    proxy.add(Lose('POST', MAPS))
    many = config_map('')
    many['metadata'] = {'generateName': 'many-'}
    answer = speaker.call('create', CONFIG_MAPS, **at, body=many)
    assert (answer['code'], answer['unsure'], answer['http']) == (UNAVAILABLE, True, 0), answer
    assert len(names(cluster, namespace)) == 2
    ok(speaker.call('get', CONFIG_MAPS, **at, name='first'))
    for verb, method, more in (('replace', 'PUT', {'body': config_map('first')}), ('patch', 'PATCH', {'body': {'data': {'x': '1'}}}),
                               ('delete', 'DELETE', {})):
        asked = proxy.count(method, MAPS)
        proxy.add(Lose(method, MAPS))
        answer = speaker.call(verb, CONFIG_MAPS, **at, name='first', **more)
        assert (answer['code'], answer['unsure']) == (UNAVAILABLE, True), (verb, answer)
        assert proxy.count(method, MAPS) == asked + 1
        speaker.call('get', CONFIG_MAPS, **at, name='first')
    assert len(names(cluster, namespace)) == 1


def test_a_write_that_never_arrived_is_unsure_too(cluster, namespace, proxy, through):
    speaker = through()
    proxy.add(Cut('POST', MAPS))
    answer = speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a'))
    assert (answer['code'], answer['unsure']) == (UNAVAILABLE, True)
    assert (names(cluster, namespace), proxy.count('POST', MAPS)) == ([], 1)


def test_reading_is_repeated(namespace, proxy, through):
    speaker = through()
    ok(speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))
    proxy.add(Cut('GET', '/configmaps/a', times=2))
    proxy.add(Lose('GET', '/configmaps/a'))
    proxy.add(Refuse('GET', '/configmaps/a', status=500, reason='InternalError'))
    ok(speaker.call('get', CONFIG_MAPS, namespace=namespace, name='a'))
    assert proxy.count('GET', '/configmaps/a') == 5


def test_what_the_server_did_not_do_is_repeated(cluster, namespace, proxy, through):
    speaker = through()
    proxy.add(Refuse('POST', MAPS, status=429, reason='TooManyRequests', retry_after=0))
    proxy.add(Refuse('POST', MAPS, status=503, reason='ServiceUnavailable', retry_after=0))
    ok(speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))
    assert proxy.count('POST', MAPS) == 3
    proxy.add(Refuse('POST', MAPS, status=500, reason='InternalError'))
    answer = speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('b'))
    assert (answer['http'], answer['code'], answer['unsure']) == (500, UNAVAILABLE, True)
    assert names(cluster, namespace) == ['a']


def test_a_storm_passes(cluster, namespace, proxy, through):
    """Of two hundred creates, sixty are answered with 429: every object exists in the end, and was created once."""
    speaker = through()
    proxy.add(Refuse('POST', MAPS, status=429, reason='TooManyRequests', retry_after=0, times=60))
    calls = [speaker.send('create', CONFIG_MAPS, namespace=namespace, timeout_ms=120000, body=config_map(f'm-{i:03}')) for i in range(200)]
    for call in calls:
        ok(speaker.answer(call))
    assert names(cluster, namespace) == [f'm-{i:03}' for i in range(200)]
    assert proxy.count('POST', MAPS) == 260


def test_a_cut_watch_goes_on_unseen(namespace, proxy, through):
    speaker = through()
    at = {'namespace': namespace}
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('a')))
    watch = speaker.watch(CONFIG_MAPS, **at)
    assert speaker.synced(watch) == ['a']
    back = proxy.add(Hold('GET', 'watch=true'))
    proxy.cut_watches()
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('b')))
    ok(speaker.call('delete', CONFIG_MAPS, **at, name='a'))
    back.release.set()
    told = [speaker.next(watch, 'BEGIN', 'OBJECT', 'GONE') for _ in range(2)]
    assert [(news['news'], news['object']['metadata']['name']) for news in told] == [('OBJECT', 'b'), ('GONE', 'a')]


def test_a_forgotten_version_is_listed_anew(namespace, proxy, through):
    speaker = through()
    at = {'namespace': namespace}
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('a')))
    watch = speaker.watch(CONFIG_MAPS, **at)
    assert speaker.synced(watch) == ['a']
    forgets = (Refuse('GET', 'watch=true.*&resourceVersion=', status=410, reason='Expired'),
               End('GET', 'watch=true.*&resourceVersion=', event=GONE_EVENT))
    for name, fault in zip('bc', forgets):
        back = proxy.add(Hold('GET', 'sendInitialEvents'))
        proxy.add(fault)
        proxy.cut_watches()
        ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map(name)))
        back.release.set()
        assert speaker.next(watch, 'BEGIN', 'OBJECT', 'GONE')['news'] == 'BEGIN'
        assert speaker.synced(watch)[-1] == name


def test_a_listing_that_breaks_off_begins_again(namespace, proxy, through):
    speaker = through()
    ok(speaker.call('create', CONFIG_MAPS, namespace=namespace, body=config_map('a')))
    proxy.add(End('GET', 'sendInitialEvents', event={'type': 'ADDED', 'object': config_map('half')}))
    watch = speaker.watch(CONFIG_MAPS, namespace=namespace)
    kinds = [speaker.next(watch)['news'] for _ in range(5)]
    assert kinds == ['BEGIN', 'OBJECT', 'BEGIN', 'OBJECT', 'SYNCED']


def test_pages_where_the_server_streams_no_lists(namespace, proxy, through):
    speaker = through()
    at = {'namespace': namespace}
    calls = [speaker.send('create', CONFIG_MAPS, **at, timeout_ms=120000, body=config_map(f'm-{i:03}')) for i in range(501)]
    for call in calls:
        ok(speaker.answer(call))
    proxy.add(Refuse('GET', 'sendInitialEvents', status=422, reason='Invalid', times=None))
    proxy.add(Refuse('GET', 'continue=', status=410, reason='Expired'))
    watch = speaker.watch(CONFIG_MAPS, **at, labels='of=test')
    assert speaker.synced(watch) == [f'm-{i:03}' for i in range(501)]
    assert proxy.count('GET', 'limit=500') == 4  # both pages, twice
    ok(speaker.call('delete', CONFIG_MAPS, **at, name='m-007'))
    gone = speaker.next(watch, 'GONE')
    assert (gone['object']['metadata']['name'], gone['object']['kind']) == ('m-007', 'ConfigMap')


def test_trouble_is_told_and_ends(namespace, proxy, through):
    speaker = through()
    proxy.add(Refuse('GET', 'watch=true', status=403, reason='Forbidden', times=2))
    proxy.add(Cut('GET', 'watch=true', times=3))  # curl itself repeats some requests that only read
    watch = speaker.watch(CONFIG_MAPS, namespace=namespace)
    told = [speaker.next(watch) for _ in range(3)]
    assert [(news['news'], news['code']) for news in told] == [('TROUBLE', -12)] * 2 + [('TROUBLE', UNAVAILABLE)]
    assert 'the proxy says 403' in told[0]['message']
    assert speaker.synced(watch) == []


def test_a_slow_answer_holds_up_nobody(cluster, namespace, proxy, through):
    speaker = through()
    at = {'namespace': namespace}
    slow = proxy.add(Hold('POST', MAPS))
    call = speaker.send('create', CONFIG_MAPS, **at, timeout_ms=600000, body=config_map('slow'))
    assert slow.held.wait(60)
    ok(speaker.call('create', CONFIG_MAPS, **at, body=config_map('quick')))
    assert names(cluster, namespace) == ['quick']
    slow.release.set()
    ok(speaker.answer(call))


def test_a_deadline_ends_a_call_and_a_cancelled_one_says_nothing(namespace, proxy, through):
    speaker = through('--under-way', 1)
    at = {'namespace': namespace}
    slow = [proxy.add(Hold('POST', MAPS)) for _ in range(2)]
    answer = speaker.call('create', CONFIG_MAPS, **at, timeout_ms=3000, body=config_map('late'))
    assert (answer['code'], answer['unsure']) == (LATE, True), answer
    cancelled = speaker.send('create', CONFIG_MAPS, **at, body=config_map('cancelled'))
    assert slow[1].held.wait(60)
    waits = speaker.call('get', CONFIG_MAPS, **at, timeout_ms=300, name='late')
    assert (waits['code'], waits['unsure']) == (LATE, False), waits
    speaker.end('cancel', cancelled)
    ok(speaker.call('list', CONFIG_MAPS, **at))
    assert speaker.answers[cancelled].empty()


def test_urgent_lanes_go_first(namespace, proxy, through):
    speaker = through('--under-way', 1)
    first = proxy.add(Hold('GET', '/configmaps/first'))
    calls = [speaker.send('get', CONFIG_MAPS, namespace=namespace, name='first')]
    assert first.held.wait(60)
    for lane in ('events', 'events', 'parts', 'jobs', 'parts'):
        calls.append(speaker.send('get', PODS, namespace=namespace, name=lane, lane=lane))
    calls.append(speaker.send('get', PODS, namespace=namespace, name='lease', lane='lease'))
    speaker.answer(calls[-1])  # it waits for no other request
    first.release.set()
    for call in calls[:-1]:
        speaker.answer(call)
    order = [path.rsplit('/', 1)[1] for _, path in proxy.seen if '/pods/' in path]
    assert order == ['lease', 'jobs', 'parts', 'parts', 'events', 'events']


def test_a_restarted_server_is_found_again(cluster, namespace, speakers):
    """The API server and then etcd are killed: the watch reports it, and continues."""
    speaker = speakers('--kubeconfig', cluster.kubeconfig)
    at = {'namespace': namespace}
    watch = speaker.watch(CONFIG_MAPS, **at)
    assert speaker.synced(watch) == []
    cluster.stop('kube-apiserver')
    assert speaker.next(watch, 'TROUBLE')['code'] == UNAVAILABLE
    lost = speaker.call('get', CONFIG_MAPS, **at, name='a', timeout_ms=500)
    assert lost['code'] in (UNAVAILABLE, LATE) and not lost['unsure'], lost
    waiting = speaker.send('create', CONFIG_MAPS, **at, timeout_ms=300000, body=config_map('a'))
    cluster.stop('etcd')
    cluster.start_etcd()
    cluster.start_server()
    answer = speaker.answer(waiting)
    assert answer['code'] in (0, UNAVAILABLE), answer
    if answer['code']:  # its ten tries ended before the server was back
        ok(speaker.call('create', CONFIG_MAPS, **at, timeout_ms=60000, body=config_map('a')))
    assert speaker.next(watch, 'OBJECT')['object']['metadata']['name'] == 'a'
