/** A broker's data folder with a session, made without a broker, and changes of a backup of it. */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RecordingWriter } from '../../recordings/container/writer.ts'
import { auditAnchor } from '../../src/audit/anchor.ts'
import { AuditLog } from '../../src/audit/log.ts'
import { type BackupOptions, makeBackup } from '../../src/backup/backup.ts'
import { type Manifest, signManifest } from '../../src/backup/manifest.ts'
import { type Restored, restoreBackup } from '../../src/backup/restore.ts'
import { type Foundation, openFoundation } from '../../src/broker/foundation.ts'
import type { Config } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/load.ts'
import { HOST_KEYS, newHostKey, writePublicHostKey } from '../../src/host/front-files.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import { serviceFile } from '../recording-service/service-file.ts'
import { BEGIN, ManualClock } from '../recordings/support.ts'

export interface House {
  /** Folder of all files of a test. */
  folder: string
  config: Config
  foundation: Foundation
  audit: AuditLog
  /** Makes a session with its recording; `closed`: with its end, as the broker stores it. */
  session(id: string, how: 'closed' | 'running' | 'unknown'): Promise<RecordingWriter>
  backup(name: string, change?: Partial<BackupOptions>): Promise<Manifest>
  /** Copies a backup, for changes. */
  copy(name: string): string
  /** Signs the manifest of that folder as the broker would, after `change`. */
  sign(folder: string, change: (manifest: Manifest) => void): void
  /**
   * Returns the same configuration for a data folder that does not exist; the master key is in its place. `url`: of
   * its database, absent for a file.
   */
  elsewhere(name: string, url?: string): Config
  close(): Promise<void>
}

export const SESSIONS = ['01JD0000000000000000000001', '01JD0000000000000000000002'] as const
const METADATA = {
  user: 'ops1',
  client: '198.51.100.7',
  target: 'root@local:srv1:ssh',
  host: '192.0.2.1',
  protocol: 'SSH',
}

/** `url`: of an empty database of a server. Absent for a file. */
export async function openHouse(url?: string): Promise<House> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-house-'))
  const masterKey = join(folder, 'master.key')
  const configOf = (name: string, url?: string) =>
    parseConfig(
      JSON.stringify({
        data_dir: join(folder, name),
        master_key: { file: masterKey },
        ...(url !== undefined && { database: { url } }),
      }),
      join(folder, 'sallyport.yaml'),
      { env: {}, hostname: 'bastion.example.com' },
    )
  const config = configOf('data', url)
  const foundation = await openFoundation(config)
  mkdirSync(join(config.dataDir, 'ssh'))
  for (const { name, type } of HOST_KEYS) {
    const key = newHostKey(type)
    writeFileSync(join(config.dataDir, 'ssh', name), key, { mode: 0o600 })
    writePublicHostKey(config.dataDir, name, key)
  }
  const { store, vault, recordingService } = foundation
  const audit = new AuditLog({
    repository: store.audit,
    now: Date.now,
    checkpoints: {
      key: recordingService.keys.signing,
      anchor: auditAnchor({ ...store, vault }),
      onError: (error) => {
        throw error
      },
    },
  })
  await audit.record('service.start', { object: 'test' })
  await audit.checkpoint({ always: true })
  let copies = 0
  const writers: RecordingWriter[] = []
  return {
    folder,
    config,
    foundation,
    audit,
    async session(id, how) {
      const { grant } = await recordingService.prepare(id, BEGIN, METADATA)
      const writer = await RecordingWriter.open(grant, {
        create: serviceFile(recordingService, id),
        sign: (statement) => recordingService.sign(id, statement),
        clock: new ManualClock(),
        onFailure: (error) => {
          throw error
        },
      })
      if (how !== 'closed') writers.push(writer)
      if (how !== 'unknown') {
        await audit.record('session.open', { session: id, user: 'ops1' })
        await store.sessions.create(sessionRow(id))
      }
      if (how === 'closed') {
        const { state, size, frames, digest } = await writer.close({ result: 'success' })
        await audit.record('recording.sealed', { session: id, size, digest })
        await store.sessions.update(id, {
          end: BEGIN + 1000,
          result: 'success',
          recording: { state, size, frames, digest },
        })
      }
      return writer
    },
    backup: (name, change = {}) =>
      makeBackup({
        config,
        recordingService,
        audit,
        folder: join(folder, name),
        withMasterKey: false,
        withRecordings: true,
        user: 'local:test',
        version: '1.0.0',
        signal: new AbortController().signal,
        now: Date.now,
        ...change,
      }),
    copy(name) {
      const copy = join(folder, `${name}-${++copies}`)
      cpSync(join(folder, name), copy, { recursive: true })
      return copy
    },
    sign(backup, change) {
      const path = join(backup, 'manifest.json')
      const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest
      change(manifest)
      const bytes = Buffer.from(JSON.stringify(manifest))
      writeFileSync(path, bytes)
      writeFileSync(join(backup, 'manifest.sig'), signManifest(bytes, recordingService.keys.signing))
    },
    elsewhere: configOf,
    async close() {
      await audit.close()
      await store.close()
      // A test may have closed it, or removed its file.
      for (const writer of writers) await writer.close({ result: 'failure' }).catch(() => undefined)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const sessionRow = (id: string): SessionRecord => ({
  id,
  begin: BEGIN,
  user: 'ops1',
  sourceIp: '198.51.100.7',
  protocol: 'SSH',
  subprotocols: [],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '192.0.2.1',
  authorization: 'ops:targets',
  isRecorded: true,
  bytesIn: 0,
  bytesOut: 0,
  recording: { state: 'open', size: 0, frames: 0, digest: '' },
})

export const restore = (config: Config, folder: string): Promise<Restored> =>
  restoreBackup({ config, folder, actor: { user: 'local:test' }, now: Date.now, environment: {} })

/** Updates the manifest's entry of a changed file. */
export function measureAgain(manifest: Manifest, backup: string, name: string): void {
  const bytes = readFileSync(join(backup, name))
  const entry = manifest.files.find(({ path }) => path === name)!
  entry.size = bytes.length
  entry.sha256 = createHash('sha256').update(bytes).digest('hex')
}

/** Returns the configuration's file of SQLite. */
export function databaseFile({ database }: Pick<Config, 'database'>): string {
  if ('file' in database) return database.file
  throw new Error('the database is a server’s')
}
