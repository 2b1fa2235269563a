# tftune's service. Not built here: no Docker in the test environment.
#   docker build -f docker/serve.Dockerfile -t tftune-serve .
FROM python:3.12-slim

WORKDIR /src
COPY . .
RUN pip install --no-cache-dir '.[serve]' \
    && useradd --create-home --uid 10001 tftune

USER tftune
WORKDIR /home/tftune
EXPOSE 8377
ENTRYPOINT ["tftune", "serve", "--host", "0.0.0.0"]
