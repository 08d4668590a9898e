/** The end of all connections: a grace that users read, and that a second call can shorten. */
import { expect, test } from 'vitest'
import { Connections, spanOf } from '../../../proxies/session/connections.ts'
import type { ProxySession } from '../../../proxies/session/session.ts'

function world() {
  const connections = new Connections({ onNotice: () => undefined, withdraw: async () => undefined })
  const told: string[] = []
  const stopped: string[] = []
  const connection = {
    stop: (result: string, reason: string) => {
      stopped.push(`${result}: ${reason}`)
      connections.remove(connection)
    },
  }
  connections.add(connection, 'token')
  connections.begun({ id: 'one', onTell: (text: string) => told.push(text) } as unknown as ProxySession)
  return { connections, connection, told, stopped }
}

test('users read how long they have, and again when it gets shorter', async () => {
  const { connections, told, stopped } = world()
  const first = connections.drain(3_600_000, 'the bastion is stopping')
  expect(told).toEqual(['the bastion is stopping: this session ends in 60 min at the latest'])
  const longer = connections.drain(7_200_000, 'the bastion is stopping')
  const shorter = connections.drain(30_000, 'the bastion is stopping')
  expect(told.slice(1)).toEqual(['the bastion is stopping: this session ends in 30 s at the latest'])
  expect(stopped).toEqual([])
  await Promise.all([connections.drain(0, 'now'), first, longer, shorter])
  expect(stopped).toEqual(['killed: now'])
  expect(told).toHaveLength(2)
})

test('without a grace users read the reason only', async () => {
  const { connections, told, stopped } = world()
  await connections.drain(0, 'the bastion is stopping')
  expect(told).toEqual([])
  expect(stopped).toEqual(['killed: the bastion is stopping'])
})

test('a drain ends with the last connection', async () => {
  const { connections, connection, stopped } = world()
  const drained = connections.drain(3_600_000, 'the bastion is stopping')
  connections.remove(connection)
  await drained
  expect(stopped).toEqual([])
})

test.each([
  [1, '1 s'],
  [30_000, '30 s'],
  [119_000, '119 s'],
  [120_000, '2 min'],
  [121_000, '3 min'],
  [86_400_000, '24 h'],
])('%i ms in words: %s', (milliseconds, words) => {
  expect(spanOf(milliseconds)).toBe(words)
})
