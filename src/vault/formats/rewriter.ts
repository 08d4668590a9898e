/** Rewrites private keys in another format, in a thread that lives while there is work. */
import type { Id } from '../../model/objects.ts'
import { Secret } from '../../model/secret.ts'
import { Questions } from '../../threads/questions.ts'
import { programBeside, Thread } from '../../threads/thread.ts'
import type { Rewrite, Rewritten } from './worker.ts'
import type { KeyFormat } from './write.ts'

/** Keys that wait for the thread, of all users and of one: a passphrase takes up to a second, and more on a busy machine. */
const MAX_WAITING = 16
const MAX_WAITING_OF_USER = 2

export class RewriterBusyError extends Error {
  override readonly name = 'RewriterBusyError'
}

/** A key that has no such form, or a thread that failed. */
export class RewriteError extends Error {
  override readonly name = 'RewriteError'
}

export class KeyRewriter {
  readonly #questions = new Questions<Rewritten>()
  readonly #thread: Thread<Rewrite, Rewritten>
  readonly #waiting = new Map<Id, number>()

  constructor(program: URL = programBeside(import.meta.url, 'worker')) {
    this.#thread = new Thread('key format', {
      program,
      onAnswer: (answer) => {
        this.#questions.answer(answer.id, answer)
        if (this.#questions.size === 0) void this.#thread.destroy()
      },
      onLost: (error) => this.#questions.failAll(error),
    })
  }

  /**
   * Returns the key in that format, encrypted with `newPassphrase` if there is one.
   * @throws RewriterBusyError if too many wait, or too many of this user, RewriteError if the key has no such form
   */
  async rewrite(
    userId: Id,
    key: Secret,
    passphrase: Secret | undefined,
    format: KeyFormat,
    newPassphrase: string | undefined,
  ): Promise<Secret> {
    const own = this.#waiting.get(userId) ?? 0
    if (this.#questions.size >= MAX_WAITING) throw new RewriterBusyError('too many keys wait to be rewritten')
    if (own >= MAX_WAITING_OF_USER)
      throw new RewriterBusyError('too many keys of this user wait to be rewritten')
    const file = key.revealText()
    const old = passphrase?.revealText()
    this.#waiting.set(userId, own + 1)
    try {
      const answer = await this.#questions.ask((id) =>
        this.#thread.post({ id, file, passphrase: old, format, newPassphrase }),
      )
      if ('error' in answer) throw new Error(answer.error)
      return Secret.of(answer.file)
    } catch (error) {
      throw new RewriteError(`the key could not be rewritten: ${(error as Error).message}`, { cause: error })
    } finally {
      const left = (this.#waiting.get(userId) ?? 1) - 1
      if (left === 0) this.#waiting.delete(userId)
      else this.#waiting.set(userId, left)
    }
  }
}
