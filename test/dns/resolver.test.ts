/** The resolver's client with a real resolver, and with some that lie, stay silent or break off. */
import { Buffer } from 'node:buffer'
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Resolver } from '../../src/dns/resolver.ts'
import { openWorkshop } from '../identity/certificates.ts'
import { freePort, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { startUnbound, type Zone } from '../peers/unbound.ts'

const HOST = '127.0.0.1'
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean()
})

describeWithPeers('unbound', ['unbound', 'ldns-keygen', 'ldns-signzone', 'ssh-keygen'], () => {
  let records: string[]
  beforeAll(async () => {
    const shop = openWorkshop()
    shop.key('host')
    const made = await run(findProgram('ssh-keygen'), ['-r', 'localhost.', '-f', `${shop.folder}/host.pub`])
    records = made.stdout.trim().split('\n')
    shop.remove()
  })

  async function asked(zone: Zone, host = 'localhost', timeoutMs?: number) {
    const unbound = await startUnbound(zone)
    cleanups.push(unbound.stop)
    const servers = [{ host: HOST, port: unbound.port }]
    return await new Resolver({ servers, ...(timeoutMs && { timeoutMs }) }).sshfp(host)
  }

  test('tells what ssh-keygen made, and that it is authentic', async () => {
    const { isAuthenticated, records: found } = await asked({ records })
    expect(isAuthenticated).toBe(true)
    const lines = found.map(
      ({ algorithm, digest, fingerprint }) =>
        `localhost. IN SSHFP ${algorithm} ${digest} ${fingerprint.toString('hex')}`,
    )
    expect(lines.toSorted()).toEqual(records.toSorted())
  })

  test('does not say so of a zone that is not signed', async () => {
    const answer = await asked({ records, signed: 'no' })
    expect(answer).toMatchObject({ isAuthenticated: false })
    expect(answer.records).toHaveLength(records.length)
  })

  test('gives nothing of a zone that somebody else has signed', async () => {
    await expect(asked({ records, signed: 'other' })).rejects.toThrow(/SERVFAIL: perhaps DNSSEC/)
  })

  test('knows no records, and no such name', async () => {
    expect(await asked({ records: [] })).toEqual({ isAuthenticated: true, records: [] })
    expect(await asked({ records }, 'nowhere.localhost')).toEqual({ isAuthenticated: true, records: [] })
  })

  test('follows an alias, in any case', async () => {
    const alias = 'www.localhost. 60 IN CNAME localhost.'
    const { isAuthenticated, records: found } = await asked(
      { records: [...records, alias] },
      'WWW.LocalHost.',
    )
    expect([isAuthenticated, found.length]).toEqual([true, records.length])
  })

  test('gives over TCP what does not fit', async () => {
    const many = Array.from(
      { length: 60 },
      (_, n) => `localhost. 60 IN SSHFP 4 2 ${Buffer.alloc(32, n).toString('hex')}`,
    )
    expect((await asked({ records: many })).records).toHaveLength(60)
  })
})

describe('a resolver that is not as it should be', () => {
  /** Responds to each UDP message with the result of `answers`. */
  async function udp(answers: (query: Buffer, attempt: number) => Buffer[]): Promise<number> {
    const socket = createSocket('udp4')
    let attempt = 0
    socket.on('message', (query, { port, address }) => {
      for (const answer of answers(query, attempt++)) socket.send(answer, port, address)
    })
    await new Promise<void>((resolve) => socket.bind(0, HOST, resolve))
    cleanups.push(() => socket.close())
    return socket.address().port
  }
  const ask = (...ports: number[]) =>
    new Resolver({ servers: ports.map((port) => ({ host: HOST, port })), timeoutMs: 300 }).sshfp(
      'srv1.example.com',
    )

  /** Returns the question as received, one SSHFP record, and the AD bit. */
  const answerTo = (query: Buffer, change: (message: Buffer) => void = () => undefined): Buffer => {
    // Without the OPT record.
    const question = Buffer.from(query.subarray(0, -11))
    question.writeUInt16BE(0x81a0, 2)
    question.writeUInt16BE(1, 6)
    question.writeUInt16BE(0, 10)
    const record = Buffer.from('c00c002c000100000e1000040402beef', 'hex')
    const message = Buffer.concat([question, record])
    change(message)
    return message
  }

  test('that is one: what the others are measured by', async () => {
    const port = await udp((query) => [answerTo(query)])
    expect(await ask(port)).toEqual({
      isAuthenticated: true,
      records: [{ algorithm: 4, digest: 2, fingerprint: Buffer.from('beef', 'hex') }],
    })
  })

  test('guesses the id, or answers another question: only the right answer counts', async () => {
    const port = await udp((query) => [
      answerTo(query, (message) => message.writeUInt16BE(message.readUInt16BE() ^ 1)),
      answerTo(query, (message) => message.writeUInt8(0x78, 13)),
      answerTo(query, (message) => message.writeUInt16BE(0x0120, 2)),
      Buffer.alloc(0),
      answerTo(query, (message) => message.writeUInt8(0xaa, message.length - 2)),
    ])
    const { records } = await ask(port)
    expect(records[0]?.fingerprint.toString('hex')).toBe('aaef')
  })

  test('floods: it is given up', async () => {
    const port = await udp((query) =>
      Array.from({ length: 200 }, () => answerTo(query, (message) => message.writeUInt8(0x78, 13))),
    )
    await expect(ask(port)).rejects.toThrow(/does not answer/)
  })

  test('uses every id and port once', async () => {
    const seen = new Set<number>()
    const port = await udp((query) => {
      seen.add(query.readUInt16BE())
      return [answerTo(query)]
    })
    for (let n = 0; n < 20; n++) await ask(port)
    expect(seen.size).toBeGreaterThan(15)
  })

  test('is asked again, and after it the next one', async () => {
    const lossy = await udp((query, attempt) => (attempt === 0 ? [] : [answerTo(query)]))
    expect((await ask(lossy)).records).toHaveLength(1)
    const silent = await udp(() => [])
    const refusing = await udp((query) => [answerTo(query, (message) => message.writeUInt16BE(0x8185, 2))])
    const good = await udp((query) => [answerTo(query)])
    expect((await ask(silent, refusing, good)).records).toHaveLength(1)
    await expect(ask(silent, refusing)).rejects.toThrow(/REFUSED/)
  })

  test('is not there', async () => {
    await expect(ask(await freePort())).rejects.toThrow(/cannot be reached|does not answer/)
    await expect(ask()).rejects.toThrow(/no resolver is configured/)
  })

  test('breaks off over TCP, or falls silent there', async () => {
    for (const behaviour of ['breaks off', 'falls silent', 'is truncated again'] as const) {
      const server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.once('data', (data) => {
          const answer = answerTo(Buffer.from(data.subarray(2)), (message) =>
            message.writeUInt16BE(0x83a0, 2),
          )
          const length = Buffer.alloc(2)
          length.writeUInt16BE(answer.length)
          if (behaviour === 'breaks off') socket.end(Buffer.concat([length, answer.subarray(0, 9)]))
          if (behaviour === 'is truncated again') socket.end(Buffer.concat([length, answer]))
        })
        cleanups.push(() => socket.destroy())
      })
      const port = await udp((query) => [answerTo(query, (message) => message.writeUInt16BE(0x83a0, 2))])
      await new Promise<void>((resolve) => server.listen(port, HOST, resolve))
      cleanups.push(() => server.close())
      await expect(ask(port)).rejects.toThrow(/does not answer/)
    }
  })

  test('is not asked about addresses, or names that cannot be', async () => {
    const resolver = new Resolver({ servers: [{ host: HOST, port: 9 }] })
    await expect(resolver.sshfp('192.0.2.1')).rejects.toThrow(/is an address/)
    await expect(resolver.sshfp('2001:db8::1')).rejects.toThrow(/is an address/)
    for (const name of ['', 'a..b', 'x'.repeat(64), `${'x.'.repeat(130)}y`, 'a b', 'ä.example']) {
      await expect(resolver.sshfp(name)).rejects.toThrow(/name/)
    }
  })
})
