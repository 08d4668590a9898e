/** The routing token (MS-RDPBCGR 2.2.1.1.2) by which a client's first message says that it comes with a one-time ticket. */
export const RDP_TICKET_TOKEN = 'Cookie: msts=sallyport-ticket'
