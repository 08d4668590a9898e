/**
 * A desktop of the bastion's own toward a client (MS-RDPBCGR 1.3.1.1, capabilities exchange and connection
 * finalization): it says what it can, is told what the client can, draws updates, and hears keys and pointer. For the
 * sign-in and the other screens before a target's desktop takes their place.
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

/** Any number but 0; a target's desktop has one of its own. */
const SHARE_ID = 0x000103ea

export interface FrontDesktopVisitor {
  /** The client has taken the desktop, or asks for all of it again: it is to be drawn whole. */
  paint(): void
  input(events: readonly InputEvent[]): void
  /** The person closes the client's window. */
  shutdown(): void
}

export interface FrontDesktopOptions {
  desktop: Desktop
  /** The client's, as FrontConnection.user. */
  user: number
  visitor: FrontDesktopVisitor
  /** On the I/O channel. */
  sendIo: (data: Uint8Array) => void
  sendFastPath: (pdu: Uint8Array) => void
}

type State = 'offered' | 'confirmed' | 'ready' | 'deactivated'

/** Messages that are answered until a desktop is taken: there are four, and some room. */
const ANSWERS = 32

/** Share data that a client may send and that changes nothing here. */
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

  /** From FrontVisitor.io. Throws MalformedError. */
  receiveIo(data: Uint8Array): void {
    for (const pdu of parseShare(data)) {
      if (pdu.type === CONTROL_PDU.confirmActive) this.#confirm(parseConfirmActive(pdu.body))
      else if (pdu.type === CONTROL_PDU.data) this.#receiveData(parseShareData(pdu))
      else throw new MalformedError(`share control: a client's PDU was expected, found type ${pdu.type}`)
    }
  }

  /** From FrontVisitor.fastPath. Throws MalformedError. */
  receiveFastPath(pdu: Uint8Array): void {
    const events = parseFastPathInput(pdu)
    if (this.#state === 'ready') this.#options.visitor.input(events)
  }

  /**
   * Only after the first `paint`. Old clients take no fast path: bitmaps, palettes and the system's pointers come to them
   * on the slow path, and other updates not at all.
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

  /** Tells the client why the connection is about to end; clients show it where they know the code (ERROR_INFO). */
  tellError(code: number): void {
    this.#send(buildErrorInfo(SHARE_ID, code))
  }

  /** Takes the desktop away, so that another can be offered on the same connection. */
  deactivate(): void {
    this.#options.sendIo(buildDeactivateAll(SHARE_ID))
    this.#state = 'deactivated'
  }

  #confirm(active: ActivePdu): void {
    // Of a target's desktop, which this one has taken the place of.
    if (active.shareId !== SHARE_ID) return
    if (this.#state !== 'offered') throw new MalformedError('confirm active: one was expected, found another')
    this.#takesFastPath = takesFastPath(active.capabilities)
    this.#state = 'confirmed'
  }

  #receiveData(data: ShareData): void {
    const { user, visitor } = this.#options
    // Input that was on its way when this desktop was taken away, or a target's.
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
        // What was drawn while the client's window was hidden it may not have.
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

  /** Who asks without end, and reads nothing, would fill memory with answers. */
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
