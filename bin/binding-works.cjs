/**
 * Ends with 0 when ssh2's crypto binding works in the Node that runs this, with `--expose-gc`: it loads, and its
 * ciphers can be collected. One that was built for another ABI does not load, and one without object-wrap.h aborts.
 */
const { bindingAvailable, createCipher, init } = require('ssh2/lib/protocol/crypto.js')

const CIPHERS = 5_000

const outbound = () => ({
  onWrite: () => undefined,
  seqno: 0,
  cipherInfo: { sslName: 'aes-128-gcm', keyLen: 16, ivLen: 12, blockLen: 16, authLen: 16, stream: false },
  cipherKey: Buffer.alloc(16),
  cipherIV: Buffer.alloc(12),
})

init.then(() => {
  for (let n = 0; n < CIPHERS; n++) createCipher({ outbound: outbound() })
  setImmediate(() => {
    globalThis.gc()
    process.exit(bindingAvailable ? 0 : 1)
  })
})
