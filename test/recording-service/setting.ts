/** Sessions with real recordings on the disk, a real store and a real, signed audit log. */
import { generateKeyPairSync } from 'node:crypto'
import { AuditLog } from '../../src/audit/log.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import { Deletion } from '../../src/recording-service/deletion.ts'
import type { Store } from '../../src/store/store.ts'
import { BEGIN, makeRoot, makeSigner, makeWriter } from '../recordings/support.ts'
import { temporaryStore } from '../store/temp.ts'

export const DAY = 86_400_000

export interface Setting {
  root: string
  /** The database file. */
  path: string
  store: Store
  audit: AuditLog
  deletion: Deletion
  key: ReturnType<typeof generateKeyPairSync>['privateKey']
  /** Milliseconds since the epoch, set by tests. */
  clock: { now: number }
  /**
   * Makes a session that began this many days after BEGIN, with its closed recording and its events; with
   * `open`, neither the store nor the audit log has its end.
   */
  session(number: number, change?: Partial<SessionRecord>, how?: { open: boolean }): Promise<SessionRecord>
  events(code: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

export const idOf = (number: number) => `01JD00000000000000000000${String(number).padStart(2, '0')}`

export async function startSetting(signer = makeSigner()): Promise<Setting> {
  const temporary = await temporaryStore()
  const { store } = temporary
  const root = makeRoot()
  const clock = { now: BEGIN }
  const key = generateKeyPairSync('ed25519').privateKey
  const audit = new AuditLog({
    repository: store.audit,
    now: () => clock.now,
    checkpoints: {
      key,
      anchor: { note: async () => {} },
      onError: (error) => {
        throw error
      },
    },
  })
  const deletion = new Deletion({ root, sessions: store.sessions, checkpoint: () => audit.checkpoint() })
  return {
    root,
    path: temporary.path,
    store,
    audit,
    deletion,
    key,
    clock,
    async session(number, change = {}, { open } = { open: false }) {
      const id = idOf(number)
      const { writer } = await makeWriter({ signer, root, session: id })
      const { state, size, frames, digest } = await writer.close({ result: 'success' })
      const session: SessionRecord = {
        id,
        begin: BEGIN + number * DAY,
        end: BEGIN + number * DAY + 1000,
        user: 'ops1',
        sourceIp: '198.51.100.7',
        protocol: 'SSH',
        subprotocols: [],
        account: 'root',
        domain: 'local',
        device: 'srv1',
        service: 'ssh',
        targetHost: '192.0.2.1',
        result: 'success',
        authorization: 'ops:targets',
        isRecorded: true,
        bytesIn: 0,
        bytesOut: 0,
        recording: { state, size, frames, digest },
        ...change,
      }
      await audit.record('session.open', { session: id })
      if (open) {
        const { end: _, result: __, ...running } = session
        const recording = { state: 'open' as const, size: 0, frames: 0, digest: '' }
        await store.sessions.create({ ...running, recording })
      } else {
        await audit.record('recording.sealed', { session: id, size, digest })
        await store.sessions.create(session)
      }
      return session
    },
    async events(code) {
      const rows = await store.audit.range(0, 1000)
      return rows.map(({ json }) => JSON.parse(json)).filter((event) => event.code === code)
    },
    async close() {
      await audit.close()
      await temporary.remove()
    },
  }
}
