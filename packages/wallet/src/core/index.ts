import './no-compiling.ts';

export type { Answer, Choice, ChosenCredential as Chosen } from './answers.ts';
export type { CardFormat, Label, Look, StoredCredential } from './cards.ts';
export type { Signer } from './certificates.ts';
export type { Claim, Json, JsonObject, Path } from './claims.ts';
export { type Exchange, type Fetch, observeFetch as listening } from './exchanges.ts';
export type { Authorization, DeferredCredential as Promised, IssuanceResult as Received } from './issuance.ts';
export type { HolderKey, PublicJwk } from './keys.ts';
export { canMisbehave, isMisbehaviour, MISBEHAVIOURS, type Misbehaviour } from './misbehaviours.ts';
export type { OfferedCredential, ReadOffer } from './offers.ts';
export type { Match, ReadQuery, ReadRequest, Verifier } from './requests.ts';
export { type PresentationResult as Presented, type PresentOptions, SimulatedWallet, type WalletOptions } from './wallet.ts';
