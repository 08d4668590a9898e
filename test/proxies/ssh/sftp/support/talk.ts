/** A client and a target with a filter between them. */
import { Buffer } from 'node:buffer'
import { FXP } from '../../../../../proxies/ssh/codec/sftp.ts'
import type { FileDenial } from '../../../../../proxies/ssh/files/denial.ts'
import { OpenSizes } from '../../../../../proxies/ssh/files/open-sizes.ts'
import { SftpFilter } from '../../../../../proxies/ssh/sftp/filter.ts'
import { Turns } from '../../../../../proxies/ssh/sftp/turns.ts'
import { FileJudge } from '../../../../../src/model/file-judge.ts'
import { parseFileRule } from '../../../../../src/model/file-rules.ts'
import type { Right } from '../../../../../src/model/rights.ts'
import { idOf, init, type Packet, packetsOf, type Target } from './packets.ts'

export class Talk {
  readonly filter: SftpFilter
  readonly denials: FileDenial[] = []
  readonly target: Target
  /** Bytes that the client has not read. */
  backlog = 0
  /** Number of calls to `wake`. */
  woken = 0
  #toClient: Buffer[] = []
  #toTarget: Buffer[] = []

  /** `sizes` and `turns`: the session's, if it has more channels. */
  constructor(
    target: Target,
    rights: Right[],
    rules: string[] = [],
    sizes = new OpenSizes(),
    turns = new Turns(),
  ) {
    this.target = target
    const talk = this
    const toTarget = (bytes: Uint8Array) => void this.#toTarget.push(Buffer.from(bytes))
    const toClient = (bytes: Uint8Array) => void this.#toClient.push(Buffer.from(bytes))
    this.filter = new SftpFilter(
      {
        rights: new Set(rights),
        rules: new FileJudge(rules.map(parseFileRule)),
        sizes,
        turns,
        explain: (right) => `the right ${right} is missing`,
      },
      {
        passToTarget: toTarget,
        sendToTarget: toTarget,
        passToClient: toClient,
        sendToClient: toClient,
        wake: () => void this.woken++,
        denied: (denial) => void this.denials.push(denial),
        get backlog() {
          return talk.backlog
        },
      },
    )
  }

  /** Sends the client's bytes and the target's replies, in chunks, until both sides are done. */
  send(bytes: Buffer, size: () => number = () => 32_768): void {
    pieces(bytes, size, (piece) => {
      this.filter.fromClient(piece)
    })
    this.settle(size)
  }

  settle(size: () => number = () => 32_768): void {
    while (this.#toTarget.length > 0) this.exchange(size)
  }

  /** Passes one round of requests to the target, and its replies back. */
  exchange(size: () => number = () => 32_768): void {
    const sent = Buffer.concat(this.#toTarget)
    this.#toTarget = []
    pieces(this.target.take(sent), size, (piece) => this.filter.fromTarget(piece))
  }

  /** Returns the packets that the client has received since the last call. */
  answers(): Packet[] {
    const got = Buffer.concat(this.#toClient)
    this.#toClient = []
    return packetsOf(got)
  }

  begin(): this {
    this.send(init())
    this.answers()
    return this
  }

  /** Sends one request. Returns its status, or the type of another reply. */
  ask(request: Buffer): { code?: number; text?: string; type: number } {
    this.send(request)
    const answers = this.answers()
    const answer = answers[0]
    if (answer === undefined || answers.length > 1 || idOf(answer) !== request.readUInt32BE(5)) {
      throw new Error(`one answer was expected, found ${answers.length}`)
    }
    if (answer.type !== FXP.status) return { type: answer.type }
    const length = answer.body.readUInt32BE(8)
    return {
      type: answer.type,
      code: answer.body.readUInt32BE(4),
      text: answer.body.toString('utf8', 12, 12 + length),
    }
  }

  /** Types of the requests that reached the target, without the bastion's own. */
  get passed(): number[] {
    return this.target.got
      .filter((got) => got.type === FXP.init || idOf(got) < 0xffff0000)
      .map(({ type }) => type)
  }
}

function pieces(bytes: Buffer, size: () => number, each: (piece: Buffer) => void): void {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + Math.max(1, size()))
    at += piece.length
    each(piece)
  }
}
