/** The connection sequence from end to end, and the data that each end rejects. */
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { buildNoLicense, buildValidClient, LICENSE_MESSAGE } from '../../../../proxies/rdp/codec/licensing.ts'
import {
  buildAttachRequest,
  buildDataIndication,
  buildDataRequest,
  buildErectDomain,
  buildJoinRequest,
  DISCONNECT_REASON,
  parseMcs,
} from '../../../../proxies/rdp/codec/mcs.ts'
import { buildConnectInitial } from '../../../../proxies/rdp/codec/mcs-connect.ts'
import { buildSecured, SECURITY_FLAG } from '../../../../proxies/rdp/codec/security-header.ts'
import {
  buildConnectionConfirm,
  buildConnectionRequest,
  NEGOTIATION_FAILURE,
  parseConnectionRequest,
  SECURITY_PROTOCOL,
} from '../../../../proxies/rdp/codec/x224.ts'
import { BackNegotiation } from '../../../../proxies/rdp/connection/back-negotiation.ts'
import {
  FrontConnection,
  IO_CHANNEL,
  SETUP_LIMIT,
  SETUP_MESSAGES,
} from '../../../../proxies/rdp/connection/front-connection.ts'
import { type CredsspPolicy, FrontNegotiation } from '../../../../proxies/rdp/connection/front-negotiation.ts'
import { TargetError } from '../../../../proxies/wording/errors.ts'
import { hex } from '../../stream-events.ts'
import { CONNECT_INITIAL } from '../codec/examples.ts'
import { CHANNELS, joinEnds } from './pair.ts'

const { tls, credssp, rdstls } = SECURITY_PROTOCOL

describe('the front’s negotiation', () => {
  const request = (protocols: number, flags = 0) =>
    buildConnectionRequest({ cookie: 'Cookie: mstshash=alice', negotiation: { flags, protocols } })

  test.each<[CredsspPolicy, number, string]>([
    ['off', tls, 'tls'],
    ['off', tls | credssp, 'tls'],
    ['offered', tls, 'tls'],
    ['offered', tls | credssp, 'credssp'],
    ['required', tls | credssp | rdstls, 'credssp'],
  ])('CredSSP %s, the client has 0x%x: %s', (policy, protocols, protocol) => {
    const negotiated = new FrontNegotiation(() => policy).receive(request(protocols))
    expect(negotiated).toMatchObject({ result: 'agreed', protocol, hello: { requestedProtocols: protocols } })
    expect(hex(negotiated!.answer).slice(-8)).toBe(protocol === 'tls' ? '01000000' : '02000000')
  })

  test.each<[CredsspPolicy, Buffer, number]>([
    ['off', request(0), NEGOTIATION_FAILURE.tlsRequired],
    ['off', buildConnectionRequest({}), NEGOTIATION_FAILURE.tlsRequired],
    ['off', request(credssp), NEGOTIATION_FAILURE.tlsRequired],
    ['required', request(tls), NEGOTIATION_FAILURE.credsspRequired],
    ['offered', request(tls | credssp, 1), NEGOTIATION_FAILURE.inconsistentFlags],
    ['offered', request(tls | credssp, 2), NEGOTIATION_FAILURE.inconsistentFlags],
  ])('CredSSP %s: refused with the code that says why', (policy, bytes, failure) => {
    expect(new FrontNegotiation(() => policy).receive(bytes)).toMatchObject({ result: 'refused', failure })
  })

  test('a preconnection PDU may come first, in any pieces', () => {
    const blob = Buffer.from('s\0e\0s\0\0\0')
    const preconnection = Buffer.alloc(18 + blob.length)
    preconnection.writeUInt32LE(preconnection.length)
    preconnection.writeUInt32LE(2, 8)
    preconnection.writeUInt32LE(5, 12)
    preconnection.writeUInt16LE(4, 16)
    preconnection.set(blob, 18)
    const bytes = Buffer.concat([preconnection, request(tls)])
    for (const at of [1, 3, 20, preconnection.length, bytes.length]) {
      const negotiation = new FrontNegotiation(() => 'off')
      const first = negotiation.receive(bytes.subarray(0, at))
      const negotiated = first ?? negotiation.receive(bytes.subarray(at))
      expect(negotiated?.hello).toMatchObject({
        preconnection: { id: 5, blob: 'ses' },
        request: { cookie: 'Cookie: mstshash=alice' },
      })
    }
  })

  test.each([
    ['what comes before the answer', Buffer.concat([request(tls), Buffer.from([0x16])])],
    ['another protocol', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['a request that is too long', Buffer.from([3, 0, 4, 0])],
    ['a cookie without an end', buildConnectionRequest({ cookie: 'x' }).fill(0x61, 11)],
  ])('%s is malformed', (_, bytes) => {
    expect(() => new FrontNegotiation(() => 'off').receive(bytes)).toThrow(MalformedError)
  })
})

describe('the back’s negotiation', () => {
  const selected = (protocol: number) => buildConnectionConfirm({ result: 'selected', flags: 0, protocol })
  const failure = (code: number) => buildConnectionConfirm({ result: 'failure', code })

  test('offers what the policy allows, and says no more of the account than Windows does', () => {
    const { request } = new BackNegotiation({ protocols: ['credssp'], login: 'administrator' })
    expect(parseConnectionRequest(request)).toEqual({
      cookie: 'Cookie: mstshash=administr',
      negotiation: { flags: 0, protocols: tls | credssp },
    })
    const { request: farm } = new BackNegotiation({ protocols: ['tls'], login: 'a', routingToken: 'tsv://x' })
    expect(parseConnectionRequest(farm)).toMatchObject({ cookie: 'tsv://x', negotiation: { protocols: tls } })
  })

  test('takes what it has offered', () => {
    const negotiation = new BackNegotiation({ protocols: ['tls', 'credssp'], login: 'root' })
    const answer = selected(credssp)
    expect(negotiation.receive(answer.subarray(0, 5))).toBeUndefined()
    expect(negotiation.receive(answer.subarray(5))).toBe('credssp')
  })

  test.each([
    ['RDP’s own security', selected(0), /RDP's own security/],
    ['no negotiation at all', buildConnectionConfirm({ result: 'none' }), /RDP's own security/],
    ['TLS alone where CredSSP is asked for', selected(tls), /policy does not allow TLS alone/],
    ['a failure', failure(NEGOTIATION_FAILURE.noCertificate), /no certificate/],
    ['a failure that nobody knows', failure(99), /code 99/],
  ])('%s is refused with words', (_, bytes, words) => {
    const negotiation = new BackNegotiation({ protocols: ['credssp'], login: 'root' })
    expect(() => negotiation.receive(bytes)).toThrow(words)
    const again = new BackNegotiation({ protocols: ['credssp'], login: 'root' })
    expect(() => again.receive(bytes)).toThrow(TargetError)
  })

  test.each([
    ['a protocol that was not offered', selected(rdstls)],
    ['what follows in clear text', Buffer.concat([selected(tls), Buffer.from([0])])],
  ])('%s is malformed', (_, bytes) => {
    const negotiation = new BackNegotiation({ protocols: ['tls'], login: 'root' })
    expect(() => negotiation.receive(bytes)).toThrow(MalformedError)
  })
})

describe('both ends', () => {
  test('come to a session, with the account that was injected', () => {
    const { front, back, heard, run } = joinEnds()
    back.start()
    run()
    expect(heard.front).toEqual([
      ['settings', 800, 600, CHANNELS],
      ['logon', 'root', 'Target-Pass1'],
    ])
    expect(heard.back).toEqual([['licensed']])
    expect(back.user).toBe(front.user)
    front.sendIo(Buffer.from('down'))
    front.sendChannel(1, Buffer.from('clip'))
    front.sendFastPath(Buffer.from([0, 4, 1, 2]))
    back.sendIo(Buffer.from('up'))
    back.sendChannel(0, Buffer.from('disk'))
    back.sendFastPath(Buffer.from([4, 4, 0, 30]))
    front.close(DISCONNECT_REASON.providerInitiated)
    run()
    const text = (words: string) => hex(Buffer.from(words))
    expect(heard.front.slice(2)).toEqual([])
    expect(heard.back.slice(1)).toEqual([
      ['io', text('down')],
      ['channel', 1, text('clip')],
      ['fastPath', '00040102'],
      ['disconnect', DISCONNECT_REASON.providerInitiated],
    ])
  })

  test('what the client sends arrives', () => {
    const { back, heard, run } = joinEnds()
    back.start()
    run()
    back.sendIo(Buffer.from('up'))
    back.sendChannel(0, Buffer.from('disk'))
    back.sendFastPath(Buffer.from([4, 4, 0, 30]))
    back.close()
    run()
    const text = (words: string) => hex(Buffer.from(words))
    expect(heard.front.slice(2)).toEqual([
      ['io', text('up')],
      ['channel', 0, text('disk')],
      ['fastPath', '0404001e'],
      ['disconnect', DISCONNECT_REASON.userRequested],
    ])
  })

  const request = buildSecured(SECURITY_FLAG.license, Buffer.from([LICENSE_MESSAGE.request, 3, 6, 0, 1, 2]))

  test('a target that asks for a license is told that there is none, where the client cannot be asked', () => {
    const { back, heard, run } = joinEnds({ logon: (front) => front.sendIo(request) })
    back.start()
    run()
    expect(heard.front.at(-1)).toEqual(['license', hex(buildNoLicense())])
    expect(heard.back).toEqual([])
  })

  test('licensing is relayed where the client can be asked', () => {
    const { front, back, heard, run } = joinEnds({
      licensing: 'relayed',
      logon: (one) => one.sendIo(request),
    })
    back.start()
    run()
    expect(heard.back).toEqual([['license', hex(request)]])
    back.sendIo(buildNoLicense())
    run()
    front.licensed()
    run()
    expect(heard.back.slice(1)).toEqual([['license', hex(buildValidClient())], ['licensed']])
  })

  const answered = (...messages: Uint8Array[]) => {
    const { back, heard, run } = joinEnds({
      licensing: 'relayed',
      logon: (one) => one.sendIo(request),
    })
    back.start()
    run()
    for (const message of messages) back.sendIo(message)
    run()
    return heard.front.filter(([kind]) => kind === 'license')
  }
  const newLicense = Buffer.from([LICENSE_MESSAGE.newLicenseRequest, 0x83, 6, 0, 1, 2])

  test('of a client goes on as licensing and as nothing else, and ends where it says', () => {
    const message = buildSecured(SECURITY_FLAG.license | 0x200, Buffer.concat([newLicense, Buffer.from([9])]))
    expect(answered(message)).toEqual([['license', hex(buildSecured(SECURITY_FLAG.license, newLicense))]])
  })

  test.each([
    ['a logon of its own', buildSecured(SECURITY_FLAG.license | SECURITY_FLAG.info, newLicense)],
    ['no licensing', buildSecured(0, newLicense)],
    ['a server’s message', request],
    ['a message that is cut', buildSecured(SECURITY_FLAG.license, newLicense.subarray(0, 5))],
    ['messages without end', ...Array<Buffer>(17).fill(buildNoLicense())],
  ])('of a client that sends %s in its place ends the connection', (_, ...messages) => {
    expect(() => answered(...messages)).toThrow(MalformedError)
  })

  test('an answer to licensing that has ended otherwise is left out', () => {
    const { front, back, heard, run } = joinEnds({ licensing: 'relayed', logon: () => {} })
    back.start()
    run()
    front.licensed()
    run()
    heard.front.length = 0
    back.sendIo(
      buildSecured(SECURITY_FLAG.license, Buffer.from([LICENSE_MESSAGE.licenseInfo, 3, 6, 0, 1, 2])),
    )
    back.sendIo(Buffer.from('0600170010ea', 'hex'))
    run()
    expect(heard.front).toEqual([['io', '0600170010ea']])
  })

  test('a license that is refused is said as what it is', () => {
    const { back, run } = joinEnds({ logon: (front) => front.sendIo(buildNoLicense()) })
    back.start()
    expect(run).toThrow(/there is no license for remote desktops left \(licensing error 2\)/)
  })
})

describe('the front refuses', () => {
  const begin = (...pdus: Uint8Array[]) => {
    const written: Buffer[] = []
    const front = new FrontConnection({
      requestedProtocols: 1,
      write: (bytes) => written.push(Buffer.from(bytes)),
      visitor: {
        settings: () => {},
        logon: () => {},
        license: () => {},
        io: () => {},
        channel: () => {},
        fastPath: () => {},
        disconnect: () => {},
      },
    })
    for (const pdu of pdus) front.receive(pdu)
    return { front, written }
  }
  // the example's three channels are 1004 to 1006
  const user = 1007
  const info = buildSecured(SECURITY_FLAG.info, Buffer.alloc(28))

  test.each<[string, Uint8Array[]]>([
    ['a session before its begin', [buildErectDomain()]],
    ['data before a user', [CONNECT_INITIAL, buildDataRequest(user, IO_CHANNEL, info)]],
    ['a second user', [CONNECT_INITIAL, buildAttachRequest(), buildAttachRequest()]],
    ['another user', [CONNECT_INITIAL, buildAttachRequest(), buildDataRequest(1009, IO_CHANNEL, info)]],
    ['a channel early', [CONNECT_INITIAL, buildAttachRequest(), buildDataRequest(user, 1004, info)]],
    ['a channel that is none', [CONNECT_INITIAL, buildAttachRequest(), buildDataRequest(user, 1020, info)]],
    ['a server’s message', [CONNECT_INITIAL, buildDataIndication(IO_CHANNEL, info)]],
    [
      'no login',
      [CONNECT_INITIAL, buildAttachRequest(), buildDataRequest(user, IO_CHANNEL, buildSecured(0, info))],
    ],
    [
      'RDP’s own encryption',
      [CONNECT_INITIAL, buildAttachRequest(), buildDataRequest(user, IO_CHANNEL, buildSecured(0x48, info))],
    ],
    ['the fast path early', [CONNECT_INITIAL, Buffer.from([4, 4, 0, 30])]],
    ['a long message early', [Buffer.from([3, 0, (SETUP_LIMIT >> 8) + 1, 0])]],
    ['a desktop without pixels', [connectInitialOf(0, 600)]],
    ['a desktop beyond all screens', [connectInitialOf(65535, 65535)]],
    ['a desktop that no recording can be drawn with', [connectInitialOf(8192, 4097)]],
    [
      'joins without an end',
      [
        CONNECT_INITIAL,
        buildAttachRequest(),
        ...Array.from({ length: SETUP_MESSAGES }, () => buildJoinRequest(user, IO_CHANNEL)),
      ],
    ],
  ])('%s', (_, pdus) => {
    expect(() => begin(...pdus)).toThrow(MalformedError)
    begin(...pdus.slice(0, -1))
  })

  test('a channel that it has not granted, with the result that says so', () => {
    const { written } = begin(CONNECT_INITIAL, buildAttachRequest(), buildJoinRequest(user, 1020))
    expect(parseMcs(written.at(-1)!)).toMatchObject({ kind: 'join-confirm', result: 3 })
  })

  function connectInitialOf(width: number, height: number): Buffer {
    const core = Buffer.alloc(132)
    core.writeUInt16LE(0xc001)
    core.writeUInt16LE(132, 2)
    core.writeUInt16LE(width, 8)
    core.writeUInt16LE(height, 10)
    return buildConnectInitial(core)
  }
})
