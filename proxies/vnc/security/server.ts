/**
 * The server's side of the handshake (RFC 6143 section 7.1, VeNCrypt 0.2): version, security type,
 * credential, result, up to the client's ClientInit. `judge` alone decides on the client's proof.
 */
import { Buffer } from 'node:buffer'
import { type KeyObject, randomBytes } from 'node:crypto'
import { VNC_CHALLENGE_BYTES } from '../../../src/model/vnc-auth.ts'
import type { VncOfferedType } from '../../../src/model/vnc-options.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { readUint8, readUint32, type ServerChannel, type TlsIdentity, uint32 } from './channel.ts'
import { readPlain, type UserPassword } from './credentials.ts'
import { receiveAppleDh } from './diffie-hellman.ts'
import { RESULT, SECURITY, VENCRYPT, VENCRYPT_VERSION } from './numbers.ts'
import { failureBytes, noTypesBytes } from './result.ts'
import { RA2_256_KIND, RA2_KIND, receiveRsaAes } from './rsa-aes.ts'
import { parseVersion, VERSION_BYTES, type Version, versionBytes } from './version.ts'

/** The client's proof: a password, or the response to a challenge (VncAuth). */
export type Proof = UserPassword | { challenge: Buffer; response: Buffer }

/** `refused` is a text for the user. */
export type Judgement<Accepted> = { accepted: Accepted } | { refused: string }

export interface WelcomeOptions<Accepted> {
  /** The types for this client, in order of preference. */
  offers: readonly VncOfferedType[]
  /** The server's key of RA2. Absent if RA2 is not offered. */
  rsaKey?: KeyObject | undefined
  judge: (proof: Proof) => Promise<Judgement<Accepted>>
}

export interface Welcomed<Accepted> {
  accepted: Accepted
  version: Version
  security: VncOfferedType
  /** Set if the client shares the desktop with others. */
  isShared: boolean
}

/** Each type's number in the list, and within VeNCrypt. */
const TOP: Partial<Record<VncOfferedType, number>> = {
  ra2_256: SECURITY.RA2_256,
  ra2: SECURITY.RA2,
  apple_dh: SECURITY.APPLE_DH,
  vncauth: SECURITY.VNC_AUTH,
}
const WITHIN_VENCRYPT: Partial<Record<VncOfferedType, number>> = {
  x509plain: VENCRYPT.X509_PLAIN,
  x509vnc: VENCRYPT.X509_VNC,
  tlsplain: VENCRYPT.TLS_PLAIN,
  tlsvnc: VENCRYPT.TLS_VNC,
  plain: VENCRYPT.PLAIN,
}
const TLS: Partial<Record<VncOfferedType, TlsIdentity>> = {
  x509plain: 'certificate',
  x509vnc: 'certificate',
  tlsplain: 'anonymous',
  tlsvnc: 'anonymous',
}

const NOTHING_OFFERED = 'no way to sign in is offered to your address'
const ONLY_TICKETS =
  'this version of the protocol can only sign in with a one-time ticket, which is not offered here'

/**
 * Returns the result when a client has signed in and sent ClientInit, or undefined if it was refused, with
 * the reason if its version allows one. Rejects with MalformedError or EndedError.
 */
export async function welcome<Accepted>(
  channel: ServerChannel,
  { offers, rsaKey, judge }: WelcomeOptions<Accepted>,
): Promise<Welcomed<Accepted> | undefined> {
  channel.write(versionBytes(3.8))
  const version = parseVersion(await channel.read(VERSION_BYTES))
  const possible = offers.filter((type) => rsaKey !== undefined || (type !== 'ra2' && type !== 'ra2_256'))
  if (possible.length === 0) {
    channel.write(noTypesBytes(version, NOTHING_OFFERED))
    return undefined
  }
  const security = version === 3.3 ? decide(channel, possible) : await agree(channel, possible)
  if (security === undefined) return undefined
  const proof = await prove(channel, security, rsaKey)
  const judgement = await judge(proof)
  if ('refused' in judgement) {
    channel.write(failureBytes(version, judgement.refused))
    return undefined
  }
  channel.write(uint32(RESULT.OK))
  const isShared = (await readUint8(channel)) !== 0
  return { accepted: judgement.accepted, version, security, isShared }
}

/** Version 3.3: the server decides, and there is only one type with a credential. */
function decide(channel: ServerChannel, offers: readonly VncOfferedType[]): VncOfferedType | undefined {
  if (!offers.includes('vncauth')) {
    channel.write(noTypesBytes(3.3, ONLY_TICKETS))
    return undefined
  }
  channel.write(uint32(SECURITY.VNC_AUTH))
  return 'vncauth'
}

async function agree(channel: ServerChannel, offers: readonly VncOfferedType[]): Promise<VncOfferedType> {
  const listed = [...new Set(offers.map((type) => TOP[type] ?? SECURITY.VENCRYPT))]
  channel.write(Buffer.from([listed.length, ...listed]))
  const chosen = await readUint8(channel)
  if (!listed.includes(chosen)) throw outside('security type', listed, chosen)
  if (chosen === SECURITY.VENCRYPT) return await agreeWithin(channel, offers)
  return offers.find((type) => TOP[type] === chosen)!
}

async function agreeWithin(
  channel: ServerChannel,
  offers: readonly VncOfferedType[],
): Promise<VncOfferedType> {
  const [OK, FAILED] = [Buffer.from([0]), Buffer.from([0xff])]
  channel.write(Buffer.from(VENCRYPT_VERSION))
  const theirs = await channel.read(VENCRYPT_VERSION.length)
  if (theirs.compare(Buffer.from(VENCRYPT_VERSION)) !== 0) {
    channel.write(FAILED)
    throw new MalformedError(`vnc: VeNCrypt 0.2 was expected, found ${theirs.join('.')}`)
  }
  const listed = offers.flatMap((type) => WITHIN_VENCRYPT[type] ?? [])
  channel.write(Buffer.concat([OK, Buffer.from([listed.length]), ...listed.map(uint32)]))
  const chosen = await readUint32(channel)
  const security = offers.find((type) => WITHIN_VENCRYPT[type] === chosen)
  if (security === undefined) throw outside('VeNCrypt sub-type', listed, chosen)
  return security
}

function outside(what: string, offered: readonly number[], chosen: number): MalformedError {
  return new MalformedError(`vnc: a ${what} of ${offered.join(', ')} was expected, found ${chosen}`)
}

async function prove(
  channel: ServerChannel,
  security: VncOfferedType,
  rsaKey: KeyObject | undefined,
): Promise<Proof> {
  const tls = TLS[security]
  if (tls !== undefined) {
    channel.write(Buffer.from([1]))
    await channel.startTls(tls)
  }
  switch (security) {
    case 'x509plain':
    case 'tlsplain':
    case 'plain':
      return await readPlain(channel)
    case 'apple_dh':
      return await receiveAppleDh(channel)
    case 'ra2':
      return await receiveRsaAes(channel, RA2_KIND, rsaKey!)
    case 'ra2_256':
      return await receiveRsaAes(channel, RA2_256_KIND, rsaKey!)
    default: {
      const challenge = randomBytes(VNC_CHALLENGE_BYTES)
      channel.write(challenge)
      return { challenge, response: await channel.read(VNC_CHALLENGE_BYTES) }
    }
  }
}
