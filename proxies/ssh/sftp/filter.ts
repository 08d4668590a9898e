/**
 * Filters SFTP between a client and its target, by rights (permits.ts) and by rules for files (checks.ts).
 * Requests are forwarded byte for byte, or answered here: each gets exactly one reply. If rules need facts,
 * the bastion sends the target requests of its own; until their replies, no further request of the client is
 * forwarded, so the requests keep their order. Replies keep theirs too: OpenSSH's client treats the last
 * reply to a file's writes as the result of the transfer.
 *
 * Throws MalformedError for a stream that cannot be parsed.
 */

import type { Buffer } from 'node:buffer'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import type { Right } from '../../../src/model/rights.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'
import { uint32At } from '../../bytes/uint32.ts'
import { Reader } from '../codec/reader.ts'
import {
  FX_PERMISSION_DENIED,
  FXP,
  HANDLE_LIMIT,
  parseRequest,
  parseWriteHead,
  REQUEST_LIMIT,
  replyHead,
  requestHead,
  type SftpRequest,
  VERSION,
} from '../codec/sftp.ts'
import {
  type Answer,
  buildPathRequest,
  buildStatus,
  buildVersion,
  packetHead,
  parseAnswer,
  parseVersion,
} from '../codec/sftp-answers.ts'
import { PacketSplitter } from '../codec/sftp-packets.ts'
import { pathsOf } from '../codec/sftp-paths.ts'
import { setUint32At } from '../codec/writer.ts'
import type { FileDenial } from '../files/denial.ts'
import type { OpenFile, OpenSizes } from '../files/open-sizes.ts'
import type { Asking } from '../files/places.ts'
import { ByteQueue } from './byte-queue.ts'
import { Checks, isJudged, type Refusal, type Verdict } from './checks.ts'
import { operationName } from './operation-name.ts'
import { mayOffer, rightLacking } from './permits.ts'
import type { Participant, Turn, Turns } from './turns.ts'

/** Bytes of replies that the client has not read, above which its requests are no longer processed. */
export const ANSWERS_LIMIT = 64 * 1024
/** Requests that wait for the target's reply; the recorder has the same limit. */
const WAITING_LIMIT = 131_072
const FIRST_OWN_ID = 0xfffffff0
/** Bytes of a packet before its body. */
const PREFIX = 5

/** Receivers of the filter's output. They copy the bytes before they return. */
export interface FilterPorts {
  /** Forwards the client's bytes to the target. */
  passToTarget(bytes: Uint8Array): void
  /** Sends the bastion's own bytes. */
  sendToTarget(bytes: Uint8Array): void
  /** Forwards the target's bytes to the client. */
  passToClient(bytes: Uint8Array): void
  sendToClient(bytes: Uint8Array): void
  denied(denial: FileDenial): void
  /** Requests a call of `resume`, but not within this call. */
  wake(): void
  /** Bytes toward the client that it has not read. */
  readonly backlog: number
}

export interface FilterPolicy {
  rights: ReadonlySet<Right>
  rules: FileJudge
  /** The session's file sizes. */
  sizes: OpenSizes
  /** The session's turns. */
  turns: Turns
  /** Returns the user's message for a missing right. */
  explain(right: Right): string
}

/** A forwarded request, with the facts needed at its reply. */
interface Waiting {
  /** The number of requests forwarded before it. */
  place: number
  /** The file that an OPEN opens. */
  opens?: OpenFile
  /** The file and offset of a READ. */
  reads?: { file: OpenFile; offset: number }
  /** The file that a CLOSE closes. */
  closes?: OpenFile
  /** The file that the request may enlarge. */
  grows?: OpenFile
  /** The turn that ends with the reply. */
  turn?: Turn
}

/** A request whose verdict waits for a reply of the target. */
interface Checking {
  asking: Asking<Verdict>
  id: number
  turn: Turn
  request: SftpRequest
  packet: Buffer
}

/** A reply of the bastion, to be sent after the replies to the requests before `place`. */
interface OwnAnswer {
  place: number
  packet: Buffer
}

/** Requests after which a name may lead elsewhere. */
const NAME_CHANGES: readonly (number | string)[] = [
  FXP.rename,
  FXP.symlink,
  FXP.remove,
  FXP.rmdir,
  'posix-rename@openssh.com',
  'hardlink@openssh.com',
]

type WriteHead = ReturnType<typeof parseWriteHead>

export class SftpFilter {
  readonly #ports: FilterPorts
  readonly #policy: FilterPolicy
  /** Undefined if there are no rules. */
  readonly #checks: Checks | undefined
  readonly #requests: PacketSplitter
  readonly #replies: PacketSplitter
  readonly #held = new ByteQueue()
  /** The bastion's replies that wait for their turn, and their total size. */
  #answers: OwnAnswer[] = []
  #answerBytes = 0
  #stage: 'init' | 'version' | 'open' = 'init'
  #checking: Checking | undefined
  /** The request that waits for its turn. */
  #queued: Omit<Checking, 'id'> | undefined
  readonly #participant: Participant
  /** Requests without a reply, oldest first. */
  readonly #waiting = new Map<number, Waiting>()
  #passed = 0
  /** Open files by handle; used only if there are rules. */
  readonly #files = new Map<string, OpenFile>()
  /** Whether data of the current packet is forwarded. */
  #passesUp = false
  #passesDown = false
  /** Remaining bytes of the target's current packet. */
  #restDown = 0

  constructor(policy: FilterPolicy, ports: FilterPorts) {
    this.#policy = policy
    this.#ports = ports
    this.#participant = { wake: () => ports.wake() }
    this.#checks = policy.rules.isEmpty ? undefined : new Checks(policy.rules, policy.sizes)
    const filter = this
    this.#requests = new PacketSplitter({
      wants: (type, length, head) =>
        type === FXP.init ? Math.max(4, whole(length)) : requestHead(type, length, head),
      packet: (type, head, rest) => this.#request(type, head, rest),
      data: (bytes) => {
        if (this.#passesUp) ports.passToTarget(bytes)
      },
      get isPaused() {
        return filter.#isPaused
      },
    })
    this.#replies = new PacketSplitter({
      wants: (type, length, head) => this.#replyWants(type, length, head),
      packet: (type, head, rest) => this.#reply(type, head, rest),
      data: (bytes) => {
        if (this.#passesDown) ports.passToClient(bytes)
        this.#restDown -= bytes.length
        if (this.#restDown === 0) this.#release()
      },
    })
  }

  /** Bytes of the client that wait here. */
  get held(): number {
    return this.#held.length
  }

  /** Whether a request waits here for its turn or its verdict. */
  get isChecking(): boolean {
    return this.#checking !== undefined || this.#queued !== undefined
  }

  fromClient(data: Uint8Array): void {
    const taken = this.#held.length > 0 ? 0 : this.#requests.feed(data)
    if (taken < data.length) this.#held.append(data.subarray(taken))
  }

  fromTarget(data: Uint8Array): void {
    this.#replies.feed(data)
    this.resume()
  }

  /** Processes waiting requests. Call when the client has read something. */
  resume(): void {
    if (this.#queued !== undefined) this.#begin(this.#queued)
    while (this.#held.length > 0 && !this.#isPaused) {
      this.#held.drop(this.#requests.feed(this.#held.first()))
    }
  }

  /** Call at the end of the channel. */
  close(): void {
    this.#checks?.end()
    this.#queued = undefined
    this.#policy.turns.close(this.#participant)
  }

  get #isPaused(): boolean {
    return (
      this.#stage === 'version' || this.isChecking || this.#answerBytes + this.#ports.backlog > ANSWERS_LIMIT
    )
  }

  // From the client --------------------------------------------------------------------------------------

  #request(type: number, head: Uint8Array, rest: number): void {
    this.#passesUp = false
    if (type === FXP.init) {
      this.#init(head)
      return
    }
    if (this.#stage === 'init') throw new MalformedError(`sftp: init was expected first, found type ${type}`)
    if (type === FXP.write) {
      this.#write(head, rest)
      return
    }
    const request = parseRequest(type, head)
    const refusal = this.#lacking(request)
    if (refusal !== undefined) {
      this.#refuse(request, refusal)
      return
    }
    const packet = packetHead(type, head)
    this.#isUnused(request.id)
    if (this.#checks === undefined) {
      this.#wait(request.id)
      this.#ports.passToTarget(packet)
      return
    }
    const handles = [request.handle, request.targetHandle].filter((handle) => handle !== undefined)
    const files = handles.map((handle) => this.#file(handle))
    const outcome = this.#checks.of(request, pathsOf(type, packet.subarray(PREFIX)), files)
    if ('next' in outcome) {
      const turn = NAME_CHANGES.includes(request.extension ?? type) ? 'changes' : 'looks'
      this.#begin({ asking: outcome, request, packet, turn })
    } else this.#decided(request, packet, outcome)
  }

  /** Clients of later versions are offered version 3: later versions' requests are not supported here. */
  #init(body: Uint8Array): void {
    if (this.#stage !== 'init') throw new MalformedError('sftp: one init was expected, found another')
    this.#stage = 'version'
    const init = packetHead(FXP.init, body)
    setUint32At(init, PREFIX, Math.min(VERSION, uint32At(body, 0)))
    this.#ports.passToTarget(init)
  }

  #write(head: Uint8Array, rest: number): void {
    const request = { type: FXP.write, ...parseWriteHead(head) }
    if (request.length !== rest)
      throw new MalformedError(`sftp write: ${rest} bytes of data were expected, found ${request.length}`)
    const refusal = this.#lacking(request) ?? this.#tooLarge(request)
    if (refusal !== undefined) {
      this.#refuse(request, refusal)
      return
    }
    this.#isUnused(request.id)
    this.#wait(request.id, this.#checks && { grows: this.#file(request.handle) })
    this.#ports.passToTarget(packetHead(FXP.write, head, rest))
    this.#passesUp = true
  }

  #tooLarge({ handle, offset, length }: WriteHead): Refusal | undefined {
    if (this.#checks === undefined) return undefined
    const file = this.#file(handle)
    return this.#checks.asksSize ? this.#checks.write(file, offset, length) : undefined
  }

  #lacking(request: SftpRequest): Refusal | undefined {
    const right = rightLacking(request, this.#policy.rights)
    if (right === undefined) return undefined
    const message = this.#policy.explain(right)
    const direction = right === 'SSH_SCP_UP' ? 'up' : right === 'SSH_SCP_DOWN' ? 'down' : undefined
    const path = request.path ?? request.extension ?? ''
    return {
      code: FX_PERMISSION_DENIED,
      message,
      denial: { path, ...(direction && { direction }), reason: message },
    }
  }

  #begin(check: Omit<Checking, 'id'>): void {
    const isTurn = this.#policy.turns.begin(this.#participant, check.turn)
    this.#queued = isTurn ? undefined : check
    if (isTurn) this.#ask(check)
  }

  /** Runs a check until it is decided or needs a reply of the target. */
  #ask(check: Omit<Checking, 'id'>, answer?: Answer): void {
    const step = answer === undefined ? check.asking.next() : check.asking.next(answer)
    if (step.done === true) {
      this.#checking = undefined
      this.#decided(check.request, check.packet, step.value, check.turn)
      return
    }
    let id = FIRST_OWN_ID
    while (this.#waiting.has(id)) id--
    this.#checking = { ...check, id }
    this.#ports.sendToTarget(buildPathRequest(step.value.type, id, step.value.path))
  }

  #decided(request: SftpRequest, packet: Buffer, verdict: Verdict, turn?: Turn): void {
    if (verdict.refusal !== undefined) {
      if (turn !== undefined) this.#policy.turns.end(this.#participant, turn)
      this.#refuse(request, verdict.refusal)
      return
    }
    const { id, type, handle, offset, targetHandle } = request
    const file = handle === undefined ? undefined : this.#file(handle)
    if (turn !== undefined) this.#wait(id, { turn, ...(verdict.file && { opens: verdict.file }) })
    else if (type === FXP.read) this.#wait(id, { reads: { file: file!, offset: offset! } })
    else if (type === FXP.close) this.#wait(id, { closes: file! })
    else if (type === FXP.fsetstat) this.#wait(id, { grows: file! })
    else this.#wait(id, targetHandle === undefined ? {} : { grows: this.#file(targetHandle) })
    if (type === FXP.close) this.#files.delete(handle!)
    this.#ports.passToTarget(packet)
  }

  #refuse(request: SftpRequest, { code, message, denial }: Refusal): void {
    if (denial !== undefined) this.#ports.denied({ operation: operationName(request), ...denial })
    const packet = buildStatus(request.id, code, message)
    this.#answers.push({ place: this.#passed, packet })
    this.#answerBytes += packet.length
    this.#release()
  }

  #isUnused(id: number): void {
    if (this.#waiting.has(id))
      throw new MalformedError(
        `sftp: an unused request id was expected, found ${id}, which waits for its answer`,
      )
  }

  #wait(id: number, waiting: Omit<Waiting, 'place'> = {}): void {
    if (WAITING_LIMIT <= this.#waiting.size)
      throw new MalformedError(`sftp: at most ${WAITING_LIMIT} waiting requests were expected, found more`)
    if (waiting.grows !== undefined) waiting.grows.growing++
    this.#waiting.set(id, { place: this.#passed++, ...waiting })
  }

  #file(handle: string): OpenFile {
    const file = this.#files.get(handle)
    if (file === undefined)
      throw new MalformedError('sftp: a handle of the target was expected, found another')
    return file
  }

  // From the target --------------------------------------------------------------------------------------

  #replyWants(type: number, length: number, head: Uint8Array): number {
    const least = replyHead(type, length)
    if (type === FXP.version) return whole(length)
    if (head.length < 4) return 4
    return uint32At(head, 0) === this.#checking?.id ? whole(length) : least
  }

  #reply(type: number, head: Uint8Array, rest: number): void {
    this.#restDown = rest
    this.#passesDown = true
    if (type === FXP.version) this.#version(head)
    else if (this.#stage !== 'open') throw new MalformedError('sftp: version was expected first')
    else if (uint32At(head, 0) === this.#checking?.id) this.#ask(this.#checking, parseAnswer(type, head))
    else this.#answer(type, head, rest)
    if (rest === 0) this.#release()
  }

  #version(body: Uint8Array): void {
    if (this.#stage !== 'version') throw new MalformedError('sftp: no version was expected, found one')
    this.#stage = 'open'
    const { version, extensions } = parseVersion(body)
    const offered = extensions.filter(
      ({ name }) => mayOffer(name, this.#policy.rights) && (this.#checks === undefined || isJudged(name)),
    )
    this.#ports.passToClient(buildVersion(version, offered))
  }

  #answer(type: number, head: Uint8Array, rest: number): void {
    const id = uint32At(head, 0)
    const { opens, reads, closes, grows, turn } = this.#waiting.get(id) ?? {}
    this.#waiting.delete(id)
    if (turn !== undefined) this.#policy.turns.end(this.#participant, turn)
    if (grows !== undefined) grows.growing--
    if (closes !== undefined) this.#checks?.close(closes)
    if (opens !== undefined) {
      if (type === FXP.handle)
        this.#files.set(latin1(new Reader(head, 'sftp handle', 4).string(HANDLE_LIMIT)), opens)
      else this.#checks?.close(opens)
    }
    if (type === FXP.data && reads !== undefined && this.#checks?.asksSize) {
      const refusal = this.#checks.read(reads.file, reads.offset + uint32At(head, 4))
      if (refusal !== undefined) {
        const { code, message, denial } = refusal
        if (denial !== undefined) this.#ports.denied({ operation: 'read', ...denial })
        this.#passesDown = false
        this.#ports.passToClient(buildStatus(id, code, message))
        return
      }
    }
    this.#ports.passToClient(packetHead(type, head, rest))
  }

  /** Sends the replies whose turn it is, unless a packet of the target is under way. */
  #release(): void {
    while (this.#restDown === 0 && this.#answers.length > 0) {
      const oldest: Waiting | undefined = this.#waiting.values().next().value
      const { place, packet } = this.#answers[0]!
      if (oldest !== undefined && oldest.place < place) return
      this.#answers.shift()
      this.#answerBytes -= packet.length
      this.#ports.sendToClient(packet)
    }
  }
}

/** Bounds a packet that must be parsed whole to the size that every implementation supports. */
function whole(length: number): number {
  if (REQUEST_LIMIT < length)
    throw new MalformedError(
      `sftp: an answer of at most ${REQUEST_LIMIT} bytes was expected, found ${length}`,
    )
  return length
}
