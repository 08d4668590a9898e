/**
 * A password proved by a KDC, and the KDC by a ticket for a service of ours: whoever answers in the KDC's place can
 * accept every password, but cannot make a ticket that our keytab opens.
 */
import { randomInt } from 'node:crypto'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { type EncryptionType, encryptionType, IntegrityError } from './encryption.ts'
import type { KeytabEntry } from './keytab.ts'
import {
  asRequest,
  type Hint,
  type KdcError,
  type KdcReply,
  type Key,
  type ReplyPart,
  readKdcAnswer,
  readReplyPart,
  readTicket,
  requestBody,
  tgsRequest,
  USAGE,
} from './messages.ts'
import { isSame, keysOf, openTicket, SKEW_MS } from './tickets.ts'

const PREAUTH_REQUIRED = 25
const MAX_NONCE = 2 ** 31 - 1
/** Milliseconds for which the tickets are asked: they serve one proof. */
const LIFE_MS = 600_000

/** Characters of an error's text that are said on. */
const MAX_TEXT = 200

/** An error that the KDC answered with. */
export class KdcRefusal extends Error {
  override name = 'KdcRefusal'
  readonly code: number
  /** It refused the ticket for our service: the person's password was accepted. */
  readonly isOfService: boolean

  /** `serverTime`: milliseconds since the epoch. */
  constructor(
    { code, serverTime, text }: Pick<KdcError, 'code' | 'serverTime' | 'text'>,
    now: number,
    isOfService = false,
  ) {
    const seconds = Math.round((serverTime - now) / 1000)
    const said = text.slice(0, MAX_TEXT).replaceAll(/\p{Cc}/gu, ' ')
    const clock = ` (its clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} ours)`
    super(
      `the KDC answers${isOfService ? ' the request for our service' : ''} with error ${code}${said && `: ${said}`}${seconds === 0 ? '' : clock}`,
    )
    this.code = code
    this.isOfService = isOfService
  }
}

/** The answer does not come from a KDC that knows our service's key. */
export class UnprovedKdcError extends Error {
  override name = 'UnprovedKdcError'
}

export interface PasswordProof {
  realm: string
  userName: string
  password: Uint8Array
  /** Components of the service's name, such as `host` and `bastion.example.org`. */
  service: readonly string[]
  keys: readonly KeytabEntry[]
  /** Milliseconds since the epoch. */
  now: () => number
  ask: (request: Uint8Array) => Promise<Uint8Array>
}

/** Returns the components of a service's name, which may end with its realm. */
export function serviceOf(principal: string, realm: string): string[] {
  const ending = `@${realm}`
  return (principal.endsWith(ending) ? principal.slice(0, -ending.length) : principal).split('/')
}

/** Builds a request by a name that no person has. `now`: milliseconds since the epoch. */
export function strangerRequest(realm: string, now: number): Uint8Array {
  const client = `sallyport-${randomInt(MAX_NONCE)}`
  return asRequest(
    requestBody({
      client,
      realm,
      service: ['krbtgt', realm],
      till: now + LIFE_MS,
      nonce: randomInt(MAX_NONCE),
    }),
  )
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

/**
 * Resolves if the KDC accepts the password, and is proved.
 * @throws KdcRefusal if it refuses, UnprovedKdcError, MalformedError, and errors of `ask`
 */
export async function provePassword(proof: PasswordProof): Promise<void> {
  const { realm, userName, service, now, ask } = proof
  const first = await initial(proof)
  try {
    const nonce = randomInt(MAX_NONCE)
    const body = requestBody({ realm, service, till: now() + LIFE_MS, nonce })
    const shown = { client: userName, realm, ticket: first.ticket, key: first.key, now: now() }
    const reply = accepted(readKdcAnswer(await ask(tgsRequest(body, shown)), 'TGS_REP'), now, true)
    const part = opened(reply, first.key, USAGE.TGS_REP)
    requirePart(part, { nonce, realm, service })
    try {
      requireProved(proof, reply, part)
    } finally {
      part.key.bytes.fill(0)
    }
  } finally {
    first.key.bytes.fill(0)
  }
}

/** Gets the first ticket, by the password. */
async function initial(proof: PasswordProof): Promise<{ ticket: Uint8Array; key: Key }> {
  const { realm, userName, now, ask } = proof
  const nonce = randomInt(MAX_NONCE)
  const service = ['krbtgt', realm]
  const body = requestBody({ client: userName, realm, service, till: now() + LIFE_MS, nonce })
  let answer = readKdcAnswer(await ask(asRequest(body)), 'AS_REP')
  let key: Key | undefined
  try {
    if ('code' in answer && answer.code === PREAUTH_REQUIRED) {
      key = await keyOf(proof, answer.hints)
      answer = readKdcAnswer(await ask(asRequest(body, { key, now: now() })), 'AS_REP')
    }
    const reply = accepted(answer, now)
    const { sealed, hints } = reply
    if (!key || key.type.number !== sealed.type) {
      // The KDC did not ask for a proof, or seals by another type: the key comes from what this answer says.
      key?.bytes.fill(0)
      key = await keyOf(
        proof,
        hints.length > 0 ? hints : [{ type: sealed.type, parameters: new Uint8Array() }],
      )
    }
    requireClient(proof, reply)
    const part = openedByPassword(reply, key, now)
    requirePart(part, { nonce, realm, service })
    return { ticket: reply.ticket, key: part.key }
  } finally {
    key?.bytes.fill(0)
  }
}

async function keyOf({ realm, userName, password }: PasswordProof, hints: readonly Hint[]): Promise<Key> {
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
      throw new KdcRefusal({ code: 24, serverTime: now(), text: '' }, now())
    throw error
  }
}

function opened(reply: KdcReply, key: Key, usage: number): ReplyPart {
  try {
    return readReplyPart(reply, key, usage)
  } catch (error) {
    if (error instanceof IntegrityError) throw new UnprovedKdcError("the KDC's answer is altered")
    throw error
  }
}

function requireClient({ realm, userName }: PasswordProof, reply: { realm: string; client: string[] }): void {
  if (reply.realm !== realm || !isSame(reply.client, [userName]))
    throw new UnprovedKdcError('the answer is for another principal than the one that was asked for')
}

function requirePart(
  part: ReplyPart,
  { nonce, realm, service }: { nonce: number; realm: string; service: readonly string[] },
): void {
  if (part.nonce !== nonce || part.realm !== realm || !isSame(part.service, service))
    throw new UnprovedKdcError('the answer is for another request than ours')
}

function requireProved(proof: PasswordProof, reply: KdcReply, part: ReplyPart): void {
  const ticket = readTicket(reply.ticket)
  const name = `${proof.service.join('/')}@${proof.realm}`
  const { fitting, flaw } = keysOf(proof, proof.keys, ticket)
  if (flaw) throw new UnprovedKdcError(flaw)
  const content = openTicket(ticket, fitting)
  if (!content)
    throw new UnprovedKdcError(
      `the ticket for ${name} was not made with the key of the keytab: export the keytab again; if it is the current one, another machine answers in the KDC's place`,
    )
  requireClient(proof, content)
  const isOwn = content.key.bytes.equals(part.key.bytes)
  content.key.bytes.fill(0)
  if (!isOwn) throw new UnprovedKdcError('the ticket is not the one of this answer')
  if (content.endTime + SKEW_MS < proof.now()) throw new UnprovedKdcError('the ticket has expired')
}
