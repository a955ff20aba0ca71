import type { CardFormat } from './cards.ts';

/** Deliberate errors of this wallet, which show that verifiers reject them. */
export const MISBEHAVIOURS = {
  replay: {
    title: 'Send the answer twice',
    about: 'The answer is right and sent as usual; then the very same answer is sent again, as somebody would who recorded it.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'changed-claim': {
    title: 'Change a claim',
    about: 'The value of a claim is replaced by another one, which the issuer never signed.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'other-nonce': {
    title: 'Answer another request',
    about: 'The holder key signs over another nonce than the one that was asked with, as in an answer recorded elsewhere.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'old-key-binding': {
    title: 'Send an old proof of possession',
    about: 'The key binding says that it was signed yesterday.',
    formats: ['dc+sd-jwt'],
  },
  'foreign-holder-key': {
    title: "Show somebody else's card",
    about: 'The answer is signed with another key than the one that the issuer bound the card to.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  'withheld-claim': {
    title: 'Keep a claim back',
    about: 'One of the claims that were asked for is left out, and the rest is sent as if it were everything.',
    formats: ['dc+sd-jwt', 'mso_mdoc'],
  },
  decline: { title: 'Decline', about: 'Nothing is shown; the verifier is told that the user said no.', formats: ['dc+sd-jwt', 'mso_mdoc'] },
} as const satisfies Readonly<Record<string, { title: string; about: string; formats: readonly CardFormat[] }>>;

export type Misbehaviour = keyof typeof MISBEHAVIOURS;

export function isMisbehaviour(word: string): word is Misbehaviour {
  return Object.hasOwn(MISBEHAVIOURS, word);
}

/** @returns true if the misbehaviour exists for this format. */
export function canMisbehave(misbehaviour: Misbehaviour, format: CardFormat): boolean {
  return (MISBEHAVIOURS[misbehaviour].formats as readonly CardFormat[]).includes(format);
}
