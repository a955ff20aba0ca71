import type { WalletTokenClaims } from '../oauth/access-token.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, isTexts, type JsonObject } from '../shared/json.ts';
import { type CredentialConfiguration, type ProofType, proofTypesOf } from './configuration.ts';

/**
 * Which configuration a credential request names (OpenID4VCI 1.0 section 8.2). Wallets are in use that name a configuration
 * although the token response had identifiers: each of these stands for one configuration, so it is clear what they mean.
 * @throws Failure `invalid_credential_request`, `unknown_credential_configuration`,
 *   `unknown_credential_identifier`, `insufficient_scope`.
 */
export function resolveConfiguration(
  body: JsonObject,
  token: WalletTokenClaims,
  find: (id: string) => CredentialConfiguration | undefined,
): CredentialConfiguration {
  const { credential_identifier: identifier, credential_configuration_id: configurationId } = body;
  if ((identifier === undefined) === (configurationId === undefined)) {
    throw new Failure('invalid_credential_request', 'send either credential_identifier or credential_configuration_id');
  }
  const given = identifier ?? configurationId;
  if (typeof given !== 'string') throw new Failure('invalid_credential_request', 'the identifier must be a string');
  const named = identifier === undefined ? given : identifiedBy(given, token);
  if (identifier !== undefined) {
    if (!token.identifiers || !token.credentialConfigurationIds.includes(named)) {
      throw new Failure('unknown_credential_identifier', 'the token response named no such credential identifier');
    }
  }
  const configuration = find(named);
  if (configuration === undefined) {
    throw new Failure('unknown_credential_configuration', 'this issuer has no such credential configuration');
  }
  if (!token.credentialConfigurationIds.includes(named)) {
    throw new Failure('insufficient_scope', 'the access token does not cover this credential configuration');
  }
  return configuration;
}

/** Servers of this service call a dataset by its configuration; others have names of their own. */
function identifiedBy(identifier: string, { configurationOfIdentifier: known }: WalletTokenClaims): string {
  return known === undefined ? identifier : (known.get(identifier) ?? '');
}

export type Proofs = { readonly type: ProofType; readonly texts: readonly string[] };

type Binding = Pick<CredentialConfiguration, 'keyBinding' | 'proofTypes' | 'keyAttestationsRequired'>;

/**
 * The proofs of a request (OpenID4VCI 1.0 section 8.2).
 * @returns undefined for a configuration that binds no key, whatever was sent.
 * @throws Failure `invalid_proof`, `invalid_credential_request`.
 */
export function parseProofs(body: JsonObject, binding: Binding, batchSize: number): Proofs | undefined {
  if (!binding.keyBinding) return undefined;
  const { proofs } = body;
  if (!isJsonObject(proofs)) throw new Failure('invalid_proof', 'proofs are missing');
  const supported = proofTypesOf(binding);
  const [named, ...others] = Object.keys(proofs);
  const type = others.length === 0 ? supported.find((known) => known === named) : undefined;
  if (type === undefined) throw new Failure('invalid_proof', `send exactly one proof type, of: ${supported.join(', ')}`);
  const texts = proofs[type];
  if (!isTexts(texts) || texts.length === 0) throw new Failure('invalid_proof', `proofs.${type} must be a non-empty array of strings`);
  // OpenID4VCI 1.0 appendix F.3
  if (type === 'attestation' && texts.length !== 1) throw new Failure('invalid_proof', 'send exactly one key attestation');
  const most = Math.max(1, batchSize);
  // OpenID4VCI 1.0 section 12.2.4
  if (texts.length > most) throw new Failure('invalid_credential_request', `at most ${most} proofs in one request`);
  return { type, texts };
}

export function interactionNeeded(): Failure {
  return new Failure(
    'credential_request_denied',
    'this credential needs an interactive authorization, and this access token came without it',
  );
}
