/** Tickets got from a KDC: the first one by a password, those for services by the first one (RFC 4120 section 3). */
import { randomInt } from 'node:crypto'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { type EncryptionType, encryptionType, IntegrityError } from './encryption.ts'
import {
  asRequest,
  type Hint,
  type KdcError,
  type KdcReply,
  type Key,
  type ReplyPart,
  readKdcAnswer,
  readReplyPart,
  requestBody,
  tgsRequest,
  USAGE,
} from './messages.ts'
import { KdcRefusal, UnprovedKdcError } from './refusals.ts'
import { isSame } from './tickets.ts'

const PREAUTH_REQUIRED = 25
const WRONG_PASSWORD = 24
const MAX_NONCE = 2 ** 31 - 1
/** Milliseconds for which tickets are asked: they are shown at once. */
const LIFE_MS = 600_000

export interface KdcAccess {
  /** Milliseconds since the epoch. */
  now: () => number
  ask: (request: Uint8Array) => Promise<Uint8Array>
}

/** A ticket with its key, as its client holds it. */
export interface HeldTicket {
  /** Realm of the client, and the client's name in it. */
  realm: string
  client: string[]
  /** As it is shown on. */
  ticket: Uint8Array
  /** The owner of the ticket wipes it. */
  key: Key
}

export interface Login {
  realm: string
  userName: string
  password: Uint8Array
}

/**
 * Gets the first ticket (TGT), by the password.
 * @throws KdcRefusal, UnprovedKdcError, MalformedError, and errors of `ask`
 */
export async function firstTicket(login: Login, { now, ask }: KdcAccess): Promise<HeldTicket> {
  const { realm, userName } = login
  const nonce = randomInt(MAX_NONCE)
  const service = ['krbtgt', realm]
  const body = requestBody({ client: userName, realm, service, till: now() + LIFE_MS, nonce })
  let answer = readKdcAnswer(await ask(asRequest(body)), 'AS_REP')
  let key: Key | undefined
  try {
    if ('code' in answer && answer.code === PREAUTH_REQUIRED) {
      key = await keyOf(login, answer.hints)
      answer = readKdcAnswer(await ask(asRequest(body, { key, now: now() })), 'AS_REP')
    }
    const reply = accepted(answer, now)
    const { sealed, hints } = reply
    if (!key || key.type.number !== sealed.type) {
      // The KDC did not ask for a proof, or seals by another type: the key comes from what this answer says.
      key?.bytes.fill(0)
      key = await keyOf(
        login,
        hints.length > 0 ? hints : [{ type: sealed.type, parameters: new Uint8Array() }],
      )
    }
    requireClient({ realm, client: [userName] }, reply)
    return held(reply, openedByPassword(reply, key, now), { nonce, realm, service })
  } finally {
    key?.bytes.fill(0)
  }
}

/**
 * Gets a ticket for a service in the realm of the KDC, which is that of the client unless it is given.
 * @throws KdcRefusal, UnprovedKdcError, MalformedError, and errors of `ask`
 */
export async function serviceTicket(
  first: HeldTicket,
  service: readonly string[],
  { now, ask }: KdcAccess,
  realm = first.realm,
): Promise<HeldTicket> {
  const nonce = randomInt(MAX_NONCE)
  const body = requestBody({ realm, service, till: now() + LIFE_MS, nonce })
  const answer = readKdcAnswer(await ask(tgsRequest(body, first, now())), 'TGS_REP')
  const reply = accepted(answer, now, true)
  const part = opened(reply, first.key)
  requireClient(first, reply)
  return held(reply, part, { nonce, realm, service })
}

/** Builds a request by a name that no person has. `now`: milliseconds since the epoch. */
export function strangerRequest(realm: string, now: number): Uint8Array {
  const client = `sallyport-${randomInt(MAX_NONCE)}`
  const service = ['krbtgt', realm]
  return asRequest(requestBody({ client, realm, service, till: now + LIFE_MS, nonce: randomInt(MAX_NONCE) }))
}

/** Returns the code of an error that a KDC answered with, or undefined for another answer. */
export function readErrorCode(answer: Uint8Array): number | undefined {
  try {
    const read = readKdcAnswer(answer, 'AS_REP')
    return 'code' in read ? read.code : undefined
  } catch {
    return undefined
  }
}

/** @throws UnprovedKdcError unless the names are of the expected client */
export function requireClient(
  expected: { realm: string; client: readonly string[] },
  found: { realm: string; client: readonly string[] },
): void {
  if (found.realm !== expected.realm || !isSame(found.client, expected.client))
    throw new UnprovedKdcError('the answer is for another principal than the one that was asked for')
}

async function keyOf({ realm, userName, password }: Login, hints: readonly Hint[]): Promise<Key> {
  for (const { type: number, salt, parameters } of hints) {
    const type: EncryptionType | undefined = encryptionType(number)
    if (type) return { type, bytes: await type.keyOf(password, salt ?? `${realm}${userName}`, parameters) }
  }
  throw new MalformedError(
    `an AES encryption type was expected, the KDC offers ${hints.map(({ type }) => type).join(', ') || 'none'}: let it make AES keys, by a change of the password`,
  )
}

function accepted(answer: KdcReply | KdcError, now: () => number, isOfService = false): KdcReply {
  if ('code' in answer) throw new KdcRefusal(answer, now(), isOfService)
  return answer
}

function openedByPassword(reply: KdcReply, key: Key, now: () => number): ReplyPart {
  try {
    return readReplyPart(reply, key, USAGE.AS_REP)
  } catch (error) {
    // A KDC that asks for no proof hands its answer to everyone; a wrong password cannot open it.
    if (error instanceof IntegrityError)
      throw new KdcRefusal({ code: WRONG_PASSWORD, serverTime: now(), text: '' }, now())
    throw error
  }
}

function opened(reply: KdcReply, key: Key): ReplyPart {
  try {
    return readReplyPart(reply, key, USAGE.TGS_REP)
  } catch (error) {
    if (error instanceof IntegrityError) throw new UnprovedKdcError("the KDC's answer is altered")
    throw error
  }
}

function held(
  { realm, client, ticket }: KdcReply,
  part: ReplyPart,
  asked: { nonce: number; realm: string; service: readonly string[] },
): HeldTicket {
  if (part.nonce !== asked.nonce || part.realm !== asked.realm || !isSame(part.service, asked.service)) {
    part.key.bytes.fill(0)
    throw new UnprovedKdcError('the answer is for another request than ours')
  }
  return { realm, client, ticket, key: part.key }
}
