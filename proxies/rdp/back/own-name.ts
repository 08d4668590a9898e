/** The bastion's name where RDP requires the name of the client's computer. */
import { hostname } from 'node:os'

/** Characters of a NetBIOS name. */
const NAME_LIMIT = 15

export const OWN_NAME = (hostname().split('.')[0] ?? '').toUpperCase().slice(0, NAME_LIMIT)
