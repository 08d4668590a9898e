/** A changer whose plugin for LDAP does as the login says: `waits` until a fault, `throws` in a callback, `loses` one later. */
import type { ChangePlugin } from '../../proxies/rotation/plugin.ts'
import { PLUGINS } from '../../proxies/rotation/plugins.ts'
import type { SignIn } from '../../src/contract/change.ts'

let busy = 0
const waiting: (() => void)[] = []
process.on('uncaughtException', () => {
  for (const release of waiting.splice(0)) release()
})

const fault = () => {
  throw new TypeError('Secret-Pass1')
}
const conducts: Readonly<Record<string, () => Promise<unknown>>> = {
  waits: () => new Promise<void>((resolve) => waiting.push(resolve)),
  throws: () => new Promise(() => setImmediate(fault)),
  hangs: () => new Promise(() => undefined),
  counts: async () => {
    busy++
    await new Promise((resolve) => setTimeout(resolve, 20))
    const most = busy
    busy--
    if (most > 8) throw new Error('too many at a time')
  },
  loses: async () => {
    setImmediate(() => setImmediate(fault))
  },
}
const plugin: ChangePlugin = {
  async verify(_target, { login }: SignIn) {
    await conducts[login]?.()
    return 'valid'
  },
  change: async () => undefined,
}
Object.assign(PLUGINS, { LDAP: async () => plugin })
await import('../../proxies/rotation/main.ts')
