/** The channel to the user's agent, from the bastion's side: windows, chunks, timeouts. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AGENT, type AgentKey } from '../../../../proxies/ssh/codec/agent.ts'
import {
  buildChannelOpenConfirmation,
  buildData,
  buildWindowAdjust,
} from '../../../../proxies/ssh/codec/build.ts'
import { dataOf, MSG, windowAdjustOf } from '../../../../proxies/ssh/codec/messages.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'
import { AgentError, ClientAgent } from '../../../../proxies/ssh/lobby/client-agent.ts'
import { AGENT_ANSWER_MS, MAX_AGENT_KEYS } from '../../../../proxies/ssh/lobby/limits.ts'

const ID = 3
let sent: Buffer[]
let agent: ClientAgent
beforeEach(() => {
  sent = []
  agent = new ClientAgent(ID, (payload) => sent.push(payload))
})
afterEach(() => vi.useRealTimers())

const confirm = (window: number, maxPacket = 32_768) =>
  agent.message(buildChannelOpenConfirmation({ recipient: ID, sender: 9, window, maxPacket }))
const hear = (bytes: Uint8Array) => agent.message(buildData(ID, bytes))
const ofType = (type: number) => sent.filter((payload) => payload[0] === type)
const asked = () => Buffer.concat(ofType(MSG.channelData).map((payload) => Buffer.from(dataOf(payload))))

const blob = new Writer().string('ssh-ed25519').string(Buffer.alloc(32)).finish()
const KEY: AgentKey = { blob, algorithm: 'ssh-ed25519', signature: 'ssh-ed25519', flags: 0 }
const listOf = (count: number) => {
  const list = new Writer().byte(AGENT.identitiesAnswer).uint32(count)
  for (let index = 0; index < count; index++) list.string(blob).string('')
  return new Writer().string(list.finish()).finish()
}

test('a question waits for the confirmation, and goes out as the window allows', async () => {
  const keys = agent.keys()
  expect(ofType(MSG.channelOpen).length).toBe(1)
  expect(asked().length).toBe(0)
  confirm(2)
  expect(ofType(MSG.channelData).length).toBe(1)
  agent.message(buildWindowAdjust(ID, 100))
  expect(asked().toString('hex')).toBe('000000010b')
  hear(listOf(2))
  expect((await keys).length).toBe(2)
})

test('an answer may come in pieces; what was taken is granted again', async () => {
  confirm(1000)
  const keys = agent.keys()
  const answer = listOf(3)
  for (const byte of answer) hear(Buffer.of(byte))
  expect((await keys).length).toBe(3)
  const granted = ofType(MSG.channelWindowAdjust).reduce((sum, payload) => sum + windowAdjustOf(payload), 0)
  expect(granted).toBe(answer.length)
})

test('of many keys some are used', async () => {
  confirm(1000)
  const keys = agent.keys()
  hear(listOf(300))
  expect((await keys).length).toBe(MAX_AGENT_KEYS)
})

test('an agent that does not answer is given up', async () => {
  vi.useFakeTimers()
  confirm(1000)
  const keys = agent.keys()
  const refused = expect(keys).rejects.toThrow('did not answer in 20 s')
  vi.advanceTimersByTime(AGENT_ANSWER_MS)
  await refused
  expect(ofType(MSG.channelClose).length).toBe(1)
  await expect(agent.sign(KEY, Buffer.alloc(8))).rejects.toThrow(AgentError)
})

test('closed before it was confirmed, it is closed when that comes', async () => {
  const keys = agent.keys()
  agent.close()
  await expect(keys).rejects.toThrow(AgentError)
  expect(ofType(MSG.channelClose).length).toBe(0)
  confirm(1000)
  expect(ofType(MSG.channelClose).length).toBe(1)
  expect(asked().length).toBe(0)
})

test('a signature is asked for by the blob, the data and the flags, and must be by that algorithm', async () => {
  confirm(1000)
  const key: AgentKey = { ...KEY, signature: 'rsa-sha2-512', flags: 4 }
  const answer = async (name: string) => {
    const signed = agent.sign(key, Buffer.from('data'))
    const field = new Writer().string(name).string(Buffer.alloc(64)).finish()
    hear(new Writer().string(new Writer().byte(AGENT.signResponse).string(field).finish()).finish())
    return await signed
  }
  expect(await answer('ssh-rsa')).toBeUndefined()
  expect(asked().subarray(-8).toString('hex')).toBe(`${Buffer.from('data').toString('hex')}00000004`)
  expect((await answer('rsa-sha2-512'))?.length).toBe(4 + 12 + 4 + 64)
})
