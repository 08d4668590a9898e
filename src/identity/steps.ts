/** Steps of a sign-in, each of which may need further rounds with the user before it has its result. */
import type { Secret } from '../model/secret.ts'
import type { MethodPrompt } from './methods/method.ts'
import type { RoundForm } from './round-form.ts'
import type { Refusal } from './sign-in.ts'

export type Step<T> =
  | { result: 'accepted'; value: T }
  | { result: 'rejected'; reason: Refusal }
  /** `server`: name of the external authentication. */
  | { result: 'unavailable'; server: string; reason: string }
  | { result: 'challenge'; round: Round<T> }

/** One round of prompts; ended by exactly one of `next` and `close`. */
export interface Round<T> {
  message: string
  /** An URI for an authenticator, to be shown as a QR code, too. */
  uri?: string
  /** Address of a page where the person goes on. */
  link?: string
  /** For clients that cannot be prompted: how they get on. */
  hint?: string
  form?: RoundForm
  /** Whether the question has come again, or too often: a failure of the answer before it. */
  isAgain?: true
  /** Resolves once `next` has what it needs from elsewhere. Absent if that are the answers alone. */
  decided?: Promise<void>
  prompts: readonly MethodPrompt[]
  next(answers: readonly Secret[]): Promise<Step<T>>
  close(): void
}

/** Continues with the value of a step once it is accepted, however many rounds that takes. */
export async function andThen<T, U>(step: Step<T>, next: (value: T) => Promise<Step<U>>): Promise<Step<U>> {
  if (step.result === 'accepted') return await next(step.value)
  if (step.result !== 'challenge') return step
  const { round } = step
  return {
    result: 'challenge',
    round: {
      message: round.message,
      ...(round.uri !== undefined && { uri: round.uri }),
      ...(round.link !== undefined && { link: round.link }),
      ...(round.hint !== undefined && { hint: round.hint }),
      ...(round.form && { form: round.form }),
      ...(round.isAgain && { isAgain: round.isAgain }),
      ...(round.decided && { decided: round.decided }),
      prompts: round.prompts,
      next: async (answers) => andThen(await round.next(answers), next),
      close: () => round.close(),
    },
  }
}
