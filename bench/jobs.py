#!/usr/bin/env python3
"""How much muster itself costs: start, log capture, store, memory. Peers run in the same minute on the same machine.

Prints medians, spread and the ratio (peer / ours); --json writes every sample. Losses are printed as they are.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MUSTER = os.path.join(os.environ['MUSTER_BUILD'], 'bin', 'muster')


@contextlib.contextmanager
def home():
    """A fresh MUSTER_HOME; everything in it is ended and removed afterwards."""
    folder = tempfile.mkdtemp(prefix='muster-bench-')
    env = {**os.environ, 'MUSTER_HOME': folder}
    try:
        yield env
    finally:
        subprocess.run([MUSTER, 'down'], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def first_process_ms(command, env):
    """From the command's start until a rank writes the time into a file."""
    with tempfile.TemporaryDirectory() as folder:
        stamp = os.path.join(folder, 'stamp')
        script = os.path.join(folder, 'rank.sh')
        pathlib.Path(script).write_text(f'#!/bin/sh\ndate +%s%N >> {stamp}\n')
        os.chmod(script, 0o755)
        start = time.time_ns()
        subprocess.run([*command, script], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=True)
        total = (time.time_ns() - start) / 1e6
        lines = pathlib.Path(stamp).read_text().split()
        return (int(min(lines)) - start) / 1e6, total


def summary(samples):
    ordered = sorted(samples)
    return {'median': statistics.median(ordered), 'min': ordered[0], 'max': ordered[-1], 'n': len(ordered), 'samples': samples}


def bench_start(rounds):
    """muster run -n 2 against mpirun -n 2 and torchrun with two processes, each starting a shell script."""
    peers = {'muster run (controller up)': None}
    if shutil.which('mpirun'):
        peers['mpirun'] = ['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', '2']
    if subprocess.run(['/usr/bin/python3', '-c', 'import torch'], stderr=subprocess.DEVNULL).returncode == 0:
        peers['torchrun'] = ['/usr/bin/python3', '-m', 'torch.distributed.run', '--nproc_per_node', '2', '--no_python']
    result = {}
    with home() as env:
        subprocess.run([MUSTER, 'up'], env=env, stdout=subprocess.DEVNULL, check=True, timeout=30)
        for number in range(rounds):
            for name, command in peers.items():
                ours = [MUSTER, 'run', '-n', '2', '--name', f'start-{number}', '--'] if command is None else command
                extra = {**env, 'PET_REDIRECTS': '1', 'PET_TEE': '1'} if name == 'torchrun' else env
                first, total = first_process_ms(ours, extra)
                result.setdefault(name, {'first': [], 'total': []})
                result[name]['first'].append(first)
                result[name]['total'].append(total)
    cold = []
    for _ in range(max(1, rounds // 2)):
        with home() as env:
            cold.append(first_process_ms([MUSTER, 'run', '-n', '2', '--'], env)[0])
    result['muster run (nothing up)'] = {'first': cold, 'total': cold}
    return {name: {key: summary(values) for key, values in rows.items()} for name, rows in result.items()}


def bench_logs(megabytes):
    """A rank that writes as fast as it can; beside it the same bytes into a file by the shell, and through one pipe."""
    writer = f'import sys\nline = b"x" * 99 + b"\\n"\nblock = line * 655\nfor _ in range({megabytes} * 16):\n    sys.stdout.buffer.write(block)\n'
    with home() as env, tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, 'writer.py')
        pathlib.Path(script).write_text(writer)
        subprocess.run([MUSTER, 'up'], env=env, stdout=subprocess.DEVNULL, check=True, timeout=30)
        rates = {}
        for name, command in {
            'to a file': f'python3 {script} > {folder}/out',
            'through a pipe to a file': f'python3 {script} | cat > {folder}/out',
            'muster create (captured)': None,
        }.items():
            start = time.perf_counter()
            if command:
                subprocess.run(['sh', '-c', command], check=True, timeout=120)
            else:
                subprocess.run([MUSTER, 'run', '-n', '1', '--name', 'logs', '--', 'python3', script], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=120)
            rates[name] = megabytes / (time.perf_counter() - start)
        return rates


STEADY = '''import os, sys, time
block, pace = b"x" * 99 + b"\\n", 0.01
block *= 10486
start = time.monotonic()
for step in range(10 ** 9):
    os.write(1, block)
    time.sleep(max(0, start + (step + 1) * pace - time.monotonic()))
'''


def cpu_seconds(words):
    """Of every living process whose command line holds these words."""
    total = 0
    for entry in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and all(word in (entry / 'cmdline').read_bytes() for word in words):
                fields = (entry / 'stat').read_text().rsplit(')', 1)[1].split()
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf('SC_CLK_TCK')


def bench_capture(seconds):
    """What a rank that writes 100 MB/s costs its supervisor, in processors, and how much of that arrives."""
    with home() as env, tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, 'steady.py')
        pathlib.Path(script).write_text(STEADY)
        with subprocess.Popen([MUSTER, 'run', '-q', '-n', '1', '--name', 'steady', '--', 'python3', script], env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            jobs, supervisor = pathlib.Path(env['MUSTER_HOME'], 'jobs'), [b'supervisor', env['MUSTER_HOME'].encode()]

            def written():
                return sum(int(path.stem) * (10 << 20) + path.stat().st_size for path in sorted(
                    jobs.glob('*/containers/*/*/0/*.log'), key=lambda p: int(p.stem))[-1:])
            while not written():
                time.sleep(0.05)
            start, before, used = time.perf_counter(), written(), cpu_seconds(supervisor)
            time.sleep(seconds)
            wall, after, used = time.perf_counter() - start, written(), cpu_seconds(supervisor) - used
            run.terminate()
        return {'mb_per_s': (after - before) / wall / 1e6, 'supervisor_processors': used / wall}


JOB = '''apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: idle-{number}}}
spec:
  runPolicy: {{suspend: true}}
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {{spec: {{containers: [{{name: pytorch, image: none, command: ["true"]}}]}}}}}}
'''


def resident_kib(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS'):
            return int(line.split()[1])
    raise RuntimeError('no VmRSS')


def controller_pid(env):
    out = subprocess.run(['curl', '-s', '--unix-socket', os.path.join(env['MUSTER_HOME'], 'api.sock'), 'http://m/muster/v1/status'],
                         capture_output=True, check=True, timeout=10).stdout
    return json.loads(out)['pid']


def store_version(env):
    """Every write to the store counts it up by one; a fresh object has the newest."""
    subprocess.run([MUSTER, 'create', '-f', '-'], env=env, check=True, timeout=30, text=True, stdout=subprocess.DEVNULL,
                   input='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mark"}}')
    out = subprocess.run([MUSTER, 'get', 'configmap', 'mark', '-o', 'json'], env=env, capture_output=True, check=True, timeout=30).stdout
    subprocess.run([MUSTER, 'delete', 'configmap', 'mark'], env=env, stdout=subprocess.DEVNULL, check=True, timeout=30)
    return int(json.loads(out)['metadata']['resourceVersion'])


def bench_controller(jobs):
    """Resident memory with no job and with many, and how fast jobs are stored (one create = several writes)."""
    with home() as env, tempfile.TemporaryDirectory() as folder:
        subprocess.run([MUSTER, 'up'], env=env, stdout=subprocess.DEVNULL, check=True, timeout=30)
        pid = controller_pid(env)
        empty = resident_kib(pid)
        path = os.path.join(folder, 'jobs.yaml')
        seconds, before = 0.0, store_version(env)
        for first in range(0, jobs, 100):  # a file holds 256 documents at most
            pathlib.Path(path).write_text('---\n'.join(JOB.format(number=n) for n in range(first, min(first + 100, jobs))))
            start = time.perf_counter()
            subprocess.run([MUSTER, 'create', '-f', path], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=True, timeout=300)
            seconds += time.perf_counter() - start
        return {'empty_kib': empty, 'full_kib': resident_kib(pid), 'jobs': jobs, 'created_per_second': jobs / seconds,
                'writes_per_second': (store_version(env) - before) / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--json', help='write every sample there')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--jobs', type=int, default=1000)
    parser.add_argument('--megabytes', type=int, default=512)
    parser.add_argument('--seconds', type=float, default=5, help='of a log at 100 MB/s')
    options = parser.parse_args()
    result = {'start_ms': bench_start(options.rounds), 'log_mb_per_s': bench_logs(options.megabytes),
              'capture': bench_capture(options.seconds), 'controller': bench_controller(options.jobs)}

    print(f'{"start, 2 processes":32} {"first process ms":>18} {"min … max":>18} {"whole run ms":>14} {"peer/ours":>10}')
    ours = result['start_ms']['muster run (controller up)']['first']['median']
    for name, rows in result['start_ms'].items():
        first = rows['first']
        print(f'{name:32} {first["median"]:18.1f} {first["min"]:8.1f} … {first["max"]:7.1f} {rows["total"]["median"]:14.1f} {first["median"] / ours:10.1f}')
    print('log capture, MB/s:               ' + ', '.join(f'{name} {rate:.0f}' for name, rate in result['log_mb_per_s'].items()))
    capture = result['capture']
    print(f'captured at a steady rate:       {capture["mb_per_s"]:.0f} MB/s take {100 * capture["supervisor_processors"]:.1f} % of a processor')
    controller = result['controller']
    print(f'controller memory:               {controller["empty_kib"] / 1024:.1f} MiB empty, {controller["full_kib"] / 1024:.1f} MiB with {controller["jobs"]} jobs; '
          f'{controller["created_per_second"]:.0f} jobs created a second, {controller["writes_per_second"]:.0f} store writes a second')
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1))


if __name__ == '__main__':
    sys.exit(main())
