/** Certificates and revocation lists made by ssh-keygen, and certificates that it would not make. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sshString } from './keys.ts'

export interface Workshop {
  folder: string
  /** Makes a key pair in files NAME and NAME.pub; returns the line of the .pub file. */
  key(name: string, type?: string, bits?: number): string
  /** Signs NAME.pub by the authority; returns the certificate's blob, which is in NAME-cert.pub. */
  certify(name: string, ca: string, args: string[]): Buffer
  /** Makes a revocation list of these lines, for certificates of `ca`, or with `none` of all. */
  revoke(spec: string[], ca?: string): Buffer
  blob(name: string): Buffer
  /** Returns the line of NAME.pub. */
  line(name: string): string
  /** Returns the output of `ssh-keygen -l`. */
  fingerprint(name: string): string
  remove(): void
}

export function openWorkshop(): Workshop {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-ca-'))
  const path = (name: string) => join(folder, name)
  const keygen = (...args: string[]) => execFileSync('ssh-keygen', ['-q', ...args], { cwd: folder })
  const blobIn = (file: string) => Buffer.from(readFileSync(file, 'utf8').split(' ')[1]!, 'base64')
  return {
    folder,
    key: (name, type = 'ed25519', bits) => {
      keygen(
        '-t',
        type,
        ...(bits === undefined ? [] : ['-b', String(bits)]),
        '-N',
        '',
        '-C',
        name,
        '-f',
        path(name),
      )
      return readFileSync(path(`${name}.pub`), 'utf8').trim()
    },
    certify: (name, ca, args) => {
      keygen('-s', path(ca), ...args, path(`${name}.pub`))
      return blobIn(path(`${name}-cert.pub`))
    },
    revoke: (spec, ca) => {
      writeFileSync(path('spec'), `${spec.join('\n')}\n`)
      keygen(
        '-k',
        '-f',
        path('krl'),
        ...(ca === undefined ? [] : ['-s', ca === 'none' ? ca : path(`${ca}.pub`)]),
        path('spec'),
      )
      return readFileSync(path('krl'))
    },
    blob: (name) => blobIn(path(`${name}.pub`)),
    line: (name) => readFileSync(path(`${name}.pub`), 'utf8').trim(),
    fingerprint: (name) => execFileSync('ssh-keygen', ['-l', '-f', path(`${name}.pub`)]).toString(),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const uint64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const pairOf = () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return { raw, privateKey, blob: Buffer.concat([sshString('ssh-ed25519'), sshString(raw)]) }
}

/** Makes an authority whose certificates may have any content; their signatures are valid. */
export function forger() {
  const ca = pairOf()
  const owner = pairOf()
  return {
    line: `ssh-ed25519 ${ca.blob.toString('base64')} forger`,
    /** Returns a signature field by the certificates' owner. */
    sign: (data: Uint8Array): Buffer =>
      Buffer.concat([sshString('ssh-ed25519'), sshString(sign(null, data, owner.privateKey))]),
    certificate: (more: {
      type?: number
      principals?: Uint8Array
      options?: [string, Uint8Array][]
      authority?: Uint8Array
      validAfter?: bigint
      validBefore?: bigint
      tail?: Uint8Array
    }): Buffer => {
      const options = (more.options ?? []).flatMap(([name, data]) => [sshString(name), sshString(data)])
      const body = Buffer.concat([
        sshString('ssh-ed25519-cert-v01@openssh.com'),
        sshString(randomBytes(32)),
        sshString(owner.raw),
        uint64(7n),
        uint32(more.type ?? 1),
        sshString('made up'),
        sshString(more.principals ?? sshString('ops1')),
        uint64(more.validAfter ?? 0n),
        uint64(more.validBefore ?? 0xffffffffffffffffn),
        sshString(Buffer.concat(options)),
        sshString(''),
        sshString(''),
        sshString(more.authority ?? ca.blob),
      ])
      const signature = Buffer.concat([sshString('ssh-ed25519'), sshString(sign(null, body, ca.privateKey))])
      return Buffer.concat([body, sshString(signature), more.tail ?? Buffer.alloc(0)])
    },
  }
}
