# tftune on a node of NVIDIA GPUs. Not built here: the machines that test tftune have no container
# runtime.
#
#   docker build -f docker/cuda.Dockerfile -t tftune .
#   docker run --rm --gpus all --ipc=host --ulimit memlock=-1 tftune
#
# The base image brings torch, its Triton and CUDA. Take the one that your server runs: a selection
# holds for one minor version of Triton (shipped artifacts: 3.6).
ARG BASE=pytorch/pytorch:latest
FROM ${BASE}

WORKDIR /opt/tftune
COPY . .
# Beside the image's own torch and Triton, which pip must not replace.
RUN python -m pip freeze | grep -E '^(torch|triton)==' > /tmp/kept.txt \
    && python -m pip install --no-cache-dir -c /tmp/kept.txt '.[tune,cuda]'

# Where NVLink multicast must stay off. tftune itself never uses it.
# ENV NCCL_NVLS_ENABLE=0

# /dev/shm must hold NCCL's buffers: --ipc=host. Iris locks memory: --ulimit memlock=-1.
CMD ["tftune", "doctor"]
