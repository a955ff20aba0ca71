# One image for everything: the service keeps its state in /data unless DATABASE_URL says otherwise.
# Name the base with its digest for a build that can be repeated: --build-arg NODE_IMAGE=node:24-slim@sha256:…
ARG NODE_IMAGE=node:24-slim
FROM ${NODE_IMAGE} AS build
# The build context has no .git folder. This commit is shown in /health, metrics and the log.
ARG VIDIMUS_COMMIT
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages/attack/package.json packages/attack/
COPY packages/client/package.json packages/client/
COPY packages/console/package.json packages/console/
COPY packages/wallet/package.json packages/wallet/
RUN npm ci
COPY . .
# The image brings its own Node, and nothing for developers.
RUN npm run build && npm run docs:build && npm prune --omit=dev && rm -rf node_modules/node-linux-* node_modules/@vidimus node_modules/.bin node_modules/.cache

FROM ${NODE_IMAGE}
# Others reach a container only where its ports are published.
ENV NODE_ENV=production DATA_FOLDER=/data HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/docs/site ./docs/site
COPY package.json LICENSE ./
COPY bootstrap/commands/vidimus.mjs bootstrap/commands/start-service.mjs ./bootstrap/commands/
# Group 0 may write as well: OpenShift runs the image as an arbitrary user of that group.
RUN mkdir /data && chown 1000:0 /data && chmod 770 /data
# By number: Kubernetes sees that it is not root.
USER 1000:1000
# All that is ever written; the rest may be read-only.
VOLUME /data
EXPOSE 3000
# Whether the process turns: engines end what is unhealthy, and a database that is away for a minute is no reason to. Whether
# it is to get requests, a proxy asks at /health/ready.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/health/live').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "bootstrap/commands/vidimus.mjs", "start"]
