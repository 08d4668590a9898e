/**
 * A client that guesses passwords as fast as possible is locked out: all other users can sign in meanwhile.
 */
import { readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ADMIN_PASSWORD, type Broker, startBroker } from '../peers/broker.ts'

const CONNECTIONS = 80

let broker: Broker
beforeAll(async () => {
  broker = await startBroker()
})
afterAll(() => broker.stop())

/** Collects the statuses of consecutive sign-ins from an address of the loopback network. */
class Guesser {
  readonly statuses: number[] = []
  readonly #from: string
  #socket: TLSSocket | undefined

  constructor(from: string) {
    this.#from = from
  }

  async try(user: string, password: string): Promise<number> {
    const socket = this.#socket?.destroyed === false ? this.#socket : await this.#connect()
    this.#socket = socket
    const body = JSON.stringify({ user, password })
    const answer = new Promise<string>((resolve, reject) => {
      let text = ''
      const gone = () => reject(new Error('closed'))
      const take = (data: Buffer) => {
        text += data
        const [head = '', shown] = text.split('\r\n\r\n')
        if (shown === undefined || shown.length < Number(/content-length: (\d+)/i.exec(head)?.[1])) return
        socket.off('data', take).off('close', gone)
        if (/connection: close/i.test(head)) socket.destroy()
        resolve(text)
      }
      socket.on('data', take).once('close', gone)
    })
    socket.write(
      `POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const status = Number((await answer).slice(9, 12))
    this.statuses.push(status)
    return status
  }

  close(): void {
    this.#socket?.destroy()
  }

  async #connect(): Promise<TLSSocket> {
    const tcp = connectTcp({ host: '127.0.0.1', port: broker.ports.https, localAddress: this.#from })
    tcp.on('error', () => undefined)
    const ca = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
    const socket = connect({ socket: tcp, ca, checkServerIdentity: () => undefined })
    socket.on('error', () => undefined)
    await new Promise((resolve, reject) => {
      socket.once('secureConnect', resolve)
      socket.once('close', () => reject(new Error('closed')))
    })
    return socket
  }
}

it('one address that is locked out and goes on takes nobody’s turn at the sign-in', {
  timeout: 300_000,
}, async () => {
  let isOver = false
  const guessers = Array.from({ length: CONNECTIONS }, () => new Guesser('127.0.0.2'))
  const flood = guessers.map(async (guesser, n) => {
    // a closed connection counts as one more attempt
    while (!isOver) await guesser.try(`guess${n}`, 'wrong').catch(() => sleep(20))
  })
  const person = new Guesser('127.0.0.1')
  while (guessers.some(({ statuses }) => statuses.length < 3)) await sleep(50)
  for (let round = 0; round < 5; round++) expect(await person.try('admin', ADMIN_PASSWORD)).toBe(200)
  const password = 'set in the middle of it'
  const made = await broker.api('POST', '/users', { user_name: 'ops1', profile: 'user', password })
  expect(made.status).toBe(201)
  expect(await person.try('ops1', password)).toBe(200)
  isOver = true
  await Promise.all(flood)
  for (const one of [...guessers, person]) one.close()
  // all guesses got the same refusal
  const statuses = new Set(guessers.flatMap((guesser) => guesser.statuses))
  expect([...statuses].filter((status) => status !== 503)).toEqual([401])
})
