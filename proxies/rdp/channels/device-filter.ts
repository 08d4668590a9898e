/**
 * Devices that a client shares with a target, held to rights: those of a kind that is not allowed are never announced,
 * and requests for what has not been announced are refused. What is done to files on drives is told, and how much went
 * to printers and through ports.
 */
import {
  buildDeviceMessage,
  buildDevices,
  buildIoRefusal,
  DEVICE_MESSAGE_LIMIT,
  DEVICE_PACKET,
  DEVICE_TYPE,
  type Device,
  IO,
  type IoRequest,
  parseCreate,
  parseDeviceMessage,
  parseDevices,
  parseIoCompletion,
  parseIoRequest,
  parseSetInformation,
  parseTransfer,
  RDPDR,
  SET_INFORMATION,
} from '../codec/rdpdr.ts'
import { ByteReader } from '../codec/reader.ts'
import { MessageStream } from './message-stream.ts'
import { type Direction, otherSide, type SendChunk, type Side, sendMessage } from './passage.ts'

/** Devices of one session, and requests that have not been answered. */
const DEVICES_LIMIT = 256
const PENDING_LIMIT = 4096
/** Files on drives, jobs of printers and ports that are open, or being opened, at once. */
const FILES_LIMIT = 4096
/** Characters of a path, of which Windows has 260 as a rule, and of all that are kept: more are refused. */
const PATH_LIMIT = 2048
const PATHS_LIMIT = 1024 * 1024

/** Before the bytes of a write request. */
const WRITE_HEAD = 32

export interface DeviceRights {
  drives: boolean
  printers: boolean
  /** Serial and parallel. */
  ports: boolean
  smartCards: boolean
}

export interface DeviceVisitor {
  /** The client has announced a device that the target will not know of. */
  denied(device: Pick<Device, 'type' | 'name'>): void
  announced(device: Pick<Device, 'type' | 'name'>): void
  /** The target has opened a file on a drive; told when the client has done it. */
  opened(drive: string, path: string, isWriting: boolean): void
  /**
   * So many bytes of a file went to the target (`up`) or came from it; told when it is closed. Of a printer or a port the
   * path is empty.
   */
  transferred(device: Pick<Device, 'type' | 'name'>, path: string, direction: Direction, bytes: number): void
  /** Told when the target asks for it. */
  renamed(drive: string, path: string, newPath: string): void
  deleted(drive: string, path: string): void
}

export interface DeviceFilterOptions {
  rights: DeviceRights
  visitor: DeviceVisitor
  send: SendChunk
}

interface OpenFile {
  device: Pick<Device, 'type' | 'name'>
  path: string
  /** Bytes. */
  up: number
  down: number
}

interface Pending {
  major: number
  file: number
  path?: string
  isWriting?: boolean
}

/** A packet that only one side sends; others pass either way. */
const ONLY_CLIENT: ReadonlySet<number> = new Set([
  DEVICE_PACKET.clientName,
  DEVICE_PACKET.clientCapability,
  DEVICE_PACKET.deviceListAnnounce,
  DEVICE_PACKET.deviceListRemove,
  DEVICE_PACKET.ioCompletion,
])
const ONLY_TARGET: ReadonlySet<number> = new Set([
  DEVICE_PACKET.serverAnnounce,
  DEVICE_PACKET.serverCapability,
  DEVICE_PACKET.userLoggedOn,
  DEVICE_PACKET.deviceReply,
  DEVICE_PACKET.ioRequest,
])
const EITHER: ReadonlySet<number> = new Set([DEVICE_PACKET.clientIdConfirm])

export class DeviceFilter {
  readonly #options: DeviceFilterOptions
  readonly #streams: Record<Side, MessageStream>
  /** By their identifiers: those that the target knows of. */
  readonly #devices = new Map<number, Pick<Device, 'type' | 'name'>>()
  /** By device and completion. */
  readonly #pending = new Map<string, Pending>()
  /** Files that are open, by device and file. */
  readonly #files = new Map<string, OpenFile>()
  /** Files that are being opened. */
  #opening = 0
  /** Characters of the paths of both. */
  #characters = 0

  constructor(options: DeviceFilterOptions) {
    this.#options = options
    const stream = (from: Side) =>
      new MessageStream({
        name: RDPDR,
        limit: DEVICE_MESSAGE_LIMIT,
        take: (message) => this.#take(from, message),
      })
    this.#streams = { client: stream('client'), target: stream('target') }
  }

  /** A chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** The channel is over, and so is every file that was open. */
  close(): void {
    for (const [key, file] of this.#files) this.#close(key, file)
  }

  #closed({ device, path, up, down }: OpenFile): void {
    const { visitor } = this.#options
    if (up > 0) visitor.transferred(device, path, 'up', up)
    if (down > 0) visitor.transferred(device, path, 'down', down)
  }

  #take(from: Side, whole: Uint8Array): void {
    const { packet, body } = parseDeviceMessage(whole)
    if (packet === undefined) {
      // Printers' caches and their settings.
      if (this.#options.rights.printers) this.#pass(from, whole)
      return
    }
    const passes = EITHER.has(packet) || (from === 'client' ? ONLY_CLIENT : ONLY_TARGET).has(packet)
    if (!passes) return
    switch (packet) {
      case DEVICE_PACKET.deviceListAnnounce:
        this.#announce(parseDevices(body))
        return
      case DEVICE_PACKET.deviceListRemove:
        this.#remove(body)
        return
      case DEVICE_PACKET.deviceReply:
        // The client is told of what it has announced and the target knows of.
        if (this.#devices.has(new ByteReader(body, 'device reply').uint32())) this.#pass(from, whole)
        return
      case DEVICE_PACKET.ioRequest:
        this.#request(parseIoRequest(body), whole)
        return
      case DEVICE_PACKET.ioCompletion:
        if (this.#complete(body)) this.#pass(from, whole)
        return
      default:
        this.#pass(from, whole)
    }
  }

  #pass(from: Side, message: Uint8Array): void {
    sendMessage(this.#options.send, otherSide(from), message)
  }

  #isAllowed(type: number): boolean {
    const { drives, printers, ports, smartCards } = this.#options.rights
    switch (type) {
      case DEVICE_TYPE.drive:
        return drives
      case DEVICE_TYPE.printer:
        return printers
      case DEVICE_TYPE.serial:
      case DEVICE_TYPE.parallel:
        return ports
      case DEVICE_TYPE.smartCard:
        return smartCards
      default:
        return false
    }
  }

  #announce(devices: readonly Device[]): void {
    const { visitor } = this.#options
    const allowed = devices.filter(({ type, id, name }) => {
      const known = this.#devices.get(id)
      // The target, which has it as what it was, would go on using it: it has to be removed first.
      const isOther = known !== undefined && (known.type !== type || known.name !== name)
      if (!this.#isAllowed(type) || isOther) {
        visitor.denied({ type, name })
        return false
      }
      if (!known && this.#devices.size === DEVICES_LIMIT) return false
      this.#devices.set(id, { type, name })
      if (!known) visitor.announced({ type, name })
      return true
    })
    // A list with nothing left is sent too: the target waits for one.
    this.#pass('client', buildDevices(allowed))
  }

  #remove(body: Uint8Array): void {
    const reader = new ByteReader(body, 'device list remove')
    const count = reader.uint32()
    if (DEVICES_LIMIT < count) reader.fail(`at most ${DEVICES_LIMIT} devices were expected, found ${count}`)
    for (let left = count; left > 0; left--) this.#gone(reader.uint32())
    this.#pass('client', buildDeviceMessage(DEVICE_PACKET.deviceListRemove, body))
  }

  /** Nothing of it is answered any more, and its files are closed. */
  #gone(device: number): void {
    if (!this.#devices.delete(device)) return
    const begin = keyOf(device, '')
    for (const [key, pending] of this.#pending) if (key.startsWith(begin)) this.#settle(key, pending)
    for (const [key, file] of this.#files) if (key.startsWith(begin)) this.#close(key, file)
  }

  #request(request: IoRequest, whole: Uint8Array): void {
    const device = this.#devices.get(request.device)
    const key = keyOf(request.device, request.completion)
    // An answer has to be that of one request.
    const isFull = this.#pending.size === PENDING_LIMIT || this.#pending.has(key)
    const pending = device && !isFull && this.#judge(device, request)
    if (!pending) {
      sendMessage(this.#options.send, 'target', buildIoRefusal(request))
      return
    }
    this.#pending.set(key, pending)
    this.#pass('target', whole)
  }

  /** undefined: it is refused. What is done to a file whose name nobody here knows could not be told. */
  #judge({ type, name }: Pick<Device, 'type' | 'name'>, request: IoRequest): Pending | undefined {
    const { major, file } = request
    // Nothing is opened there, and nothing stored.
    if (type === DEVICE_TYPE.smartCard) return { major, file }
    const isDrive = type === DEVICE_TYPE.drive
    if (major !== IO.create) {
      const open = this.#files.get(keyOf(request.device, file))
      if (!open) return undefined
      // Whatever the client says that it has done with them, it has got them.
      if (major === IO.write) open.down += bytesWritten(request.details)
      const isFine = !isDrive || major !== IO.setInformation || this.#change(name, open.path, request)
      return isFine ? { major, file } : undefined
    }
    const { path, isWriting } = isDrive ? parseCreate(request.details) : { path: '', isWriting: false }
    const isTooMuch =
      FILES_LIMIT <= this.#files.size + this.#opening ||
      PATH_LIMIT < path.length ||
      PATHS_LIMIT < this.#characters + path.length
    if (isTooMuch) return undefined
    this.#opening++
    this.#characters += path.length
    return { major, file, path, isWriting }
  }

  /** Whether it passes. */
  #change(drive: string, path: string, request: IoRequest): boolean {
    const { visitor } = this.#options
    const change = parseSetInformation(request.details)
    if (change.newPath !== undefined) {
      if (PATH_LIMIT < change.newPath.length) return false
      visitor.renamed(drive, path, change.newPath)
    } else if (change.class === SET_INFORMATION.disposition) visitor.deleted(drive, path)
    return true
  }

  /** Whether it answers a request. */
  #complete(body: Uint8Array): boolean {
    const { device, completion, status, details } = parseIoCompletion(body)
    const answered = keyOf(device, completion)
    const pending = this.#pending.get(answered)
    if (!pending) return false
    this.#settle(answered, pending)
    const key = keyOf(device, pending.file)
    const file = this.#files.get(key)
    switch (pending.major) {
      case IO.create:
        if (pending.path !== undefined && status === 0) this.#opened(device, pending, details)
        break
      case IO.read:
        if (file && status === 0) file.up += bytesRead(details)
        break
      case IO.close:
        if (file) this.#close(key, file)
    }
    return true
  }

  /** A request is over. */
  #settle(key: string, { path }: Pending): void {
    this.#pending.delete(key)
    if (path === undefined) return
    this.#opening--
    this.#characters -= path.length
  }

  #opened(device: number, { path = '', isWriting = false }: Pending, details: Uint8Array): void {
    const key = keyOf(device, new ByteReader(details, 'device create completion').uint32())
    const opened = this.#devices.get(device)
    if (!opened) return
    const known = this.#files.get(key)
    if (known) this.#close(key, known)
    this.#files.set(key, { device: opened, path, up: 0, down: 0 })
    this.#characters += path.length
    if (opened.type === DEVICE_TYPE.drive) this.#options.visitor.opened(opened.name, path, isWriting)
  }

  #close(key: string, file: OpenFile): void {
    this.#files.delete(key)
    this.#characters -= file.path.length
    this.#closed(file)
  }
}

/** What a client says that it has read is no more than what it sends. */
function bytesRead(details: Uint8Array): number {
  const reader = new ByteReader(details, 'device read completion')
  return Math.min(reader.uint32(), reader.remaining)
}

function bytesWritten(details: Uint8Array): number {
  const { length } = parseTransfer(details)
  return Math.min(length, Math.max(0, details.length - WRITE_HEAD))
}

/** Of a file, or of a request by its completion. */
const keyOf = (device: number, id: number | '') => `${device} ${id}`
