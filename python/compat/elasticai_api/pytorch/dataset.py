"""ElasticDL's ElasticImageFolder."""
import sys

try:
    from torchvision.datasets import ImageFolder
except ImportError as _error:
    _missing = str(_error)

    class ImageFolder:
        """Replaces torchvision's class when torchvision is not installed."""

        def __init__(self, *args, **kwargs):
            raise ImportError(f'ElasticImageFolder is made of torchvision.datasets.ImageFolder: {_missing}')


class ElasticImageFolder(ImageFolder):
    """torchvision's ImageFolder(root, …), which asks a RecordIndexService for each record."""

    def __init__(self, root, data_shard_service=None, *args, **kwargs):
        self._data_shard_service = data_shard_service
        super().__init__(root, *args, **kwargs)

    def set_data_shard_service(self, data_shard_service):
        self._data_shard_service = data_shard_service

    def __len__(self):
        return sys.maxsize if self._data_shard_service else len(self.imgs)

    def __getitem__(self, index):
        if self._data_shard_service:
            index = self._data_shard_service.fetch_record_index()
        return super().__getitem__(index)
