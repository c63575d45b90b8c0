"""A script that does not use muster by itself: `redirect.py BACKEND|none`; prints the backend that it got, a sum, and more."""
import json
import os
import sys

import torch
import torch.distributed as dist

arguments = {} if sys.argv[1] == 'none' else {'backend': sys.argv[1]}
if 'RANK' in os.environ and 'MEETING' in os.environ and 'OMPI_COMM_WORLD_RANK' not in os.environ:
    arguments.update(init_method=os.environ['MEETING'], rank=int(os.environ['RANK']),
                     world_size=int(os.environ['WORLD_SIZE']))
dist.init_process_group(**arguments)
tensor = torch.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(tensor)
group = dist.new_group(list(range(dist.get_world_size())), backend='gloo')
print(json.dumps({'backend': dist.get_backend(), 'group': dist.get_backend(group), 'sum': tensor[0].item(),
                  'rank': dist.get_rank(), 'loaded': 'muster._muster' in sys.modules,
                  'from': getattr(sys.modules.get('muster'), '__file__', None)}))
