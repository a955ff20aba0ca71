# One image for everything: the service keeps its state in /data unless DATABASE_URL says otherwise.
# Name it with its digest for a build that can be repeated: --build-arg NODE_IMAGE=node:24-slim@sha256:…
ARG NODE_IMAGE=node:24-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build

FROM ${NODE_IMAGE}
# Others reach a container only where its ports are published.
ENV NODE_ENV=production DATA_FOLDER=/data HOST=0.0.0.0
# Memory for a password hash goes back to the system when the hash is done, whichever thread made it.
ENV MALLOC_MMAP_THRESHOLD_=1048576 MALLOC_ARENA_MAX=2
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image brings its own Node.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* && npm cache clean --force && mkdir /data && chown node:node /data
COPY --from=build /app/dist ./dist
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# A young generation that requests fit into: a larger one saves nothing more, and takes memory.
CMD ["node", "--max-semi-space-size=8", "dist/bootstrap/main.js"]
