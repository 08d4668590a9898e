/**
 * A desktop that the bastion itself shows to a client (MS-RDPBCGR 1.3.1.1, capabilities exchange and
 * connection finalization): exchanges capabilities, draws updates and receives input. Used for the sign-in
 * and other screens until a target's desktop replaces it.
 */
import { MalformedError } from '../../bytes/malformed.ts'
import { type ActivePdu, buildDemandActive, parseConfirmActive } from '../codec/active.ts'
import { type Desktop, takesFastPath } from '../codec/capabilities.ts'
import { buildFastPathUpdate } from '../codec/fast-path-output.ts'
import { type InputEvent, parseFastPathInput, parseSlowInput } from '../codec/input.ts'
import { SERVER_USER } from '../codec/mcs.ts'
import { buildOwnCapabilities } from '../codec/own-capabilities.ts'
import {
  allowsOutput,
  buildControl,
  buildErrorInfo,
  buildFontMap,
  buildSynchronize,
  CONTROL_ACTION,
  parseControlAction,
} from '../codec/session-pdus.ts'
import {
  buildDeactivateAll,
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
  type ShareData,
} from '../codec/share.ts'
import { buildSlowPointer, UPDATE, type Update } from '../codec/updates.ts'

/** Any number but 0; a target's desktop has its own. */
const SHARE_ID = 0x000103ea

export interface FrontDesktopVisitor {
  /** Draw everything: the client has accepted the desktop or requested a redraw. */
  paint(): void
  input(events: readonly InputEvent[]): void
  /** The user closes the client's window. */
  shutdown(): void
}

export interface FrontDesktopOptions {
  desktop: Desktop
  /** FrontConnection.user of the client. */
  user: number
  visitor: FrontDesktopVisitor
  /** Sends on the I/O channel. */
  sendIo: (data: Uint8Array) => void
  sendFastPath: (pdu: Uint8Array) => void
}

type State = 'offered' | 'confirmed' | 'ready' | 'deactivated'

/** Messages answered until a desktop is accepted: clients need four responses. */
const ANSWERS = 32

/** Share data from clients that is ignored. */
const WITHOUT_MEANING: ReadonlySet<number> = new Set([DATA_PDU.persistentKeyList])

export class FrontDesktop {
  readonly #options: FrontDesktopOptions
  #state: State = 'offered'
  #takesFastPath = false
  #answers = 0

  /** Offers the desktop to the client. */
  constructor(options: FrontDesktopOptions) {
    this.#options = options
    options.sendIo(
      buildDemandActive({ shareId: SHARE_ID, capabilities: buildOwnCapabilities(options.desktop) }),
    )
  }

  get isReady(): boolean {
    return this.#state === 'ready'
  }

  /** Receives the data of FrontVisitor.io. Throws MalformedError. */
  receiveIo(data: Uint8Array): void {
    for (const pdu of parseShare(data)) {
      if (pdu.type === CONTROL_PDU.confirmActive) this.#confirm(parseConfirmActive(pdu.body))
      else if (pdu.type === CONTROL_PDU.data) this.#receiveData(parseShareData(pdu))
      else throw new MalformedError(`share control: a client's PDU was expected, found type ${pdu.type}`)
    }
  }

  /** Receives the data of FrontVisitor.fastPath. Throws MalformedError. */
  receiveFastPath(pdu: Uint8Array): void {
    const events = parseFastPathInput(pdu)
    if (this.#state === 'ready') this.#options.visitor.input(events)
  }

  /**
   * Call only after the first `paint`. Old clients do not support the fast path: they get bitmaps, palettes
   * and the system pointers on the slow path, and no other updates.
   */
  draw(update: Update): void {
    if (this.#state !== 'ready') throw new Error(`the desktop is ${this.#state}, nothing can be drawn on it`)
    if (this.#takesFastPath) {
      for (const pdu of buildFastPathUpdate(update)) this.#options.sendFastPath(pdu)
    } else if (update.code === UPDATE.bitmap || update.code === UPDATE.palette) {
      this.#send({ shareId: SHARE_ID, type: DATA_PDU.update, body: update.data })
    } else if (update.code === UPDATE.pointerDefault || update.code === UPDATE.pointerHidden) {
      this.#send({ shareId: SHARE_ID, type: DATA_PDU.pointer, body: buildSlowPointer(update.code) })
    }
  }

  /** Sends the reason of the end (ERROR_INFO), which clients show if they know the code. */
  tellError(code: number): void {
    this.#send(buildErrorInfo(SHARE_ID, code))
  }

  /** Deactivates the desktop, so that another can be offered on the same connection. */
  deactivate(): void {
    this.#options.sendIo(buildDeactivateAll(SHARE_ID))
    this.#state = 'deactivated'
  }

  #confirm(active: ActivePdu): void {
    // Ignores a confirmation of a target's desktop that this one has replaced.
    if (active.shareId !== SHARE_ID) return
    if (this.#state !== 'offered') throw new MalformedError('confirm active: one was expected, found another')
    this.#takesFastPath = takesFastPath(active.capabilities)
    this.#state = 'confirmed'
  }

  #receiveData(data: ShareData): void {
    const { user, visitor } = this.#options
    // Ignores input that was under way when this desktop, or a target's, was deactivated.
    if (this.#state === 'deactivated' || this.#state === 'offered') return
    switch (data.type) {
      case DATA_PDU.synchronize:
        this.#answer(buildSynchronize(SHARE_ID, user))
        return
      case DATA_PDU.control: {
        const action = parseControlAction(data.body)
        if (action === CONTROL_ACTION.cooperate)
          this.#answer(buildControl(SHARE_ID, CONTROL_ACTION.cooperate))
        else if (action === CONTROL_ACTION.requestControl) {
          this.#answer(buildControl(SHARE_ID, CONTROL_ACTION.grantedControl, user, SERVER_USER))
        }
        return
      }
      case DATA_PDU.fontList:
        this.#finish()
        return
      case DATA_PDU.input:
        if (this.#state === 'ready') visitor.input(parseSlowInput(data.body))
        return
      case DATA_PDU.suppressOutput:
        // Updates sent while the client's window was hidden may be lost.
        if (this.#state === 'ready' && allowsOutput(data.body)) visitor.paint()
        return
      case DATA_PDU.refreshRectangle:
        if (this.#state === 'ready') visitor.paint()
        return
      case DATA_PDU.shutdownRequest:
        visitor.shutdown()
        return
      default:
        if (WITHOUT_MEANING.has(data.type)) return
        throw new MalformedError(
          `share data: a client's PDU was expected, found type 0x${data.type.toString(16)}`,
        )
    }
  }

  #finish(): void {
    this.#answer(buildFontMap(SHARE_ID))
    if (this.#state === 'ready') return
    this.#state = 'ready'
    this.#options.visitor.paint()
  }

  /** Limits the responses, which would fill memory for a client that keeps sending and reads nothing. */
  #answer(data: ShareData): void {
    this.#answers++
    if (ANSWERS < this.#answers) {
      throw new MalformedError(
        `share data: at most ${ANSWERS} messages for a desktop were expected, found more`,
      )
    }
    this.#send(data)
  }

  #send(data: ShareData): void {
    this.#options.sendIo(buildShareData(data))
  }
}
