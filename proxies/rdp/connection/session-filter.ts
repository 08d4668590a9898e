/**
 * What stands between a client and a target on the I/O channel and the fast path once licensing is over: capabilities
 * are stripped on their way, so that only what a recording can show comes; what would let the client around the
 * bastion stays here; what nobody knows does, too. Everything else passes as it is.
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
  /** The target offers a desktop, the first or one of another size. */
  desktop(desktop: Desktop): void
  /** The target takes its desktop away; another will come, or the end. */
  deactivated(): void
  /** The client has agreed to the desktop. */
  confirmed(): void
  /** Of the picture, for the recording; `isSkipped`: the client does not get it. Valid during the call only. */
  update(update: Update, isSkipped: boolean): void
  /** The client does not get bitmaps that begin now: it has enough to take. */
  skips(): boolean
  /** Before they go to the target; false: they stay here. */
  input(events: readonly InputEvent[]): boolean
  /** What the target says of a logon. */
  sessionInfo(info: SessionInfo): void
  /** Why the target is about to end (ERROR_INFO). */
  errorInfo(code: number): void
  /** The target wants the client elsewhere; it has not been told. */
  redirected(redirection: Redirection): void
}

/** Share data of a target that passes as it is. */
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

/** Share data of a client that passes as it is. Keys of bitmaps that it has kept mean nothing without caches. */
const FROM_CLIENT: ReadonlySet<number> = new Set([
  DATA_PDU.synchronize,
  DATA_PDU.fontList,
  DATA_PDU.shutdownRequest,
])
/** Of control, what begins a session; of detaching servers make what they like. */
const CLIENT_CONTROL: ReadonlySet<number> = new Set([CONTROL_ACTION.requestControl, CONTROL_ACTION.cooperate])

/** What a server says before it draws, in that order (MS-RDPBCGR 1.3.1.1, connection finalization). */
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

/** Whether there is a desktop that both sides have agreed to. */
type State = 'none' | 'offered' | 'confirmed'

export class SessionFilter {
  readonly #visitor: SessionVisitor
  readonly #user: number
  readonly #assembler = new UpdateAssembler()
  #state: State = 'none'
  /** The desktop that was offered last; undefined: there has been none. */
  #desktop: Desktop | undefined
  #shareId = 0
  #takesFastPath = false
  #drawsAgain = false
  /** What the client has of the desktop's begin. */
  readonly #begun = new Set<Begin>()

  /** `user`: BackConnection.user, whom the target knows the client as. */
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

  /** The client has agreed to the desktop. */
  get isConfirmed(): boolean {
    return this.#state === 'confirmed'
  }

  /** The client takes pictures on the fast path. */
  get takesFastPath(): boolean {
    return this.#takesFastPath
  }

  /** The target draws parts of its desktop again when it is asked to. */
  get drawsAgain(): boolean {
    return this.#drawsAgain
  }

  /** The client has the begin of an update, whose rest the target owes. */
  get isWithinUpdate(): boolean {
    return this.#assembler.isWithinShown
  }

  /** The target has sent the begin of an update, whether the client has it or not. */
  get isOwed(): boolean {
    return this.#assembler.isWithinUpdate
  }

  /** The client has been offered a desktop that it has not agreed to. */
  get isOffered(): boolean {
    return this.#state === 'offered'
  }

  /**
   * The target's desktop is to be the client's no longer, who has agreed to it or has none: what the client gets for that. It
   * takes nothing before it has all of a desktop's begin, so what the target owes it of that comes first.
   */
  takeAway(): Uint8Array[] {
    if (this.#state === 'none') return []
    this.#state = 'none'
    const owed = BEGIN.filter((part) => !this.#begun.has(part)).map((part) =>
      buildShareData(beginOf(part, this.#shareId, this.#user)),
    )
    return [...owed, buildDeactivateAll(this.#shareId)]
  }

  /** Of the target's I/O channel: what the client gets, each for a Send Data of its own. Throws MalformedError. */
  fromTarget(data: Uint8Array): Uint8Array[] {
    return parseShare(data)
      .map((pdu) => this.#targetPdu(pdu))
      .filter((bytes) => bytes !== undefined)
  }

  /** A PDU of the target's fast path: what the client gets. Throws MalformedError. */
  fastPathFromTarget(pdu: Uint8Array): Uint8Array | undefined {
    if (!this.#desktop) throw pictureWithoutDesktop()
    return this.#assembler.feed(
      pdu,
      (update, isSkipped) => this.#record(update, isSkipped),
      () => this.#visitor.skips(),
    )
  }

  /**
   * Of the client's I/O channel: what the target gets, each for a Send Data of its own. Nothing passes before the client
   * has agreed to the target's desktop: it is meant for the one before, which may be the bastion's, where passwords are
   * typed. Throws MalformedError.
   */
  fromClient(data: Uint8Array): Uint8Array[] {
    return parseShare(data)
      .map((pdu) => this.#clientPdu(pdu))
      .filter((bytes) => bytes !== undefined)
  }

  /** A PDU of the client's fast path, which passes as it is, or as `fromClient` not at all. Throws MalformedError. */
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

  /** Before the client has all of it. */
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
   * What a client says of where it wants to be drawn for is said of the whole desktop; that nothing is to be drawn for a
   * while stays here. What is done meanwhile, or elsewhere, would not be in the recording.
   */
  #refresh(build: (shareId: number, desktop: Desktop) => ShareData): Uint8Array {
    return buildShareData(build(this.#shareId, this.#desktop!), this.#user)
  }

  /** One that comes late, for a desktop that is gone, stays here. */
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

/** No recording could show it. */
const pictureWithoutDesktop = () =>
  new MalformedError('share data: a desktop was expected before the first picture')

/** Whether there is input among these PDUs of a client's I/O channel. Throws MalformedError. */
export function hasInput(data: Uint8Array): boolean {
  return parseShare(data).some(
    (pdu) => pdu.type === CONTROL_PDU.data && parseShareData(pdu).type === DATA_PDU.input,
  )
}
