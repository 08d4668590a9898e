/** The watch over a server, by a process that is busy itself. */
import { createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PostgresPlace } from '../../../src/model/database.ts'
import { Primary } from '../../../src/store/postgres/primary.ts'
import { PostgresReach } from '../../../src/store/postgres/reach.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { describeWithPeers } from '../../peers/program.ts'

/** Milliseconds for an answer, and those of each stall. */
const ANSWER_MS = 200
const STALL_MS = 250

function watch(place: PostgresPlace): PostgresReach {
  const primary = new Primary(place)
  return new PostgresReach({
    place,
    primary,
    now: Date.now,
    onAway: () => undefined,
    answerMs: ANSWER_MS,
  })
}

function stall(): void {
  const end = performance.now() + STALL_MS
  while (performance.now() < end);
}

describeWithPeers('a watch of a busy process', ['initdb', 'postgres'], () => {
  let database: TestDatabase
  let reach: PostgresReach
  beforeEach(async () => {
    database = await testDatabase({ isEmpty: true })
    reach = watch(database.place)
  })
  afterEach(async () => {
    await reach.close()
    await database.drop()
  })

  test('stalls of the process while it connects and asks are not the server’s', async () => {
    let answer: boolean | undefined
    void reach.check().then((is) => {
      answer = is
    })
    let stalls = 0
    while (answer === undefined) {
      await setImmediate()
      stall()
      stalls++
    }
    expect(answer).toBe(true)
    // Several messages there and back: as many stalls, each longer than the time for all of them.
    expect(stalls).toBeGreaterThan(2)
    expect(await reach.check()).toBe(true)
  })

  test('a server that says nothing is away, however busy the process', async () => {
    const sockets = new Set<Socket>()
    const mute = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
    })
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    const { port } = mute.address() as { port: number }
    const other = watch({ ...database.place, hosts: [{ host: '127.0.0.1', port }] })
    try {
      const asked = other.check()
      stall()
      expect(await asked).toBe(false)
      expect(other.away?.reason).toContain('it has not answered')
    } finally {
      for (const socket of sockets) socket.destroy()
      await other.close()
      await new Promise((resolve) => mute.close(resolve))
    }
  })
})
