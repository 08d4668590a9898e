/** Rewrites private keys in another format, in a thread that lives while there is work. */
import { Secret } from '../../model/secret.ts'
import { Questions } from '../../threads/questions.ts'
import { programBeside, Thread } from '../../threads/thread.ts'
import type { Rewrite, Rewritten } from './worker.ts'
import type { KeyFormat } from './write.ts'

/** Keys that wait for the thread. */
const MAX_WAITING = 16

export class RewriterBusyError extends Error {
  override readonly name = 'RewriterBusyError'
}

export class KeyRewriter {
  readonly #questions = new Questions<Rewritten>()
  readonly #thread: Thread<Rewrite, Rewritten>

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
   * @throws RewriterBusyError if too many wait, Error if the key has no such form
   */
  async rewrite(
    key: Secret,
    passphrase: Secret | undefined,
    format: KeyFormat,
    newPassphrase: string | undefined,
  ): Promise<Secret> {
    if (this.#questions.size >= MAX_WAITING) throw new RewriterBusyError('too many keys wait to be rewritten')
    const file = key.revealText()
    const old = passphrase?.revealText()
    const answer = await this.#questions.ask((id) =>
      this.#thread.post({ id, file, passphrase: old, format, newPassphrase }),
    )
    if ('error' in answer) throw new Error(answer.error)
    return Secret.of(answer.file)
  }
}
