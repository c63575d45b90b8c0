"""The model and data of workers that count: each time that record i is trained, weight i grows by the learning rate, times the weight that the
step gives to the record."""
import torch
from torch import nn
from torch.utils.data import Dataset


class Numbers(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Ledger(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(count, dtype=torch.float64))

    def forward(self, records):
        return -self.weights[records]

    def counts(self):
        """Returns how often records were trained: each count that occurs, once."""
        weights = self.weights.detach()
        rounded = weights.round()
        assert (rounded - weights).abs().max() < 1e-6
        return sorted(set(int(v) for v in rounded.tolist()))
