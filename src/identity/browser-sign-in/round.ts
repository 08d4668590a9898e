/** The round of a sign-in by browser: shows a link and a code on the client, and waits for the person there. */
import type { AuthDomain } from '../../model/external-auths.ts'
import type { Id } from '../../model/objects.ts'
import type { Store } from '../../store/store.ts'
import type { Proved } from '../sign-in.ts'
import type { Round, Step } from '../steps.ts'
import { shownCode } from './codes.ts'
import type { Asking, BrowserSignIns, Waiting } from './waiting.ts'

export interface BrowserRounds {
  waiting: Pick<BrowserSignIns, 'open'>
  store: Pick<Store, 'authDomains' | 'externalAuths' | 'providerSessions' | 'users'>
  /** Returns the address of the pages, as `https://bastion.example.org`, or undefined if there are none. */
  pages: () => string | undefined
}

/** Types of domains whose persons sign in in a browser only. */
const FEDERATED: readonly string[] = ['OIDC', 'SAML']

export const isFederated = ({ type }: Pick<AuthDomain, 'type'>): boolean => FEDERATED.includes(type)

/** Begins to wait; returns undefined if there are no pages, or too many wait. */
export function browserRound(rounds: BrowserRounds, asking: Asking): Step<Proved> | undefined {
  const pages = rounds.pages()
  const waiting = pages === undefined ? undefined : rounds.waiting.open(asking)
  if (!waiting) return undefined
  const link = `${pages}/s/${shownCode(waiting.code)}`
  const round: Round<Proved> = {
    message: `Sign in as ${asking.name} in a browser:\n  ${link}\nCheck that it shows ${waiting.check}, and confirm there. This waits for three minutes.`,
    link,
    prompts: [],
    decided: waiting.decided,
    next: () => judged(rounds, asking, waiting),
    close: waiting.close,
  }
  return { result: 'challenge', round }
}

async function judged({ store }: BrowserRounds, { domain }: Asking, waiting: Waiting): Promise<Step<Proved>> {
  const verdict = waiting.verdict()
  waiting.close()
  if (verdict.result !== 'confirmed')
    return {
      result: 'rejected',
      reason: verdict.result === 'refused' ? 'refused_in_browser' : 'no_challenge',
    }
  // While they were in the browser, the domain may have been changed or removed.
  const [now, user] = await Promise.all([store.authDomains.find(domain.id), store.users.find(verdict.userId)])
  if (!now || !isFederated(now) || user?.authDomainId !== domain.id)
    return { result: 'rejected', reason: 'method_not_allowed' }
  const { providerSession } = verdict
  const by = providerSession === undefined ? undefined : await providerOf(store, providerSession)
  return {
    result: 'accepted',
    value: {
      user,
      isProvedBefore: true,
      ...(by !== undefined && { by: [by] }),
      ...(providerSession !== undefined && { providerSession }),
    },
  }
}

/** Returns the name of the provider that has judged the sign-in in the browser. */
async function providerOf(
  { externalAuths, providerSessions }: BrowserRounds['store'],
  id: Id,
): Promise<string | undefined> {
  const session = await providerSessions.find(id)
  return session && (await externalAuths.find(session.externalAuthId))?.authenticationName
}
