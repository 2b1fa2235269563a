# tftune on a node of AMD GPUs. Not built here: the machines that test tftune have no container
# runtime, and nobody has run tftune on an MI300X yet (docs/mi300x.md).
#
#   docker build -f docker/rocm.Dockerfile -t tftune .
#   docker run --rm --device /dev/kfd --device /dev/dri --group-add video --group-add render \
#     --ipc=host --ulimit memlock=-1 tftune
#
# The base image brings torch and its Triton for ROCm 6.4 or later, which pip must not replace.
ARG BASE=rocm/pytorch:latest
FROM ${BASE}

WORKDIR /opt/tftune
COPY . .
# Without [cuda], which would bring a torch for CUDA. Iris comes from its repository.
RUN python -m pip install --no-cache-dir '.[tune]' \
    && python -m pip install --no-cache-dir --no-deps git+https://github.com/ROCm/iris \
    && python -c 'import torch; assert torch.version.hip, "torch for ROCm was replaced"'

# /dev/shm must hold RCCL's buffers: --ipc=host. Iris locks memory: --ulimit memlock=-1.
CMD ["tftune", "doctor"]
