"""The state of LBFGS in memory of constant size: LBFGS keeps a list of past updates, which grows until it is full.

Each entry gets a row in one matrix when it is first shared. All other state (numbers, and which rows the lists have) is shared with the values
that are not tensors.
"""
import torch

_LISTS = ('old_dirs', 'old_stps')
_VECTORS = ('d', 'prev_flat_grad')


class HistorySlots:
    """The same as Slots, for an LBFGS optimizer."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        group, = optimizer.param_groups
        self.params = group['params']
        like = self.params[0]
        self.rows = 2 * group['history_size'] + len(_VECTORS)
        self.room = torch.zeros(self.rows, sum(param.numel() for param in self.params), dtype=like.dtype, device=like.device)
        self.index = {param: i for i, param in enumerate(self.params)}
        self.lists = {}  # for each list, the rows of its entries

    def _state(self):
        return self.optimizer.state.get(self.params[0], {})

    def _row_of(self, tensor):
        """Returns the number of the row whose memory the tensor is, or None."""
        size = self.room.stride(0) * self.room.element_size()
        offset = tensor.data_ptr() - self.room.data_ptr()
        return offset // size if 0 <= offset < size * self.rows and tensor.numel() == self.room.shape[1] else None

    def place(self):
        """Called before the state is published: new entries get a row."""
        state = self._state()
        self.lists = {name: [self._row_of(tensor) for tensor in state.get(name, [])] for name in _LISTS}
        used = {row for rows in self.lists.values() for row in rows}
        free = iter([row for row in range(len(_VECTORS), self.rows) if row not in used])
        for name, rows in self.lists.items():
            for i, row in enumerate(rows):
                if row is None:
                    row = rows[i] = next(free)
                    self.room[row].copy_(state[name][i])
                    state[name][i] = self.room[row]
        for row, name in enumerate(_VECTORS):
            if isinstance(state.get(name), torch.Tensor):
                self.room[row].copy_(state[name])

    def tensors(self):
        yield self.room

    def present(self):
        return ''.join('0' if self._state().get(name) is None else '1' for name in _VECTORS)

    def values(self):
        state = self._state()
        plain = {k: v for k, v in state.items() if k not in _VECTORS + _LISTS}
        return {0: {**plain, **{name: self.lists[name] for name in _LISTS if name in state}}} if state else {}

    def install(self, present, values):
        if len(present) != len(_VECTORS):
            raise ValueError('the other workers have another optimizer, or other parameters')
        state = self.optimizer.state[self.params[0]]
        state.clear()
        state.update(values.get(0, {}))
        for name in _LISTS:
            if name in state:
                state[name] = [self.room[row] for row in state[name]]
        for bit, (row, name) in zip(present, enumerate(_VECTORS)):
            if bit == '1':
                state[name] = self.room[row].clone()
        if not state:
            del self.optimizer.state[self.params[0]]
