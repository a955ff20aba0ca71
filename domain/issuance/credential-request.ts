import type { WalletTokenClaims } from '../oauth/access-token.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import type { CredentialConfiguration } from './configuration.ts';

/**
 * Which configuration a credential request names (OpenID4VCI 1.0 section 8.2). Unknown values are told before a
 * wrong kind of name, so that a wallet learns the real fault.
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
    throw new Failure(
      'invalid_credential_request',
      'send either credential_identifier or credential_configuration_id',
    );
  }
  const named = identifier ?? configurationId;
  if (typeof named !== 'string')
    throw new Failure('invalid_credential_request', 'the identifier must be a string');
  if (identifier !== undefined) {
    if (!token.identifiers || !token.credentialConfigurationIds.includes(named)) {
      throw new Failure(
        'unknown_credential_identifier',
        'the token response named no such credential identifier',
      );
    }
  }
  const configuration = find(named);
  if (configuration === undefined) {
    throw new Failure('unknown_credential_configuration', 'this issuer has no such credential configuration');
  }
  if (configurationId !== undefined && token.identifiers) {
    throw new Failure(
      'invalid_credential_request',
      'use one of the credential_identifiers of the token response',
    );
  }
  if (!token.credentialConfigurationIds.includes(named)) {
    throw new Failure('insufficient_scope', 'the access token does not cover this credential configuration');
  }
  return configuration;
}

/**
 * The proofs of a request (OpenID4VCI 1.0 section 8.2).
 * @returns one JWT per key; empty for a configuration that binds no key, whatever was sent.
 * @throws Failure `invalid_proof`, `invalid_credential_request`.
 */
export function readProofs(body: JsonObject, keyBinding: boolean, batchSize: number): readonly string[] {
  if (!keyBinding) return [];
  const { proofs } = body;
  if (!isJsonObject(proofs)) throw new Failure('invalid_proof', 'proofs are missing');
  const types = Object.keys(proofs);
  if (types.length !== 1 || types[0] !== 'jwt') {
    throw new Failure('invalid_proof', 'send exactly one proof type, and it must be jwt');
  }
  const { jwt } = proofs;
  if (!Array.isArray(jwt) || jwt.length === 0 || !jwt.every((proof) => typeof proof === 'string')) {
    throw new Failure('invalid_proof', 'proofs.jwt must be a non-empty array of strings');
  }
  if (jwt.length > Math.max(1, batchSize)) {
    throw new Failure(
      'invalid_credential_request',
      `at most ${Math.max(1, batchSize)} proofs in one request`,
    );
  }
  return jwt;
}
