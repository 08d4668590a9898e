/** A TACACS+ server tried step by step, for administrators. */
import { Buffer } from 'node:buffer'
import type { AuthDomainAttributes, TacacsOptions } from '../../../model/external-auths.ts'
import type { TestRequest, TestStep } from '../method.ts'
import { shown } from '../words.ts'
import { Dialogue } from './dialogue.ts'
import {
  type AuthenticationReply,
  authenticationStart,
  authorizationRequest,
  readAuthenticationReply,
  readAuthorizationReply,
} from './messages.ts'
import { isSendable, personOf, SHELL } from './person.ts'
import type { TacacsServer } from './server.ts'

const MAX_DETAIL = 400

interface Trial {
  server: TacacsServer
  options: TacacsOptions
  attributes: AuthDomainAttributes
  request: TestRequest
  signal: AbortSignal
}

/** Returns the steps until the first that fails. */
export async function tryServer(trial: Trial): Promise<TestStep[]> {
  const { server, options, attributes, request, signal } = trial
  const { userName, password } = request
  const steps: TestStep[] = []
  let step: TestStep['step'] = 'reached'
  const passed = (detail: string, groups?: readonly string[]) =>
    steps.push({ step, ok: true, detail: shown(detail, MAX_DETAIL), ...(groups && { groups }) })
  try {
    passed(`${server.name} accepts connections at ${await server.reach(signal)}`)
    step = 'answered'
    await knock(server, signal)
    passed('its answers can be read: the shared secret is the same')
    if (userName === undefined) return steps
    if (!isSendable(userName)) throw new Error('expected a name of 1 to 255 bytes without control characters')
    const caller = { user: userName, port: 'test', source: '' }
    if (password !== undefined && password.length > 0) {
      step = 'signed_in'
      const { status, message } = await signIn(trial, caller)
      if (status === 'get_data' || status === 'get_password')
        passed(`the server asks for more than the password: ${message}`)
      else if (status === 'pass') passed(`signed in as ${userName}`)
      else throw new Error(`expected PASS, got ${status.toUpperCase()}: ${message || 'without a reason'}`)
    }
    if (!options.authorization) return steps
    step = 'groups'
    const body = authorizationRequest(options.authentication, caller, SHELL)
    const reply = readAuthorizationReply(await server.ask('authorization', 0, body, signal))
    if (reply.status !== 'add' && reply.status !== 'replace')
      throw new Error(`expected PASS to service=shell, got ${reply.status.toUpperCase()}: ${reply.message}`)
    const { groups } = personOf(userName, reply, attributes)
    passed(groups.length === 0 ? 'in no group' : groups.join('\n'), groups)
  } catch (error) {
    steps.push({ step, ok: false, detail: shown((error as Error).message, MAX_DETAIL) })
  }
  return steps
}

/** Begins a sign-in without a name, which a server of any kind answers, and ends it. */
async function knock(server: TacacsServer, signal: AbortSignal): Promise<void> {
  const body = authenticationStart('ascii', { user: '', port: 'test', source: '' }, Buffer.alloc(0))
  const { session, reply } = await server.begin('authentication', 0, body, signal)
  try {
    readAuthenticationReply(reply)
  } finally {
    new Dialogue(server, session, '').close()
  }
}

async function signIn(
  { server, options, request: { password }, signal }: Trial,
  caller: { user: string; port: string; source: string },
): Promise<AuthenticationReply> {
  if (options.authentication === 'pap') {
    const body = authenticationStart('pap', caller, password!.reveal())
    return readAuthenticationReply(await server.ask('authentication', 1, body, signal))
  }
  const body = authenticationStart('ascii', caller, Buffer.alloc(0))
  const { session, reply } = await server.begin('authentication', 0, body, signal)
  const dialogue = new Dialogue(server, session, caller.user)
  try {
    const turn = await dialogue.follow(reply, password!, signal)
    if ('verdict' in turn) return turn.verdict
    const [prompt] = turn.question.prompts
    return { status: 'get_data', echo: false, message: prompt?.text ?? '' }
  } finally {
    dialogue.close()
  }
}
