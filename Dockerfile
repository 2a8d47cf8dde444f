# The runner passes no build arguments, so the default has to work there. It is a tag: docs/action.md
# says how to pin it by digest, and why no digest stands here.
ARG BASE=python:3.12-slim
FROM ${BASE}

# Hashes of every package, wheels only: nothing is built, and nothing unlisted comes in.
COPY requirements-action.txt /opt/backstop/
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    --only-binary :all: --require-hashes -r /opt/backstop/requirements-action.txt

COPY backstop /opt/backstop/backstop
COPY entrypoint.py /opt/backstop/
# Each run is a fresh container: bytecode that is not in the image would be compiled every time.
RUN python -m compileall -q /opt/backstop

# No USER: the runner mounts the daemon's socket and its command files with owners that only root
# can be sure to reach. -E -s: neither the step's PYTHON* variables nor HOME decide what is imported.
ENTRYPOINT ["python", "-Esu", "/opt/backstop/entrypoint.py"]
