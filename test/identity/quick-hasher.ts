import { PasswordHasher } from '../../src/identity/password.ts'

/** Returns a hasher whose hashes cost next to nothing, for tests that are not about their cost. */
export function quickHasher(): PasswordHasher {
  return new PasswordHasher({ memory: 64, passes: 1 })
}
