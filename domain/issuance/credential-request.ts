import type { WalletTokenClaims } from '../oauth/access-token.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, isStringArray, type JsonObject } from '../shared/json.ts';
import { type CredentialConfiguration, type ProofType, proofTypesOf } from './configuration.ts';

/**
 * Resolves the configuration of a credential request (OpenID4VCI 1.0 section 8.2). Some wallets send a configuration id although the token
 * response had identifiers; each identifier stands for one configuration, so the request is unambiguous.
 * @throws Failure `invalid_credential_request`, `unknown_credential_configuration`, `unknown_credential_identifier`, `insufficient_scope`.
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
  const requestedId = identifier ?? configurationId;
  if (typeof requestedId !== 'string') throw new Failure('invalid_credential_request', 'the identifier must be a string');
  const resolvedId = identifier === undefined ? requestedId : configurationIdOf(requestedId, token);
  if (identifier !== undefined) {
    if (!token.identifiers || !token.credentialConfigurationIds.includes(resolvedId)) {
      throw new Failure('unknown_credential_identifier', 'the token response named no such credential identifier');
    }
  }
  const configuration = find(resolvedId);
  if (configuration === undefined) {
    throw new Failure('unknown_credential_configuration', 'this issuer has no such credential configuration');
  }
  if (!token.credentialConfigurationIds.includes(resolvedId)) {
    throw new Failure('insufficient_scope', 'the access token does not cover this credential configuration');
  }
  return configuration;
}

/** The built-in and chained servers use the configuration id as the dataset identifier; external servers choose their own. */
function configurationIdOf(identifier: string, { configurationOfIdentifier: configurationIds }: WalletTokenClaims): string {
  return configurationIds === undefined ? identifier : (configurationIds.get(identifier) ?? '');
}

export type Proofs = { readonly type: ProofType; readonly texts: readonly string[] };

type Binding = Pick<CredentialConfiguration, 'keyBinding' | 'proofTypes' | 'keyAttestationsRequired'>;

/**
 * The proofs of a request (OpenID4VCI 1.0 section 8.2).
 * @returns undefined for a configuration without key binding, even if proofs were sent.
 * @throws Failure `invalid_proof`, `invalid_credential_request`.
 */
export function parseProofs(body: JsonObject, binding: Binding, batchSize: number): Proofs | undefined {
  if (!binding.keyBinding) return undefined;
  const { proofs } = body;
  if (!isJsonObject(proofs)) throw new Failure('invalid_proof', 'proofs are missing');
  const supported = proofTypesOf(binding);
  const [requestedType, ...otherTypes] = Object.keys(proofs);
  const type = otherTypes.length === 0 ? supported.find((configurationIds) => configurationIds === requestedType) : undefined;
  if (type === undefined) throw new Failure('invalid_proof', `send exactly one proof type, of: ${supported.join(', ')}`);
  const texts = proofs[type];
  if (!isStringArray(texts) || texts.length === 0)
    throw new Failure('invalid_proof', `proofs.${type} must be a non-empty array of strings`);
  // OpenID4VCI 1.0 appendix F.3
  if (type === 'attestation' && texts.length !== 1) throw new Failure('invalid_proof', 'send exactly one key attestation');
  const maxProofs = Math.max(1, batchSize);
  // OpenID4VCI 1.0 section 12.2.4
  if (texts.length > maxProofs) throw new Failure('invalid_credential_request', `at most ${maxProofs} proofs in one request`);
  return { type, texts };
}

export function interactionRequiredError(): Failure {
  return new Failure(
    'credential_request_denied',
    'this credential requires an interactive authorization, and this access token was issued without it',
  );
}
