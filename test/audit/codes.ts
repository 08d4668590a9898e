import { EVENTS, type EventCode } from '../../src/audit/catalogue.ts'

/** All of the catalogue's. */
export const EVENT_CODES = Object.keys(EVENTS) as EventCode[]
