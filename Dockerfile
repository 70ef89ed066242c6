# The host with all bridges, as a user without rights. `docker run -i … aoc` serves one bridge over stdio instead.
# `python -m release.images --pin` renews the digest; a release is not built without.
ARG PYTHON=3.13.15-slim-bookworm@sha256:2325bb286ec344af3e5898cc224b5844e2707ac6e26b1632516fd3edc84a5e26

FROM python:${PYTHON} AS build
# `team` instead of `runtime` adds what OAuth and traces need.
ARG REQUIREMENTS=runtime
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements/ requirements/
RUN python -m venv /opt/bridgehead \
    && /opt/bridgehead/bin/pip install --require-hashes --requirement "requirements/${REQUIREMENTS}.txt" \
    && pip install --require-hashes --requirement requirements/build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src/ src/
RUN pip wheel --no-deps --no-index --no-build-isolation --wheel-dir wheel . \
    && /opt/bridgehead/bin/pip install --no-deps --no-index wheel/*.whl \
    && /opt/bridgehead/bin/pip uninstall --yes pip

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="Bridgehead" \
      org.opencontainers.image.description="MCP servers for Bitburner, Advent of Code and Mercury" \
      org.opencontainers.image.licenses="MIT"
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/bridgehead bridgehead \
    && install --directory --owner=bridgehead --group=bridgehead --mode=0700 /var/lib/bridgehead /data
COPY --from=build /opt/bridgehead /opt/bridgehead
COPY deploy/healthcheck.py /opt/bridgehead/healthcheck.py
# In a container, loopback is the container's own: who may reach the ports is decided where they are published.
ENV PATH=/opt/bridgehead/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    BRIDGEHEAD_STATE_DIR=/var/lib/bridgehead \
    MCP_SERVER_HOST=0.0.0.0 \
    MCP_SERVER_PORT=3000 \
    AOC_DATA_DIR=/data \
    BITBURNER_LISTEN=0.0.0.0:12525 \
    BITBURNER_ALLOW_REMOTE=1
USER 10001:10001
WORKDIR /data
VOLUME ["/var/lib/bridgehead", "/data"]
EXPOSE 3000 12525
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "/opt/bridgehead/healthcheck.py"]
ENTRYPOINT ["bridgehead"]
CMD ["serve"]
