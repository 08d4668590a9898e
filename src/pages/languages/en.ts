/** English, and the keys that every language has. */
export const en = {
  name: 'English',
  signIn: {
    title: 'Sign in',
    lead: 'This bastion records who reaches which system.',
    user: 'User name',
    password: 'Password',
    submit: 'Sign in',
    or: 'or',
    negotiate: 'Sign in with the account of this computer (Kerberos)',
    provider: (name: string) => `Sign in with ${name}`,
    lastUsed: 'used last',
    goOn: 'Continue',
    cancel: 'Start again',
    round: 'One more step',
    answer: 'Answer',
    noTicket:
      'The browser has shown no ticket. Its settings have to name this address as trusted for Kerberos, and this computer needs a ticket.',
    expired: 'This form was open for too long, or came from another page. Please sign in again.',
    signedOut: 'You are signed out.',
  },
  code: {
    title: 'One-time code',
    text: 'Open your authenticator and type the code that it shows.',
    label: 'One-time code, or a recovery code',
  },
  enrol: {
    title: 'Set up your second factor',
    text: 'You need a second factor. Scan this with an authenticator app, or type the secret into it.',
    again: 'That was not its current code. Try the next one.',
    picture: 'QR code for the authenticator',
    secret: 'Secret',
    label: 'First code of the authenticator',
  },
  recovery: {
    title: 'Your recovery codes',
    text: 'Each of these signs you in once without the authenticator. Keep them in a safe place: they are not shown again.',
    noted: 'I have noted them down',
  },
  account: {
    title: 'Your account',
    signedInAs: 'Signed in as',
    profile: 'Profile',
    signOut: 'Sign out',
  },
  errors: {
    title: 'This did not work',
    back: 'Back to the start',
    not_found: 'There is no such page, or you may not see it.',
    forbidden: 'You may not do this.',
    cross_site:
      'This did not come from a page of this bastion, or the page was open for too long. Open it again.',
    busy: 'Too many requests at once. Try again in a moment.',
    unavailable: 'The bastion cannot do this at the moment. Try again in a few minutes.',
    invalid: 'The browser has sent something that this page does not take.',
    internal: 'The bastion failed. Its log says more.',
    invalid_credentials: 'The user name or the password is wrong, or the user may not sign in.',
    sign_in_unavailable:
      'The servers that judge this sign-in cannot be reached. Nothing was counted against you: try again in a few minutes.',
  },
}

export type Messages = typeof en
