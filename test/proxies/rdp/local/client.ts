/** A client that accepts the bastion's desktops, on the fast or the slow path, and keeps their pictures. */

import { buildConfirmActive, parseDemandActive } from '../../../../proxies/rdp/codec/active.ts'
import {
  CAPABILITY,
  type Desktop,
  GENERAL_FLAG,
  readDesktop,
} from '../../../../proxies/rdp/codec/capabilities.ts'
import { UpdateAssembler } from '../../../../proxies/rdp/codec/fast-path-output.ts'
import { buildFastPathInput, type InputEvent, POINTER_FLAG } from '../../../../proxies/rdp/codec/input.ts'
import {
  buildControl,
  buildFontList,
  buildSynchronize,
  CONTROL_ACTION,
  parseErrorInfo,
} from '../../../../proxies/rdp/codec/session-pdus.ts'
import {
  buildShareData,
  CONTROL_PDU,
  DATA_PDU,
  parseShare,
  parseShareData,
} from '../../../../proxies/rdp/codec/share.ts'
import { parseSlowPointer, parseSlowUpdate, type Update } from '../../../../proxies/rdp/codec/updates.ts'
import type { LocalDisplay } from '../../../../proxies/rdp/local/display.ts'
import { RdpDesktop } from '../../../../recordings/decode/graphics/rdp/desktop.ts'

export const US = 0x409
const USER = 1007

export interface FakeClientOptions {
  size?: { width: number; height: number }
  keyboardLayout?: number
  colourDepth?: number
  /** Has no fast path. */
  isOld?: boolean
  /** Confirms an offered desktop only on `confirm`. */
  isSlow?: boolean
}

/** LocalDisplay's view of a client, and the test's end of it. */
export class FakeClient {
  readonly stream = { congested: false }
  readonly user = USER
  readonly settings
  isLicensed = false
  /** Receives the client's messages. */
  display: LocalDisplay | undefined
  desktop: Desktop | undefined
  picture: RdpDesktop | undefined
  /** Codes of updates, in order. */
  updates: number[] = []
  errors: number[] = []
  deactivations = 0
  bytes = 0
  /** Called for each write. */
  onWrite: (() => void) | undefined
  readonly #assembler = new UpdateAssembler()
  readonly #isOld: boolean
  readonly #isSlow: boolean
  #shareId = 0

  constructor(options: FakeClientOptions = {}) {
    const { size = { width: 640, height: 480 }, keyboardLayout = US, colourDepth = 16 } = options
    this.settings = { core: { ...size, keyboardLayout, colourDepth } }
    this.#isOld = options.isOld ?? false
    this.#isSlow = options.isSlow ?? false
  }

  license(): void {
    if (this.isLicensed) throw new Error('the client has its license')
    this.isLicensed = true
  }

  sendIo(data: Uint8Array): void {
    if (!this.isLicensed) throw new Error('the client has no license')
    this.#written(data)
    for (const pdu of parseShare(data)) {
      if (pdu.type === CONTROL_PDU.demandActive) {
        const { shareId, capabilities } = parseDemandActive(pdu.body)
        this.#shareId = shareId
        this.desktop = readDesktop(capabilities)
        this.picture = new RdpDesktop(this.desktop)
        if (!this.#isSlow) queueMicrotask(() => this.confirm())
      } else if (pdu.type === CONTROL_PDU.deactivateAll) {
        this.deactivations++
        this.desktop = undefined
      } else {
        const { type, body } = parseShareData(pdu)
        if (type === DATA_PDU.update) this.#take(parseSlowUpdate(body))
        if (type === DATA_PDU.pointer) this.#take(parseSlowPointer(body))
        if (type === DATA_PDU.setErrorInfo) this.errors.push(parseErrorInfo(body))
      }
    }
  }

  sendFastPath(pdu: Uint8Array): void {
    this.#written(pdu)
    if (this.#isOld) throw new Error('the client has no fast path')
    this.#assembler.feed(pdu, (update) => this.#take(update))
  }

  #written({ length }: Uint8Array): void {
    this.bytes += length
    this.onWrite?.()
  }

  #take({ code, data }: Update): void {
    if (!this.desktop) throw new Error('there is no desktop to draw on')
    this.updates.push(code)
    for (const _pause of this.picture!.update(code, data));
  }

  /** Sends share data on the slow path. */
  data(type: number, body: Uint8Array): void {
    this.display?.io(buildShareData({ shareId: this.#shareId, type, body }, this.user))
  }

  /** Confirms the offered desktop. */
  confirm(shareId: number = this.#shareId): void {
    const general = Buffer.alloc(20)
    if (!this.#isOld) general.writeUInt16LE(GENERAL_FLAG.fastPathOutput, 10)
    const capabilities = [{ type: CAPABILITY.general, body: general }]
    this.display?.io(buildConfirmActive({ shareId, capabilities }, this.user))
    for (const { type, body } of [
      buildSynchronize(shareId, this.user),
      buildControl(shareId, CONTROL_ACTION.cooperate),
      buildControl(shareId, CONTROL_ACTION.requestControl),
      buildFontList(shareId),
    ]) {
      this.data(type, body)
    }
  }

  input(...events: InputEvent[]): void {
    this.display?.fastPath(buildFastPathInput(events))
  }

  /** Presses and releases a key; `extended` is 1 for keys after E0. */
  key(code: number, extended: 0 | 1 = 0): void {
    const key = { kind: 'key', code, extended } as const
    this.input({ ...key, isDown: true }, { ...key, isDown: false })
  }

  /** Types by Unicode events. */
  type(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const character = { kind: 'character', code: text.charCodeAt(at) } as const
      this.input({ ...character, isDown: true }, { ...character, isDown: false })
    }
  }

  click(x: number, y: number): void {
    const { left, down } = POINTER_FLAG
    this.input({ kind: 'pointer', flags: left | down, x, y }, { kind: 'pointer', flags: left, x, y })
  }
}
