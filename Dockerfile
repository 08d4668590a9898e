# Everything that is needed to build: compiler for ssh2's crypto binding, TypeScript for the package.
FROM node:24-bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends build-essential python3 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build
# What runs: no development packages, the image's own Node instead of the packaged one, ssh2 patched, and
# its binding built and tried.
RUN npm ci --ignore-scripts --omit=dev \
 && rm -rf node_modules/node-linux-* node_modules/.bin/node \
 && node bin/ready.mjs --strict

FROM node:24-bookworm-slim
ARG VERSION=unreleased
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Sallyport" \
      org.opencontainers.image.description="A privileged-access bastion for SSH, Telnet, rlogin, VNC and RDP" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# ffmpeg makes videos of recordings.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ffmpeg \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --home-dir /var/lib/sallyport --shell /usr/sbin/nologin sallyport \
 && useradd --system --no-create-home --shell /usr/sbin/nologin sallyport-session \
 && install -d -o sallyport -g sallyport -m 0700 /var/lib/sallyport
WORKDIR /opt/sallyport
COPY --from=build /src/package.json /src/LICENSE ./
COPY --from=build /src/bin/sallyport /src/bin/sallyport.js /src/bin/built.mjs /src/bin/lean.mjs \
     /src/bin/binding-works.cjs /src/bin/verify.mjs bin/
COPY --from=build /src/node_modules node_modules/
COPY --from=build /src/dist dist/
COPY --from=build /src/config config/
RUN install -d /etc/sallyport \
 && sed -e 's|^data_dir: .*|data_dir: /var/lib/sallyport|' -e '/^  metrics:/,/port:/s|host: .*|host: "::"|' \
    config/sallyport.yaml > /etc/sallyport/sallyport.yaml \
 && ln -s /opt/sallyport/bin/sallyport /usr/local/bin/sallyport
USER sallyport
VOLUME /var/lib/sallyport
EXPOSE 22 443 3389 5900 9464
# Of the port in the configuration's `listen.https`: override it with that. The certificate may be any: this asks itself.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "-e", "require('node:https').get({ host: '127.0.0.1', path: '/healthz', rejectUnauthorized: false }, (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# The master key is in the volume unless the configuration names another place: mount it from elsewhere.
# Metrics listen on all addresses of the container, which its own network alone reaches: publish the port to scrape them.
ENTRYPOINT ["sallyport"]
CMD ["serve", "--json", "--config", "/etc/sallyport/sallyport.yaml"]
