/**
 * The client's side of the handshake (RFC 6143 section 7.1, VeNCrypt 0.2, Tight), up to the server's
 * ServerInit. Uses the first allowed type that the server offers and the credential fits. If the type shows
 * the server's certificate or key, `judge` accepts that before any secret is sent.
 */
import { Buffer } from 'node:buffer'
import { VNC_CHALLENGE_BYTES, vncAuthResponse } from '../../../src/model/vnc-auth.ts'
import type { VncSecurityType } from '../../../src/model/vnc-options.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { type ClientChannel, readUint8, readUint32, type TlsIdentity, uint32 } from './channel.ts'
import { plainBytes, type UserPassword } from './credentials.ts'
import { sendAppleDh, sendMsLogon } from './diffie-hellman.ts'
import { RESULT, SECURITY, TIGHT_AUTH, VENCRYPT, VENCRYPT_VERSION } from './numbers.ts'
import { readReason } from './result.ts'
import { RA2_256_KIND, RA2_KIND, sendRsaAes } from './rsa-aes.ts'
import { readTightTypes } from './tight.ts'
import { parseVersion, VERSION_BYTES, type Version, versionBytes } from './version.ts'

/** Types that contain others: a client that has chosen one sees its contents, and cannot choose again. */
export type Container = 'vencrypt' | 'tight'

export interface SignInOptions {
  /** In order of preference. */
  allowed: readonly VncSecurityType[]
  /** Containers without a usable type: another connection avoids them. */
  without: ReadonlySet<Container>
  /** Empty if there is none. */
  user: string
  password: string | undefined
  isShared: boolean
  /** Rejects to refuse the server. `key`: a certificate (X.509, DER), or a bare RSA key (SPKI, DER). */
  judge: (kind: 'x509' | 'rsa', key: Uint8Array) => Promise<void>
}

export interface SecurityResult {
  security: VncSecurityType
  version: Version
  /** Set if Tight's additions follow ServerInit. */
  isTight: boolean
}

/** The reason for a failed sign-in. */
export type Refusal =
  /** The server accepts no clients now, and has requested no credential. */
  | { kind: 'busy'; reason: string | undefined }
  | { kind: 'credential'; security: VncSecurityType; isTooMany: boolean; reason: string | undefined }
  /**
   * No offered type is allowed and fits; `within`: the container of the offered types, outside of which
   * others may fit.
   */
  | { kind: 'no-type'; offered: string[]; within?: Container }
  /** The server has offered TLS, and has no certificate for it or cannot start it. */
  | { kind: 'no-tls'; security: VncSecurityType }

export class RefusedError extends Error {
  override name = 'RefusedError'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(`refused: ${refusal.kind}`)
    this.refusal = refusal
  }
}

const TOP: Readonly<Record<number, VncSecurityType>> = {
  [SECURITY.NONE]: 'none',
  [SECURITY.VNC_AUTH]: 'vncauth',
  [SECURITY.RA2]: 'ra2',
  [SECURITY.RA2_256]: 'ra2_256',
  [SECURITY.APPLE_DH]: 'apple_dh',
  [SECURITY.MS_LOGON_II]: 'mslogon2',
}
const CONTAINERS: Readonly<Record<number, Container>> = {
  [SECURITY.VENCRYPT]: 'vencrypt',
  [SECURITY.TIGHT]: 'tight',
}
const WITHIN_VENCRYPT: Readonly<Record<number, VncSecurityType>> = {
  [VENCRYPT.PLAIN]: 'plain',
  [VENCRYPT.TLS_NONE]: 'tlsnone',
  [VENCRYPT.TLS_VNC]: 'tlsvnc',
  [VENCRYPT.TLS_PLAIN]: 'tlsplain',
  [VENCRYPT.X509_NONE]: 'x509none',
  [VENCRYPT.X509_VNC]: 'x509vnc',
  [VENCRYPT.X509_PLAIN]: 'x509plain',
}
const WITHIN_TIGHT: Readonly<Record<number, VncSecurityType>> = {
  [TIGHT_AUTH.NONE]: 'none',
  [TIGHT_AUTH.VNC]: 'vncauth',
  [TIGHT_AUTH.UNIX_LOGIN]: 'plain',
}
/** The types that each container may have. */
const CONTENTS: Readonly<Record<Container, ReadonlySet<VncSecurityType>>> = {
  vencrypt: new Set(Object.values(WITHIN_VENCRYPT)),
  tight: new Set(Object.values(WITHIN_TIGHT)),
}

/**
 * Resolves when ClientInit is sent. Rejects with RefusedError, MalformedError, EndedError, or the error of
 * `judge`.
 */
export async function signIn(channel: ClientChannel, options: SignInOptions): Promise<SecurityResult> {
  const version = parseVersion(await channel.read(VERSION_BYTES))
  channel.write(versionBytes(version))
  const fitting = options.allowed.filter((type) => fits(type, options))
  const chosen =
    version === 3.3 ? await decided(channel, fitting) : await choose(channel, fitting, options.without)
  const { security } = chosen
  await prove(channel, security, options)
  // Before 3.8, servers without authentication send no SecurityResult.
  const isSilent = security === 'none' && version !== 3.8
  if (!isSilent) await readResult(channel, version, security)
  channel.write(Buffer.from([options.isShared ? 1 : 0]))
  return { ...chosen, version }
}

/** Returns true if the type's credential is present. RA2 decides late whether it needs a user name, too. */
function fits(type: VncSecurityType, { user, password }: SignInOptions): boolean {
  switch (type) {
    case 'none':
    case 'tlsnone':
    case 'x509none':
      return true
    case 'vncauth':
    case 'tlsvnc':
    case 'x509vnc':
    case 'ra2':
    case 'ra2_256':
      return password !== undefined
    default:
      return password !== undefined && user !== ''
  }
}

type Chosen = Omit<SecurityResult, 'version'>

/** Version 3.3: the server has decided. */
async function decided(channel: ClientChannel, fitting: readonly VncSecurityType[]): Promise<Chosen> {
  const number = await readUint32(channel)
  if (number === 0) throw new RefusedError({ kind: 'busy', reason: await readReason(channel) })
  const security = fitting.find((type) => type === TOP[number])
  if (!security) throw new RefusedError({ kind: 'no-type', offered: [nameOf(TOP, number)] })
  return { security, isTight: false }
}

async function choose(
  channel: ClientChannel,
  fitting: readonly VncSecurityType[],
  without: ReadonlySet<Container>,
): Promise<Chosen> {
  const count = await readUint8(channel)
  if (count === 0) throw new RefusedError({ kind: 'busy', reason: await readReason(channel) })
  const offered = [...(await channel.read(count))]
  for (const security of fitting) {
    const top = offered.find((number) => TOP[number] === security)
    if (top !== undefined) {
      channel.write(Buffer.from([top]))
      return { security, isTight: false }
    }
    const within = offered.find((number) => {
      const container = CONTAINERS[number]
      return container !== undefined && !without.has(container) && CONTENTS[container].has(security)
    })
    if (within === undefined) continue
    channel.write(Buffer.from([within]))
    return CONTAINERS[within] === 'tight'
      ? await chooseInTight(channel, fitting)
      : await chooseInVencrypt(channel, fitting)
  }
  throw new RefusedError({ kind: 'no-type', offered: offered.map((number) => nameOf(TOP, number)) })
}

async function chooseInVencrypt(
  channel: ClientChannel,
  fitting: readonly VncSecurityType[],
): Promise<Chosen> {
  const theirs = await channel.read(VENCRYPT_VERSION.length)
  if (theirs.compare(Buffer.from(VENCRYPT_VERSION)) < 0) {
    throw new MalformedError(`vnc: VeNCrypt 0.2 was expected, found ${theirs.join('.')}`)
  }
  channel.write(Buffer.from(VENCRYPT_VERSION))
  if ((await readUint8(channel)) !== 0) {
    throw new MalformedError('vnc: VeNCrypt 0.2 was expected, the server does not speak it')
  }
  const offered: number[] = []
  for (let left = await readUint8(channel); left > 0; left--) offered.push(await readUint32(channel))
  const security = fitting.find((type) => offered.some((number) => WITHIN_VENCRYPT[number] === type))
  const number = offered.find((one) => security !== undefined && WITHIN_VENCRYPT[one] === security)
  if (security === undefined || number === undefined) {
    const names = offered.map((one) => nameOf(WITHIN_VENCRYPT, one))
    throw new RefusedError({ kind: 'no-type', offered: names, within: 'vencrypt' })
  }
  channel.write(uint32(number))
  if (security !== 'plain' && (await readUint8(channel)) !== 1) {
    throw new RefusedError({ kind: 'no-tls', security })
  }
  return { security, isTight: false }
}

async function chooseInTight(channel: ClientChannel, fitting: readonly VncSecurityType[]): Promise<Chosen> {
  const offered = await readTightTypes(channel)
  if (offered === 'none') {
    if (fitting.includes('none')) return { security: 'none', isTight: true }
    throw new RefusedError({ kind: 'no-type', offered: ['none'], within: 'tight' })
  }
  const security = fitting.find((type) => offered.some((number) => WITHIN_TIGHT[number] === type))
  const number = offered.find((one) => security !== undefined && WITHIN_TIGHT[one] === security)
  if (security === undefined || number === undefined) {
    const names = offered.map((one) => nameOf(WITHIN_TIGHT, one))
    throw new RefusedError({ kind: 'no-type', offered: names, within: 'tight' })
  }
  channel.write(uint32(number))
  return { security, isTight: true }
}

function nameOf(names: Readonly<Record<number, VncSecurityType>>, number: number): string {
  return names[number] ?? CONTAINERS[number] ?? String(number)
}

const TLS: Partial<Record<VncSecurityType, TlsIdentity>> = {
  x509plain: 'certificate',
  x509vnc: 'certificate',
  x509none: 'certificate',
  tlsplain: 'anonymous',
  tlsvnc: 'anonymous',
  tlsnone: 'anonymous',
}

async function prove(
  channel: ClientChannel,
  security: VncSecurityType,
  { user, password = '', judge }: SignInOptions,
): Promise<void> {
  const tls = TLS[security]
  if (tls !== undefined) {
    const certificate = await channel.startTls(tls)
    if (certificate) await judge('x509', certificate)
    else if (tls === 'certificate') throw new MalformedError('vnc: a certificate was expected, none came')
  }
  const credential: UserPassword = { user, password }
  const rsaAes = {
    judge: (key: Uint8Array) => judge('rsa', key),
    credential: (needs: { user: boolean }) => {
      if (!needs.user || user !== '') return credential
      throw new RefusedError({ kind: 'no-type', offered: [security] })
    },
  }
  switch (security) {
    case 'none':
    case 'tlsnone':
    case 'x509none':
      return
    case 'vncauth':
    case 'tlsvnc':
    case 'x509vnc':
      channel.write(vncAuthResponse(await channel.read(VNC_CHALLENGE_BYTES), password))
      return
    case 'ra2':
      return await sendRsaAes(channel, { kind: RA2_KIND, ...rsaAes })
    case 'ra2_256':
      return await sendRsaAes(channel, { kind: RA2_256_KIND, ...rsaAes })
    case 'apple_dh':
      return await sendAppleDh(channel, credential)
    case 'mslogon2':
      return await sendMsLogon(channel, credential)
    default:
      channel.write(plainBytes(credential))
  }
}

async function readResult(
  channel: ClientChannel,
  version: Version,
  security: VncSecurityType,
): Promise<void> {
  const result = await readUint32(channel)
  if (result === RESULT.OK) return
  if (result !== RESULT.FAILED && result !== RESULT.TOO_MANY) {
    throw new MalformedError(`vnc: a result of 0, 1 or 2 was expected, found ${result}`)
  }
  const reason = version === 3.8 ? await readReason(channel) : undefined
  throw new RefusedError({ kind: 'credential', security, isTooMany: result === RESULT.TOO_MANY, reason })
}
