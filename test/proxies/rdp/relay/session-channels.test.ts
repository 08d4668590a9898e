/** A session's virtual channels, by rights: forwarded data, audit log, recording and notices. */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import { planChannels } from '../../../../proxies/rdp/channels/plan.ts'
import { INFO_FLAG } from '../../../../proxies/rdp/codec/client-info.ts'
import { buildClipboard, CLIPBOARD_FLAG, CLIPBOARD_MESSAGE } from '../../../../proxies/rdp/codec/cliprdr.ts'
import { DISPLAY_CONTROL } from '../../../../proxies/rdp/codec/display-control.ts'
import { buildDeviceMessage, DEVICE_PACKET, DEVICE_TYPE, IO } from '../../../../proxies/rdp/codec/rdpdr.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'
import { channelPolicy, isDynamicAllowed } from '../../../../proxies/rdp/relay/channel-rights.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { RDP_OPTIONS } from '../../../../src/model/rdp-options.ts'
import type { Right } from '../../../../src/model/rights.ts'
import { newWorld, newWorldWithDesktop, redirection, type World, type WorldOptions } from '../relay-world.ts'

const ALL: Right[] = [
  'RDP_CLIPBOARD_UP',
  'RDP_CLIPBOARD_DOWN',
  'RDP_CLIPBOARD_FILE',
  'RDP_DRIVE',
  'RDP_PRINTER',
  'RDP_COM_PORT',
  'RDP_SMARTCARD',
  'RDP_AUDIO_OUTPUT',
  'RDP_AUDIO_INPUT',
]
const NO_MICROPHONE = 'you may not use your microphone on desk1: the right RDP_AUDIO_INPUT is missing'
const message = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const json = (world: World, type: number) =>
  world.frames.filter(([one]) => one === type).map(([, payload]) => JSON.parse(payload.toString()))
const events = (world: World, code: string) =>
  world.events.filter(([one]) => one === code).map(([, fields]) => fields)
const names = (rights: Right[], channels: string[], options = {}) =>
  planChannels(
    channels.map((name) => ({ name, options: 0 })),
    channelPolicy(new Set(rights), { ...RDP_OPTIONS, ...options }),
  ).channels.map(({ name }) => name)

async function open(rights: Right[], options: WorldOptions = {}): Promise<World> {
  const world = await newWorldWithDesktop({
    rights,
    channels: ['cliprdr', 'rdpdr', 'rdpsnd', 'drdynvc'],
    ...options,
  })
  await vi.waitFor(() => expect(world.events).toBeDefined())
  return world
}

describe('static channels', () => {
  const asked = ['rdpdr', 'CLIPRDR', 'rdpsnd', 'drdynvc', 'rail', 'snddbg', 'cliprdr']
  test.each<[Right[], string[]]>([
    [[], ['drdynvc']],
    [ALL, ['rdpdr', 'CLIPRDR', 'rdpsnd', 'drdynvc']],
    [['RDP_CLIPBOARD_DOWN'], ['CLIPRDR', 'drdynvc']],
    [['RDP_CLIPBOARD_FILE'], ['drdynvc']],
    [['RDP_PRINTER'], ['rdpdr', 'drdynvc']],
    [['RDP_AUDIO_OUTPUT'], ['rdpdr', 'rdpsnd', 'drdynvc']],
    [['RDP_AUDIO_INPUT'], ['drdynvc']],
  ])('with %j the target is asked for %j', (rights, expected) => {
    expect(names(rights, asked)).toEqual(expected)
  })

  test('for viewing only nothing of the client goes up', () => {
    expect(names(ALL, asked, { viewOnly: true })).toEqual(['rdpdr', 'CLIPRDR', 'rdpsnd', 'drdynvc'])
    const policy = channelPolicy(new Set(ALL), { ...RDP_OPTIONS, viewOnly: true })
    expect(policy).toMatchObject({
      clipboard: { up: false, down: true },
      devices: { drives: false, printers: false, ports: false, smartCards: false },
      audioInput: false,
      resizing: false,
    })
  })

  test('that are not relayed are in the audit log, and the user reads which rights are missing', async () => {
    const world = await newWorld({ channels: ['rdpdr', 'cliprdr', 'rdpsnd', 'rail'] })
    await vi.waitFor(() => expect(events(world, 'channel.denied')).toHaveLength(4))
    expect(events(world, 'channel.denied')).toEqual([
      { subprotocol: 'RDP_DRIVE', reason: 'the right is missing', destination: 'rdpdr' },
      { subprotocol: 'RDP_CLIPBOARD_UP', reason: 'the right is missing', destination: 'cliprdr' },
      { subprotocol: 'RDP_AUDIO_OUTPUT', reason: 'the right is missing', destination: 'rdpsnd' },
      { subprotocol: 'rail', reason: 'the channel is not relayed' },
    ])
    // the client has not announced its devices yet
    expect(world.told).toEqual([
      'not possible on desk1, for want of the rights: RDP_CLIPBOARD_UP, RDP_AUDIO_OUTPUT',
    ])
    world.client.channel('rail', Buffer.from('abcd'))
    world.client.channel('cliprdr', Buffer.from('abcd'))
    expect(world.target.heard().channels).toEqual([])
    expect(world.closed).toEqual([])
  })

  test.each([INFO_FLAG.noAudioPlayback, INFO_FLAG.remoteConsoleAudio])(
    'with the flag %d sound is not what the user has asked for: they read nothing of it',
    async (flags) => {
      const world = await newWorld({ channels: ['rdpdr', 'rdpsnd'], flags })
      await vi.waitFor(() => expect(events(world, 'channel.denied')).toHaveLength(2))
      expect(world.told).toEqual([])
    },
  )

  test('sound passes both ways by its right', async () => {
    const world = await open(['RDP_AUDIO_OUTPUT'])
    const sound = Buffer.alloc(5000, 3)
    world.target.channel('rdpsnd', sound)
    expect(world.client.heard().channels).toEqual([['rdpsnd', sound]])
    world.client.channel('rdpsnd', Buffer.from('0506', 'hex'))
    expect(world.target.heard().channels).toEqual([['rdpsnd', Buffer.from('0506', 'hex')]])
    await vi.waitFor(() =>
      expect(events(world, 'channel.open')).toEqual([{ subprotocol: 'RDP_AUDIO_OUTPUT' }]),
    )
  })
})

describe('the clipboard', () => {
  const LIST = message('02000000 06000000 0d000000 0000')
  const CAPABILITIES = message('07000000 10000000 01000000 01000c00 02000000 1e000000')
  const TAKEN = message('03000100 00000000')
  const REQUEST = message('04000000 04000000 0d000000')
  const TEXT = message('05000100 06000000 6800 6900 0000')

  async function talk(rights: Right[]): Promise<World> {
    const world = await open(rights)
    world.target.channel('cliprdr', CAPABILITIES)
    world.client.channel('cliprdr', CAPABILITIES)
    world.client.heard()
    world.target.heard()
    return world
  }

  test('goes up by its right, and is told and recorded', async () => {
    const world = await talk(['RDP_CLIPBOARD_UP'])
    world.client.channel('cliprdr', LIST)
    world.target.channel('cliprdr', TAKEN)
    world.target.channel('cliprdr', REQUEST)
    world.client.channel('cliprdr', TEXT)
    expect(world.target.heard().channels.at(-1)).toEqual(['cliprdr', TEXT])
    expect(json(world, FRAME.clipboard)).toEqual([
      { direction: 'up', format: 'text', bytes: 2, sha256: hash('sha256', 'hi'), text: 'hi' },
    ])
    await vi.waitFor(() =>
      expect(events(world, 'clipboard')).toEqual([
        {
          subprotocol: 'RDP_CLIPBOARD_UP',
          direction: 'up',
          format: 'text',
          size: 2,
          sha256: hash('sha256', 'hi'),
        },
      ]),
    )
  })

  test('does not come down without its right, and the user is told once', async () => {
    const world = await talk(['RDP_CLIPBOARD_UP'])
    for (let copies = 3; copies > 0; copies--) world.target.channel('cliprdr', LIST)
    expect(world.client.heard().channels).toEqual([])
    expect(world.target.heard().channels).toEqual(Array(3).fill(['cliprdr', TAKEN]))
    await vi.waitFor(() => expect(world.told.at(-1)).toContain('RDP_CLIPBOARD_DOWN is missing'))
    expect(events(world, 'channel.denied').filter((fields) => 'destination' in fields === false)).toEqual([
      { subprotocol: 'RDP_CLIPBOARD_DOWN', reason: 'the right is missing' },
    ])
  })

  const FILES = (() => {
    const file = Buffer.alloc(592)
    file.writeUInt32LE(1234, 68)
    file.write('plan.txt', 72, 'utf16le')
    return Buffer.concat([message('05000100 54020000 01000000'), file])
  })()
  const FILE_LIST = Buffer.concat([
    message('02000000 2e000000 99c00000'),
    Buffer.from('FileGroupDescriptorW\0', 'utf16le'),
  ])
  const part = (kind: number) =>
    message(`08000000 18000000 01000000 00000000 0${kind}000000 00000000 00000000 00010000`)

  test('copies files by their right, each told once by its name', async () => {
    const world = await talk(ALL)
    world.client.channel('cliprdr', FILE_LIST)
    world.target.channel('cliprdr', TAKEN)
    world.target.channel('cliprdr', message('04000000 04000000 99c00000'))
    world.client.channel('cliprdr', FILES)
    for (const kind of [1, 2, 2]) world.target.channel('cliprdr', part(kind))
    expect(world.client.heard().channels).toHaveLength(5)
    const contents = Buffer.alloc(617)
    for (const bytes of [8, 617, 617]) {
      const body = Buffer.concat([Buffer.from([1, 0, 0, 0]), contents.subarray(0, bytes)])
      world.client.channel(
        'cliprdr',
        buildClipboard(CLIPBOARD_MESSAGE.fileContentsResponse, CLIPBOARD_FLAG.ok, body),
      )
    }
    expect(json(world, FRAME.clipboard)).toMatchObject([
      { direction: 'up', format: 'files', bytes: 8, text: 'plan.txt' },
    ])
    expect(json(world, FRAME.file)).toEqual([
      { operation: 'copy', path: 'plan.txt', direction: 'up', size: 1234, result: 'ok' },
    ])
    await vi.waitFor(() =>
      expect(events(world, 'file.transfer')).toEqual([
        {
          subprotocol: 'RDP_CLIPBOARD_FILE',
          path: 'plan.txt',
          direction: 'up',
          size: 1234,
          result: 'success',
        },
      ]),
    )
  })

  test('does not copy files without it', async () => {
    const world = await talk(['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN'])
    world.client.channel('cliprdr', FILE_LIST)
    world.target.channel('cliprdr', part(2))
    expect(world.client.heard().channels).toEqual([])
    await vi.waitFor(() =>
      expect(events(world, 'channel.denied')).toContainEqual({
        subprotocol: 'RDP_CLIPBOARD_FILE',
        reason: 'the right is missing',
      }),
    )
  })
})

describe('devices', () => {
  const announce = (...devices: [type: number, id: number, name: string][]) => {
    const writer = new ByteWriter().uint32(devices.length)
    for (const [type, id, name] of devices) {
      writer
        .uint32(type)
        .uint32(id)
        .bytes(Buffer.from(name.padEnd(8, '\0')))
        .uint32(0)
    }
    return buildDeviceMessage(DEVICE_PACKET.deviceListAnnounce, writer.finish())
  }
  const request = (completion: number, major: number, details: Uint8Array, file = 0) =>
    buildDeviceMessage(
      DEVICE_PACKET.ioRequest,
      new ByteWriter()
        .uint32(4)
        .uint32(file)
        .uint32(completion)
        .uint32(major)
        .uint32(0)
        .bytes(details)
        .finish(),
    )
  const done = (completion: number, details: Uint8Array) =>
    buildDeviceMessage(
      DEVICE_PACKET.ioCompletion,
      new ByteWriter().uint32(4).uint32(completion).uint32(0).bytes(details).finish(),
    )
  const create = (path: string, access: number) => {
    const name = Buffer.from(`${path}\0`, 'utf16le')
    return new ByteWriter()
      .uint32(access)
      .zeros(16)
      .uint32(1)
      .uint32(0x40)
      .uint32(name.length)
      .bytes(name)
      .finish()
  }
  const bytes = (count: number) => new ByteWriter().uint32(count).zeros(count).finish()

  test('of a right are announced, of others not, and both are told', async () => {
    const world = await open(['RDP_DRIVE'])
    world.client.channel(
      'rdpdr',
      announce([DEVICE_TYPE.drive, 4, 'home'], [DEVICE_TYPE.printer, 5, 'PRN1'], [0x99, 6, 'odd']),
    )
    expect(world.target.heard().channels).toEqual([['rdpdr', announce([DEVICE_TYPE.drive, 4, 'home'])]])
    await vi.waitFor(() =>
      expect(events(world, 'channel.open')).toEqual([{ subprotocol: 'RDP_DRIVE', destination: 'home' }]),
    )
    expect(events(world, 'channel.denied').slice(-2)).toEqual([
      { subprotocol: 'RDP_PRINTER', reason: 'the right is missing', destination: 'PRN1' },
      { subprotocol: 'device type 153', reason: 'the device is not relayed', destination: 'odd' },
    ])
  })

  test('files of a drive are told with what went which way', async () => {
    const world = await open(['RDP_DRIVE'])
    const { client, target } = world
    client.channel('rdpdr', announce([DEVICE_TYPE.drive, 4, 'home']))
    target.channel('rdpdr', request(1, IO.create, create('\\plans.txt', 0x120116)))
    client.channel('rdpdr', done(1, new ByteWriter().uint32(77).uint8(0).finish()))
    target.channel('rdpdr', request(2, IO.read, Buffer.alloc(32), 77))
    client.channel('rdpdr', done(2, bytes(3000)))
    target.channel(
      'rdpdr',
      request(
        3,
        IO.write,
        new ByteWriter()
          .uint32(50)
          .zeros(28 + 50)
          .finish(),
        77,
      ),
    )
    client.channel('rdpdr', done(3, new ByteWriter().uint32(50).uint8(0).finish()))
    target.channel('rdpdr', request(4, IO.close, Buffer.alloc(32), 77))
    client.channel('rdpdr', done(4, Buffer.alloc(4)))
    const file = (direction: string, size: number) => ({ path: 'home:\\plans.txt', direction, size })
    expect(json(world, FRAME.file)).toEqual([
      { operation: 'open', path: 'home:\\plans.txt', direction: 'down', result: 'ok' },
      { operation: 'copy', ...file('up', 3000), result: 'ok' },
      { operation: 'copy', ...file('down', 50), result: 'ok' },
    ])
    await vi.waitFor(() =>
      expect(events(world, 'file.transfer')).toEqual([
        { subprotocol: 'RDP_DRIVE', ...file('up', 3000), result: 'success' },
        { subprotocol: 'RDP_DRIVE', ...file('down', 50), result: 'success' },
      ]),
    )
  })

  test('a file that is open at the end is told, with no more than what was sent of it', async () => {
    const world = await open(['RDP_DRIVE'])
    const { client, target } = world
    client.channel('rdpdr', announce([DEVICE_TYPE.drive, 4, 'home']))
    target.channel('rdpdr', request(1, IO.create, create('\\a', 1)))
    client.channel('rdpdr', done(1, new ByteWriter().uint32(7).uint8(0).finish()))
    target.channel('rdpdr', request(2, IO.read, Buffer.alloc(32), 7))
    client.channel('rdpdr', done(2, new ByteWriter().uint32(0xffffffff).zeros(10).finish()))
    world.session.stop('killed', 'because')
    expect(json(world, FRAME.file)).toEqual([
      { operation: 'copy', path: 'home:\\a', direction: 'up', size: 10, result: 'ok' },
    ])
    await vi.waitFor(() => expect(events(world, 'file.transfer')).toHaveLength(1))
  })

  test('a flood of names is told up to a bound', async () => {
    const world = await open(['RDP_DRIVE'])
    for (let id = 0; id < 40; id++) {
      world.client.channel(
        'rdpdr',
        announce(
          ...Array.from({ length: 20 }, (_, at): [number, number, string] => [0x99, at, `${id}-${at}`]),
        ),
      )
    }
    await vi.waitFor(() => expect(events(world, 'channel.denied').length).toBeGreaterThan(200))
    expect(events(world, 'channel.denied').length).toBeLessThan(300)
    expect(world.closed).toEqual([])
  })
})

describe('dynamic channels', () => {
  const create = (channel: number, name: string) =>
    Buffer.concat([Buffer.from([0x10, channel]), Buffer.from(`${name}\0`)])
  const created = (channel: number) => Buffer.from([0x10, channel, 0, 0, 0, 0])
  const data = (channel: number, bytes: Uint8Array) => Buffer.concat([Buffer.from([0x30, channel]), bytes])
  const layout = (monitors: number, size = { width: 1024, height: 768 }, scale = 100) => {
    const writer = new ByteWriter()
      .uint32(2)
      .uint32(16 + 40 * monitors)
      .uint32(40)
      .uint32(monitors)
    for (let left = monitors; left > 0; left--) {
      writer.uint32(1).zeros(8).uint32(size.width).uint32(size.height).zeros(12).uint32(scale).uint32(100)
    }
    return writer.finish()
  }

  test.each<[string, Right[], string[], boolean]>([
    [DISPLAY_CONTROL, [], [], true],
    ['ECHO', ALL, [], false],
    ['AUDIO_INPUT', [], [], false],
    ['AUDIO_INPUT', ['RDP_AUDIO_INPUT'], [], true],
    ['AUDIO_PLAYBACK_DVC', ['RDP_AUDIO_INPUT'], [], false],
    ['AUDIO_PLAYBACK_LOSSY_DVC', ['RDP_AUDIO_OUTPUT'], [], true],
    ['Microsoft::Windows::RDS::Graphics', ALL, ['Microsoft::Windows::RDS::Graphics'], false],
    ['URBDRC', ALL, [], false],
    ['com.example.tool', ALL, [], false],
    ['com.example.tool', [], ['com.example.tool'], true],
  ])('%s with the rights %j and the names %j: %s', (name, rights, dynamicChannels, isAllowed) => {
    const policy = channelPolicy(new Set(rights), { viewOnly: false, dynamicChannels })
    expect(isDynamicAllowed(name, policy)).toBe(isAllowed)
  })

  test('are closed on the client one by one when the session moves to another target', async () => {
    const moved = Promise.withResolvers<void>()
    const world = await open(ALL, {
      redirect: async (one) => {
        moved.resolve()
        return one.another().target
      },
    })
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.client.heard()
    world.target.io(redirection())
    await moved.promise
    await vi.waitFor(() =>
      expect(world.client.heard().channels).toEqual([['drdynvc', message('42 03000000')]]),
    )
  })

  test('are left open on the client when the session ends', async () => {
    const world = await open(ALL)
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.client.heard()
    world.target.stream.onClosed?.()
    await vi.waitFor(() => expect(world.closed).toHaveLength(1))
    expect(world.client.heard().channels).toEqual([])
  })

  test('change the size to what one monitor has, and to nothing else', async () => {
    const world = await open([])
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.target.heard()
    world.client.channel('drdynvc', data(3, layout(1)))
    world.client.channel('drdynvc', data(3, layout(2)))
    world.client.channel('drdynvc', data(3, Buffer.from('garbage')))
    world.client.channel('drdynvc', data(3, Buffer.concat([layout(1), Buffer.from('more')])))
    expect(world.target.heard().channels).toEqual([['drdynvc', data(3, layout(1))]])
  })

  test('a size that nothing could be seen on, or at a scale at which nothing fits, is made a better one', async () => {
    const world = await newWorldWithDesktop()
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.target.heard()
    for (const [size, scale] of [
      [{ width: 200, height: 200 }, 100],
      [{ width: 200, height: 2000 }, 500],
      [{ width: 1024, height: 768 }, 500],
      [{ width: 3840, height: 2160 }, 300],
    ] as const) {
      world.client.channel('drdynvc', data(3, layout(1, size, scale)))
    }
    expect(world.target.heard().channels).toEqual(
      [
        layout(1, { width: 512, height: 384 }),
        layout(1, { width: 512, height: 2000 }),
        layout(1, { width: 1024, height: 768 }, 200),
        layout(1, { width: 3840, height: 2160 }, 300),
      ].map((one) => ['drdynvc', data(3, one)]),
    )
  })

  test('tell how large a desktop can be, and carry nothing else to the client', async () => {
    const world = await open([])
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.client.heard()
    const limits = new ByteWriter().uint32(5).uint32(20).uint32(16).uint32(8192).uint32(8192).finish()
    world.target.channel('drdynvc', data(3, limits))
    world.target.channel('drdynvc', data(3, Buffer.concat([limits, Buffer.from('a file')])))
    world.target.channel('drdynvc', data(3, Buffer.from('a file, twenty bytes')))
    expect(world.client.heard().channels).toEqual([['drdynvc', data(3, limits)]])
    // Even twelve bytes at a time could carry data.
    for (let one = 0; one < 100; one++) world.target.channel('drdynvc', data(3, limits))
    const others = new ByteWriter().uint32(5).uint32(20).uint32(17).uint32(8192).uint32(8192).finish()
    world.target.channel('drdynvc', data(3, others))
    const passed = world.client.heard().channels
    expect(passed.length).toBeLessThan(40)
    expect(passed).not.toContainEqual(['drdynvc', data(3, others)])
  })

  test('a desktop that is larger than recordings draw is not asked for', async () => {
    const world = await open([])
    world.target.channel('drdynvc', create(3, DISPLAY_CONTROL))
    world.client.channel('drdynvc', created(3))
    world.target.heard()
    const head = new ByteWriter().uint32(2).uint32(56).uint32(40).uint32(1)
    const large = head.uint32(1).zeros(8).uint32(8192).uint32(8192).zeros(20).finish()
    world.client.channel('drdynvc', data(3, large))
    expect(world.target.heard().channels).toEqual([])
  })

  test.each([
    ['read why, where they have asked for it', INFO_FLAG.audioCapture, [NO_MICROPHONE]],
    ['read nothing, where not', 0, []],
  ])('that are refused are told once each; users %s', async (_, flags, told) => {
    const world = await open(['RDP_CLIPBOARD_UP', 'RDP_AUDIO_OUTPUT'], { flags })
    for (const name of ['URBDRC', 'URBDRC', 'AUDIO_INPUT', 'AUDIO_INPUT']) {
      world.target.channel('drdynvc', create(7, name))
    }
    expect(world.client.heard().channels).toEqual([])
    await vi.waitFor(() =>
      expect(events(world, 'channel.denied')).toEqual([
        { subprotocol: 'URBDRC', reason: 'the channel is not relayed' },
        { subprotocol: 'RDP_AUDIO_INPUT', reason: 'the right is missing', destination: 'AUDIO_INPUT' },
      ]),
    )
    expect(world.told).toEqual(told)
  })
})
