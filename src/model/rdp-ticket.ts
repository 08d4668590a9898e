/** How clients of RDP sign in with a one-time ticket: by NLA (CredSSP), which proves its password. */

/** The clients that sign in by NLA: none; those with a ticket or without another way; all. */
export const NLA_MODES = ['off', 'tickets', 'required'] as const
export type NlaMode = (typeof NLA_MODES)[number]

/** The routing token (MS-RDPBCGR 2.2.1.1.2) in a client's first message that announces a one-time ticket. */
export const RDP_TICKET_TOKEN = 'Cookie: msts=sallyport-ticket'
