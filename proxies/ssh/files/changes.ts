/**
 * Counts a session's changes to the files of its target, over all its channels, so that a file's SHA-256 is
 * reported only if no other change ran meanwhile. Only the target knows which names stand for one file
 * (links, letter case, renamed folders), so any change through another name may affect the file.
 */
export class Changes {
  readonly #all: Changes | undefined
  #begun = 0
  #underWay = 0

  /** `all`: the session's changes, of which these are one file's or one channel's. */
  constructor(all?: Changes) {
    this.#all = all
  }

  /** Call when a change is sent to the target. */
  begin(): void {
    this.#begun++
    this.#underWay++
    this.#all?.begin()
  }

  /** Call when the target has replied, or never will. */
  end(): void {
    this.#underWay--
    this.#all?.end()
  }

  /**
   * Returns a function that returns true if other changes were under way at this call, or have begun since.
   * For the session's changes, any change counts.
   */
  watch(): () => boolean {
    const all = this.#all
    const others = all === undefined ? () => this.#begun : () => all.#begun - this.#begun
    const before = others()
    const wasBusy = all === undefined ? this.#underWay > 0 : all.#underWay > this.#underWay
    return () => wasBusy || others() > before
  }
}
