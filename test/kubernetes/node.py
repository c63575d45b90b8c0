"""A real node: kubelet, containerd with runc, kube-proxy, CoreDNS, and beside them scheduler and controller manager, so that pods run.

All processes of the node are in namespaces of their own (processes, mounts, network, hostname): their first process is a child of the test,
and when that is killed, containers, mounts, addresses and rules of the node go with it. What the kernel keeps, its control groups, is
removed at the end. Needs root, runc and the plugins of containernetworking-plugins; without internet, images are made here (images.py).
"""
import itertools
import json
import os
import pathlib
import shutil
import subprocess

from cluster import Cluster, die_with_parent, programs
from program import LIMIT_S, turns, wait_for

NODE = 'node'
PLUGINS = pathlib.Path('/usr/lib/cni')
DNS_DOMAIN = 'cluster.local'
CONTROLLERS = ('kube-controller-manager', 'kube-scheduler')
SHARES = 8 * 1024
number = itertools.count(os.getpid() % 200)


def missing():
    """Why no node can run here, or None."""
    if os.geteuid() != 0:
        return 'a node needs root'
    for what in (PLUGINS / 'bridge', PLUGINS / 'host-local'):
        if not what.exists():
            return f'{what} is missing (apt-get install containernetworking-plugins)'
    return next((f'{name} is missing' for name in ('runc', 'nsenter', 'iptables') if not shutil.which(name)), None)


class NodeCluster(Cluster):
    """A cluster with one node; `start` waits until the node is ready."""

    def __init__(self, **options):
        super().__init__(**options)
        programs('node')
        at = next(number) % 250
        self.host_address, self.address = f'10.201.{at}.1', f'10.201.{at}.2'
        self.pod_range = f'10.202.{at}.0/24'
        file = self.authority.file
        self.options = {'bind-address': '0.0.0.0', 'advertise-address': self.host_address, 'kubelet-preferred-address-types': 'InternalIP',
                        'kubelet-client-certificate': file('admin.crt'), 'kubelet-client-key': file('admin.key'),
                        'kubelet-certificate-authority': file('ca.crt'), 'disable-admission-plugins': 'DefaultStorageClass', **self.options}
        names = f'IP:127.0.0.1,IP:{self.host_address},IP:10.96.0.1,DNS:kubernetes.default.svc'
        self.authority.issue('server', '/CN=kube-apiserver', f'subjectAltName={names}')
        self.authority.issue('kubelet', f'/O=system:nodes/CN=system:node:{NODE}',
                             f'extendedKeyUsage=clientAuth,serverAuth\nsubjectAltName=IP:{self.address}')
        self.inside = None
        self.group = f'muster-node-{os.getpid()}-{at}'

    def start(self):
        self.make_namespaces()
        super().start()
        self.near = self.write_kubeconfig('near', f'https://{self.host_address}:{self.port}')
        self.write_files()
        self.make_groups()
        for name in CONTROLLERS:
            self.start_controller(name)
        self.run_inside('containerd', '--config', str(self.folder / 'containerd.toml'))
        wait_for(self.has_runtime, 'containerd answers')
        self.run_inside('kubelet', '--config', str(self.folder / 'kubelet.json'), '--kubeconfig', str(self.near), '--hostname-override', NODE,
                        '--node-ip', self.address, '--root-dir', '/var/lib/kubelet')
        self.run_inside('kube-proxy', '--config', str(self.folder / 'kube-proxy.json'), '--hostname-override', NODE)
        self.run_inside('coredns', '-conf', str(self.folder / 'Corefile'))
        wait_for(self.node_is_ready, 'the node is ready')
        return self

    # --- namespaces ---

    def make_namespaces(self):
        """Their first process does nothing, and takes in those whose parents have ended (a shell waits for all its children)."""
        script = 'mount -t tmpfs node /run; mount -t tmpfs node /var/lib; mount -t tmpfs node /var/log; while :; do sleep 3600 & wait; done'
        self.inside = subprocess.Popen(['unshare', '--mount', '--pid', '--net', '--uts', '--fork', '--kill-child', '--mount-proc', 'bash', '-c', script],
                                       stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        children = pathlib.Path(f'/proc/{self.inside.pid}/task/{self.inside.pid}/children')
        self.first = wait_for(lambda: children.read_text().split()[:1], 'the namespaces are there')[0]
        name = f'mn{self.inside.pid}'
        for words in (['ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', self.first],
                      ['ip', 'addr', 'add', f'{self.host_address}/30', 'dev', name], ['ip', 'link', 'set', name, 'up'],
                      self.enter('ip', 'link', 'set', 'lo', 'up'), self.enter('ip', 'addr', 'add', f'{self.address}/30', 'dev', 'uplink'),
                      self.enter('ip', 'link', 'set', 'uplink', 'up'), self.enter('ip', 'route', 'add', 'default', 'via', self.host_address),
                      self.enter('sysctl', '-qw', 'net.ipv4.ip_forward=1'),
                      ['ip', 'route', 'add', self.pod_range, 'via', self.address]):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f'{" ".join(words)}: {done.stderr}'

    def enter(self, *words):
        return ['nsenter', '-t', self.first, '--mount', '--pid', '--net', '--uts', *words]

    def run_inside(self, name, *words):
        log = open(self.folder / f'{name}.log', 'ab')  # noqa: SIM115 (the process keeps it)
        path = f'{self.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
        self.processes[name] = subprocess.Popen(self.enter(str(self.bin / name), *words), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                cwd='/', env={'PATH': path, 'HOME': '/root'})
        log.close()

    # --- configuration ---

    def start_controller(self, name):
        more = () if name == 'kube-scheduler' else (
            '--service-account-private-key-file', self.authority.file('accounts.key'), '--root-ca-file', self.authority.file('ca.crt'),
            '--use-service-account-credentials=true', '--controllers=*,-ttl-after-finished-controller', '--node-monitor-grace-period=20s')
        self.run(name, '--kubeconfig', str(self.kubeconfig), '--authentication-kubeconfig', str(self.kubeconfig), '--authorization-kubeconfig',
                 str(self.kubeconfig), '--leader-elect=false', '--secure-port', str(self.hold_port()), '--bind-address', '127.0.0.1', *more)

    def write_files(self):
        socket = self.folder / 'containerd.sock'
        self.runtime = f'unix://{socket}'
        cni = self.folder / 'cni'
        cni.mkdir()
        (cni / 'node.conflist').write_text(json.dumps({'cniVersion': '1.0.0', 'name': 'pods', 'plugins': [
            {'type': 'bridge', 'bridge': 'pods', 'isGateway': True, 'ipMasq': True, 'hairpinMode': True,
             'ipam': {'type': 'host-local', 'ranges': [[{'subnet': self.pod_range}]], 'routes': [{'dst': '0.0.0.0/0'}]}},
            {'type': 'portmap', 'capabilities': {'portMappings': True}}]}))
        (self.folder / 'containerd.toml').write_text(f"""version = 3
root = '{self.folder}/containerd'
state = '/run/containerd'
[grpc]
address = '{socket}'
[plugins.'io.containerd.cri.v1.images']
snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'test.local/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['{PLUGINS}']
conf_dir = '{cni}'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false
""")
        (self.folder / 'kubelet.json').write_text(json.dumps({
            'apiVersion': 'kubelet.config.k8s.io/v1beta1', 'kind': 'KubeletConfiguration', 'address': self.address, 'cgroupDriver': 'cgroupfs',
            'cgroupRoot': f'/{self.group}', 'cgroupsPerQOS': True, 'failCgroupV1': False, 'failSwapOn': False, 'enforceNodeAllocatable': [],
            'containerRuntimeEndpoint': self.runtime, 'clusterDNS': [self.address], 'clusterDomain': DNS_DOMAIN, 'healthzPort': 0,
            'authentication': {'x509': {'clientCAFile': self.authority.file('ca.crt')}, 'anonymous': {'enabled': False}},
            'authorization': {'mode': 'AlwaysAllow'}, 'tlsCertFile': self.authority.file('kubelet.crt'),
            'tlsPrivateKeyFile': self.authority.file('kubelet.key'), 'evictionHard': {'memory.available': '1Mi'}, 'resolvConf': '',
            'nodeStatusUpdateFrequency': '4s', 'syncFrequency': '10s'}))
        (self.folder / 'kube-proxy.json').write_text(json.dumps({
            'apiVersion': 'kubeproxy.config.k8s.io/v1alpha1', 'kind': 'KubeProxyConfiguration', 'mode': 'iptables', 'clusterCIDR': self.pod_range,
            'clientConnection': {'kubeconfig': str(self.near)}, 'iptables': {'masqueradeAll': True}, 'conntrack': {'maxPerCore': 0}}))
        (self.folder / 'Corefile').write_text(f"""{DNS_DOMAIN}:53 {{
    errors
    kubernetes {DNS_DOMAIN} {{
        kubeconfig {self.near} test
    }}
}}
""")

    # --- what it does ---

    def ctr(self, *words):
        done = subprocess.run(self.enter(str(self.bin / 'ctr'), '-a', str(self.folder / 'containerd.sock'), '-n', 'k8s.io', *words), capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        return done.returncode, done.stdout + done.stderr

    def import_image(self, archive):
        code, said = self.ctr('images', 'import', str(archive))
        assert code == 0, said

    def has_runtime(self):
        self.check_alive()
        return self.ctr('version')[0] == 0

    def check_alive(self):
        for name, process in self.processes.items():
            assert process.poll() is None, f'{name} ended: {self.log(name)}'

    def node_is_ready(self):
        self.check_alive()
        nodes = self.request('GET', '/api/v1/nodes')['items']
        return any(c['type'] == 'Ready' and c['status'] == 'True' for n in nodes for c in n['status'].get('conditions', []))

    # --- the end ---

    def close(self):
        for name in CONTROLLERS:
            if name in self.processes:
                self.stop(name)
        if self.inside:
            self.inside.kill()
            self.inside.wait(LIMIT_S)
        super().close()
        self.remove_groups()

    def group_roots(self):
        """One for each hierarchy of version 1, or the one of version 2."""
        whole = pathlib.Path('/sys/fs/cgroup')
        return [whole] if (whole / 'cgroup.controllers').exists() else [root for root in whole.iterdir() if root.is_dir() and not root.is_symlink()]

    def make_groups(self):
        for root in self.group_roots():
            (root / self.group).mkdir()
            for name in ('cpuset.mems', 'cpuset.cpus'):  # a group of version 1 begins without any
                if (root / name).exists():
                    (root / self.group / name).write_text((root / name).read_text())
            if (root / self.group / 'cpu.shares').exists():  # all of its pods together would else get as much as one process
                (root / self.group / 'cpu.shares').write_text(str(SHARES))

    def remove_groups(self):
        """The kernel keeps a group until its last process is really gone."""
        for _ in turns():
            tops = [root / self.group for root in self.group_roots() if (root / self.group).exists()]
            left = [folder for top in tops for folder in (*top.rglob('*/'), top)]
            if not left:
                return
            for folder in sorted(left, key=lambda f: -len(f.parts)):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        raise AssertionError(f'control groups are left: {left}')
