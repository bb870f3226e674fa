# karpstack with its engines, for machines without Python, Go or a network. docs/how-to/container.md builds and uses it.
#
# The index of python:3.13-bookworm for all platforms, as docker-library/repo-info has it. It has git, which pull-request
# and whatif --base need, so nothing is installed from Debian, and the same inputs make the same image.
ARG BASE=docker.io/library/python:3.13-bookworm@sha256:227b6570d6ee07061ae6ca2eb04dedfb6d2b34045835f343065b9869e4d427ea

FROM ${BASE} AS build
# What `karpstack engines publish oci-archive:build/engines.tar` printed behind the @.
ARG ENGINES
# Files get another time in the image, so the time must not decide whether a compiled file is current.
ENV PYC_INVALIDATION_MODE=UNCHECKED_HASH
# Every package has its version and a digest in requirements.lock.
RUN --mount=type=bind,target=/source set -eu; \
    python -m venv /tmp/uv; \
    sed -n '/^uv==/,/[^\\]$/p' /source/requirements.lock > /tmp/uv.lock; \
    /tmp/uv/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes -r /tmp/uv.lock; \
    python -m venv --without-pip /opt/karpstack; \
    wheel=$(ls /source/build/release/karpstack-*-py3-none-any.whl); \
    /tmp/uv/bin/uv pip install --quiet --no-cache --only-binary :all: --compile-bytecode \
        --python /opt/karpstack/bin/python --constraint /source/requirements.lock \
        "karpstack[aws,azure,rehearsal] @ file://$wheel"; \
    info=$(echo /opt/karpstack/lib/python*/site-packages/karpstack-*.dist-info); \
    sed -i /uv_cache.json/d "$info/RECORD"; \
    rm "$info/uv_cache.json"  # it has the time of the wheel
RUN --mount=type=bind,target=/source set -eu; \
    KARPSTACK_CACHE=/cache KARPSTACK_ENGINES="oci-archive:/source/build/engines.tar@$ENGINES" \
    /opt/karpstack/bin/karpstack engines build; \
    rm /cache/engines/*/*.stamps.json  # they are of this file system

FROM ${BASE}
ARG VERSION
LABEL org.opencontainers.image.title="karpstack" \
      org.opencontainers.image.description="What Karpenter on EKS or AKS will do with a change, before you pay for it" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN echo "karpstack:x:10001:10001::/home/karpstack:/bin/bash" >> /etc/passwd; \
    echo "karpstack:x:10001:" >> /etc/group; \
    install -d -o 10001 -g 10001 -m 700 /home/karpstack /home/karpstack/.cache; \
    install -d -o 10001 -g 10001 /work
COPY --from=build /opt/karpstack /opt/karpstack
COPY --from=build --chown=10001:10001 /cache /home/karpstack/.cache/karpstack
ENV PATH=/opt/karpstack/bin:$PATH
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["karpstack"]
CMD ["--help"]
