"""Checks muster.elastic without a job: state, encoding, statistics, refusals, and more. Prints the result of each check, by name, as JSON."""
import copy
import io
import json
import pickle

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from muster.elastic import encoding, keyed, refusals
from muster.elastic.buffers import Buffers
from muster.elastic.gradient import BackwardWatch, Gradient
from muster.elastic.job import Job
from muster.elastic.passes import Pass
from muster.elastic.shards import Shards
from muster.elastic.slots import Slots, group_values
from muster.elastic.state import State
from muster.elastic.undo import Undo

OPTIMIZERS = [('SGD', {}), ('SGD', {'momentum': 0.9, 'dampening': 0.1}), ('Adam', {'amsgrad': True}), ('AdamW', {}), ('NAdam', {}),
              ('RAdam', {}), ('Adagrad', {}), ('Adadelta', {}), ('Adamax', {}), ('RMSprop', {'centered': True}), ('Rprop', {}),
              ('ASGD', {})]


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3))


def step(net, optimizer, seed):
    torch.manual_seed(seed)
    optimizer.zero_grad()
    functional.cross_entropy(net(torch.randn(6, 5)), torch.randint(3, (6,))).backward()
    optimizer.step()


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))


def hand_over(source, target):
    """Copies the bytes of the state's pieces, as the library does."""
    source._write_text()
    mine, others = list(target._pieces()) + [target.text], list(source._pieces()) + [source.text]
    for to, given in zip(mine, others):
        if isinstance(to, torch.Tensor):
            to.data.copy_(given)
        else:
            to[:] = given[:]


def joiners():
    """With each optimizer, a worker that joins before the first step, or after two steps, goes on as the other workers do."""
    equal = {}
    for name, options in OPTIMIZERS:
        for steps in (0, 2):
            nets = [network(), network()]
            nets[1][0].weight.data.add_(1)
            both = [getattr(optim, name)(net.parameters(), lr=0.05, **options) for net in nets]
            schedulers = [optim.lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=20) if name == 'SGD' and options
                          else optim.lr_scheduler.StepLR(o, 1) for o in both]
            for i in range(steps):
                step(nets[0], both[0], i)
                schedulers[0].step()
            states = [State(net, [o], {'s': s}) for net, o, s in zip(nets, both, schedulers)]
            hand_over(*states)
            assert states[1].take() and not states[0].take()
            for i in range(3):
                for net, optimizer, scheduler in zip(nets, both, schedulers):
                    step(net, optimizer, 10 + i)
                    scheduler.step()
            equal[f'{name} {options} {steps}'] = same(*nets) and group_values(both[0]) == group_values(both[1])
    return equal


def no_trace():
    """Slots, which learns the state that a step creates, changes nothing, not even the random numbers."""
    kept = {}
    for name, options in OPTIMIZERS:
        net = network()
        before, optimizer = copy.deepcopy(net.state_dict()), getattr(optim, name)(net.parameters(), lr=0.05, **options)
        state, random_state = copy.deepcopy(optimizer.state_dict()), torch.get_rng_state()
        Slots(optimizer)
        kept[f'{name} {options}'] = all(torch.equal(before[k], v) for k, v in net.state_dict().items()) and \
            encoding.encode(state) == encoding.encode(optimizer.state_dict()) and torch.equal(random_state, torch.get_rng_state())
    return kept


def codes():
    values = [0, -1, 1 << 70, 0.1, float('inf'), '', 'ä', None, True, [], (), {}, {'a': (1, [2.5, {3: None}])}]
    equal = all(encoding.decode(encoding.encode(v)) == v and type(encoding.decode(encoding.encode(v))) is type(v) for v in values)
    tensors = [torch.arange(6, dtype=t).reshape(2, 3) for t in (torch.float32, torch.int64, torch.bfloat16, torch.uint8)]
    tensors += [torch.tensor(1.5), torch.zeros(0, 4), torch.ones(3, dtype=torch.bool)]
    back = [encoding.decode(encoding.encode(t)) for t in tensors]
    own = encoding.decode(encoding.encode({'f': print, 'n': 1}), {'f': len, 'n': 2})
    bad = []
    for data in (b'{"T":["load",[1],"AAAA"]}', b'{"T":["os.system",[1],""]}', b'{"T":["float32",[9],"AAAA"]}', b'[', b'{"q":1}'):
        try:
            encoding.decode(data)
            bad.append('taken')
        except ValueError:
            bad.append('ValueError')
        except RuntimeError:
            bad.append('RuntimeError')
    return {'equal': equal, 'tensors': all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(tensors, back)),
            'own': own == {'f': len, 'n': 1}, 'bad': bad}


def statistics():
    """Passes may run in any order: applied in the order of the batches, they give the statistics of one process that has computed the batches one
    after the other."""
    close = []
    for momentum in (0.1, 0.5, None):
        torch.manual_seed(1)
        batches = [torch.randn(n, 4, 3) for n in (8, 8, 5)]
        plain = nn.Sequential(nn.Conv1d(4, 2, 1), nn.BatchNorm1d(2, momentum=momentum))
        ours = copy.deepcopy(plain)
        for batch in batches:
            plain(batch)
        buffers, extras = Buffers(ours), {}
        for i in (2, 0, 1):
            buffers.begin()
            ours(batches[i]).sum().backward()
            extras[i] = buffers.end(len(batches[i]))
            buffers.stop()
        untouched = ours[1].running_mean.abs().sum().item() == 0 and int(ours[1].num_batches_tracked) == 0
        buffers.apply(b''.join(extras[i] for i in range(3)))
        close.append(untouched and all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain.buffers(), ours.buffers())))
        ours.eval()
        ours(batches[0])
    return {'close': close, 'tracked': int(ours[1].num_batches_tracked)}


def copies():
    """A module that is copied or saved as a whole while a pass is under way is then a module like any other."""
    ours = network()
    buffers = Buffers(ours)
    buffers.begin()
    file = io.BytesIO()
    torch.save(ours, file)
    saved = file.getvalue()
    loaded = torch.load(io.BytesIO(saved), **({'weights_only': False} if torch.__version__ >= '2' else {}))
    moved = []
    for one in (loaded, copy.deepcopy(ours)):
        one(torch.randn(6, 5))
        moved.append(int(one[1].num_batches_tracked))
    return {'moved': moved, 'mine': int(ours[1].num_batches_tracked), 'names muster': b'muster' in saved}


def vectors():
    """A buffer that a forward pass changes gets the value of the last micro-batch, no matter which worker computed it."""
    torch.manual_seed(1)
    ours = nn.utils.spectral_norm(nn.Linear(4, 3))
    buffers, extras = Buffers(ours), []
    first = [b.clone() for b in ours.buffers()]
    for _ in range(2):
        buffers.begin()
        ours(torch.ones(2, 4)).sum().backward()
        extras.append(buffers.end(2))
        back = all(torch.equal(a, b) for a, b in zip(first, ours.buffers()))
    buffers.apply(b''.join(extras))
    return {'back': back, 'moved': not torch.equal(first[0], ours.weight_u)}


def gradients():
    """A parameter without a gradient has none afterwards, and a backward inside a backward does not count as another one."""
    net = network()
    gradient, seen = Gradient(list(net.parameters())), []
    hooks, watch = gradient.watch(), BackwardWatch(lambda _: seen.append(gradient.touched))
    watch.start()
    inner = checkpoint(net[0], torch.randn(4, 5, requires_grad=True), **(
        {'use_reentrant': True} if torch.__version__ >= '2' else {}))
    inner.sum().backward()
    gradient.gather()
    gradient.put_back()
    present = [p.grad is not None for p in net.parameters()]
    torch.randn(3, requires_grad=True).sum().backward()
    gradient.clear()
    torch.randn(3, requires_grad=True).sum().backward()
    watch.stop()
    for hook in hooks:
        hook.remove()
    torch.randn(3, requires_grad=True).sum().backward()
    return {'seen': seen, 'present': present, 'count': gradient.count}


def refused():
    net, told = network(), {}

    def ask(name, call):
        try:
            call()
            told[name] = None
        except (NotImplementedError, TypeError, ValueError, RuntimeError) as error:
            told[name] = [type(error).__name__, str(error)]
    ask('max_norm', lambda: Job(nn.Sequential(nn.Embedding(5, 2, max_norm=1.0)), optim.SGD(net.parameters(), lr=1)))
    ask('no max_norm', lambda: Job(nn.EmbeddingBag(5, 2), optim.SGD(net.parameters(), lr=1)))
    ask('SyncBatchNorm', lambda: Job(nn.SyncBatchNorm.convert_sync_batchnorm(network()), optim.SGD(net.parameters(), lr=1)))
    ask('FSDP', lambda: refusals.check_model(type('FullyShardedDataParallel', (nn.Module,), {})()))
    ask('LBFGS', lambda: refusals.check_closures([optim.LBFGS(net.parameters())], None))
    ask('no optimizer', lambda: Job(net, net))
    ask('no model', lambda: Job(None, optim.SGD(net.parameters(), lr=1)))
    ask('reduction', lambda: Job(net, optim.SGD(net.parameters(), lr=1), reduction='max'))
    ask('no loader', lambda: Job(net, optim.SGD(net.parameters(), lr=1)).open())
    job = Job(net, optim.SGD(net.parameters(), lr=1))
    ask('sampler', lambda: job.loader([1, 2], 1, sampler=[0]))
    ask('dropped', lambda: job.loader([1, 2], 1, drop_last=True))
    ask('no option', lambda: job.loader([1, 2], 1, num_worker=2))
    ask('DataLoader', lambda: job.loader(DataLoader([1, 2]), 1))
    ask('empty', lambda: job.loader([], 1))
    ask('none of them', lambda: job.loader([1, 2], 1, sampler=None, batch_sampler=None, drop_last=False))
    ask('validation', lambda: job.loader([3], 1))
    ask('stateless', lambda: job.register('x', object()))
    return told


def numbers():
    """Returns what is said of each argument that is not a number, or too large or small."""
    net, told = network(), {}

    def job(**options):
        return Job(net, optim.SGD(net.parameters(), lr=1), **options)

    def load(**options):
        job().loader([1, 2], **{'batch_size': 1, **options})

    def shards(**options):
        Shards(**{'records': 2, 'shard': 1, **options})
    for call, name, value in ((job, 'micro_batches', -1), (job, 'micro_batches_per_worker', '3'), (job, 'micro_batches', 2.0), (job, 'checkpoint_steps', 2**32), (job, 'peer_ms', 2**63),
                              (load, 'batch_size', 2.5), (load, 'epochs', '3'), (load, 'epochs', 2**32), (load, 'shuffle', 'yes'),
                              (load, 'shuffle', -1), (load, 'seed', 2**70), (load, 'seed', -1), (load, 'shuffle', True), (load, 'shuffle', torch.tensor(False)),
                              (shards, 'shard', 2**32), (shards, 'records', 1.0)):
        try:
            call(**{name: value})
            told[f'{name} {value}'] = None
        except (TypeError, ValueError) as error:
            told[f'{name} {value}'] = str(error)
    return told


def wrapped():
    """Objects that Job has wrapped are saved, loaded and pickled as before, and their steps outside of a job work as before."""
    net = network()
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=9)
    average = optim.swa_utils.AveragedModel(net)
    job = Job(net, optimizer, scheduler)
    job.register('average', average)
    later = optim.lr_scheduler.StepLR(optimizer, 1)
    before = net[0].weight.clone()
    step(net, optimizer, 1)
    scheduler.step()
    later.step()
    average.update_parameters(net)
    pickle.loads(pickle.dumps(scheduler.state_dict()))
    pickle.loads(pickle.dumps(optimizer.state_dict()))
    return {'stepped': not torch.equal(before, net[0].weight), 'epoch': scheduler.last_epoch, 'averaged': int(average.n_averaged),
            'is': isinstance(scheduler, optim.lr_scheduler.OneCycleLR), 'type': type(scheduler).__name__}


def scaled():
    """Uses a GradScaler in a step of two passes, the second of which completes the step. torch 1.13 has no GradScaler for the CPU: it is disabled."""
    net, torch2 = network(), hasattr(torch, 'amp') and hasattr(torch.amp, 'GradScaler')
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler('cpu', init_scale=4.0, growth_interval=2) if torch2 else torch.cuda.amp.GradScaler(enabled=False)
    job = Job(net, optimizer)
    job.register('scaler', scaler)
    scales, moved = [], []
    for committed in (False, True, False, True):
        job.pass_ = Pass({'version': 1, 'epoch': 0, 'micro_batch': 0, 'records': [0], 'share': 1, 'micro_batches': 2, 'generation': 1, 'rank': 0,
                          'size': 1, 'micro_batch_records': 1, 'step_records': 1})
        job.pass_.given, job.pass_.committed = True, committed
        before = net[0].weight.clone()
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 5)).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        moved.append(not torch.equal(before, net[0].weight))
    return {'scales': scales, 'moved': moved, 'works': scaler.is_enabled()}


def keys():
    return {'apart': len({keyed.key(0, e, s, m) for e in range(5) for s in range(5) for m in range(5)}),
            'digest': keyed.environment_digest() == keyed.environment_digest() != 0}


def outside():
    """The undo copy contains a parameter that an optimizer has and the model does not."""
    net, scale = network(), nn.Parameter(torch.ones(1))
    undo = Undo([net], [optim.SGD([*net.parameters(), scale], lr=1)], [])
    undo.keep()
    with torch.no_grad():
        scale.add_(1)
    undo.put_back()
    return scale.item()


LOOKS = (joiners, no_trace, codes, statistics, copies, vectors, outside, gradients, refused, numbers, wrapped, scaled, keys)
print(json.dumps({look.__name__: look() for look in LOOKS}), flush=True)
