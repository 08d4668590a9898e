/**
 * Timeframes of targets that users have on the screen to choose from: when one of them ends, their menus are shown anew.
 * A choice that comes first is judged by its opening.
 */
import { canonicalName, targetsOf } from '../access/targets.ts'
import type { GateNotice } from '../contract/gate.ts'
import { nextEdge, together } from '../model/timeframes.ts'
import type { Store, TargetRow } from '../store/store.ts'
import { Due } from './due.ts'
import type { SignedIn } from './signed-in.ts'
import type { Touched } from './touched.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

const TEXT = 'your targets have changed: a timeframe or a right has ended'

export interface MenuHoursOptions {
  store: Pick<Store, 'access'>
  notify: (notice: GateNotice) => void
  /** Judges the sign-in with the next review: nothing may be left that it may open. */
  watch: (signedIn: SignedIn) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

/** The list that a connection was shown last. */
interface Menu {
  token: string
  signedIn: SignedIn
  /** Names of the targets with timeframes. */
  names: ReadonlySet<string>
}

export class MenuHours {
  readonly #options: MenuHoursOptions
  /** By the tokens of the sign-ins. */
  readonly #menus = new Map<string, Menu>()
  readonly #due = new Due<Menu>()
  #judgedAt = Number.NEGATIVE_INFINITY

  constructor(options: MenuHoursOptions) {
    this.#options = options
  }

  /** Notes the targets of these rows, which the user sees from now on. */
  shown(token: string, signedIn: SignedIn, rows: readonly TargetRow[]): void {
    const timed = rows.filter(({ timeframes }) => timeframes.length > 0)
    if (timed.length === 0) {
      this.#menus.delete(token)
      return
    }
    const since = this.#options.now()
    const menu = { token, signedIn, names: namesOf(timed, signedIn) }
    this.#menus.set(token, menu)
    // Each group alone: other groups may go on.
    const edge = nextEdge(together(timed.map(({ timeframes }) => timeframes)), since)
    this.#due.set(menu, edge ?? Number.POSITIVE_INFINITY)
  }

  /** Forgets the menu of a connection that has gone on to a target, or has ended. */
  forget(token: string): void {
    this.#menus.delete(token)
  }

  /** Judges the menus of users whose rights, or whose timeframes, were changed. Their sign-ins are judged beside. */
  async review(touched: Touched, withdrawals: Withdrawals): Promise<void> {
    const { now } = this.#options
    const isTouched = ({ signedIn }: Menu) => touched.hasTargets || touched.hasUser(signedIn.userId)
    await withdrawals.each(await chosen(this.#menus.values(), isTouched), async (menu) => {
      await this.#judge(menu, now())
      return undefined
    })
  }

  /** Judges the menus whose time has come. Returns whether a sign-in is to be reviewed. */
  async tick(): Promise<boolean> {
    const now = this.#options.now()
    const hasGoneBack = now < this.#judgedAt
    this.#judgedAt = now
    const due = this.#due.take(now, () => this.#menus.values())
    let isWatched = false
    for (const menu of hasGoneBack ? [...this.#menus.values()] : due) {
      try {
        isWatched = (await this.#judge(menu, now)) || isWatched
      } catch (error) {
        // Asked again with the next tick.
        this.#due.set(menu, now)
        throw error
      }
    }
    return isWatched
  }

  async #judge(menu: Menu, now: number): Promise<boolean> {
    const { token, signedIn, names } = menu
    const { store, notify, watch } = this.#options
    const rows = await store.access.sessionTargets(signedIn.userId, now)
    // Shown anew, or gone, meanwhile.
    if (this.#menus.get(token) !== menu) return false
    this.shown(token, signedIn, rows)
    if (rows.length === 0) {
      watch(signedIn)
      return true
    }
    const left = namesOf(rows, signedIn)
    if ([...names].some((name) => !left.has(name))) notify({ type: 'targets', identity: token, text: TEXT })
    return false
  }
}

function namesOf(rows: readonly TargetRow[], { protocol }: Pick<SignedIn, 'protocol'>): Set<string> {
  const shown = targetsOf(rows, protocol).filter(({ rights }) => rights.length > 0)
  return new Set(shown.map(canonicalName))
}
