#!/usr/bin/env node
/*
 * Verifies recordings and exported audit logs of Sallyport without trust in the bastion or its programs: one
 * file, Node 20 or newer, nothing else. It is written from docs/recording-format.md and docs/events.md
 * ("Proof"), shares no code with the bastion, and needs no secret: only the public key that signs, which the
 * auditor got by another way than the files (`sallyport audit key` prints it). With several, the first --key
 * is the present one, which has to have signed the end of the log; the others are the keys that it replaced.
 *
 *     node verify.mjs --key KEY [--audit EXPORT [--range]] [--head ROW:HASH] [--json] [RECORDING | FOLDER]…
 *
 * With --range the export is a part of the log (GET /events/proof): from a checkpoint to a checkpoint, of any trusted key.
 * What recordings it says nothing of proves nothing then, so it goes with no recordings.
 *
 * Exit code 0: all in order, 1: a fault was found, 2: wrong usage.
 */
import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// ---------------------------------------------------------------------------------------------------- bytes

const sha256 = (...parts) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** CRC-32 of IEEE 802.3: not every release of Node 20 has its own. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})
const crc32 = (bytes) => {
  let crc = 0xffffffff
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

/** Reads an integer of 8 bytes; no genuine file has one above 2^53. */
const uint64 = (bytes, at) => {
  const value = bytes.readBigUInt64BE(at)
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : undefined
}
const uint64Bytes = (value) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

/** Reads a file from beginning to end, in views that are valid until the next call of `has`. */
class Input {
  constructor(path) {
    this.file = openSync(path, 'r')
    this.buffer = Buffer.allocUnsafe(2 * 1024 * 1024)
    this.start = 0
    this.end = 0
    /** Offset of the next byte in the file. */
    this.offset = 0
  }
  /** Whether this many bytes follow. */
  has(length) {
    if (this.end - this.start >= length) return true
    this.buffer.copyWithin(0, this.start, this.end)
    this.end -= this.start
    this.start = 0
    while (this.end < length) {
      const read = readSync(this.file, this.buffer, this.end, this.buffer.length - this.end, null)
      if (read === 0) return false
      this.end += read
    }
    return true
  }
  peek(length) {
    return this.buffer.subarray(this.start, this.start + length)
  }
  take(length) {
    const view = this.peek(length)
    this.start += length
    this.offset += length
    return view
  }
  close() {
    closeSync(this.file)
  }
}

// ----------------------------------------------------------------------------------------------------- keys

/** Returns a public key of 32 bytes (RFC 8032) with its id. */
export function keyOf(raw) {
  const x = raw.toString('base64url')
  return {
    raw,
    id: sha256(raw).toString('hex').slice(0, 16),
    key: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
  }
}

/** Reads a key of the command line: 32 bytes in base64, or a file with that or with a PEM. */
function readKey(text) {
  const content = existsSync(text) ? readFileSync(text, 'utf8').trim() : text
  if (content.startsWith('-----BEGIN')) {
    return keyOf(Buffer.from(createPublicKey(content).export({ format: 'jwk' }).x ?? '', 'base64url'))
  }
  const raw = Buffer.from(content.split(/\s/)[0] ?? '', 'base64')
  if (raw.length !== 32)
    throw new Usage(`--key takes an Ed25519 key of 32 bytes in base64, or a file with one`)
  return keyOf(raw)
}

// ----------------------------------------------------------------------------------------------- recordings

const MAGIC = Buffer.from('53505245430d0a1a', 'hex')
const MAX_METADATA = 65_536
const MAX_BODY = 263_168
const MAX_PLAIN = 262_144
const GROUP = 1
const CHECKPOINT = 2
const KINDS = ['interim', 'sealed', 'recovered', 'failed']

class Fault extends Error {
  constructor(code, message, offset) {
    super(message)
    this.code = code
    this.offset = offset
  }
}
class Usage extends Error {}

/** Reads the header, the metadata and link 0. */
function readHeader(input) {
  const cut = () => new Fault('cut_tail', 'the file ends in its header', 0)
  if (!input.has(16)) throw cut()
  const prefix = input.peek(16)
  if (!prefix.subarray(0, 8).equals(MAGIC)) throw new Fault('not_a_recording', 'no magic at the beginning', 0)
  const version = prefix.readUInt16BE(8)
  if (version !== 1) throw new Fault('unsupported_version', `expected version 1, found ${version}`, 8)
  const length = prefix.readUInt32BE(12)
  if (prefix.readUInt16BE(10) !== 0 || length > MAX_METADATA) {
    throw new Fault('damaged_header', 'the length in the file header was changed', 10)
  }
  if (!input.has(16 + length + 32)) throw cut()
  const bytes = Buffer.from(input.take(16 + length + 32))
  const link = bytes.subarray(16 + length)
  if (!sha256(bytes.subarray(0, 16 + length)).equals(link)) {
    throw new Fault('damaged_header', 'the file header was changed', 0)
  }
  return { ...readMetadata(bytes.subarray(16, 16 + length)), link }
}

function readMetadata(bytes) {
  let metadata
  try {
    metadata = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Fault('bad_header', 'the metadata are no JSON', 16)
  }
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)
  if (!isObject || !Object.values(metadata).every((value) => ['string', 'number'].includes(typeof value))) {
    throw new Fault('bad_header', 'the metadata are no object of strings and numbers', 16)
  }
  const { session, signing_key: id, signing_public_key: encoded } = metadata
  const length = typeof session === 'string' ? Buffer.byteLength(session) : 0
  if (length < 1 || length > 64) throw new Fault('bad_header', 'no session id of 1 to 64 bytes', 16)
  const raw = Buffer.from(typeof encoded === 'string' ? encoded : '', 'base64')
  if (raw.length !== 32 || sha256(raw).toString('hex').slice(0, 16) !== id) {
    throw new Fault('bad_header', 'no signing key with its id', 16)
  }
  return { session, signer: keyOf(raw), begin: Date.parse(metadata.begin) }
}

/** Reads the 12 bytes before a record's body. */
function readRecordHeader(input) {
  const bytes = input.peek(12)
  const type = bytes[0]
  const length = bytes.readUIntBE(1, 3)
  const isWhole = crc32(bytes.subarray(0, 8)) === bytes.readUInt32BE(8)
  if (!isWhole || (type !== GROUP && type !== CHECKPOINT) || length > MAX_BODY) {
    throw new Fault(
      'damaged_header',
      `the header of the record at byte ${input.offset} was changed`,
      input.offset,
    )
  }
  return { type, length, sequence: bytes.readUInt32BE(4) }
}

/** Checks the number and shape of a group; its content needs the session's key. */
function checkGroup(body, number, offset) {
  const isGroup =
    body.length >= 24 + 16 &&
    body.readUInt32BE(0) === number &&
    body.readBigUInt64BE(4) <= BigInt(Number.MAX_SAFE_INTEGER - 0xffffffff) &&
    body[20] <= 1 &&
    body.readUIntBE(21, 3) <= MAX_PLAIN
  if (!isGroup) throw new Fault('bad_group', `the record at byte ${offset} is not group ${number}`, offset)
}

/** Checks a checkpoint's signature over the statement that the data before it gives; returns its kind. */
function checkCheckpoint(body, { session, signer }, place) {
  const { sequence, offset, link } = place
  const signed = body.subarray(0, Math.max(0, body.length - 64))
  const kind = KINDS[signed[0] ?? -1]
  const length = kind === 'interim' ? 17 : 49
  const isShaped = kind !== undefined && signed.length === length
  const numbers = []
  for (let at = 1; isShaped && at < length; at += 8) numbers.push(uint64(signed, at))
  const name = Buffer.from(session)
  const sequenceBytes = Buffer.alloc(4)
  sequenceBytes.writeUInt32BE(sequence)
  const statement = Buffer.concat([
    Buffer.from('sallyport-recording\x01', 'latin1'),
    Buffer.of(name.length),
    name,
    sequenceBytes,
    uint64Bytes(offset),
    link,
    signed,
  ])
  const isGood = isShaped && !numbers.includes(undefined)
  if (isGood && verifySignature(null, statement, signer.key, body.subarray(signed.length))) return kind
  throw new Fault('bad_signature', `the checkpoint at byte ${offset} is not signed by ${signer.id}`, offset)
}

/** Whether a record of this sequence comes later: then records were swapped, not removed. */
function comesLater(input, sequence) {
  try {
    while (input.has(12)) {
      const header = readRecordHeader(input)
      const length = 12 + header.length + 32
      if (!input.has(length)) return false
      if (header.sequence === sequence) return true
      input.take(length)
    }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
  }
  return false
}

/**
 * Walks the records to the file's end; returns what closed it. `noted` is how far the audit log has the
 * recording while it was written: the link there has to be the noted one. With `mayBeOpen` the log has no end
 * of it yet, and the file may be incomplete.
 */
function walk(input, header, { noted, mayBeOpen }) {
  let { link } = header
  let groups = 0
  let hasNoted = noted === undefined
  /** Bytes without the record that a recovery has appended. */
  let written = 0
  let time = 0
  const answer = (state) => {
    if (hasNoted) return { state, size: input.offset, digest: link.toString('hex') }
    if (written >= noted.size)
      throw new Fault('replaced_file', `the bytes up to ${noted.size} were written anew`)
    const seconds = Math.max(0, noted.milliseconds - Math.floor(time / 1000)) / 1000
    const message = `it had ${noted.size} bytes already, and has ${written} of them: at least ${seconds} s are missing`
    throw new Fault('lost_tail', message, written)
  }
  for (let sequence = 0; ; sequence++) {
    const { offset } = input
    const cut = () =>
      new Fault('cut_tail', `the file ends in record ${sequence}, which begins at byte ${offset}`, offset)
    if (!input.has(12)) {
      if (mayBeOpen) return answer('open')
      if (input.has(1)) throw cut()
      throw new Fault('not_closed', `the file ends at byte ${offset} without a closing record`, offset)
    }
    const record = readRecordHeader(input)
    if (record.sequence !== sequence) {
      const message = `expected record ${sequence} at byte ${offset}, found record ${record.sequence}`
      const isSwapped = record.sequence < sequence || comesLater(input, sequence)
      throw new Fault(isSwapped ? 'misplaced_record' : 'missing_records', message, offset)
    }
    if (!input.has(12 + record.length + 32)) {
      if (mayBeOpen) return answer('open')
      throw cut()
    }
    const bytes = input.take(12 + record.length + 32)
    const body = bytes.subarray(12, 12 + record.length)
    const next = bytes.subarray(12 + record.length)
    if (!sha256(link, bytes.subarray(0, 12), sha256(body)).equals(next)) {
      throw new Fault(
        'damaged_record',
        `record ${sequence} (at byte ${offset}) was changed, or is from elsewhere`,
        offset,
      )
    }
    let kind = 'interim'
    if (record.type === GROUP) checkGroup(body, groups++, offset)
    else kind = checkCheckpoint(body, header, { sequence, offset, link })
    link = Buffer.from(next)
    if (kind !== 'recovered') written = input.offset
    if (record.type === CHECKPOINT) time = uint64(body, 9)
    if (input.offset === noted?.size) hasNoted = link.toString('hex') === noted.digest
    if (kind !== 'interim') {
      if (input.has(1)) throw new Fault('trailing_data', 'bytes follow the closing record', input.offset)
      return answer(kind)
    }
  }
}

/**
 * Verifies one file. `keys` may have signed it, `session` is the expected session, `expected` the audit log's
 * statements about it (`{closed, noted, lost, ended}` as `verifyAudit` gathers them), or a function that
 * returns them for the file's session. Returns `{ok, state, size, digest}` or `{ok, fault}`.
 */
export function verifyRecording(path, { keys, session, expected }) {
  const input = new Input(path)
  try {
    const header = readHeader(input)
    if (session !== undefined && header.session !== session) {
      throw new Fault(
        'wrong_session',
        `expected the recording of ${session}, this is of ${header.session}`,
        0,
      )
    }
    if (!keys.some(({ raw }) => raw.equals(header.signer.raw))) {
      throw new Fault('unknown_signer', `signed by ${header.signer.id}, which is none of the trusted keys`, 0)
    }
    const known = typeof expected === 'function' ? expected(header.session) : expected
    const { closed, noted, lost, ended } = known ?? {}
    const found = walk(input, header, { noted, mayBeOpen: known !== undefined && !closed && !ended })
    if (lost !== undefined) throw new Fault('lost_tail', lost)
    if (closed && (closed.size !== found.size || closed.digest !== found.digest)) {
      throw new Fault('replaced_file', `expected ${closed.size} bytes with digest ${closed.digest}`)
    }
    return { ok: true, session: header.session, begin: header.begin, ...found }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { ok: false, fault: { code: error.code, message: error.message, offset: error.offset } }
  } finally {
    input.close()
  }
}

// ------------------------------------------------------------------------------------------------ audit log

const AUDIT_PREFIX = Buffer.from('sallyport-audit\x01', 'latin1')
const HASH_MEMBER = /^,"hash":"([0-9a-f]{64})"\}$/
/** An event has at most some hundred kilobytes; a longer line is no event. */
const MAX_LINE = 1024 * 1024
const HASH_MEMBER_LENGTH = ',"hash":"'.length + 64 + '"}'.length

/** Yields the lines of a file, as bytes. */
function* linesOf(path) {
  const file = openSync(path, 'r')
  try {
    const chunk = Buffer.allocUnsafe(1024 * 1024)
    let rest = Buffer.alloc(0)
    for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
      rest = Buffer.concat([rest, chunk.subarray(0, read)])
      let start = 0
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10, start)) {
        yield rest.subarray(start, end)
        start = end + 1
      }
      rest = rest.subarray(start)
      if (rest.length > MAX_LINE) break
    }
    if (rest.length > 0) yield rest
  } finally {
    closeSync(file)
  }
}

/** Splits a line into the hashed bytes, their event, and the hash behind them. */
function readLine(line, number) {
  const bad = () => new Fault('bad_event', `line ${number} is no event with its hash`)
  const hash = HASH_MEMBER.exec(line.subarray(-HASH_MEMBER_LENGTH).toString('latin1'))?.[1]
  if (hash === undefined) throw bad()
  const hashed = Buffer.concat([line.subarray(0, -HASH_MEMBER_LENGTH), Buffer.from('}')])
  try {
    const event = JSON.parse(hashed.toString('utf8'))
    const { sequence, time, fields } = event
    const isEvent = Number.isSafeInteger(sequence) && Number.isSafeInteger(time) && time >= 0
    if (!isEvent || typeof fields !== 'object' || fields === null) throw bad()
    return { hashed, event, hash: Buffer.from(hash, 'hex') }
  } catch {
    throw bad()
  }
}

function checkAuditCheckpoint({ sequence, time, fields }, before, keys, announced) {
  if (announced !== undefined && fields.signer !== announced) {
    const message = `row ${sequence} is signed by ${fields.signer}, which ${announced} has come in the place of`
    throw new Fault('unknown_signer', message)
  }
  const signer = keys.find(({ id }) => id === fields.signer)
  if (!signer) {
    throw new Fault(
      'unknown_signer',
      `row ${sequence} is signed by ${fields.signer}, which is none of the trusted keys`,
    )
  }
  const statement = Buffer.concat([AUDIT_PREFIX, uint64Bytes(sequence), uint64Bytes(time), before])
  if (!verifySignature(null, statement, signer.key, Buffer.from(String(fields.signature), 'base64'))) {
    throw new Fault('bad_signature', `the checkpoint of row ${sequence} does not sign the rows before it`)
  }
}

const HANDOVER_PREFIX = Buffer.from('sallyport-handover\x01', 'latin1')

/**
 * Returns the last row that a signed handover declares removed, with its hash, or undefined for any other
 * event.
 */
function handedOver({ code, fields }, keys) {
  const { object, digest, count, signature, signer } = fields
  const sequence = Number(object)
  const isWhole = Number.isSafeInteger(sequence) && sequence > 0 && Number.isSafeInteger(count) && count > 0
  const key = keys.find(({ id }) => id === signer)
  if (code !== 'audit.handover' || !isWhole || !key || !/^[0-9a-f]{64}$/.test(String(digest)))
    return undefined
  const hash = Buffer.from(digest, 'hex')
  const statement = Buffer.concat([HANDOVER_PREFIX, uint64Bytes(sequence), uint64Bytes(count), hash])
  const isSigned = verifySignature(null, statement, key.key, Buffer.from(String(signature), 'base64'))
  return isSigned ? { sequence, hash } : undefined
}

/** Returns where a log begins: behind the rows of the furthest handover, or with its first row. */
function beginningOf(path, keys) {
  let first
  let farthest
  for (const line of linesOf(path)) {
    if (first !== undefined && !line.includes('"audit.handover"')) continue
    let event
    try {
      event = readLine(line, 1).event
    } catch {
      return undefined
    }
    first ??= event.sequence
    const handover = handedOver(event, keys)
    if (handover && handover.sequence > (farthest?.sequence ?? 0)) farthest = handover
  }
  return farthest && first > 1 && farthest.sequence >= first - 1 ? farthest : undefined
}

/**
 * Gathers how far recordings had come: `SESSION:BYTES:DIGEST:MILLISECONDS`, one after the other; the furthest
 * counts.
 */
function gatherProgress(sessions, entries) {
  for (const entry of entries.split(' ')) {
    const [, session, size, digest, milliseconds] =
      /^([^: ]{1,64}):(\d{1,15}):([0-9a-f]{64}):(\d{1,15})$/.exec(entry) ?? []
    if (milliseconds === undefined) continue
    const known = sessions.get(session) ?? {}
    const noted = { size: Number(size), digest, milliseconds: Number(milliseconds) }
    if ((known.noted?.size ?? 0) < noted.size) sessions.set(session, { ...known, noted })
  }
}

/** Gathers the log's statements about each session's recording. */
function gather(sessions, { code, time, fields }) {
  if (code === 'recording.progress' || code === 'audit.kept')
    gatherProgress(sessions, String(fields.object ?? ''))
  if (fields.session === undefined) return
  const known = sessions.get(fields.session) ?? {}
  const change = (more) => sessions.set(fields.session, Object.assign(known, more))
  if (code === 'audit.kept') {
    change({ ended: true })
    if (fields.result === 'lost') change({ lost: String(fields.reason ?? '?') })
    if (fields.digest !== undefined) change({ closed: { size: fields.size, digest: fields.digest } })
  }
  if (code === 'session.open') change({})
  if (code === 'session.close') change({ ended: true })
  if (/^recording\.(sealed|recovered|failed|found)$/.test(code)) {
    if (fields.result === 'lost') change({ lost: String(fields.reason ?? '?') })
    if (fields.digest !== undefined) change({ closed: { size: fields.size, digest: fields.digest } })
  }
  if (code === 'recording.deleted') {
    const { digest, size = 0, user, method, reason } = fields
    const sentence = `deleted ${new Date(time).toISOString()} by ${user ?? method}: ${reason ?? '?'}`
    change({ tombstone: fields.result === 'failure' ? undefined : { digest, size, sentence } })
  }
  // `audit.kept` repeats removed rows behind a tombstone that was made while they existed.
  if (code === 'recording.deleted' || code === 'audit.kept') change({ deleted: sentenceOf(known) })
}

/**
 * Returns the statement of a valid tombstone: it holds for the recording with its digest only, not for a
 * replacement.
 */
function sentenceOf({ tombstone, closed, noted, lost }) {
  if (!tombstone) return undefined
  // A recording that was never closed and is missing was not there to be deleted.
  const stands = closed
    ? closed.digest === tombstone.digest
    : lost === undefined && tombstone.size >= (noted?.size ?? 0)
  return stands ? tombstone.sentence : undefined
}

/**
 * Returns where a range begins: a checkpoint at its first row names the hash that the row rests on, and signs it, or a
 * known head does. Undefined if it is the log's first row, or nothing vouches for the beginning.
 */
function beginningOfRange(path, heads) {
  for (const line of linesOf(path)) {
    let event
    try {
      event = readLine(line, 1).event
    } catch {
      return undefined
    }
    const { code, sequence, fields } = event
    const known = heads.find((head) => head.sequence === sequence - 1)
    if (known) return { sequence: sequence - 1, hash: Buffer.from(known.hash, 'hex') }
    const isCheckpoint = code === 'audit.checkpoint' && /^[0-9a-f]{64}$/.test(String(fields.digest))
    return isCheckpoint && sequence > 1
      ? { sequence: sequence - 1, hash: Buffer.from(fields.digest, 'hex') }
      : undefined
  }
  return undefined
}

/**
 * Verifies an exported audit log (`sallyport audit export`), or a range of it. `heads` are rows known from elsewhere,
 * `{sequence, hash}` in hex. Returns `{ok, rows, head, sessions, since}`, with the first fault if any.
 */
export function verifyAudit(path, { keys, heads = [], isRange = false }) {
  const sessions = new Map()
  const begin = isRange ? beginningOfRange(path, heads) : beginningOf(path, keys)
  const before = begin?.sequence ?? 0
  let next = before + 1
  let signed = before
  let previous = begin?.hash ?? Buffer.alloc(32)
  /** Id of the key that has to sign from here on, once the log names it. */
  let signer
  /** Id of the key of the last checkpoint. */
  let last
  let gap
  /**
   * When the log begins, in milliseconds since 1970, if not with its first row: it has no earlier sessions.
   */
  let since
  const verdict = (fault) => ({
    ok: fault === undefined,
    rows: next - 1 - before,
    ...(begin && (isRange ? { first: before + 1 } : { removed: before })),
    head: previous.toString('hex'),
    sessions,
    since,
    ...(fault && { fault: { code: fault.code, row: next, message: fault.message } }),
  })
  try {
    for (const line of linesOf(path)) {
      const { hashed, event, hash } = readLine(line, next)
      // about to be removed
      if (event.sequence <= before && next === before + 1) continue
      since ??= event.sequence > 1 ? event.time : Number.NEGATIVE_INFINITY
      if (gap) {
        if (event.sequence === next) throw new Fault('misplaced_event', `row ${next} is not in its place`)
        continue
      }
      if (event.sequence < next)
        throw new Fault('misplaced_event', `row ${event.sequence} stands here once more`)
      if (event.sequence > next) {
        gap = new Fault('missing_events', `row ${next} is missing: the next one is ${event.sequence}`)
        continue
      }
      if (!sha256(previous, hashed).equals(hash)) {
        throw new Fault('changed_event', 'the hash does not fit: this row was changed, or the one before it')
      }
      const known = heads.find(({ sequence }) => sequence === next)
      if (known && known.hash !== hash.toString('hex')) {
        throw new Fault('replaced_log', `expected the hash ${known.hash} in this row`)
      }
      if (event.code === 'audit.checkpoint') {
        checkAuditCheckpoint(event, previous, keys, signer)
        signed = next
        last = event.fields.signer
      }
      if (event.code === 'secret.change' && event.fields.object_type === 'signing_key')
        signer = event.fields.signer
      // The key of the handover signs from here on.
      if (handedOver(event, keys)) signer = event.fields.signer
      gather(sessions, event)
      previous = hash
      next++
    }
    if (gap) throw gap
    const unseen = isRange ? undefined : heads.find(({ sequence }) => sequence >= next)
    if (unseen)
      throw new Fault('cut_tail', `the log ends before row ${next}, but it had row ${unseen.sequence}`)
    if (!isRange && last !== undefined && last !== keys[0]?.id) {
      const message = `the last checkpoint is signed by ${last}, which ${keys[0]?.id} has come in the place of`
      throw new Fault('unknown_signer', message)
    }
    // A log without any row is invalid: the broker's first event is its own start.
    if (signed === before || signed !== next - 1)
      throw new Fault('cut_tail', 'the log does not end with a checkpoint, as an export does')
    return verdict()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return verdict(gap && error.code === 'bad_event' ? gap : error)
  }
}

// --------------------------------------------------------------------------------------------- command line

/** Removes control characters: a target's text must not control the auditor's terminal. */
const plain = (text) =>
  String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, '?')

/** Finds the recordings below a path: the file itself, or in a folder every session.rec. */
function* recordingsIn(path) {
  if (!statSync(path).isDirectory()) return yield { path }
  for (const entry of readdirSync(path, { withFileTypes: true, recursive: true })) {
    const folder = entry.parentPath ?? entry.path
    if (entry.isFile() && entry.name === 'session.rec') {
      yield { path: join(folder, entry.name), session: basename(folder) }
    }
  }
}

function main(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      key: { type: 'string', multiple: true },
      audit: { type: 'string' },
      range: { type: 'boolean' },
      head: { type: 'string', multiple: true },
      json: { type: 'boolean' },
    },
  })
  if (!values.key || (positionals.length === 0 && values.audit === undefined)) {
    throw new Usage(
      'usage: verify.mjs --key KEY [--audit EXPORT [--range]] [--head ROW:HASH] [--json] [RECORDING | FOLDER]…',
    )
  }
  if (values.range && (values.audit === undefined || positionals.length > 0)) {
    throw new Usage(
      '--range goes with --audit, and without recordings: a part of the log is no evidence of all of them',
    )
  }
  const keys = values.key.map(readKey)
  const heads = (values.head ?? []).map((text) => {
    const [, row, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? []
    if (hash === undefined) throw new Usage('--head takes ROW:HASH')
    return { sequence: Number(row), hash }
  })
  let inOrder = true
  const say = (name, verdict, text) => {
    if (!verdict.ok) inOrder = false
    const { fault } = verdict
    const line = fault ? `${fault.code}: ${fault.message}` : `ok, ${text}`
    console.log(values.json ? JSON.stringify({ name, ...verdict }) : `${plain(name)}  ${plain(line)}`)
  }
  let sessions
  let since
  if (values.audit !== undefined) {
    const {
      sessions: gathered,
      since: begins,
      ...verdict
    } = verifyAudit(values.audit, {
      keys,
      heads,
      isRange: values.range,
    })
    const from = verdict.first === undefined ? '' : ` from row ${verdict.first} on`
    say(values.audit, verdict, `${verdict.rows} rows${from}, head ${verdict.head}`)
    // With a gap in the log, its statements about recordings are no evidence.
    if (verdict.ok) sessions = gathered
    since = begins
  }
  const seen = new Set()
  for (const { path, session } of positionals.flatMap((one) => [...recordingsIn(one)])) {
    const name = session ?? basename(dirname(path))
    // Uses the session that the file names: the file itself may have any name.
    const { begin, ...verdict } = verifyRecording(path, {
      keys,
      session,
      expected: (id) => sessions?.get(id),
    })
    seen.add(verdict.session ?? name)
    if (verdict.ok && sessions && !sessions.has(verdict.session) && !(begin < since)) {
      const message = 'the audit log knows no such session'
      say(path, { ...verdict, ok: false, fault: { code: 'unknown_session', message } })
    } else say(path, verdict, `${verdict.state}: ${verdict.size} bytes, digest ${verdict.digest}`)
  }
  const isFolderGiven = positionals.some((path) => statSync(path).isDirectory())
  for (const [session, { closed, noted, lost, deleted }] of isFolderGiven && sessions ? sessions : []) {
    if (seen.has(session)) continue
    if (deleted !== undefined) say(session, { ok: true, deleted }, deleted)
    else if (closed || noted || lost !== undefined) {
      const digest = (closed ?? noted)?.digest
      const what = digest === undefined ? 'the recording' : `the recording with digest ${digest}`
      const message = `${what} is not there, and nothing says why`
      say(session, { ok: false, fault: { code: 'missing_session', message } })
    }
  }
  return inOrder ? 0 : 1
}

// Runs under any file name: a verifier that did nothing would seem to have found all in order.
if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = main(process.argv.slice(2))
  } catch (error) {
    console.error(`verify: ${plain(error instanceof Error ? error.message : error)}`)
    process.exitCode = 2
  }
}
