/** Challenges that wait for their users (RFC 2865 4.4). One holds the server's State, but no socket and no timer. */
import { Buffer } from 'node:buffer'
import type { MethodPrompt, MethodState } from '../method.ts'
import { shown } from '../words.ts'
import { ATTRIBUTES, numberOf, RadiusError, type Reply, valuesOf } from './packet.ts'
import type { RadiusServer } from './server.ts'

/** Challenges that a server may send in one sign-in. */
export const MAX_ROUNDS = 16
const MAX_MESSAGE = 1024
const MAX_PROMPT = 256
/** Value of Prompt (RFC 2869 5.10). */
const ECHO = 1

export class Challenge implements MethodState {
  readonly server: RadiusServer
  readonly userName: string
  readonly #round: number
  #state: readonly Uint8Array[] | undefined

  private constructor(server: RadiusServer, userName: string, round: number, state: readonly Uint8Array[]) {
    this.server = server
    this.userName = userName
    this.#round = round
    this.#state = state
  }

  /** Returns the challenge of a reply; `before`: the one that was answered. @throws RadiusError */
  static of(server: RadiusServer, userName: string, reply: Reply, before?: Challenge): Challenge {
    const round = (before ? before.#round : 0) + 1
    if (round > MAX_ROUNDS)
      throw new RadiusError(`${server.name}: sent more than ${MAX_ROUNDS} challenges in one sign-in`)
    const state = valuesOf(reply.attributes, ATTRIBUTES.state)
    if (state.length > 1)
      throw new RadiusError(`${server.name}: expected one State at most, got ${state.length}`)
    // Copies, as a part of a shared pool would keep all of it in memory.
    return new Challenge(
      server,
      userName,
      round,
      state.map((value) => Uint8Array.from(value)),
    )
  }

  /** Returns the attributes that go back, once. @throws RadiusError for the second time */
  take(): { type: number; value: Uint8Array }[] {
    const state = this.#state
    if (!state) throw new RadiusError('this challenge was answered or closed before')
    this.close()
    return state.map((value) => ({ type: ATTRIBUTES.state, value }))
  }

  close(): void {
    this.#state = undefined
  }
}

/** Returns what a user is shown. The last line of the message is the prompt; the answer is hidden unless Prompt says so. */
export function questionOf({ attributes }: Reply): { message: string; prompts: MethodPrompt[] } {
  const lines = messageOf({ attributes }, MAX_MESSAGE).trimEnd().split('\n')
  const text = lines.pop()?.slice(0, MAX_PROMPT).trimEnd() || 'Answer:'
  const echo = numberOf(attributes, ATTRIBUTES.prompt) === ECHO
  return { message: lines.join('\n'), prompts: [{ text: `${text} `, echo }] }
}

/** Returns the server's words, without anything that could control a terminal. */
export function messageOf({ attributes }: Pick<Reply, 'attributes'>, limit: number): string {
  return shown(Buffer.concat(valuesOf(attributes, ATTRIBUTES.replyMessage)).toString('utf8'), limit)
}
