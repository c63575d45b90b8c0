"""The results of a benchmark of faults: rows on standard output and, after each of them, in a file, from which a later run continues."""
import json
import os
import pathlib


def quantiles(values):
    ordered = sorted(values)
    return {'median': ordered[len(ordered) // 2], 'p99': ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 'max': ordered[-1]}


def scheduling():
    """Returns how the system schedules this program and the programs that it starts."""
    policy = {os.SCHED_FIFO: 'SCHED_FIFO', os.SCHED_RR: 'SCHED_RR'}.get(os.sched_getscheduler(0))
    if policy:
        return f'real-time priority ({policy} {os.sched_getparam(0).sched_priority})'
    if os.sched_getscheduler(0) == os.SCHED_IDLE:
        return 'SCHED_IDLE, what other programs leave'
    return f'nice {os.nice(0)}'


class Results:
    """data[section][fault] is a row. path: a file, or None. keep: rows that the file has are not measured again."""

    def __init__(self, path, keep):
        self.path = pathlib.Path(path) if path else None
        found = keep and self.path and self.path.exists()
        self.data = json.loads(self.path.read_text()) if found else {}
        self.data['scheduling'] = scheduling()

    def has(self, section, name=None):
        return section in self.data if name is None else name in self.data.get(section, {})

    def put(self, section, value):
        self.data[section] = value
        if self.path:
            aside = self.path.with_name(self.path.name + '.new')
            aside.write_text(json.dumps(self.data))
            aside.rename(self.path)

    def put_row(self, section, fault, title, found):
        """Adds a row. found: (cost, a usual step) in ms, for each trial."""
        row = dict(quantiles([cost for cost, *_ in found]), period=quantiles([period for _, period, *_ in found])['median'],
                   all=[cost for cost, *_ in found])
        if len(found[0]) > 2:
            row['back'] = quantiles([back for *_, back in found])
        print(f"{title + ': ' + fault:34} {row['median']:9.1f} {row['p99']:9.1f} {row['max']:9.1f}   (of {len(found)}; a step: {row['period']:.1f} ms"
              + (f"; back in {row['back']['median']:.0f} ms, p99 {row['back']['p99']:.0f}" if 'back' in row else '') + ')', flush=True)
        self.put(section, {**self.data.get(section, {}), fault: row})
