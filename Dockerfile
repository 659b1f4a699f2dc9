# The service alone. `npm ci` installs its runtime as a locked package, so the image only provides npm and the libraries
# of that runtime: images of Node 24 and older lack libatomic, which Node has needed since 25.
ARG BASE=node:26-bookworm-slim

# The pages at /docs/, which take development dependencies to make. Nothing else of this stage is in the image.
FROM ${BASE} AS site
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/partner/package.json packages/partner/
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run docs -- site

FROM ${BASE}
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/partner/package.json packages/partner/
# The last command fails the build if a library is missing.
RUN npm ci --omit=dev --no-audit --no-fund && node_modules/.bin/node --version
COPY src ./src
COPY packages ./packages
COPY --from=site /app/site ./site
# Without MALLOC_ARENA_MAX the C library keeps freed buffers apart for each thread (docs/operators.md).
ENV HOST=0.0.0.0 DATA_DIR=/tmp/grandlivre NODE_COMPILE_CACHE=/tmp/grandlivre/compile MALLOC_ARENA_MAX=1
USER node
EXPOSE 8080
# Whether to restart it, so nothing that it needs counts. Whether it takes requests, says /readyz.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=6 CMD ["node", "-e", \
  "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: the signal that stops the container must reach the service itself. Otherwise the same as `npm start`.
CMD ["node_modules/.bin/node", "--max-semi-space-size=4", "src/main.ts"]
