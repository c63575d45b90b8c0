"""A real node: kubelet, containerd with runc, kube-proxy, CoreDNS.

All its processes are in separate namespaces (processes, mounts, network, hostname). The first process of the namespaces is a child of the test; when
it is killed, containers, mounts, addresses and rules of the node disappear, too. The node's control groups, which the kernel keeps, are removed at
the end. Needs root, runc and the plugins of containernetworking-plugins.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

from cluster import die_with_parent
from program import LIMIT_S, turns, wait_for

PLUGINS = pathlib.Path('/usr/lib/cni')
DNS_DOMAIN = 'cluster.local'
SHARES = 8 * 1024
UNSHARE = ('unshare', '--mount', '--pid', '--net', '--uts', '--fork', '--kill-child', '--mount-proc')
RUNC_STATE = '/run/containerd/runc/k8s.io'
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'


def missing():
    """Returns why no node can run here, or None."""
    if os.geteuid() != 0:
        return 'a node needs root'
    if not all(os.access(root, os.W_OK) for root in group_roots()) or subprocess.run([*UNSHARE, 'true'], capture_output=True, check=False).returncode:
        return 'a node needs the right to make control groups and namespaces (a container has it with --privileged)'
    for what in (PLUGINS / 'bridge', PLUGINS / 'host-local'):
        if not what.exists():
            return f'{what} is missing (apt-get install containernetworking-plugins)'
    return next((f'{name} is missing' for name in ('runc', 'nsenter', 'iptables') if not shutil.which(name)), None)


def ip(*words):
    """Runs ip(8) on this machine."""
    say(['ip', *words])


def say(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f'{" ".join(words)}: {done.stderr}'


class Node:
    """A node of a cluster, until it is closed. `number`: unique among the nodes on this machine; it selects the node's addresses."""

    def __init__(self, cluster, name, number):
        self.cluster, self.name = cluster, name
        self.host_address, self.address = f'10.201.{number}.1', f'10.201.{number}.2'
        self.pod_range = f'10.202.{number}.0/24'
        self.folder = cluster.folder / name
        self.folder.mkdir()
        self.group = f'muster-node-{os.getpid()}-{number}'
        self.processes, self.inside = {}, None
        cluster.authority.issue(name, f'/O=system:nodes/CN=system:node:{name}', f'extendedKeyUsage=clientAuth,serverAuth\nsubjectAltName=IP:{self.address}')

    # --- namespaces ---

    def make_namespaces(self):
        """Makes the namespaces. Their first process only adopts orphaned processes (a shell waits for all its children)."""
        script = 'mount -t tmpfs node /run; mount -t tmpfs node /var/lib; mount -t tmpfs node /var/log; while :; do sleep 3600 & wait; done'
        self.inside = subprocess.Popen([*UNSHARE, 'bash', '-c', script], stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        children = pathlib.Path(f'/proc/{self.inside.pid}/task/{self.inside.pid}/children')
        self.first = wait_for(lambda: children.read_text().split()[:1], 'the namespaces are there')[0]
        link = f'mn{self.inside.pid}'
        ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', self.first)
        ip('addr', 'add', f'{self.host_address}/30', 'dev', link)
        ip('link', 'set', link, 'up')
        self.ip('link', 'set', 'lo', 'up')
        self.ip('addr', 'add', f'{self.address}/30', 'dev', 'uplink')
        self.ip('link', 'set', 'uplink', 'up')
        self.ip('route', 'add', 'default', 'via', self.host_address)
        say(self.enter('sysctl', '-qw', 'net.ipv4.ip_forward=1'))
        ip('route', 'add', self.pod_range, 'via', self.address)

    def enter(self, *words):
        return ['nsenter', '-t', self.first, '--mount', '--pid', '--net', '--uts', *words]

    def ip(self, *words):
        """Runs ip(8) on the node."""
        say(self.enter('ip', *words))

    def run(self, name, *words, stdout=None):
        """Starts a program on the node. `stdout`: where its output goes, instead of into its log."""
        log = open(self.folder / f'{name}.log', 'ab')  # noqa: SIM115 (the process keeps it)
        program = self.cluster.bin / name
        self.processes[name] = subprocess.Popen(self.enter(str(program), *words), stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log, cwd='/',
                                                env={'PATH': f'{self.cluster.bin}:{PATH}', 'HOME': '/root'})
        log.close()
        return self.processes[name]

    # --- its programs ---

    def start(self):
        """Starts the programs in the namespaces; the API server must answer. `is_ready` returns whether the node can have pods."""
        self.near = self.cluster.write_kubeconfig(f'near-{self.name}', f'https://{self.cluster.address}:{self.cluster.port}')
        self.write_files()
        self.make_groups()
        self.start_runtime()
        self.run('kube-proxy', '--config', str(self.folder / 'kube-proxy.json'), '--hostname-override', self.name)
        self.run('coredns', '-conf', str(self.folder / 'Corefile'))

    def start_runtime(self):
        """Starts the programs that run pods; also starts them again after a kill."""
        self.run('containerd', '--config', str(self.folder / 'containerd.toml'))
        wait_for(self.has_runtime, 'containerd answers')
        self.run('kubelet', '--config', str(self.folder / 'kubelet.json'), '--kubeconfig', str(self.near), '--hostname-override', self.name,
                 '--node-ip', self.address, '--root-dir', '/var/lib/kubelet')

    def write_files(self):
        self.write_containerd()
        self.write_kubelet()
        (self.folder / 'kube-proxy.json').write_text(json.dumps({
            'apiVersion': 'kubeproxy.config.k8s.io/v1alpha1', 'kind': 'KubeProxyConfiguration', 'mode': 'iptables', 'clusterCIDR': self.pod_range,
            'clientConnection': {'kubeconfig': str(self.near)}, 'iptables': {'masqueradeAll': True}, 'conntrack': {'maxPerCore': 0}}))
        kept = self.cluster.dns_cache_s
        ttl, cache = (f'\n        ttl {kept}', f'\n    cache {kept}') if kept else ('', '')
        (self.folder / 'Corefile').write_text(f"""{DNS_DOMAIN}:53 {{
    errors
    kubernetes {DNS_DOMAIN} {{
        kubeconfig {self.near} test{ttl}
    }}{cache}
}}
""")

    def write_containerd(self):
        self.socket = self.folder / 'containerd.sock'
        networks = self.folder / 'cni'
        networks.mkdir()
        (networks / 'node.conflist').write_text(json.dumps({'cniVersion': '1.0.0', 'name': 'pods', 'plugins': [
            {'type': 'bridge', 'bridge': 'pods', 'isGateway': True, 'ipMasq': True, 'hairpinMode': True,
             'ipam': {'type': 'host-local', 'ranges': [[{'subnet': self.pod_range}]], 'routes': [{'dst': '0.0.0.0/0'}]}},
            {'type': 'portmap', 'capabilities': {'portMappings': True}}]}))
        (self.folder / 'containerd.toml').write_text(f"""version = 3
root = '{self.folder}/containerd'
state = '/run/containerd'
[grpc]
address = '{self.socket}'
[plugins.'io.containerd.cri.v1.images']
snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'test.local/pause:1'
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '{self.cluster.registries}'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{PLUGINS}']
conf_dir = '{networks}'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
""")

    def write_kubelet(self):
        file = self.cluster.authority.file
        (self.folder / 'kubelet.json').write_text(json.dumps({
            'apiVersion': 'kubelet.config.k8s.io/v1beta1', 'kind': 'KubeletConfiguration', 'address': self.address, 'cgroupDriver': 'cgroupfs',
            'cgroupRoot': f'/{self.group}', 'cgroupsPerQOS': True, 'failCgroupV1': False, 'failSwapOn': False, 'enforceNodeAllocatable': [],
            'containerRuntimeEndpoint': f'unix://{self.socket}', 'clusterDNS': [self.address], 'clusterDomain': DNS_DOMAIN, 'healthzPort': 0,
            'authentication': {'x509': {'clientCAFile': file('ca.crt')}, 'anonymous': {'enabled': False}},
            'authorization': {'mode': 'AlwaysAllow'}, 'tlsCertFile': file(f'{self.name}.crt'), 'tlsPrivateKeyFile': file(f'{self.name}.key'),
            'evictionHard': {'memory.available': '1Mi'}, 'resolvConf': '', 'nodeStatusUpdateFrequency': '4s', 'syncFrequency': '10s'}))

    # --- what it does ---

    def ctr(self, *words):
        """Returns (exit status, output)."""
        done = subprocess.run(self.enter(str(self.cluster.bin / 'ctr'), *self.ctr_words(), *words), capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def ctr_words(self):
        return '-a', str(self.socket), '-n', 'k8s.io'

    def kill_container(self, identifier):
        """Kills the container's first process, if it has not ended by itself."""
        code, said = self.ctr('tasks', 'kill', '-s', 'SIGKILL', identifier)
        assert code == 0 or 'not found' in said or 'already' in said, said

    def import_image(self, archive):
        code, said = self.ctr('images', 'import', str(archive))
        assert code == 0, said

    def has_runtime(self):
        self.check_alive()
        return self.ctr('version')[0] == 0

    def running(self):
        """Returns the names of the pods whose containers run, once for each container. It reads the state that runc keeps, so that it also works
        while containerd is dead."""
        if self.inside is None:
            return []
        done = subprocess.run(self.enter('runc', '--root', RUNC_STATE, 'list', '-f', 'json'), capture_output=True, text=True, timeout=LIMIT_S, check=False)
        found = (json.loads(done.stdout) if done.returncode == 0 else None) or []
        notes = [c.get('annotations') or annotations(self, c['bundle']) for c in found if c['status'] == 'running']
        return [n['io.kubernetes.cri.sandbox-name'] for n in notes if n.get('io.kubernetes.cri.container-type') == 'container']

    def check_alive(self):
        for name, process in self.processes.items():
            assert process.poll() is None, f'{name} of {self.name} ended: {self.log(name)}'

    def log(self, name):
        return (self.folder / f'{name}.log').read_text(errors='replace')[-4000:]

    def is_ready(self):
        self.check_alive()
        found = [n for n in self.cluster.request('GET', '/api/v1/nodes')['items'] if n['metadata']['name'] == self.name]
        return any(c['type'] == 'Ready' and c['status'] == 'True' for n in found for c in n['status'].get('conditions', []))

    def kill(self, *names):
        """Kills programs of the node; containers continue to run, each under its shim."""
        for name in names:
            process = self.processes.pop(name)
            child = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()
            for pid in (*child, process.pid):  # nsenter has started the child in the node's PID namespace
                os.kill(int(pid), signal.SIGKILL)
            process.wait(LIMIT_S)

    # --- the end ---

    def power_off(self):
        """Kills everything that runs on the node at once, without a shutdown."""
        if self.inside:
            self.inside.kill()
            self.inside.wait(LIMIT_S)
            self.inside = None
        for process in self.processes.values():
            process.wait(LIMIT_S)
        self.processes.clear()

    def close(self):
        self.power_off()
        self.remove_groups()

    def make_groups(self):
        for root in group_roots():
            for left in root.glob('muster-node-*'):  # groups of a run that was killed
                if not pathlib.Path('/proc', left.name.split('-')[2]).exists():
                    remove_empty(left)
            (root / self.group).mkdir()
            for name in ('cpuset.mems', 'cpuset.cpus'):  # a new group of version 1 has empty values
                if (root / name).exists():
                    (root / self.group / name).write_text((root / name).read_text())
            if (root / self.group / 'cpu.shares').exists():  # otherwise all pods together would get only as much CPU as one process
                (root / self.group / 'cpu.shares').write_text(str(SHARES))

    def remove_groups(self):
        """Removes the control groups; the kernel keeps a group until its last process has really ended."""
        for _ in turns():
            tops = [root / self.group for root in group_roots() if (root / self.group).exists()]
            if not tops:
                return
            for top in tops:
                remove_empty(top)
        raise AssertionError(f'control groups are left: {tops}')


def annotations(node, bundle):
    """Returns the annotations of a container, as containerd passed them to the runtime."""
    done = subprocess.run(node.enter('cat', f'{bundle}/config.json'), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return json.loads(done.stdout).get('annotations', {}) if done.returncode == 0 else {}


def remove_empty(group):
    """Removes a control group and all groups below it, except those that still have processes."""
    for folder in sorted((*group.rglob('*/'), group), key=lambda f: -len(f.parts)):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def group_roots():
    """Returns the root of each hierarchy of version 1, or the only root of version 2."""
    whole = pathlib.Path('/sys/fs/cgroup')
    return [whole] if (whole / 'cgroup.controllers').exists() else [root for root in whole.iterdir() if root.is_dir() and not root.is_symlink()]
