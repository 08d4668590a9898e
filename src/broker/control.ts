/** The answers of a broker on its control socket. */
import { CONTROL_VERSION, type ControlStatus, type LinkedSession } from '../control/messages.ts'
import type { ControlHandler, ControlServer } from '../control/server.ts'
import type { BrokerGate } from '../gate/gate.ts'
import { holdOf } from '../gate/holds.ts'
import type { RunningSession } from '../gate/running.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'

export interface Controlled {
  gate: Pick<BrokerGate, 'running' | 'sessions' | 'kill' | 'suspend' | 'release'>
  state: () => ControlStatus['state']
  /** Begins to stop the broker. Without a grace the configured one holds. */
  stop: (reason: string, graceMs?: number) => void
  /** Leaves the data folder and the listeners to the broker `pid`, as long as it `isThere`. */
  handOver: (pid: number, graceMs: number | undefined, isThere: () => boolean) => Promise<void>
}

export function controlHandler({ gate, state, stop, handOver }: Controlled): ControlHandler {
  return {
    status: () => ({
      version: CONTROL_VERSION,
      schema: SCHEMA_VERSION,
      pid: process.pid,
      state: state(),
      sessions: gate.running,
    }),
    drain: ({ graceMs }) => stop('the bastion is stopping (drain)', graceMs),
    takeOver: ({ pid, graceMs }, isThere) => handOver(pid, graceMs, isThere),
    link: () => {
      if (state() !== 'replaced') throw new Error('expected a broker that was replaced')
      return Array.from(gate.sessions, linkedSession)
    },
    kill: ({ session, reason, by, apiKey }) => gate.kill(session, reason, by, apiKey),
    suspend: async ({ session, reason, by: name, apiKey }) => {
      const by = { name, ...(apiKey !== undefined && { apiKey }) }
      if (reason === undefined) return await gate.release(session, by)
      return (await gate.suspend(session, reason, by)) ? 'suspended' : 'not_running'
    },
  }
}

/** Reports to the linked brokers whose session's input is held, and whose no longer. */
export function reportHolds(
  gate: Pick<BrokerGate, 'onNotice' | 'holdOf'>,
  control: Pick<ControlServer, 'onHeld'>,
): void {
  gate.onNotice((notice) => {
    if (notice.type !== 'suspend' && notice.type !== 'resume') return
    control.onHeld(notice.session, gate.holdOf(notice.session))
  })
}

function linkedSession(session: RunningSession): LinkedSession {
  const { id, userId, target, begin, isRecorded } = session
  const { accountId } = target
  const hold = holdOf(session)
  return {
    id,
    userId,
    ...(accountId !== undefined && { accountId }),
    begin,
    isRecorded,
    ...(hold && { hold }),
  }
}
