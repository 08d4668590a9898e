/** German. */
import type { Messages } from './en.ts'

export const de: Messages = {
  name: 'Deutsch',
  signIn: {
    title: 'Anmelden',
    lead: 'Diese Bastion zeichnet auf, wer welches System erreicht.',
    user: 'Benutzername',
    password: 'Passwort',
    submit: 'Anmelden',
    or: 'oder',
    negotiate: 'Mit dem Konto dieses Rechners anmelden (Kerberos)',
    provider: (name) => `Mit ${name} anmelden`,
    lastUsed: 'zuletzt benutzt',
    goOn: 'Weiter',
    cancel: 'Von vorn beginnen',
    round: 'Noch ein Schritt',
    answer: 'Antwort',
    noTicket:
      'Der Browser hat kein Ticket gezeigt. Seine Einstellungen müssen diese Adresse für Kerberos als vertrauenswürdig nennen, und dieser Rechner braucht ein Ticket.',
    expired:
      'Dieses Formular war zu lange offen, oder es kam von einer anderen Seite. Bitte erneut anmelden.',
    signedOut: 'Sie sind abgemeldet.',
  },
  code: {
    title: 'Einmalcode',
    text: 'Öffnen Sie Ihren Authenticator und geben Sie den Code ein, den er zeigt.',
    label: 'Einmalcode oder Wiederherstellungscode',
  },
  enrol: {
    title: 'Zweiten Faktor einrichten',
    text: 'Sie brauchen einen zweiten Faktor. Scannen Sie dies mit einer Authenticator-App, oder geben Sie dort das Geheimnis ein.',
    again: 'Das war nicht der aktuelle Code. Versuchen Sie den nächsten.',
    picture: 'QR-Code für den Authenticator',
    secret: 'Geheimnis',
    label: 'Erster Code des Authenticators',
  },
  recovery: {
    title: 'Ihre Wiederherstellungscodes',
    text: 'Mit jedem davon melden Sie sich einmal ohne den Authenticator an. Bewahren Sie sie sicher auf: sie werden nicht noch einmal gezeigt.',
    noted: 'Ich habe sie notiert',
  },
  account: {
    title: 'Ihr Konto',
    signedInAs: 'Angemeldet als',
    profile: 'Profil',
    signOut: 'Abmelden',
  },
  errors: {
    title: 'Das ging nicht',
    back: 'Zurück zum Anfang',
    not_found: 'Diese Seite gibt es nicht, oder Sie dürfen sie nicht sehen.',
    forbidden: 'Das dürfen Sie nicht.',
    cross_site:
      'Das kam nicht von einer Seite dieser Bastion, oder die Seite war zu lange offen. Öffnen Sie sie noch einmal.',
    busy: 'Zu viele Anfragen auf einmal. Versuchen Sie es gleich noch einmal.',
    unavailable: 'Die Bastion kann das gerade nicht. Versuchen Sie es in ein paar Minuten noch einmal.',
    invalid: 'Der Browser hat etwas geschickt, das diese Seite nicht annimmt.',
    internal: 'Die Bastion hat versagt. Ihr Protokoll sagt mehr.',
    invalid_credentials:
      'Der Benutzername oder das Passwort ist falsch, oder der Benutzer darf sich nicht anmelden.',
    sign_in_unavailable:
      'Die Server, die diese Anmeldung prüfen, sind nicht erreichbar. Es wurde nichts gegen Sie gezählt: versuchen Sie es in ein paar Minuten noch einmal.',
  },
}
