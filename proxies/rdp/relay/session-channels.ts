/** A session's virtual channels: filters each by rights, and logs to the audit log and the recording. */
import type { Right } from '../../../src/model/rights.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { ClipboardAccount, copiedText } from '../../desktop/clipboard-account.ts'
import { ClipboardFilter, type ClipboardVisitor } from '../channels/clipboard-filter.ts'
import { DeviceFilter, type DeviceVisitor } from '../channels/device-filter.ts'
import { DeviceRegistry } from '../channels/device-registry.ts'
import type { Direction, Side } from '../channels/direction.ts'
import { DynamicFilter, type DynamicFilterOptions } from '../channels/dynamic-filter.ts'
import type { ChannelPlan, ChannelPolicy, KnownChannel } from '../channels/plan.ts'
import { DESKTOP_PIXEL_LIMIT } from '../codec/client-data.ts'
import {
  buildMonitorLayout,
  DISPLAY_CONTROL,
  isDisplayCapabilities,
  parseMonitorLayout,
} from '../codec/display-control.ts'
import { DEVICE_TYPE } from '../codec/rdpdr.ts'
import { parseChunk } from '../codec/virtual-channel.ts'
import {
  channelPolicy,
  isAskedFor,
  isDynamicAllowed,
  rightOfChannel,
  rightOfDevice,
  rightOfDynamic,
} from './channel-rights.ts'
import type { RdpSession } from './session.ts'

/** Names of devices and dynamic channels that are logged, each once; further names are not. */
const MAX_NAMES = 256

const CLIPBOARD_RIGHTS: Readonly<Record<Direction, Right>> = {
  up: 'RDP_CLIPBOARD_UP',
  down: 'RDP_CLIPBOARD_DOWN',
}

/**
 * DISPLAYCONTROL_CAPS_PDUs per session: a target sends one when it opens the channel, at the start of the
 * session or a desktop.
 */
const MAX_LIMITS = 32

/** Channels of which the client's chunks wait while its input is suspended. */
const WAITING: ReadonlySet<KnownChannel | undefined> = new Set(['cliprdr', 'rdpdr'] as const)
/** Bytes of them; a client with more is out of bounds. */
const MAX_WAITING = 8 * 1024 * 1024

export interface SessionChannelsOptions {
  session: RdpSession
  plan: ChannelPlan
  /** Flags of the Client Info. */
  flags: number
  /** Sends a chunk with its header on the channel with that side's index. */
  send: (to: Side, index: number, chunk: Uint8Array) => void
}

interface Filter {
  receive(from: Side, chunk: Uint8Array): void
  /** The client has a desktop. */
  begin?(): void
  /** The channel has ended. */
  close?(): void
  /** Called after `close` if the session moves to another target. */
  redirect?(): void
}

export class SessionChannels {
  readonly #session: RdpSession
  readonly #plan: ChannelPlan
  readonly #send: SessionChannelsOptions['send']
  readonly #flags: number
  readonly #policy: ChannelPolicy
  /** By the client's index. Data of channels without a filter is dropped. */
  readonly #filters: (Filter | undefined)[]
  /** Keys of events that are logged once. */
  readonly #told = new Set<string>()
  /** Chunks of the client that wait for the end of a suspension. */
  #waiting: { index: number; chunk: Uint8Array }[] = []
  #waitingBytes = 0
  /** DISPLAYCONTROL_CAPS_PDUs received from the target. */
  #limits = 0

  constructor({ session, plan, flags, send }: SessionChannelsOptions) {
    this.#session = session
    this.#plan = plan
    this.#flags = flags
    this.#send = send
    this.#policy = channelPolicy(session.rights, session.rdp)
    this.#filters = plan.planned.map(({ known, target }, client) => {
      if (known === undefined) return undefined
      return target === undefined ? this.#refusalOf(known, client) : this.#filterOf(known, client, target)
    })
  }

  /**
   * Logs the channels that the client requested and does not get, and shows the user why. Devices follow once
   * the client has announced them.
   */
  tellDenied(): void {
    for (const { definition, known, target } of this.#plan.planned) {
      if (target !== undefined) continue
      const right = rightOfChannel(known)
      if (!right) this.#session.denied(definition.name, 'the channel is not relayed')
      else {
        const isAsked = known !== 'rdpdr' && isAskedFor(right, this.#flags)
        this.#session.refuses(right, definition.name, isAsked)
      }
    }
  }

  /** The client has confirmed a desktop of the target. */
  begin(): void {
    for (const filter of this.#filters) filter?.begin?.()
  }

  /** Receives a chunk on the client's channel with this index. Throws MalformedError. */
  fromClient(index: number, chunk: Uint8Array): void {
    const waits = WAITING.has(this.#plan.planned[index]?.known)
    if (waits && (this.#session.suspension.isOn || this.#waiting.length > 0)) this.#keep(index, chunk)
    else this.#filters[index]?.receive('client', chunk)
  }

  /** Receives what the client has sent while its input was suspended. Throws MalformedError. */
  goOn(): void {
    const waiting = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    for (const { index, chunk } of waiting) this.#filters[index]?.receive('client', chunk)
  }

  /** Copies the chunk: the peers of clipboard and devices expect each other's answers, so none may be dropped. */
  #keep(index: number, chunk: Uint8Array): void {
    this.#waitingBytes += chunk.length
    if (this.#waitingBytes > MAX_WAITING) {
      this.#session.stop('failure', 'too much data waited while input was suspended')
      return
    }
    this.#waiting.push({ index, chunk: Uint8Array.from(chunk) })
  }

  /** Receives a chunk on the target's channel with this index. Throws MalformedError. */
  fromTarget(index: number, chunk: Uint8Array): void {
    const client = this.#plan.clients[index]
    if (client !== undefined) this.#filters[client]?.receive('target', chunk)
  }

  /** Closes the filters. */
  close(): void {
    for (const filter of this.#filters) filter?.close?.()
  }

  /** Closes the filters before the session moves to another target with other channels. */
  redirect(): void {
    this.close()
    for (const filter of this.#filters) filter?.redirect?.()
  }

  /** Returns a filter for a channel that the target does not have. */
  #refusalOf(known: KnownChannel, client: number): Filter | undefined {
    if (known !== 'rdpdr') return undefined
    const send = (_to: Side, chunk: Uint8Array) => this.#send('client', client, chunk)
    return new DeviceRegistry({ visitor: this.#deviceVisitor(), send })
  }

  #filterOf(known: KnownChannel, client: number, target: number): Filter {
    const send = (to: Side, chunk: Uint8Array) => this.#send(to, to === 'client' ? client : target, chunk)
    const { clipboard, devices } = this.#policy
    switch (known) {
      case 'cliprdr':
        return new ClipboardFilter({ rights: clipboard, visitor: this.#clipboardVisitor(), send })
      case 'rdpdr':
        return new DeviceFilter({ rights: devices, visitor: this.#deviceVisitor(), send })
      case 'drdynvc':
        return new DynamicFilter({
          isAllowed: (name) => isDynamicAllowed(name, this.#policy),
          visitor: this.#dynamicVisitor(),
          send,
        })
      case 'rdpsnd':
        return {
          receive: (from, chunk) => {
            // Audio has no content that rights apply to.
            if (parseChunk(chunk, 'channel rdpsnd')) send(from === 'client' ? 'target' : 'client', chunk)
            if (from === 'target') this.#opened('RDP_AUDIO_OUTPUT')
          },
        }
    }
  }

  #clipboardVisitor(): ClipboardVisitor {
    const session = this.#session
    const account = new ClipboardAccount({
      needs: CLIPBOARD_RIGHTS,
      uses: (right) => session.uses(right),
      tell: (fields) => session.tell('clipboard', fields),
      denied: (right) => session.refuses(right),
      record: (direction, copied) => session.recorder.clipboard(direction, copied),
      now: () => performance.now(),
    })
    return {
      denied: (direction, what) => {
        if (what === 'clipboard') account.deny(direction, '')
        else if (this.#isNews(`files ${direction}`)) session.refuses('RDP_CLIPBOARD_FILE')
      },
      text: (direction, text) => account.passed(direction, copiedText('text', text)),
      data: (direction, format, size, sha256) =>
        account.passed(direction, { format, size, ...(sha256 !== undefined && { sha256 }) }),
      files: (direction, files) => {
        const names = files.map(({ name }) => name).join('\n')
        account.passed(direction, copiedText('files', names))
      },
      transferred: (direction, file, bytes) =>
        this.#fileWent('RDP_CLIPBOARD_FILE', file.name, direction, bytes),
    }
  }

  #deviceVisitor(): DeviceVisitor {
    const session = this.#session
    const pathOf = (drive: string, path: string | undefined) => `${drive}:${path ?? '?'}`
    return {
      denied: ({ type, name }) => {
        const right = rightOfDevice(type)
        if (!this.#isNews(`device ${type} ${name}`)) return
        if (right) session.refuses(right, name)
        else session.denied(`device type ${type}`, 'the device is not relayed', name)
      },
      announced: ({ type, name }) => {
        const right = rightOfDevice(type)
        if (right) this.#opened(right, name)
      },
      opened: (drive, path, isWriting) => {
        if (!isWriting) return
        session.recorder.file({
          operation: 'open',
          path: pathOf(drive, path),
          direction: 'down',
          result: 'ok',
        })
      },
      transferred: ({ type, name }, path, direction, bytes) => {
        const right = rightOfDevice(type)
        const what = type === DEVICE_TYPE.drive ? pathOf(name, path) : name
        if (right) this.#fileWent(right, what, direction, bytes)
      },
      renamed: (drive, path, newPath) =>
        session.recorder.file({
          operation: 'rename',
          path: pathOf(drive, path),
          target: pathOf(drive, newPath),
          result: 'ok',
        }),
      deleted: (drive, path) =>
        session.recorder.file({ operation: 'remove', path: pathOf(drive, path), result: 'ok' }),
    }
  }

  #dynamicVisitor(): DynamicFilterOptions['visitor'] {
    const session = this.#session
    return {
      denied: (name) => {
        if (!this.#isNews(`dynamic ${name}`)) return
        const right = rightOfDynamic(name)
        if (right) session.refuses(right, name, isAskedFor(right, this.#flags))
        else session.denied(name, 'the channel is not relayed')
      },
      opened: (name) => {
        const right = rightOfDynamic(name)
        if (right) this.#opened(right, name)
        else if (name !== DISPLAY_CONTROL) this.#opened('RDP', name)
      },
      // Drops other messages: a program could open the channel and bypass the clipboard's rights.
      data: (from, name, message) => {
        // A microphone's sound and a new layout are input too.
        if (from === 'client' && session.suspension.isOn && rightOfDynamic(name) !== 'RDP_AUDIO_OUTPUT')
          return false
        if (name !== DISPLAY_CONTROL) return true
        if (message.kind !== 'data') return false
        return from === 'target' ? this.#isLimit(message.data) : layoutOf(message.data)
      },
    }
  }

  #fileWent(right: Right, path: string, direction: Direction, size: number | undefined): void {
    const session = this.#session
    const known = size === undefined ? {} : { size }
    session.uses(right)
    session.recorder.file({ operation: 'copy', path, direction, ...known, result: 'ok' })
    session.tell('file.transfer', { subprotocol: right, path, direction, ...known, result: 'success' })
  }

  #opened(right: Right, destination?: string): void {
    this.#session.uses(right)
    if (!this.#isNews(`opened ${right} ${destination ?? ''}`)) return
    this.#session.tell('channel.open', {
      subprotocol: right,
      ...(destination !== undefined && { destination }),
    })
  }

  /** Accepts the target's limits for desktops, as often as a desktop may start. */
  #isLimit(message: Uint8Array): boolean {
    if (MAX_LIMITS <= this.#limits || !isDisplayCapabilities(message)) return false
    this.#limits++
    return true
  }

  #isNews(what: string): boolean {
    if (this.#told.has(what) || this.#told.size === MAX_NAMES) return false
    this.#told.add(what)
    return true
  }
}

/**
 * Returns the layout of one monitor with a size that a desktop can have, or false. Several monitors would
 * need messages to the client that the filter drops.
 */
function layoutOf(message: Uint8Array): Uint8Array | false {
  try {
    const [monitor, ...others] = parseMonitorLayout(message) ?? []
    if (!monitor || others.length > 0 || DESKTOP_PIXEL_LIMIT < monitor.width * monitor.height) return false
    return buildMonitorLayout(monitor)
  } catch (error) {
    if (error instanceof MalformedError) return false
    throw error
  }
}
