/**
 * Clients that are refused as fast as possible: over HTTPS with pipelined requests, and over SSH. Meanwhile a
 * user works in a session. The test checks the session, the responses, and the audit log, which must have
 * counted all of them in a few rows.
 */
import { once } from 'node:events'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { buildData } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { until } from '../until.ts'
import { begin, describeAttacks } from './setting.ts'

const AT_ONCE = 10
/** Each writes more requests than are answered: the bastion closes it earlier. */
const CONNECTIONS = 40
const REQUESTS = 50

describeAttacks('a flood of refused sign-ins', (setting) => {
  /** Writes all requests at once; returns how many got a 401 before the bastion closed. */
  async function pipeline(key: string): Promise<number> {
    const socket = connect({
      host: '127.0.0.1',
      port: setting.bastion.broker.ports.https,
      rejectUnauthorized: false,
    })
    socket.on('error', () => undefined)
    await once(socket, 'secureConnect')
    let refused = 0
    let text = ''
    const done = new Promise<void>((resolve) => {
      socket.on('data', (data) => {
        text += data.toString('latin1')
        const found = text.split('HTTP/1.1 401').length - 1
        refused += found
        text = text.slice(-11)
        if (refused >= REQUESTS) resolve()
      })
      socket.on('close', () => resolve())
    })
    const one = `GET /api/users HTTP/1.1\r\nHost: bastion\r\nX-Auth-Key: ${key}\r\n\r\n`
    socket.write(one.repeat(REQUESTS))
    await done
    socket.destroy()
    return refused
  }
  const failures = async (fits: (event: Record<string, unknown>) => boolean) =>
    (await setting.bastion.events('auth.failure')).filter(fits)
  const countOf = (events: Record<string, unknown>[]) =>
    events.reduce((sum, event) => sum + Number(event['count'] ?? 1), 0)

  test('cuts nobody off, is counted to the last one, and makes a few rows', {
    timeout: 300_000,
  }, async () => {
    const worker = await setting.arrive()
    const channel = await begin(worker, 'cat')
    let echoed = 0
    let isOver = false
    const working = (async () => {
      while (!isOver) {
        worker.send(buildData(channel, 'still here\n'))
        const answer = await worker.next(MSG.channelData)
        expect(answer.toString('latin1')).toContain('still here')
        echoed++
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })()
    const refused = await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, i) => {
        let own = 0
        for (let n = 0; n < CONNECTIONS; n++) own += await pipeline(`wrong-key-${i}`)
        return own
      }),
    )
    isOver = true
    await working
    const all = refused.reduce((sum, one) => sum + one, 0)
    expect(all).toBeGreaterThan(1000)
    expect(echoed).toBeGreaterThan(10)
    const isOurs = ({ protocol }: Record<string, unknown>) => protocol === 'HTTPS'
    const told = await until('all to be counted', async () => {
      const found = await failures(isOurs)
      return countOf(found) >= all ? found : undefined
    })
    expect(countOf(told)).toBe(all)
    expect(told.length).toBeLessThan(100)
    const folded = told.find((event) => event['count'] !== undefined)
    expect(folded).toMatchObject({
      client_ip: '127.0.0.1',
      first: expect.any(String),
      last: expect.any(String),
    })
    // new sign-ins succeed now
    const other = await setting.arrive()
    await begin(other, 'true')
  })
})
