/** How clients of RDP sign in with a one-time ticket: by NLA (CredSSP), which proves its password. */

/** Which clients sign in by NLA: none; those that come with a ticket, or can do nothing else; all. */
export const NLA_MODES = ['off', 'tickets', 'required'] as const
export type NlaMode = (typeof NLA_MODES)[number]

/** The routing token (MS-RDPBCGR 2.2.1.1.2) by which a client's first message says that it comes with a one-time ticket. */
export const RDP_TICKET_TOKEN = 'Cookie: msts=sallyport-ticket'
