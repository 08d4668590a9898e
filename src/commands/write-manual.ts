/** Writes the manual pages to man/: `npm run man`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configJsonSchema } from '../config/jsonschema.ts'
import { commandsNamed } from './all.ts'
import { commandPage, configurationPage } from './manual.ts'

const folder = join(import.meta.dirname, '..', '..', 'man')
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'sallyport.1'), commandPage(await commandsNamed(undefined)))
writeFileSync(join(folder, 'sallyport.yaml.5'), configurationPage(configJsonSchema()))
