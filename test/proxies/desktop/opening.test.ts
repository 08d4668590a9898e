/** The opening of sessions with a desktop. */
import { expect, test } from 'vitest'
import { openDesktop } from '../../../proxies/desktop/opening.ts'
import { Connections } from '../../../proxies/session/connections.ts'
import { ProxySession } from '../../../proxies/session/session.ts'
import { TargetError } from '../../../proxies/wording/errors.ts'
import type { Gate, GateNotice, OpenSession } from '../../../src/contract/gate.ts'

test('one that was ended before it had begun here waits for no target', async () => {
  let notify: (notice: GateNotice) => void = () => undefined
  const opened = { id: 'S1', rights: [], target: {}, options: {} } as unknown as OpenSession
  const gate = {
    onNotice: (listener: typeof notify) => {
      notify = listener
    },
    open: async () => ({ result: 'opened', session: opened }),
    close: async () => undefined,
    event: async () => undefined,
  } as unknown as Gate
  class Session extends ProxySession {
    constructor() {
      super(opened, gate)
    }
  }
  const way = {
    protocol: 'VNC' as const,
    begin: async () => {
      notify({ type: 'stop', session: 'S1', reason: 'ended by admin' })
      return new Session()
    },
    reach: (_session: Session, _opened: OpenSession, signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => {
        const give = () => reject(new TargetError(String(signal.reason)))
        signal.addEventListener('abort', give)
        if (signal.aborted) give()
      }),
  }
  const connections = new Connections(gate)
  const identity = { token: 't', user: 'ops1', displayName: 'ops1', hasTarget: true }
  const source = { address: '127.0.0.1', port: 1 }
  const options = {
    gate,
    connections,
    identity,
    source,
    onHeld: () => undefined,
    onPatience: () => undefined,
  }
  const refusal = await openDesktop(options, way, {}, new AbortController().signal)
  expect(refusal).toEqual({ message: 'ended by admin' })
})
