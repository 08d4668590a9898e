import { EVENTS, type EventCode } from '../../src/audit/events/catalogue.ts'

/** All of the catalogue's. */
export const EVENT_CODES = Object.keys(EVENTS) as EventCode[]
