/** Where the configuration is if no option names it. */
import { existsSync } from 'node:fs'

/** Environment variable with the path of the configuration. */
export const CONFIG_VARIABLE = 'SALLYPORT_CONFIG'
const INSTALLED = '/etc/sallyport/sallyport.yaml'
const IN_CLONE = 'config/sallyport.yaml'

/** Returns the path that the environment names, that of the system if it is there, or else that of a clone. */
export function configPath(
  env: Readonly<NodeJS.ProcessEnv> = process.env,
  isThere: (path: string) => boolean = existsSync,
): string {
  const named = env[CONFIG_VARIABLE]
  if (named !== undefined && named !== '') return named
  return isThere(INSTALLED) ? INSTALLED : IN_CLONE
}
