/** Policies by which secrets are changed, and the passwords that meet them. */
import type { CredentialType, Id } from './objects.ts'

export const SSH_KEY_TYPES = ['ed25519', 'ecdsa', 'rsa'] as const
export type SshKeyType = (typeof SSH_KEY_TYPES)[number]
/** Sizes in bits, the first one if a policy names none. */
export const SSH_KEY_SIZES: Readonly<Record<SshKeyType, readonly number[]>> = {
  ed25519: [256],
  ecdsa: [256, 384, 521],
  rsa: [3072, 2048, 4096],
}

export const CHARACTER_CLASSES = {
  lower: 'abcdefghijklmnopqrstuvwxyz',
  upper: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ',
  digit: '0123456789',
  special: '!#$%&()*+,-./:;<=>?@[]^_{|}~',
} as const
export type CharacterClass = keyof typeof CHARACTER_CLASSES
export const CLASS_NAMES = Object.keys(CHARACTER_CLASSES) as CharacterClass[]

export const MIN_GENERATED = 8
export const MAX_GENERATED = 128
/** Combinations of a password, in bits, under which a policy is refused. */
const LEAST_BITS = 40

/** The least number of characters of each class; a class without a number does not occur. */
export type ClassMinimums = Readonly<Partial<Record<CharacterClass, number>>>

export interface PasswordRules {
  length: number
  minimums: ClassMinimums
  excluded: string
}

export interface PasswordChangePolicy extends PasswordRules {
  id: Id
  policyName: string
  description: string
  keyType: SshKeyType
  keySize?: number
  /** Cron expression, in `timeZone`. */
  changePeriod?: string
  checkPeriod?: string
  timeZone: string
  /** Seconds after which a secret is overdue. */
  maxAge?: number
  /** Whether the administrator sets a secret that a check has found refused. */
  isReconciled: boolean
  isFactory: boolean
}

export const DEFAULT_PASSWORD_CHANGE_POLICY: Id = '00000000000000000000000501'

export const CHANGE_CAUSES = ['checkin', 'session', 'schedule', 'demand', 'mismatch'] as const
export type ChangeCause = (typeof CHANGE_CAUSES)[number]

export const CHANGE_OUTCOMES = ['changed', 'failed', 'unknown', 'valid', 'mismatch'] as const
export type ChangeOutcome = (typeof CHANGE_OUTCOMES)[number]

/** A change or a check of one stored secret: in progress, or how it ended. Times in milliseconds since the epoch. */
export interface SecretJob {
  id: Id
  accountId: Id
  type: CredentialType
  kind: 'change' | 'check'
  cause: ChangeCause
  /** User who has asked, or whose check-in it follows; empty for a schedule and for a mismatch that a check has found. */
  user: string
  /** Whether it waits for no checkout. */
  isForced: boolean
  /** `begun`: the new secret is stored, and the target may have it. */
  step: 'waiting' | 'begun'
  due: number
  attempts: number
  /** When another runner may go on with it. */
  lease: number
  created: number
  ended?: number
  outcome?: ChangeOutcome
  /** Of the last failure: a code of contract/change.ts, or of the broker's own. */
  code?: string
  message?: string
}

/** When the secrets of a domain are changed or checked next. Times in milliseconds since the epoch. */
export interface SecretSchedule {
  domainId: Id
  kind: SecretJob['kind']
  period: string
  timeZone: string
  /** When `next` was found. */
  since: number
  next: number
}

/** Returns the characters of each class that may occur. */
export function alphabets({
  minimums,
  excluded,
}: Omit<PasswordRules, 'length'>): Map<CharacterClass, string> {
  const found = new Map<CharacterClass, string>()
  for (const name of CLASS_NAMES) {
    if (minimums[name] === undefined) continue
    const left = [...CHARACTER_CLASSES[name]].filter((one) => !excluded.includes(one)).join('')
    found.set(name, left)
  }
  return found
}

/** Returns why no password, or no good one, meets the rules, or undefined if passwords do. */
export function passwordRulesFlaw(rules: PasswordRules): string | undefined {
  const classes = alphabets(rules)
  if (classes.size === 0) return 'no class of characters is allowed'
  for (const [name, characters] of classes) {
    const least = rules.minimums[name] ?? 0
    if (least > 0 && characters === '')
      return `${least} of class ${name} are needed, and all of them are excluded`
  }
  const needed = CLASS_NAMES.reduce((sum, name) => sum + (rules.minimums[name] ?? 0), 0)
  if (needed > rules.length)
    return `${needed} characters are needed by class, and the length is ${rules.length}`
  const all = [...classes.values()].join('')
  if (all === '') return 'all characters are excluded'
  let bits = (rules.length - needed) * Math.log2(all.length)
  for (const [name, characters] of classes) {
    const least = rules.minimums[name] ?? 0
    if (least > 0) bits += least * Math.log2(characters.length)
  }
  return bits < LEAST_BITS
    ? `only ${Math.floor(bits)} bits of such a password cannot be guessed, and ${LEAST_BITS} are the least: allow more characters or a greater length`
    : undefined
}

/**
 * Returns a random password by the rules: the needed ones of each class, the others of all, in random order.
 * `below(n)` returns an unbiased random integer from 0 to n - 1. @throws RangeError if no password meets the rules
 */
export function generatePassword(rules: PasswordRules, below: (n: number) => number): string {
  const flaw = passwordRulesFlaw(rules)
  if (flaw !== undefined) throw new RangeError(flaw)
  const classes = alphabets(rules)
  const all = [...classes.values()].join('')
  const drawn: string[] = []
  const draw = (from: string, count: number) => {
    for (let i = 0; i < count; i++) drawn.push(from.charAt(below(from.length)))
  }
  for (const [name, characters] of classes) draw(characters, rules.minimums[name] ?? 0)
  draw(all, rules.length - drawn.length)
  // Fisher and Yates: each order is equally likely.
  for (let i = drawn.length - 1; i > 0; i--) {
    const j = below(i + 1)
    const [a, b] = [drawn[i] as string, drawn[j] as string]
    drawn[i] = b
    drawn[j] = a
  }
  return drawn.join('')
}
