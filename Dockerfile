# The service alone. Node 26 comes with `npm ci` as a locked package, so the image only has to bring npm.
FROM node:22-bookworm-slim
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --no-audit --no-fund
COPY src ./src
ENV HOST=0.0.0.0 DATA_DIR=/tmp/grandlivre
USER node
EXPOSE 8080
# Not through npm: the signal that stops the container has to reach the service itself.
CMD ["node_modules/.bin/node", "src/main.ts"]
