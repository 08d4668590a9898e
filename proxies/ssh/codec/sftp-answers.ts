/** SFTP's replies, and the packets that the bastion sends itself (draft-ietf-secsh-filexfer-02). */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { Reader } from './reader.ts'
import { ATTR_SIZE, FXP, pathText } from './sftp.ts'
import { Writer } from './writer.ts'

/** Section 5: flags of the attributes. */
const ATTR_UIDGID = 2
const ATTR_PERMISSIONS = 4
/** POSIX, st_mode: the type of a file. */
const KIND_MASK = 0o170000
const KIND_FOLDER = 0o040000

export type Answer =
  | { kind: 'name'; path: Uint8Array }
  /** `isFolder` is absent if the target does not report it. */
  | { kind: 'attributes'; size?: number; isFolder?: boolean }
  | { kind: 'status'; code: number; message: string }

/** Parses the reply to REALPATH, STAT or LSTAT. `body` follows the type. */
export function parseAnswer(type: number, body: Uint8Array): Answer {
  const reader = new Reader(body, `sftp answer ${type}`, 4)
  switch (type) {
    // uint32 id, uint32 code, string message, string language tag; some servers omit the strings
    case FXP.status: {
      const code = reader.uint32()
      return { kind: 'status', code, message: reader.remaining >= 4 ? pathText(reader.string()) : '' }
    }
    // uint32 id, uint32 count, then string filename, string longname, ATTRS for each
    case FXP.name: {
      const count = reader.uint32()
      if (count !== 1) throw new MalformedError(`sftp: one name was expected, found ${count}`)
      return { kind: 'name', path: reader.string() }
    }
    // uint32 id, uint32 flags, uint64 size, uint32 uid, uint32 gid, uint32 permissions, …
    case FXP.attrs: {
      const flags = reader.uint32()
      const size = (flags & ATTR_SIZE) === 0 ? {} : { size: reader.size() }
      if ((flags & ATTR_UIDGID) !== 0) reader.uint64()
      if ((flags & ATTR_PERMISSIONS) === 0) return { kind: 'attributes', ...size }
      return { kind: 'attributes', ...size, isFolder: (reader.uint32() & KIND_MASK) === KIND_FOLDER }
    }
  }
  throw new MalformedError(`sftp: a name, attributes or a status was expected, found type ${type}`)
}

export interface Extension {
  name: string
  data: Uint8Array
}

/** uint32 version, then string name, string data for each extension (section 4). */
export function parseVersion(body: Uint8Array): { version: number; extensions: Extension[] } {
  const reader = new Reader(body, 'sftp version')
  const version = reader.uint32()
  const extensions: Extension[] = []
  while (reader.remaining > 0) extensions.push({ name: latin1(reader.string()), data: reader.string() })
  return { version, extensions }
}

/** Builds length and type, then `head`; `rest` bytes follow separately. */
export function packetHead(type: number, head: Uint8Array, rest = 0): Buffer {
  return new Writer(5 + head.length)
    .uint32(1 + head.length + rest)
    .byte(type)
    .raw(head)
    .finish()
}

export function buildVersion(version: number, extensions: readonly Extension[]): Buffer {
  const body = new Writer().uint32(version)
  for (const { name, data } of extensions) body.string(Buffer.from(name, 'latin1')).string(data)
  return packetHead(FXP.version, body.finish())
}

export function buildStatus(id: number, code: number, message: string): Buffer {
  const body = new Writer(32 + message.length).uint32(id).uint32(code).string(message).string('en')
  return packetHead(FXP.status, body.finish())
}

/** `type`: REALPATH, STAT or LSTAT. */
export function buildPathRequest(type: number, id: number, path: Uint8Array): Buffer {
  return packetHead(type, new Writer(8 + path.length).uint32(id).string(path).finish())
}
