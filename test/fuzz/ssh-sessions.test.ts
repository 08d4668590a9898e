/**
 * Mutated OpenSSH sessions through a relay, with messages that are damaged, missing, repeated, out of order
 * or from the wrong side. The relay throws nothing; a violation ends the session, and no ungranted message
 * before it reaches a peer.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MSG, parseChannelOpen, parseChannelRequest } from '../../proxies/ssh/codec/messages.ts'
import { RIGHTS, type Right } from '../../src/model/rights.ts'
import { newWorld, type World } from '../proxies/ssh/relay-world.ts'
import { edited, edits, type Said, SESSIONS } from './corpus.ts'

const names = [...SESSIONS.keys()]
/** Enough for every session of the corpus. */
const LISTEN = { listenOn: ['*:*'] }

/**
 * Replays the messages. In the corpus channels have the peers' own numbers; here each has the bastion's,
 * which is found when it is opened.
 */
async function play(world: World, said: readonly Said[]): Promise<void> {
  const numbers = { client: new Map<number, number>(), target: new Map<number, number>() }
  for (const { from, message } of said) {
    const other = from === 'client' ? 'target' : 'client'
    const type = message[0]!
    const isAddressed = MSG.channelOpenConfirmation <= type && message.length >= 5
    const id = isAddressed ? numbers[other].get(message.readUInt32BE(1)) : undefined
    const addressed = Buffer.from(message)
    if (id !== undefined) addressed.writeUInt32BE(id, 1)
    const opens = () => world[other].sent.filter(([first]) => first === MSG.channelOpen)
    const before = opens().length
    world[from].say(addressed)
    await world.settle()
    const made = opens()[before]
    if (made) numbers[from].set(parseChannelOpen(message).sender, parseChannelOpen(made).sender)
    if (id !== undefined && type === MSG.channelOpenConfirmation && message.length >= 9)
      numbers[from].set(message.readUInt32BE(5), id)
  }
}

const step = fc.oneof(
  fc.record({ kind: fc.constant('damaged' as const), at: fc.nat(60), edits }),
  fc.record({
    kind: fc.constantFrom('missing' as const, 'twice' as const, 'other side' as const),
    at: fc.nat(60),
  }),
  fc.record({ kind: fc.constant('moved' as const), at: fc.nat(60), to: fc.nat(60) }),
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

function changed(said: readonly Said[], steps: readonly Step[]): Said[] {
  const all = [...said]
  for (const one of steps) {
    const at = one.at % all.length
    const { from, message } = all[at]!
    if (one.kind === 'damaged') all[at] = { from, message: edited(message, one.edits) }
    else if (one.kind === 'missing' && all.length > 1) all.splice(at, 1)
    else if (one.kind === 'twice') all.splice(at, 0, { from, message })
    else if (one.kind === 'other side') all[at] = { from: from === 'client' ? 'target' : 'client', message }
    else if (one.kind === 'moved') all.splice(one.to % all.length, 0, ...all.splice(at, 1))
  }
  return all
}

/**
 * Returns the messages that reached a peer and need a right; each as a list of the rights that would suffice.
 */
function needed(world: World): Right[][] {
  const all: Right[][] = []
  for (const payload of world.target.sent) {
    if (payload[0] === MSG.channelOpen) {
      const type = Buffer.from(parseChannelOpen(payload).type).toString('latin1')
      if (type === 'direct-tcpip') all.push(['SSH_DIRECT_TCPIP'])
      if (type.startsWith('direct-streamlocal')) all.push(['SSH_DIRECT_UNIXSOCK'])
    } else if (payload[0] === MSG.globalRequest) {
      if (payload.includes('tcpip-forward')) all.push(['SSH_REVERSE_TCPIP'])
      if (payload.includes('streamlocal-forward')) all.push(['SSH_REVERSE_UNIXSOCK'])
    } else if (payload[0] === MSG.channelRequest) {
      const type = Buffer.from(parseChannelRequest(payload).type).toString('latin1')
      if (type === 'shell') all.push(['SSH_SHELL'])
      if (type === 'exec') all.push(['SSH_REMOTE_COMMAND', 'SSH_SCP_UP', 'SSH_SCP_DOWN'])
      if (type === 'subsystem') all.push(['SFTP_SESSION', 'SSH_SCP_UP', 'SSH_SCP_DOWN'])
      if (type === 'x11-req') all.push(['SSH_X11'])
      if (type.startsWith('auth-agent-req')) all.push(['SSH_AUTH_AGENT'])
    }
  }
  for (const payload of world.client.sent) {
    if (payload[0] !== MSG.channelOpen) continue
    const type = Buffer.from(parseChannelOpen(payload).type).toString('latin1')
    if (type === 'x11') all.push(['SSH_X11'])
    else if (type.startsWith('auth-agent')) all.push(['SSH_AUTH_AGENT'])
    else if (type === 'forwarded-tcpip') all.push(['SSH_REVERSE_TCPIP'])
    else all.push(['SSH_REVERSE_UNIXSOCK'])
  }
  return all
}

test.each(names)('%s, as it was: passes whole', async (name) => {
  const said = SESSIONS.get(name)!
  const world = newWorld(RIGHTS, LISTEN)
  await play(world, said)
  expect(world.ended).toBeUndefined()
  // All except messages that end at the bastion: windows, keepalives, the target's announcement of its keys;
  // and if a side disconnected without a goodbye, the relay adds one for it.
  const passes = ({ message }: Said): boolean =>
    ![MSG.globalRequest, MSG.requestSuccess, MSG.channelWindowAdjust, MSG.channelClose].some(
      (type) => type === message[0],
    )
  const count = (from: Said['from']): number => said.filter((one) => one.from === from && passes(one)).length
  const sent = (to: 'client' | 'target'): number =>
    world[to].sent.filter((message) => passes({ from: to, message })).length
  expect([sent('target'), sent('client')]).toEqual([count('client'), count('target')])
})

describe('changed', () => {
  test.each(names)('%s', { timeout: 300_000 }, async (name) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 4 }),
        fc.subarray([...RIGHTS]),
        async (steps, rights) => {
          const world = newWorld(rights, LISTEN)
          await play(world, changed(SESSIONS.get(name)!, steps))
          for (const any of needed(world)) expect(rights.some((right) => any.includes(right))).toBe(true)
          world.end()
        },
      ),
      { numRuns: 400 },
    )
  })
})
