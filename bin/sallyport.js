#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// The installed program: the built JavaScript, since Node strips no types under node_modules.
const MINIMUM_NODE = 24
if (Number.parseInt(process.versions.node, 10) < MINIMUM_NODE) {
  console.error(`sallyport: Node ${MINIMUM_NODE} or newer is needed, this is ${process.version}`)
  process.exit(1)
}
await import('../dist/src/main.js')
