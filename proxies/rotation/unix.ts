import { ChangeError, type ChangePlugin } from './plugin.ts'

export const unix: ChangePlugin = {
  verify: () => Promise.reject(new ChangeError('unsupported', 'not yet')),
  change: () => Promise.reject(new ChangeError('unsupported', 'not yet')),
}
