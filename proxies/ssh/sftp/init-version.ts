/**
 * Lowers the version in a client's INIT (draft-ietf-secsh-filexfer-02 section 4) to the supported one, so
 * that both sides use the version that the recorder understands:
 *
 *     uint32    length
 *     byte      SSH_FXP_INIT
 *     uint32    version
 */
import { FXP, VERSION } from '../codec/sftp.ts'

const TYPE_AT = 4
const VERSION_AT = 5
const END = 9

export class InitVersion {
  #at = 0
  /** Set if one of the upper three bytes of the version is not 0. */
  #isHuge = false

  /** Changes the bytes in place; chunks may have any size. Returns false once nothing is left to change. */
  lower(data: Uint8Array): boolean {
    for (let index = 0; index < data.length && this.#at < END; index++, this.#at++) {
      const byte = data[index]!
      // The recorder rejects any other type.
      if (this.#at === TYPE_AT && byte !== FXP.init) this.#at = END
      if (this.#at < VERSION_AT || this.#at >= END) continue
      if (this.#at === END - 1) {
        if (this.#isHuge || byte > VERSION) data[index] = VERSION
      } else if (byte !== 0) {
        this.#isHuge = true
        data[index] = 0
      }
    }
    return this.#at < END
  }
}
