/**
 * Filters a client's shared devices by rights: devices that are not allowed are never announced, and requests
 * for devices that were not announced are refused. Logs operations on files of drives, and the bytes
 * forwarded to printers, ports and cards, whatever status the peers report. Drops bytes outside known
 * messages.
 */
import {
  buildDevices,
  buildIoRefusal,
  DEVICE_MESSAGE_LIMIT,
  DEVICE_PACKET,
  DEVICE_TYPE,
  type Device,
  IO,
  type IoRequest,
  PRINTER_PACKET,
  parseCreate,
  parseDeviceMessage,
  parseDevices,
  parseDirectoryQuery,
  parseIoCompletion,
  parseIoRequest,
  parseSetInformation,
  QUERY_DIRECTORY,
  RDPDR,
  SET_INFORMATION,
} from '../codec/rdpdr.ts'
import {
  isKnownRequest,
  lengthOfPacket,
  measureAnswer,
  measureRequest,
  PLAIN_LIMIT,
} from '../codec/rdpdr-measure.ts'
import { ByteReader } from '../codec/reader.ts'
import { type Direction, otherSide, type SendChunk, type Side, sendMessage } from './direction.ts'
import { MessageStream } from './message-stream.ts'

/** Devices per session. */
const DEVICES_LIMIT = 256
const PENDING_LIMIT = 4096
/** Files on drives, print jobs and ports that are open or being opened. */
const FILES_LIMIT = 4096
/** Characters of a path (Windows usually allows 260), and of all paths kept. */
const PATH_LIMIT = 2048
const PATHS_LIMIT = 1024 * 1024

/** Bytes before a message's body, and before the details of a request and of a response in it. */
const HEAD = { message: 4, request: 20, answer: 12 } as const
/** Bytes of the packet's body: a printer's id and a flag. */
const XPS_LENGTH = 8
/** Data to and from a client's printer settings is logged under this name. */
const SETTINGS = { type: DEVICE_TYPE.printer, name: 'printer settings' } as const
/** FsInformationClass of requests that are forwarded: those of MS-RDPEFS 2.2.3.3.9. */
const CHANGES: ReadonlySet<number> = new Set(Object.values(SET_INFORMATION))

export interface DeviceRights {
  drives: boolean
  printers: boolean
  /** Serial and parallel. */
  ports: boolean
  smartCards: boolean
}

export interface DeviceVisitor {
  /** The client announced a device that is hidden from the target. */
  denied(device: Pick<Device, 'type' | 'name'>): void
  announced(device: Pick<Device, 'type' | 'name'>): void
  /** The target has opened a file on a drive; reported after the client's success. */
  opened(drive: string, path: string, isWriting: boolean): void
  /**
   * Bytes of a file sent to the target (`up`) or received from it, reported when the file is closed; later
   * bytes as they come. The path is empty for printers, ports and cards (a card is reported when removed),
   * and for a drive's bytes in names that no other event shows.
   */
  transferred(device: Pick<Device, 'type' | 'name'>, path: string, direction: Direction, bytes: number): void
  /** Reported when the target requests it. */
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
  /** Bytes of its path, as long as no event shows the path. */
  untold: number
  isClosed: boolean
}

interface Pending {
  major: number
  file: number
  /** The open file that the request is about. Absent if it opens one. */
  open?: OpenFile
  path?: string
  isWriting?: boolean
  isRemoved?: boolean
  /** An event shows the request's path. */
  isNamed?: boolean
  /** Bytes of data. */
  content?: number
}

const createFile = (device: OpenFile['device'], path: string): OpenFile => ({
  device,
  path,
  up: 0,
  down: 0,
  untold: 0,
  isClosed: false,
})

/** Packets that only the client sends. */
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
  /** Devices that the target knows, by id. */
  readonly #devices = new Map<number, Pick<Device, 'type' | 'name'>>()
  /** Outstanding requests, by device and completion id. */
  readonly #pending = new Map<string, Pending>()
  /** Open files, by device and file id. */
  readonly #files = new Map<string, OpenFile>()
  /** Bytes outside open files, by device: all those of a card, and paths. */
  readonly #beside = new Map<number, OpenFile>()
  readonly #settings = createFile(SETTINGS, '')
  /** Number of files being opened. */
  #opening = 0
  /** Characters of the paths of open files and files being opened. */
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

  /** Receives a chunk with its header. Throws MalformedError. */
  receive(from: Side, chunk: Uint8Array): void {
    this.#streams[from].receive(chunk)
  }

  /** Closes every open file; called when the channel ends. */
  close(): void {
    for (const [key, file] of this.#files) this.#close(key, file)
    for (const beside of this.#beside.values()) this.#closed(beside)
    this.#beside.clear()
    this.#closed(this.#settings)
  }

  /** Reports bytes that were forwarded and not yet reported. */
  #closed(file: OpenFile): void {
    const { visitor } = this.#options
    const { device, path, up, down } = file
    file.isClosed = true
    file.up = 0
    file.down = 0
    if (up > 0) visitor.transferred(device, path, 'up', up)
    if (down > 0) visitor.transferred(device, path, 'down', down)
  }

  #count(file: OpenFile, direction: Direction, bytes: number): void {
    file[direction] += bytes
    if (file.isClosed) this.#closed(file)
  }

  #take(from: Side, whole: Uint8Array): void {
    const { component, packet, body } = parseDeviceMessage(whole)
    if (component === 'printer' && from === 'target') this.#printer(packet, whole)
    if (component !== 'core') return
    const passes = EITHER.has(packet) || (from === 'client' ? ONLY_CLIENT : ONLY_TARGET).has(packet)
    if (!passes) return
    const known = lengthOfPacket(packet, body) ?? body.length
    const cut = whole.subarray(0, HEAD.message + known)
    switch (packet) {
      case DEVICE_PACKET.deviceListAnnounce:
        this.#announce(parseDevices(body))
        return
      case DEVICE_PACKET.deviceListRemove:
        this.#remove(body, cut)
        return
      case DEVICE_PACKET.deviceReply:
        // Forwards replies only for devices that the client announced to the target.
        if (this.#devices.has(new ByteReader(body, 'device reply').uint32())) this.#pass(from, cut)
        return
      case DEVICE_PACKET.ioRequest:
        this.#request(parseIoRequest(body), whole)
        return
      case DEVICE_PACKET.ioCompletion:
        this.#complete(body, whole)
        return
      default:
        this.#pass(from, cut)
    }
  }

  /** Forwards the printer component's settings and XPS flag; other packets could be jobs, not counted. */
  #printer(packet: number, whole: Uint8Array): void {
    if (!this.#options.rights.printers) return
    if (packet === PRINTER_PACKET.usingXps) this.#pass('target', whole.subarray(0, HEAD.message + XPS_LENGTH))
    if (packet !== PRINTER_PACKET.cacheData) return
    this.#settings.down += whole.length - HEAD.message
    this.#pass('target', whole)
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
    const allowed = devices.filter(({ type, id, name, data }) => {
      const known = this.#devices.get(id)
      // Denies a changed device: the target would keep using the old one, unless it is removed first.
      const isOther = known !== undefined && (known.type !== type || known.name !== name)
      // A printer's data includes its settings; other devices have only a name.
      const isTooMuch = type !== DEVICE_TYPE.printer && PLAIN_LIMIT < data
      if (!this.#isAllowed(type) || isOther || isTooMuch) {
        visitor.denied({ type, name })
        return false
      }
      if (!known && this.#devices.size === DEVICES_LIMIT) return false
      this.#devices.set(id, { type, name })
      this.#settings.up += Math.max(0, data - PLAIN_LIMIT)
      if (!known) visitor.announced({ type, name })
      return true
    })
    // Sends the list even if it is empty: the target waits for one.
    this.#pass('client', buildDevices(allowed))
  }

  #remove(body: Uint8Array, cut: Uint8Array): void {
    const reader = new ByteReader(body, 'device list remove')
    const count = reader.uint32()
    if (DEVICES_LIMIT < count) reader.fail(`at most ${DEVICES_LIMIT} devices were expected, found ${count}`)
    for (let left = count; left > 0; left--) this.#gone(reader.uint32())
    this.#pass('client', cut)
  }

  /** Drops the device's requests and closes its files. */
  #gone(device: number): void {
    if (!this.#devices.delete(device)) return
    const begin = keyOf(device, '')
    for (const [key, pending] of this.#pending) if (key.startsWith(begin)) this.#settle(key, pending)
    for (const [key, file] of this.#files) if (key.startsWith(begin)) this.#close(key, file)
    const beside = this.#beside.get(device)
    this.#beside.delete(device)
    if (beside) this.#closed(beside)
  }

  #request(request: IoRequest, whole: Uint8Array): void {
    const device = this.#devices.get(request.device)
    const key = keyOf(request.device, request.completion)
    // A response must match one request.
    const isFull = this.#pending.size === PENDING_LIMIT || this.#pending.has(key)
    const pending = device && !isFull && this.#judge(device, request)
    if (!pending) {
      sendMessage(this.#options.send, 'target', buildIoRefusal(request))
      return
    }
    this.#pending.set(key, pending)
    const { length, content } = measureRequest(request)
    // Counts the bytes whatever the client reports, since it has received them.
    const isPath = request.major === IO.create || request.major === IO.directory
    const open = isPath ? this.#besideOf(request.device, device) : pending.open
    if (open && !pending.isNamed) this.#count(open, 'down', content)
    pending.content = content
    this.#pass('target', whole.subarray(0, HEAD.message + HEAD.request + length))
  }

  /** Returns undefined to refuse. An operation on an unknown file id could not be logged. */
  #judge({ type, name }: Pick<Device, 'type' | 'name'>, request: IoRequest): Pending | undefined {
    const { device, major, file } = request
    if (type === DEVICE_TYPE.smartCard) {
      // Cards open nothing.
      return major === IO.deviceControl
        ? { major, file, open: this.#besideOf(device, { type, name }) }
        : undefined
    }
    if (!isKnownRequest(major)) return undefined
    const isDrive = type === DEVICE_TYPE.drive
    if (major !== IO.create) {
      const open = this.#files.get(keyOf(device, file))
      if (!open) return undefined
      if (isDrive && major === IO.directory) return this.#query(request, open)
      if (!isDrive || major !== IO.setInformation) return { major, file, open }
      return this.#change(name, open, request)
    }
    const create = isDrive ? parseCreate(request.details) : { path: '', isWriting: false, isRemoved: false }
    const { path, isWriting, isRemoved } = create
    if (path === undefined) return undefined
    const isTooMuch =
      FILES_LIMIT <= this.#files.size + this.#opening ||
      PATH_LIMIT < path.length ||
      PATHS_LIMIT < this.#characters + path.length
    if (isTooMuch) return undefined
    this.#opening++
    this.#characters += path.length
    return { major, file, path, isWriting, isRemoved }
  }

  #besideOf(id: number, device: OpenFile['device']): OpenFile {
    const beside = this.#beside.get(id) ?? createFile(device, '')
    this.#beside.set(id, beside)
    return beside
  }

  /** Judges a query for names in a folder. A query for all names shows nothing new to log. */
  #query({ major, minor, file, details }: IoRequest, open: OpenFile): Pending | undefined {
    if (minor !== QUERY_DIRECTORY) return { major, file, open }
    const path = parseDirectoryQuery(details)
    if (path === undefined || PATH_LIMIT < path.length) return undefined
    return { major, file, open, isNamed: path === `${open.path.replace(/\\$/, '')}\\*` }
  }

  #change(drive: string, open: OpenFile, request: IoRequest): Pending | undefined {
    const { visitor } = this.#options
    const change = parseSetInformation(request.details)
    if (change === undefined || !CHANGES.has(change.class)) return undefined
    const pending = { major: request.major, file: request.file, open }
    if (change.newPath === undefined) {
      if (change.class === SET_INFORMATION.disposition) visitor.deleted(drive, open.path)
      return pending
    }
    if (PATH_LIMIT < change.newPath.length) return undefined
    visitor.renamed(drive, open.path, change.newPath)
    return { ...pending, isNamed: true }
  }

  /** Drops completions without a request. */
  #complete(body: Uint8Array, whole: Uint8Array): void {
    const { device, completion, status, details } = parseIoCompletion(body)
    const answered = keyOf(device, completion)
    const pending = this.#pending.get(answered)
    if (!pending) return
    this.#settle(answered, pending)
    const { major, open } = pending
    const { length, content } = measureAnswer(major, details)
    // Counts for the requested file, also after a failure or if its id now means another file.
    if (open) this.#count(open, 'up', content)
    if (major === IO.create && status === 0) this.#opened(device, pending, details)
    const key = keyOf(device, pending.file)
    if (major === IO.close && open && this.#files.get(key) === open) this.#close(key, open)
    this.#pass('client', whole.subarray(0, HEAD.message + HEAD.answer + length))
  }

  /** Removes a request. */
  #settle(key: string, { path }: Pending): void {
    this.#pending.delete(key)
    if (path === undefined) return
    this.#opening--
    this.#characters -= path.length
  }

  #opened(device: number, pending: Pending, details: Uint8Array): void {
    const { path = '', isWriting = false, isRemoved = false, content = 0 } = pending
    const key = keyOf(device, new ByteReader(details, 'device create completion').uint32())
    const opened = this.#devices.get(device)
    if (!opened) return
    const known = this.#files.get(key)
    if (known) this.#close(key, known)
    const file = createFile(opened, path)
    this.#files.set(key, file)
    this.#characters += path.length
    if (opened.type !== DEVICE_TYPE.drive) return
    // Counts the path later, and only if no event logs it.
    this.#besideOf(device, opened).down -= content
    if (!isWriting) file.untold = content
    this.#options.visitor.opened(opened.name, path, isWriting)
    if (isRemoved) this.#options.visitor.deleted(opened.name, path)
  }

  #close(key: string, file: OpenFile): void {
    this.#files.delete(key)
    this.#characters -= file.path.length
    if (file.up + file.down === 0) this.#besideOf(Number.parseInt(key, 10), file.device).down += file.untold
    this.#closed(file)
  }
}

/** Key of a file, or of a request by its completion id. */
const keyOf = (device: number, id: number | '') => `${device} ${id}`
