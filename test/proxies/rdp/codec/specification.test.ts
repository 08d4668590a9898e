/** The codec against the examples of MS-RDPBCGR: parsed by their meaning, and written byte by byte. */
import { describe, expect, test } from 'vitest'
import { parseConfirmActive } from '../../../../proxies/rdp/codec/active.ts'
import {
  CAPABILITY,
  findCapability,
  readDesktop,
  stripConfirm,
  takesFastPath,
} from '../../../../proxies/rdp/codec/capabilities.ts'
import { buildTargetBlocks, parseClientData, scaleFor } from '../../../../proxies/rdp/codec/client-data.ts'
import {
  buildClientInfo,
  forTarget,
  INFO_FLAG,
  parseClientInfo,
} from '../../../../proxies/rdp/codec/client-info.ts'
import { buildBlocks, parseBlocks } from '../../../../proxies/rdp/codec/data-blocks.ts'
import { buildValidClient, endsLicensing, parseLicense } from '../../../../proxies/rdp/codec/licensing.ts'
import {
  buildAttachConfirm,
  buildAttachRequest,
  buildDisconnect,
  buildErectDomain,
  buildJoinConfirm,
  buildJoinRequest,
  DISCONNECT_REASON,
  MCS_RESULT,
  parseMcs,
  SERVER_USER,
} from '../../../../proxies/rdp/codec/mcs.ts'
import {
  buildConnectInitial,
  buildConnectResponse,
  parseConnectInitial,
  parseConnectResponse,
} from '../../../../proxies/rdp/codec/mcs-connect.ts'
import { parseSecured, SECURITY_FLAG } from '../../../../proxies/rdp/codec/security-header.ts'
import { buildServerData, parseServerData } from '../../../../proxies/rdp/codec/server-data.ts'
import {
  buildControl,
  buildFontList,
  buildFontMap,
  buildSynchronize,
  CONTROL_ACTION,
} from '../../../../proxies/rdp/codec/session-pdus.ts'
import {
  buildShareData,
  CONTROL_PDU,
  parseShare,
  parseShareData,
} from '../../../../proxies/rdp/codec/share.ts'
import {
  buildConnectionConfirm,
  buildConnectionRequest,
  buildData,
  parseConnectionConfirm,
  parseConnectionRequest,
} from '../../../../proxies/rdp/codec/x224.ts'
import { hex } from '../../stream-events.ts'
import * as example from './examples.ts'

const USER = 1007
const SHARE = 0x000103ea

const DESKTOP = { width: 1280, height: 1024, depth: 24 }

describe('the connection is initiated', () => {
  test('the request', () => {
    const request = { cookie: 'Cookie: mstshash=eltons', negotiation: { flags: 0, protocols: 0 } }
    expect(parseConnectionRequest(example.CONNECTION_REQUEST)).toEqual(request)
    expect(hex(buildConnectionRequest(request))).toBe(hex(example.CONNECTION_REQUEST))
  })

  test('the confirm', () => {
    const confirm = { result: 'selected', flags: 0, protocol: 0 } as const
    expect(parseConnectionConfirm(example.CONNECTION_CONFIRM)).toEqual(confirm)
    expect(hex(buildConnectionConfirm(confirm))).toBe(hex(example.CONNECTION_CONFIRM))
  })
})

describe('settings are exchanged', () => {
  test("the client's", () => {
    const blocks = parseBlocks(parseConnectInitial(example.CONNECT_INITIAL))
    expect(parseClientData(blocks)).toMatchObject({
      core: {
        version: 0x00080004,
        width: 1280,
        height: 1024,
        keyboardLayout: 0x409,
        keyboardType: 4,
        clientBuild: 3790,
        clientName: 'ELTONS-DEV2',
        colourDepth: 24,
        earlyFlags: 1,
        selectedProtocol: 0,
      },
      channels: [
        { name: 'rdpdr', options: 0x80800000 },
        { name: 'cliprdr', options: 0xc0a00000 },
        { name: 'rdpsnd', options: 0xc0000000 },
      ],
    })
    expect(hex(buildConnectInitial(buildBlocks(blocks)))).toBe(hex(example.CONNECT_INITIAL))
  })

  test('what a target is told of the client', () => {
    const client = parseClientData(parseBlocks(parseConnectInitial(example.CONNECT_INITIAL)))
    const view = { selectedProtocol: 2, channels: client.channels.slice(1, 2), colourDepth: 16 as const }
    const told = parseClientData(buildTargetBlocks(client, { ...view, size: { width: 800, height: 600 } }))
    expect(told.core).toEqual({
      ...client.core,
      width: 800,
      height: 600,
      colourDepth: 16,
      selectedProtocol: 2,
    })
    expect(told.channels).toEqual([{ name: 'cliprdr', options: 0xc0a00000 }])
    const in32 = parseClientData(buildTargetBlocks(client, { ...view, colourDepth: 32 }))
    expect(in32.core).toMatchObject({ colourDepth: 32, earlyFlags: 0x3, width: 1280 })
    const small = parseClientData(buildTargetBlocks(client, { ...view, size: { width: 1, height: 8000 } }))
    expect(small.core).toMatchObject({ width: 512, height: 8000 })
    expect([100, 0, 501, 500, 250].map((scale) => scaleFor({ width: 1024, height: 1024 }, scale))).toEqual([
      100, 100, 100, 200, 200,
    ])
  })

  test("the server's, whose conference has a wrong length", () => {
    const blocks = parseConnectResponse(example.CONNECT_RESPONSE)
    const data = { requestedProtocols: 0, ioChannel: 1003, channels: [1004, 1005, 1006] }
    expect(parseServerData(blocks)).toEqual(data)
    const built = buildConnectResponse(buildServerData(data))
    expect(parseServerData(parseConnectResponse(built))).toEqual(data)
  })
})

test.each([
  ['erect domain', example.MCS.erectDomain, buildErectDomain(), { kind: 'erect-domain' }],
  ['attach request', example.MCS.attachRequest, buildAttachRequest(), { kind: 'attach-request' }],
  [
    'attach confirm',
    example.MCS.attachConfirm,
    buildAttachConfirm(MCS_RESULT.successful, USER),
    { kind: 'attach-confirm', result: 0, user: USER },
  ],
  [
    'join request',
    example.MCS.joinRequest,
    buildJoinRequest(USER, USER),
    { kind: 'join-request', user: USER, channel: USER },
  ],
  [
    'join confirm',
    example.MCS.joinConfirm,
    buildJoinConfirm(MCS_RESULT.successful, USER, USER),
    { kind: 'join-confirm', result: 0, user: USER, channel: USER },
  ],
  [
    'disconnect',
    example.MCS.disconnect,
    buildDisconnect(DISCONNECT_REASON.userRequested),
    { kind: 'disconnect', reason: DISCONNECT_REASON.userRequested },
  ],
])('MCS: %s', (_, bytes, built, message) => {
  expect(hex(built)).toBe(hex(buildData(bytes)))
  expect(parseMcs(built)).toEqual(message)
})

describe('the client logs in', () => {
  test('its information', () => {
    const info = parseClientInfo(example.CLIENT_INFO)
    expect(info).toMatchObject({ domain: 'NTDEV', login: 'eltons', password: '', alternateShell: '' })
    expect(hex(buildClientInfo(info))).toBe(hex(example.CLIENT_INFO))
  })

  test('a target gets the account in place of what the client has sent', () => {
    const info = { ...parseClientInfo(example.CLIENT_INFO), password: 'of the user', alternateShell: 'cmd' }
    const logon = { domain: 'LAB', login: 'administrator', password: 'Zürich ☃' }
    const bytes = buildClientInfo(forTarget(info, logon))
    const told = parseClientInfo(bytes)
    expect(told).toMatchObject({ ...logon, alternateShell: '', workingFolder: '' })
    expect(told.flags & INFO_FLAG.autologon).not.toBe(0)
    expect(told.flags & (INFO_FLAG.compression | INFO_FLAG.compressionType)).toBe(0)
    expect(hex(bytes)).not.toContain(hex(Buffer.from('of the user', 'utf16le')))
    expect(hex(told.extended)).toBe(hex(info.extended))
  })

  test('a cookie to reconnect with is left out, and what follows it stays', () => {
    const info = parseClientInfo(example.CLIENT_INFO)
    const after = Buffer.from('0000000011223344', 'hex')
    const withCookie = Buffer.concat([info.extended, Buffer.from([28, 0]), Buffer.alloc(28, 7), after])
    const told = forTarget({ ...info, extended: withCookie }, { domain: '', login: 'a', password: 'b' })
    expect(hex(told.extended)).toBe(hex(Buffer.concat([info.extended, Buffer.from([0, 0]), after])))
  })

  test('no license is needed', () => {
    expect(hex(buildValidClient())).toBe(hex(example.VALID_CLIENT))
    const { flags, body } = parseSecured(example.VALID_CLIENT)
    expect(flags).toBe(SECURITY_FLAG.license)
    expect(endsLicensing(parseLicense(body))).toBe(true)
  })
})

describe('capabilities are exchanged', () => {
  const [pdu] = parseShare(example.CONFIRM_ACTIVE)

  test("the client's are read", () => {
    expect(pdu).toMatchObject({ type: CONTROL_PDU.confirmActive, source: USER })
    const { shareId, capabilities } = parseConfirmActive(pdu!.body)
    expect(shareId).toBe(SHARE)
    expect(capabilities).toHaveLength(18)
    expect(readDesktop(capabilities)).toEqual(DESKTOP)
    expect(takesFastPath(capabilities)).toBe(true)
  })

  test('of them a target learns nothing but bitmaps and pointers', () => {
    const { capabilities } = parseConfirmActive(pdu!.body)
    const before = hex(example.CONFIRM_ACTIVE)
    const stripped = stripConfirm(capabilities, DESKTOP)
    const types = stripped.map(({ type }) => type)
    for (const gone of [CAPABILITY.offscreenCache, CAPABILITY.nineGrid, CAPABILITY.gdiPlus]) {
      expect(types).not.toContain(gone)
    }
    const order = Buffer.from(findCapability(stripped, CAPABILITY.order))
    expect(order.readUInt16LE(30)).toBe(0x2a)
    expect(hex(order.subarray(32, 64))).toBe('00'.repeat(32))
    expect(hex(findCapability(stripped, CAPABILITY.glyphCache)).slice(-8)).toBe('00000000')
    expect(hex(findCapability(stripped, CAPABILITY.virtualChannel))).toBe('0000000040060000')
    expect(hex(findCapability(stripped, CAPABILITY.general))).toBe('0100030000020000000015040000000000000000')
    expect(hex(findCapability(stripped, CAPABILITY.pointer))).toBe('010014001500')
    const many = stripConfirm(
      [{ type: CAPABILITY.pointer, body: Buffer.from('01008000ffff', 'hex') }],
      DESKTOP,
    )
    expect(hex(findCapability(many, CAPABILITY.pointer))).toBe('010080008000')
    expect(hex(example.CONFIRM_ACTIVE)).toBe(before)
  })

  test('of them a target learns no more pointers than a recording keeps', () => {
    const told = (body: string) => {
      const [pointer] = stripConfirm([{ type: CAPABILITY.pointer, body: Buffer.from(body, 'hex') }], DESKTOP)
      return hex(pointer!.body)
    }
    expect(told('0100ffff8100')).toBe('010080008000')
    // Old clients have one cache.
    expect(told('0100ffff')).toBe('01008000')
  })
})

test.each([
  ['synchronize', example.FINALIZATION.synchronize, buildSynchronize(SHARE, SERVER_USER), USER],
  ['cooperate', example.FINALIZATION.cooperate, buildControl(SHARE, CONTROL_ACTION.cooperate), USER],
  [
    'request control',
    example.FINALIZATION.requestControl,
    buildControl(SHARE, CONTROL_ACTION.requestControl),
    USER,
  ],
  ['font list', example.FINALIZATION.fontList, buildFontList(SHARE), USER],
  [
    'granted control',
    example.FINALIZATION.grantedControl,
    buildControl(SHARE, CONTROL_ACTION.grantedControl, USER, SERVER_USER),
    SERVER_USER,
  ],
  ['font map', example.FINALIZATION.fontMap, buildFontMap(SHARE), SERVER_USER],
])('the connection is finalized: %s', (_, bytes, data, user) => {
  expect(hex(buildShareData(data, user))).toBe(hex(bytes))
  const [pdu] = parseShare(bytes)
  expect(pdu).toMatchObject({ type: CONTROL_PDU.data, source: user })
  expect(parseShareData(pdu!)).toMatchObject({ shareId: SHARE, type: data.type })
})
