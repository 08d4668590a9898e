/** The bodies of TACACS+ (RFC 8907 5 to 7) that a client writes and reads. */
import { Buffer } from 'node:buffer'
import { TacacsError } from './packet.ts'

/** Longest field with a length of one byte. */
export const MAX_SHORT = 255
const MAX_ARGUMENTS = 255

export const KINDS = { ascii: 1, pap: 2 } as const
export type AuthenticationKind = keyof typeof KINDS

const LOGIN = 1
/** TAC_PLUS_PRIV_LVL_USER: the level that a person has before any other is granted. */
const USER_LEVEL = 1
const SERVICE_LOGIN = 1
const BY_TACACS = 6
const ABORT = 1
const NO_ECHO = 1

/** The user, and the place that they come from. */
export interface Caller {
  user: string
  /** Name of the line; a client without terminals may choose it. */
  port: string
  /** Address of the client. */
  source: string
}

/** Returns the START of an authentication. `data`: the password, for PAP. @throws TacacsError for a field over 255 bytes */
export function authenticationStart(kind: AuthenticationKind, caller: Caller, data: Uint8Array): Buffer {
  const fields = [...callerFields(caller), short(data, 'the password')]
  return Buffer.concat([
    Buffer.from([LOGIN, USER_LEVEL, KINDS[kind], SERVICE_LOGIN, ...fields.map(({ length }) => length)]),
    ...fields,
  ])
}

/** Returns a CONTINUE with the user's answer. */
export function authenticationContinue(answer: Uint8Array): Buffer {
  return continued(answer, 0)
}

/** Returns a CONTINUE that ends the session; the server does not reply. */
export function authenticationAbort(): Buffer {
  return continued(Buffer.alloc(0), ABORT)
}

function continued(answer: Uint8Array, flags: number): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt16BE(answer.length, 0)
  head[4] = flags
  return Buffer.concat([head, answer])
}

const AUTHENTICATION = {
  1: 'pass',
  2: 'fail',
  3: 'get_data',
  4: 'get_user',
  5: 'get_password',
  6: 'restart',
  7: 'error',
  33: 'follow',
} as const

export interface AuthenticationReply {
  status: (typeof AUTHENTICATION)[keyof typeof AUTHENTICATION]
  echo: boolean
  message: string
}

/** @throws TacacsError */
export function readAuthenticationReply(body: Buffer): AuthenticationReply {
  const [number, flags] = lead(body, 6)
  const messageLength = body.readUInt16BE(2)
  const whole = 6 + messageLength + body.readUInt16BE(4)
  exact(body, whole)
  const status = statusOf(AUTHENTICATION, number)
  return { status, echo: (flags & NO_ECHO) === 0, message: textOf(body.subarray(6, 6 + messageLength)) }
}

/** An argument `name=value`, or `name*value` if it may be ignored (RFC 8907 6.1). */
export interface Argument {
  name: string
  value: string
  isMandatory: boolean
}

/** Returns a REQUEST for the rights of a user. */
export function authorizationRequest(
  kind: AuthenticationKind,
  caller: Caller,
  args: readonly Argument[],
): Buffer {
  return withArguments([BY_TACACS, USER_LEVEL, KINDS[kind], SERVICE_LOGIN], caller, args)
}

const AUTHORIZATION = { 1: 'add', 2: 'replace', 16: 'fail', 17: 'error', 33: 'follow' } as const

export interface AuthorizationReply {
  status: (typeof AUTHORIZATION)[keyof typeof AUTHORIZATION]
  args: Argument[]
  message: string
}

/** @throws TacacsError */
export function readAuthorizationReply(body: Buffer): AuthorizationReply {
  const [number, count] = lead(body, 6)
  const messageLength = body.readUInt16BE(2)
  const lengths = body.subarray(6, 6 + count)
  const begin = 6 + count + messageLength + body.readUInt16BE(4)
  exact(body, begin + lengths.reduce((sum, length) => sum + length, 0))
  const status = statusOf(AUTHORIZATION, number)
  let from = begin
  const args = [...lengths].map((length) => {
    const end = from + length
    const argument = readArgument(textOf(body.subarray(from, end)))
    from = end
    return argument
  })
  return { status, args, message: textOf(body.subarray(6 + count, 6 + count + messageLength)) }
}

/** Flags of an accounting record (RFC 8907 7.1). */
export const ACCOUNTING_FLAGS = { start: 0x02, stop: 0x04, watchdog: 0x08 } as const

/** Returns a REQUEST that accounts for something. */
export function accountingRequest(
  kind: keyof typeof ACCOUNTING_FLAGS,
  caller: Caller,
  args: readonly Argument[],
): Buffer {
  // A session at the bastion may have begun by any method: TAC_PLUS_AUTHEN_METH_NOT_SET and _TYPE_NOT_SET.
  return withArguments([ACCOUNTING_FLAGS[kind], 0, USER_LEVEL, 0, SERVICE_LOGIN], caller, args)
}

const ACCOUNTING = { 1: 'success', 2: 'error', 33: 'follow' } as const

export interface AccountingReply {
  status: (typeof ACCOUNTING)[keyof typeof ACCOUNTING]
  message: string
}

/** @throws TacacsError */
export function readAccountingReply(body: Buffer): AccountingReply {
  lead(body, 5)
  const messageLength = body.readUInt16BE(0)
  exact(body, 5 + messageLength + body.readUInt16BE(2))
  const status = statusOf(ACCOUNTING, body[4]!)
  return { status, message: textOf(body.subarray(5, 5 + messageLength)) }
}

function withArguments(head: readonly number[], caller: Caller, args: readonly Argument[]): Buffer {
  if (args.length > MAX_ARGUMENTS)
    throw new TacacsError(`expected at most ${MAX_ARGUMENTS} arguments, got ${args.length}`)
  const who = callerFields(caller)
  const texts = args.map(({ name, value, isMandatory }) =>
    short(Buffer.from(`${name}${isMandatory ? '=' : '*'}${value}`), `the argument ${name}`),
  )
  const lengths = [...who.map(({ length }) => length), texts.length, ...texts.map(({ length }) => length)]
  return Buffer.concat([Buffer.from([...head, ...lengths]), ...who, ...texts])
}

function callerFields({ user, port, source }: Caller): Buffer[] {
  return [
    short(Buffer.from(user), 'the name of the user'),
    short(Buffer.from(port), 'the port'),
    short(Buffer.from(source), 'the address'),
  ]
}

function short(bytes: Uint8Array, name: string): Buffer {
  if (bytes.length > MAX_SHORT)
    throw new TacacsError(`${name}: expected at most ${MAX_SHORT} bytes, got ${bytes.length}`)
  return Buffer.from(bytes)
}

function readArgument(text: string): Argument {
  const [, name = text, sign = '*', value = ''] = /^([^=*]*)([=*])(.*)$/s.exec(text) ?? []
  return { name, value, isMandatory: sign === '=' }
}

function lead(body: Buffer, bytes: number): [number, number] {
  if (body.length < bytes) throw differs(`expected at least ${bytes} bytes, got ${body.length}`)
  return [body[0]!, body[1]!]
}

/** A wrong secret makes lengths that do not add up (RFC 8907 4.5). */
function exact(body: Buffer, expected: number): void {
  if (body.length !== expected)
    throw differs(`its fields have ${expected} bytes, and the header says ${body.length}`)
}

function statusOf<S extends Record<number, string>>(known: S, number: number): S[keyof S] {
  if (!Object.hasOwn(known, number)) throw differs(`the status ${number} does not exist`)
  return known[number as keyof S]
}

function differs(reason: string): TacacsError {
  return new TacacsError(`the answer cannot be read (${reason}): the shared secret differs`)
}

/** Decodes text as UTF-8; a server of another encoding gets replacement characters. */
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')
