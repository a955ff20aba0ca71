import type { CardFormat } from './cards.ts';

/** Deliberate errors of this wallet, which show that verifiers reject them. */
export const MISBEHAVIOURS = {
  replay: {
    title: 'Send the response twice',
    about: 'The response is valid and sent as usual; then the same response is sent again, like a recorded one.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'changed-claim': {
    title: 'Change a claim',
    about: 'The value of a claim is replaced by another one, which the issuer never signed.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'other-nonce': {
    title: 'Respond to another request',
    about: 'The holder key signs another nonce than that of the request, as in a response that was recorded elsewhere.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'old-key-binding': {
    title: 'Send an old proof of possession',
    about: 'The key binding states that it was signed yesterday.',
    formats: ['dc+sd-jwt'],
  },
  'foreign-holder-key': {
    title: 'Present the credential of another holder',
    about: 'The response is signed with another key than the one that the credential is bound to.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'withheld-claim': {
    title: 'Withhold a claim',
    about: 'One of the requested claims is withheld, and the rest is sent as a complete response.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  decline: {
    title: 'Decline',
    about: 'Nothing is presented; the verifier is notified that the user declined.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
} as const satisfies Readonly<Record<string, { title: string; about: string; formats: readonly CardFormat[] }>>;

export type Misbehaviour = keyof typeof MISBEHAVIOURS;

export function isMisbehaviour(word: string): word is Misbehaviour {
  return Object.hasOwn(MISBEHAVIOURS, word);
}

/** @returns true if the misbehaviour exists for this format. */
export function canMisbehave(misbehaviour: Misbehaviour, format: CardFormat): boolean {
  return (MISBEHAVIOURS[misbehaviour].formats as readonly CardFormat[]).includes(format);
}
