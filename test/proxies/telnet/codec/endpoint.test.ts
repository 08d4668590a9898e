import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { buildNegotiation, buildSubnegotiation } from '../../../../proxies/telnet/codec/encoder.ts'
import { CONTROL_BURST, CONTROL_RATE } from '../../../../proxies/telnet/codec/endpoint.ts'
import { COMMAND, OPTION } from '../../../../proxies/telnet/codec/numbers.ts'
import { createEndpoint, settle } from './pair.ts'

const { IAC, WILL, WONT, DO, DONT, AYT, BRK, DM, GA, IP, NOP } = COMMAND
const { BINARY, ECHO, LINEMODE, NAWS, NEW_ENVIRON, SGA, TTYPE } = OPTION
const latin1 = (text: string) => Buffer.from(text, 'latin1')

describe('a server and a client', () => {
  test('agree, and the server learns of the terminal', () => {
    const server = createEndpoint('server')
    const client = createEndpoint('client', {
      terminalType: 'xterm-256color',
      windowSize: { columns: 255, rows: 43 },
    })
    server.endpoint.start()
    client.endpoint.start()
    expect(settle(server, client)).toBeLessThan(6)
    for (const option of [BINARY, ECHO, SGA]) {
      expect(server.endpoint.isOn('ours', option)).toBe(true)
      expect(client.endpoint.isOn('theirs', option)).toBe(true)
    }
    expect(server.endpoint.isOn('theirs', NEW_ENVIRON)).toBe(false)
    expect(server.events).toContainEqual(['windowSize', { columns: 255, rows: 43 }])
    expect(server.events).toContainEqual(['terminalType', 'xterm-256color'])

    client.endpoint.windowSize = { columns: 100, rows: 50 }
    settle(server, client)
    expect(server.events.at(-1)).toEqual(['windowSize', { columns: 100, rows: 50 }])
  })

  test('every byte passes both ways', () => {
    const server = createEndpoint('server')
    const client = createEndpoint('client')
    server.endpoint.start()
    settle(server, client)
    // Typed input never has LF.
    const keys = latin1(
      String.fromCharCode(...Array.from({ length: 256 }, (_, i) => i).filter((i) => i !== 10)),
    )
    client.endpoint.send(keys)
    server.endpoint.send(Buffer.concat([keys, latin1('\r\n')]))
    settle(server, client)
    expect(server.events.at(-1)).toEqual(['data', keys.toString('latin1')])
    expect(client.events.at(-1)).toEqual(['data', `${keys.toString('latin1')}\r\n`])
  })

  test('a target is not spoken to before it asks', () => {
    const client = createEndpoint('client', { windowSize: { columns: 80, rows: 24 } })
    client.endpoint.start()
    client.endpoint.windowSize = { columns: 81, rows: 24 }
    expect(client.written()).toHaveLength(0)
  })
})

describe('an option that the role does not have is refused each time, and nothing else is said', () => {
  test.each([
    ['server', WILL, LINEMODE, DONT],
    ['server', DO, LINEMODE, WONT],
    ['server', WILL, ECHO, DONT],
    ['server', DO, NAWS, WONT],
    ['client', DO, NEW_ENVIRON, WONT],
    ['client', DO, ECHO, WONT],
    ['client', DO, LINEMODE, WONT],
    ['client', WILL, TTYPE, DONT],
    ['client', DO, 255, WONT],
  ] as const)('%s: %i %i', (role, verb, option, answer) => {
    const { endpoint, written } = createEndpoint(role)
    const asked = buildNegotiation(verb, option)
    endpoint.receive(Buffer.concat([asked, asked]))
    const refused = buildNegotiation(answer, option)
    expect(written()).toEqual(Buffer.concat([refused, refused]))
    const negative = verb === WILL ? WONT : DONT
    endpoint.receive(buildNegotiation(negative, option))
    expect(written()).toHaveLength(0)
  })
})

test('a subnegotiation about an option that is off is not heard', () => {
  const { endpoint, events, written } = createEndpoint('server')
  endpoint.receive(buildSubnegotiation(NAWS, Uint8Array.of(0, 80, 0, 24)))
  endpoint.receive(buildSubnegotiation(TTYPE, latin1('\0xterm')))
  expect(events).toEqual([])
  expect(written()).toHaveLength(0)
})

test('the environment of a client is asked for one variable, and told', () => {
  const { endpoint, events, written } = createEndpoint('server')
  endpoint.receive(buildNegotiation(WILL, NEW_ENVIRON))
  expect(written()).toEqual(
    Buffer.concat([
      buildNegotiation(DO, NEW_ENVIRON),
      buildSubnegotiation(NEW_ENVIRON, latin1('\x01\0USER')),
    ]),
  )
  endpoint.receive(buildSubnegotiation(NEW_ENVIRON, latin1('\0\0USER\x01ops1+root@srv1')))
  expect(events.at(-1)).toEqual(['environment', [{ name: 'USER', value: 'ops1+root@srv1' }]])
})

describe('commands', () => {
  test('are told in their place, but for those that mean nothing', () => {
    const { endpoint, events } = createEndpoint('server')
    const bytes = [0x61, IAC, NOP, 0x62, IAC, GA, IAC, IP, 0x63, IAC, BRK, IAC, AYT, IAC, DM]
    endpoint.receive(Uint8Array.from(bytes))
    expect(events).toEqual([
      ['data', 'ab'],
      ['command', IP],
      ['data', 'c'],
      ['command', BRK],
      ['command', AYT],
      ['command', DM],
    ])
  })

  test('are sent, and a Synch ends with an urgent byte', () => {
    const { endpoint, events, written } = createEndpoint('client')
    endpoint.sendCommand(IP)
    endpoint.sendSynch()
    expect(written()).toEqual(Buffer.from([IAC, IP, IAC, DM]))
    expect(events).toEqual([['urgent', 'fff2']])
  })
})

describe('a peer that does not come to an end', () => {
  const toggles = Buffer.concat([buildNegotiation(WILL, NAWS), buildNegotiation(WONT, NAWS)])
  const bombs: [string, Uint8Array][] = [
    ['switches an option on and off', toggles],
    ['asks for what is refused', buildNegotiation(DO, LINEMODE)],
    ['subnegotiates', buildSubnegotiation(TTYPE, Uint8Array.of(1))],
    ['interrupts', Uint8Array.of(IAC, IP)],
  ]

  test.each(bombs)('%s', (_, bomb) => {
    const { endpoint, written } = createEndpoint('server')
    const feed = () => {
      for (let i = 0; i <= CONTROL_BURST; i++) endpoint.receive(bomb)
    }
    expect(feed).toThrow(MalformedError)
    expect(written().length).toBeLessThanOrEqual(CONTROL_BURST * 20)
  })

  test('at a rate that a person can make it goes on for ever', () => {
    let now = 0
    const { endpoint } = createEndpoint('server', { now: () => now })
    endpoint.receive(buildNegotiation(WILL, NAWS))
    for (let i = 0; i < CONTROL_BURST * 5; i++) {
      now += 1000 / CONTROL_RATE
      endpoint.receive(buildSubnegotiation(NAWS, Uint8Array.of(0, 80, 0, i % 200)))
    }
  })

  test('nothing is held against one that keeps alive', () => {
    const { endpoint, written } = createEndpoint('client')
    for (let i = 0; i < CONTROL_BURST * 5; i++) endpoint.receive(Uint8Array.of(IAC, NOP))
    expect(written()).toHaveLength(0)
  })
})

test('in BINARY a target is taken at its word, a person is not', () => {
  const client = createEndpoint('client')
  client.endpoint.receive(Buffer.concat([buildNegotiation(WILL, BINARY), latin1('\r\0')]))
  expect(client.events.at(-1)).toEqual(['data', '\r\0'])
  client.endpoint.receive(Buffer.concat([buildNegotiation(WONT, BINARY), latin1('\r\0')]))
  expect(client.events.at(-1)).toEqual(['data', '\r'])

  const server = createEndpoint('server')
  server.endpoint.receive(Buffer.concat([buildNegotiation(WILL, BINARY), latin1('ls\n')]))
  expect(server.events.at(-1)).toEqual(['data', 'ls\r'])
})
