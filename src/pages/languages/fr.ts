/** French. */
import type { Messages } from './en.ts'

export const fr: Messages = {
  name: 'Français',
  signIn: {
    title: 'Connexion',
    lead: 'Ce bastion enregistre qui accède à quel système.',
    user: 'Nom d’utilisateur',
    password: 'Mot de passe',
    submit: 'Se connecter',
    or: 'ou',
    negotiate: 'Se connecter avec le compte de cet ordinateur (Kerberos)',
    provider: (name) => `Se connecter avec ${name}`,
    lastUsed: 'utilisé en dernier',
    goOn: 'Continuer',
    cancel: 'Recommencer',
    round: 'Encore une étape',
    answer: 'Réponse',
    noTicket:
      'Le navigateur n’a montré aucun ticket. Ses réglages doivent nommer cette adresse comme fiable pour Kerberos, et cet ordinateur a besoin d’un ticket.',
    expired:
      'Ce formulaire est resté ouvert trop longtemps, ou venait d’une autre page. Veuillez vous reconnecter.',
    signedOut: 'Vous êtes déconnecté.',
  },
  code: {
    title: 'Code à usage unique',
    text: 'Ouvrez votre application d’authentification et saisissez le code affiché.',
    label: 'Code à usage unique, ou code de secours',
  },
  enrol: {
    title: 'Configurer le second facteur',
    text: 'Il vous faut un second facteur. Scannez ceci avec une application d’authentification, ou saisissez-y le secret.',
    again: 'Ce n’était pas le code actuel. Essayez le suivant.',
    picture: 'Code QR pour l’application d’authentification',
    secret: 'Secret',
    label: 'Premier code de l’application',
  },
  recovery: {
    title: 'Vos codes de secours',
    text: 'Chacun vous connecte une fois sans l’application. Gardez-les en lieu sûr : ils ne seront plus affichés.',
    noted: 'Je les ai notés',
  },
  account: {
    title: 'Votre compte',
    signedInAs: 'Connecté en tant que',
    profile: 'Profil',
    signOut: 'Se déconnecter',
  },
  errors: {
    title: 'Cela n’a pas fonctionné',
    back: 'Retour au début',
    not_found: 'Cette page n’existe pas, ou vous ne pouvez pas la voir.',
    forbidden: 'Vous ne pouvez pas faire cela.',
    cross_site:
      'Cela ne venait pas d’une page de ce bastion, ou la page est restée ouverte trop longtemps. Ouvrez-la de nouveau.',
    busy: 'Trop de demandes à la fois. Réessayez dans un instant.',
    unavailable: 'Le bastion ne peut pas le faire pour le moment. Réessayez dans quelques minutes.',
    invalid: 'Le navigateur a envoyé quelque chose que cette page n’accepte pas.',
    internal: 'Le bastion a échoué. Son journal en dit plus.',
    invalid_credentials:
      'Le nom d’utilisateur ou le mot de passe est faux, ou l’utilisateur ne peut pas se connecter.',
    sign_in_unavailable:
      'Les serveurs qui jugent cette connexion sont injoignables. Rien n’a été compté contre vous : réessayez dans quelques minutes.',
  },
}
