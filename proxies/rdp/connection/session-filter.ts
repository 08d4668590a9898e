/**
 * Filters the I/O channel and the fast path between a client and a target after licensing. Strips
 * capabilities so that the target sends only pictures that a recording can show. Drops unknown PDUs, and
 * those that would let the client bypass the bastion. Forwards everything else unchanged.
 */
import { MalformedError } from '../../bytes/malformed.ts'
import {
  type ActivePdu,
  buildConfirmActive,
  buildDemandActive,
  parseConfirmActive,
  parseDemandActive,
} from '../codec/active.ts'
import {
  type Desktop,
  drawsAgain,
  readDesktop,
  stripConfirm,
  stripDemand,
  takesFastPath,
} from '../codec/capabilities.ts'
import { UpdateAssembler } from '../codec/fast-path-output.ts'
import { type InputEvent, parseFastPathInput, parseSlowInput } from '../codec/input.ts'
import { SERVER_USER } from '../codec/mcs.ts'
import { requireDrawable } from '../codec/picture-heads.ts'
import { parseRedirection, type Redirection } from '../codec/redirection.ts'
import {
  allowsOutput,
  buildAllowOutput,
  buildControl,
  buildFontMap,
  buildRefreshRectangle,
  buildSynchronize,
  CONTROL_ACTION,
  parseControlAction,
  parseErrorInfo,
  parseSessionInfo,
  type SessionInfo,
  withoutReconnectCookie,
} from '../codec/session-pdus.ts'
import {
  buildDeactivateAll,
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
  type ShareData,
  type SharePdu,
} from '../codec/share.ts'
import { isRecordable, parseSlowPointer, parseSlowUpdate, UPDATE, type Update } from '../codec/updates.ts'

export interface SessionVisitor {
  /** The target offers a desktop: the first, or one of another size. */
  desktop(desktop: Desktop): void
  /** The target deactivates its desktop; another follows, or the end. */
  deactivated(): void
  /** The client has confirmed the desktop. */
  confirmed(): void
  /** An update for the recording; `isSkipped`: the client does not get it. Valid during the call only. */
  update(update: Update, isSkipped: boolean): void
  /** Skips bitmaps that begin now for the client, because its queue is full. */
  skips(): boolean
  /** Input before it is sent to the target. Returns false to drop it. */
  input(events: readonly InputEvent[]): boolean
  /** The target reports on a logon. */
  sessionInfo(info: SessionInfo): void
  /** The reason why the target is about to end (ERROR_INFO). */
  errorInfo(code: number): void
  /** The target redirects the client. The redirection is not forwarded. */
  redirected(redirection: Redirection): void
}

/** Share data that is forwarded from a target unchanged. */
const FROM_TARGET: ReadonlySet<number> = new Set([
  DATA_PDU.control,
  DATA_PDU.synchronize,
  DATA_PDU.playSound,
  DATA_PDU.shutdownDenied,
  DATA_PDU.fontMap,
  DATA_PDU.keyboardIndicators,
  DATA_PDU.keyboardImeStatus,
  DATA_PDU.statusInfo,
])

/** Share data forwarded from a client unchanged. Persistent bitmap keys are useless without caches. */
const FROM_CLIENT: ReadonlySet<number> = new Set([
  DATA_PDU.synchronize,
  DATA_PDU.fontList,
  DATA_PDU.shutdownRequest,
])
/** Control actions that start a session; servers handle detach in different ways. */
const CLIENT_CONTROL: ReadonlySet<number> = new Set([CONTROL_ACTION.requestControl, CONTROL_ACTION.cooperate])

/** PDUs that a server sends before it draws, in that order (MS-RDPBCGR 1.3.1.1, connection finalization). */
const BEGIN = ['synchronize', 'cooperate', 'granted', 'fontMap'] as const
type Begin = (typeof BEGIN)[number]

function partOf({ type, body }: ShareData): Begin | undefined {
  if (type === DATA_PDU.synchronize) return 'synchronize'
  if (type === DATA_PDU.fontMap) return 'fontMap'
  if (type !== DATA_PDU.control) return undefined
  const action = parseControlAction(body)
  if (action === CONTROL_ACTION.cooperate) return 'cooperate'
  return action === CONTROL_ACTION.grantedControl ? 'granted' : undefined
}

function beginOf(part: Begin, shareId: number, user: number): ShareData {
  switch (part) {
    case 'synchronize':
      return buildSynchronize(shareId, user)
    case 'cooperate':
      return buildControl(shareId, CONTROL_ACTION.cooperate)
    case 'granted':
      return buildControl(shareId, CONTROL_ACTION.grantedControl, user, SERVER_USER)
    case 'fontMap':
      return buildFontMap(shareId)
  }
}

/** Whether a desktop is offered, and confirmed by the client. */
type State = 'none' | 'offered' | 'confirmed'

export class SessionFilter {
  readonly #visitor: SessionVisitor
  readonly #user: number
  readonly #assembler = new UpdateAssembler()
  #state: State = 'none'
  /** The last desktop offered. Undefined before the first. */
  #desktop: Desktop | undefined
  #shareId = 0
  #takesFastPath = false
  #drawsAgain = false
  /** PDUs of the desktop's start that were sent to the client. */
  readonly #begun = new Set<Begin>()

  /** `user`: BackConnection.user, the client's user id at the target. */
  constructor(visitor: SessionVisitor, user: number) {
    this.#visitor = visitor
    this.#user = user
  }

  get desktop(): Desktop | undefined {
    return this.#desktop
  }

  get shareId(): number {
    return this.#shareId
  }

  /** The client has confirmed the desktop. */
  get isConfirmed(): boolean {
    return this.#state === 'confirmed'
  }

  /** The client accepts pictures on the fast path. */
  get takesFastPath(): boolean {
    return this.#takesFastPath
  }

  /** The target redraws parts of its desktop on request. */
  get drawsAgain(): boolean {
    return this.#drawsAgain
  }

  /** The client has received the start of an update, and its rest is missing. */
  get isWithinUpdate(): boolean {
    return this.#assembler.isWithinShown
  }

  /** The target has sent the start of an update, whether or not it was sent to the client. */
  get isOwed(): boolean {
    return this.#assembler.isWithinUpdate
  }

  /** The client has been offered a desktop and has not confirmed it. */
  get isOffered(): boolean {
    return this.#state === 'offered'
  }

  /**
   * Returns the PDUs that deactivate the target's desktop on the client. They begin with the rest of the
   * desktop's start, since a client accepts nothing before that is complete.
   */
  takeAway(): Uint8Array[] {
    if (this.#state === 'none') return []
    this.#state = 'none'
    const owed = BEGIN.filter((part) => !this.#begun.has(part)).map((part) =>
      buildShareData(beginOf(part, this.#shareId, this.#user)),
    )
    return [...owed, buildDeactivateAll(this.#shareId)]
  }

  /** Filters the target's I/O channel. Returns PDUs, each for its own Send Data. Throws MalformedError. */
  fromTarget(data: Uint8Array): Uint8Array[] {
    return parseShare(data)
      .map((pdu) => this.#targetPdu(pdu))
      .filter((bytes) => bytes !== undefined)
  }

  /** Filters a fast-path PDU of the target. Returns the bytes for the client. Throws MalformedError. */
  fastPathFromTarget(pdu: Uint8Array): Uint8Array | undefined {
    if (!this.#desktop) throw pictureWithoutDesktop()
    return this.#assembler.feed(
      pdu,
      (update, isSkipped) => this.#record(update, isSkipped),
      () => this.#visitor.skips(),
    )
  }

  /**
   * Filters data of the client's I/O channel. Returns PDUs for the target, each for its own Send Data. Drops
   * everything before the client has confirmed the target's desktop: earlier input is meant for the previous
   * desktop, which may be the bastion's, with a password field. Throws MalformedError.
   */
  fromClient(data: Uint8Array): Uint8Array[] {
    return parseShare(data)
      .map((pdu) => this.#clientPdu(pdu))
      .filter((bytes) => bytes !== undefined)
  }

  /** Filters a fast-path PDU of the client: returns it, or undefined to drop it. Throws MalformedError. */
  fastPathFromClient(pdu: Uint8Array): Uint8Array | undefined {
    const events = parseFastPathInput(pdu)
    return this.#state === 'confirmed' && this.#visitor.input(events) ? pdu : undefined
  }

  #targetPdu(pdu: SharePdu): Uint8Array | undefined {
    switch (pdu.type) {
      case CONTROL_PDU.data:
        return this.#targetData(pdu, parseShareData(pdu))
      case CONTROL_PDU.demandActive: {
        const { shareId, capabilities } = parseDemandActive(pdu.body)
        this.#shareId = shareId
        this.#state = 'offered'
        this.#begun.clear()
        this.#desktop = readDesktop(capabilities)
        this.#drawsAgain = drawsAgain(capabilities)
        this.#visitor.desktop(this.#desktop)
        return buildDemandActive({ shareId, capabilities: stripDemand(capabilities) })
      }
      case CONTROL_PDU.deactivateAll:
        this.#state = 'none'
        this.#visitor.deactivated()
        return pdu.whole
      case CONTROL_PDU.serverRedirection: {
        const redirection = parseRedirection(pdu.body)
        if (!redirection.isInformational) this.#visitor.redirected(redirection)
        return undefined
      }
      default:
        throw new MalformedError(`share control: a server's PDU was expected, found type ${pdu.type}`)
    }
  }

  #targetData(pdu: SharePdu, data: ShareData): Uint8Array | undefined {
    switch (data.type) {
      case DATA_PDU.update:
        return this.#picture(pdu, parseSlowUpdate(data.body))
      case DATA_PDU.pointer:
        return this.#picture(pdu, parseSlowPointer(data.body))
      case DATA_PDU.saveSessionInfo: {
        this.#visitor.sessionInfo(parseSessionInfo(data.body))
        const body = withoutReconnectCookie(data.body)
        return body && buildShareData({ ...data, body })
      }
      case DATA_PDU.setErrorInfo:
        this.#visitor.errorInfo(parseErrorInfo(data.body))
        return pdu.whole
      default: {
        const part = partOf(data)
        if (part) this.#begun.add(part)
        return FROM_TARGET.has(data.type) ? pdu.whole : undefined
      }
    }
  }

  #picture(pdu: SharePdu, update: Update): Uint8Array | undefined {
    if (!this.#desktop) throw pictureWithoutDesktop()
    if (!isRecordable(update.code)) return undefined
    const isSkipped = update.code === UPDATE.bitmap && this.#visitor.skips()
    this.#record(update, isSkipped)
    return isSkipped ? undefined : pdu.whole
  }

  /** Records an update before the client has all of it. */
  #record(update: Update, isSkipped: boolean): void {
    requireDrawable(update)
    this.#visitor.update(update, isSkipped)
  }

  #clientPdu(pdu: SharePdu): Uint8Array | undefined {
    if (pdu.type === CONTROL_PDU.confirmActive) return this.#confirm(parseConfirmActive(pdu.body))
    if (pdu.type !== CONTROL_PDU.data) {
      throw new MalformedError(`share control: a client's PDU was expected, found type ${pdu.type}`)
    }
    if (this.#state !== 'confirmed') return undefined
    const data = parseShareData(pdu)
    if (data.type === DATA_PDU.input) {
      return this.#visitor.input(parseSlowInput(data.body)) ? pdu.whole : undefined
    }
    switch (data.type) {
      case DATA_PDU.control:
        return CLIENT_CONTROL.has(parseControlAction(data.body)) ? pdu.whole : undefined
      case DATA_PDU.suppressOutput:
        return allowsOutput(data.body) ? this.#refresh(buildAllowOutput) : undefined
      case DATA_PDU.refreshRectangle:
        return this.#refresh((shareId, size) => buildRefreshRectangle(shareId, { left: 0, top: 0, ...size }))
      default:
        return FROM_CLIENT.has(data.type) ? pdu.whole : undefined
    }
  }

  /**
   * Widens a client's request to redraw to the whole desktop. Requests to suppress output are dropped: parts
   * that are not drawn would be missing from the recording.
   */
  #refresh(build: (shareId: number, desktop: Desktop) => ShareData): Uint8Array {
    return buildShareData(build(this.#shareId, this.#desktop!), this.#user)
  }

  /** Drops a late confirmation of a desktop that was replaced. */
  #confirm({ shareId, capabilities }: ActivePdu): Uint8Array | undefined {
    if (this.#state !== 'offered' || shareId !== this.#shareId) return undefined
    this.#state = 'confirmed'
    this.#takesFastPath = takesFastPath(capabilities)
    this.#visitor.confirmed()
    return buildConfirmActive(
      { shareId, capabilities: stripConfirm(capabilities, this.#desktop!) },
      this.#user,
    )
  }
}

/** No recording could show such a picture. */
const pictureWithoutDesktop = () =>
  new MalformedError('share data: a desktop was expected before the first picture')

/** Reports whether these PDUs of a client's I/O channel contain input. Throws MalformedError. */
export function hasInput(data: Uint8Array): boolean {
  return parseShare(data).some(
    (pdu) => pdu.type === CONTROL_PDU.data && parseShareData(pdu).type === DATA_PDU.input,
  )
}
