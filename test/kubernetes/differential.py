#!/usr/bin/env python3
"""differential [--update] [NAME…]: plays the scenarios (scenarios.py; those named, else all) with Kubeflow's training-operator 1.9.4 and then
with muster operator, on one real API server with the garbage collector of the real kube-controller-manager. A small kubelet of the test
(kubelet.py) writes the pods' statuses: nothing runs in them. Prints the differences, and the rule of test/data/differences.json that explains
each; ends with 1 if no rule does. --update writes the table of docs/differences.md.
"""
import collections
import contextlib
import json
import pathlib
import re
import sys
import time
import urllib.error

if __name__ == '__main__':
    sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

import upstream
from cluster import Cluster
from jobs import Operator, install
from program import SOURCE, wait_for
from scenarios import JOBS, Stage, scenarios

RULES, PAGE = SOURCE / 'test/data/differences.json', SOURCE / 'docs/differences.md'
BEGIN, END = '<!-- differential: begin -->\n', '<!-- differential: end -->\n'
FAST = ('--kube-api-qps=500', '--kube-api-burst=500')
Difference = collections.namedtuple('Difference', 'scenario field upstream muster')


@contextlib.contextmanager
def collected_cluster():
    """Yields an API server with muster's definition of PyTorchJobs, and a garbage collector."""
    cluster = Cluster().start()
    try:
        install(cluster)
        cluster.run('kube-controller-manager', '--kubeconfig', cluster.kubeconfig, '--controllers=garbage-collector-controller', '--leader-elect=false',
                    '--secure-port=0')
        yield cluster
    finally:
        cluster.close()


def remove(cluster):
    """Removes all jobs and their pods, before the other operator begins."""
    for kind, extra in ((JOBS, {}), ('/api/v1/pods', {'gracePeriodSeconds': 0})):
        for found in cluster.request('GET', kind)['items']:
            meta, base = found['metadata'], kind.rpartition('/')
            with contextlib.suppress(urllib.error.HTTPError):  # the garbage collector may have deleted it already
                cluster.request('DELETE', f'{base[0]}/namespaces/{meta["namespace"]}/{base[2]}/{meta["name"]}', extra)
    wait_for(lambda: not cluster.request('GET', JOBS)['items'] and not cluster.request('GET', '/api/v1/pods')['items'], 'the jobs and their pods are gone')


def play(cluster, cases):
    """Returns [{scenario: what was observed}] for upstream and for muster."""
    seen = []
    for label, operator in (('upstream', upstream.Upstream(cluster, cluster.kubeconfig, *FAST, '--controller-threads=8')),
                            ('muster', Operator(cluster.kubeconfig))):
        stage = Stage(cluster)
        try:
            operator.start().wait_ready()
            seen.append(stage.play(cases, label))
        finally:
            operator.close()
            stage.close()
            remove(cluster)
    return seen


def differences(theirs, ours):
    """Returns the differences, in the order of the scenarios."""
    return [Difference(name, field, str(theirs[name].get(field, '')), str(ours[name].get(field, '')))
            for name in theirs for field in sorted({**theirs[name], **ours[name]}) if theirs[name].get(field, '') != ours[name].get(field, '')]


class Rule:
    """The reason for some of the differences. `row`: the beginning of the row or sentence in docs/differences.md that gives the reason; `in` (all
    scenarios if missing), `fields` and `values` ("UPSTREAM → MUSTER") are regular expressions that select the differences. The first rule that fits
    is taken.
    """

    def __init__(self, said):
        self.row = said['row']
        self.scenarios, self.fields, self.values = (re.compile(said.get(key, '')) for key in ('in', 'fields', 'values'))

    def fits(self, seen):
        return bool(self.scenarios.search(seen.scenario) and self.fields.fullmatch(seen.field)
                    and self.values.fullmatch(f'{seen.upstream} → {seen.muster}'))


def rules():
    return [Rule(said) for said in json.loads(RULES.read_text())]


def explain(found):
    """Returns ({row: [its differences]}, the differences that no rule explains)."""
    listed, unlisted, known = {}, [], rules()
    for seen in found:
        rule = next((rule for rule in known if rule.fits(seen)), None)
        (listed.setdefault(rule.row, []) if rule else unlisted).append(seen)
    return listed, unlisted


def unexpected(case, seen):
    """Returns a sentence for each expectation of the matrix that muster's job did not meet. (Pods, counts and times are not checked where they depend
    on the target.)"""
    expected = case.get('expect', {})
    wrong = []
    if 'conditions' in expected and seen['conditions'] != ' '.join(expected['conditions']):
        wrong.append(f'{case["name"]}: conditions {seen["conditions"]}, expected {" ".join(expected["conditions"])}')
    wrong += [f'{case["name"]}: {pod} was made {seen.get(f"pod case-{pod} made", 0)} times, expected {count}'
              for pod, count in expected.get('made', {}).items() if seen.get(f'pod case-{pod} made', 0) != count]
    if case.get('until') == 'gone' and seen['job'] != 'gone':
        wrong.append(f'{case["name"]}: the job is still there')
    return wrong


def table(listed, count):
    """Returns the table of the differences in Markdown."""
    name = {row: row.strip('|* ') for row in listed}
    lines = [f'{count} scenarios. What a row means is said above where its words stand.\n',
             '| what differed | in scenarios | for example | upstream | muster |', '|---|---|---|---|---|']
    for row in sorted(listed, key=lambda row: -len({seen.scenario for seen in listed[row]})):
        seen = listed[row][0]
        lines.append(f'| {name[row]} | {len({each.scenario for each in listed[row]})} | {seen.scenario}: {seen.field} | {seen.upstream or "—"} | '
                     f'{seen.muster or "—"} |')
    return '\n'.join(lines) + '\n'


def write_page(text):
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + BEGIN + text + END + after)


def main(words):
    begin, wanted = time.monotonic(), [word for word in words if word != '--update']
    cases = [case for case in scenarios() if not wanted or any(re.search(word, case['name']) for word in wanted)]
    with collected_cluster() as cluster:
        theirs, ours = play(cluster, cases)
    listed, unlisted = explain(differences(theirs, ours))
    print(table(listed, len(cases)))
    wrong = [sentence for case in cases for sentence in unexpected(case, ours[case['name']])]
    for seen in unlisted:
        print(f'unlisted: {seen.scenario}: {seen.field}: {seen.upstream or "—"} → {seen.muster or "—"}')
    print(*wrong, sep='\n')
    never = {rule.row for rule in rules()} - set(listed)
    print(f'{len(cases)} scenarios in {time.monotonic() - begin:.0f} s: {sum(map(len, listed.values()))} differences in {len(listed)} rows, '
          f'{len(unlisted)} that no rule explains, {len(wrong)} expectations missed. Not seen this time: {", ".join(sorted(never)) or "no row"}')
    if '--update' in words and not unlisted:
        write_page(table(listed, len(cases)))
    return 1 if unlisted or wrong else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
