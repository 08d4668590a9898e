/**
 * Counts what a session does to the files of its target, over all its channels, so that a file's SHA-256 is told only
 * where nothing else was done meanwhile. Which names stand for one file (links, letters in another case, a folder that
 * is called otherwise) only the target knows, so whatever is done by another way may have been done to it.
 */
export class Changes {
  readonly #all: Changes | undefined
  #begun = 0
  #underWay = 0

  /** `all`: those of the session, of which these are one file's or one channel's. */
  constructor(all?: Changes) {
    this.#all = all
  }

  /** The target is asked for one. */
  begin(): void {
    this.#begun++
    this.#underWay++
    this.#all?.begin()
  }

  /** The target has answered, or never will. */
  end(): void {
    this.#underWay--
    this.#all?.end()
  }

  /** Returns a question to ask later: whether others were under way, or have begun since. Of the session's: any. */
  watch(): () => boolean {
    const all = this.#all
    const others = all === undefined ? () => this.#begun : () => all.#begun - this.#begun
    const before = others()
    const wasBusy = all === undefined ? this.#underWay > 0 : all.#underWay > this.#underWay
    return () => wasBusy || others() > before
  }
}
