/**
 * The identity of the SNMP engine, in a file of the data folder, and how often it was started: a count that never
 * goes back, so that no message of an earlier run is valid in a later one (RFC 3414 2.2). A file that is lost or
 * torn makes a new engine, whose keys are others. So it is in no backup.
 */
import { Buffer } from 'node:buffer'
import { closeSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeNew } from '../host/data-folder.ts'
import { type Engine, MAX_BOOTS } from '../snmp/agent.ts'

const FILE = 'snmp-engine.json'
const ID = /^[0-9a-f]{34}$/
/** RFC 3411 5, SnmpEngineID: the rest are octets of our choice. */
const FORMAT_OCTETS = 5
const RANDOM_LENGTH = 12

/** Counts one more start, which is on the disk when this returns. */
export function startSnmpEngine(
  dataDir: string,
  { enterprise, randomBytes }: { enterprise: number; randomBytes: (count: number) => Buffer },
): Engine {
  const file = join(dataDir, FILE)
  const last = readEngine(file)
  const engine =
    last && last.boots + 1 < MAX_BOOTS
      ? { id: last.id, boots: last.boots + 1 }
      : { id: newId(enterprise, randomBytes(RANDOM_LENGTH)), boots: 1 }
  writeNew(file, `${JSON.stringify({ id: engine.id.toString('hex'), boots: engine.boots })}\n`, 0o600)
  const folder = openSync(dataDir, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
  return engine
}

/** Returns undefined if there is no file, or one with other content than was written. */
function readEngine(file: string): Engine | undefined {
  try {
    const { id, boots } = JSON.parse(readFileSync(file, 'utf8'))
    if (!ID.test(id) || !Number.isSafeInteger(boots) || boots < 1) return undefined
    return { id: Buffer.from(id, 'hex'), boots }
  } catch {
    return undefined
  }
}

function newId(enterprise: number, octets: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE((enterprise | 0x80000000) >>> 0)
  head[4] = FORMAT_OCTETS
  return Buffer.concat([head, octets])
}
