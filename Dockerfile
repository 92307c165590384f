# coplay in a container. For a GPU: docker build --build-arg EXTRAS=web,hub,cuda12 --tag coplay .
#   docker build --tag coplay .
#   docker run --rm --volume "$PWD/runs:/home/player/runs" coplay train ppo --out runs/first

FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE ./
COPY coplay coplay
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
ARG EXTRAS=web,hub
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
RUN set -- /wheels/*.whl \
    && pip install --no-cache-dir --constraint /tmp/constraints.txt "$1[$EXTRAS]" \
    && useradd --create-home --uid 1000 player \
    && mkdir /home/player/runs \
    && chown player /home/player/runs
USER 1000
WORKDIR /home/player
ENTRYPOINT ["coplay"]
CMD ["doctor"]
