import { PRE_AUTHORIZED_CODE_GRANT } from '../oauth/token-request.ts';
import type { JsonObject } from '../shared/json.ts';
import { SIGNING_ALGORITHMS } from '../shared/jwk.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { IssuanceConfiguration } from './issuance-configuration.ts';
import { PROOF_ALGORITHMS } from './proof.ts';

/** Drops absent, null and empty members: the documents carry only what says something. */
function compact(members: Record<string, unknown>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter(
      ([, value]) => value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0),
    ),
  ) as JsonObject;
}

/** The scope of a configuration; HAIP 1.0 section 4.1 wants every one to have it. */
export function scopeOf(configuration: CredentialConfiguration): string {
  return configuration.config.scope ?? configuration.id;
}

/** The `vct` of what a configuration issues: its own, or the address where we host its type metadata. */
export function vctOf(configuration: CredentialConfiguration, issuer: string): string {
  const { vct } = configuration;
  if (typeof vct === 'string') return vct;
  return vct?.vct ?? `${issuer}/vct/${encodeURIComponent(configuration.id)}`;
}

/** Credential Issuer metadata (OpenID4VCI 1.0 section 12.2.4). */
export function issuerMetadata(
  issuer: string,
  issuance: Pick<IssuanceConfiguration, 'display' | 'batchSize'>,
  configurations: readonly CredentialConfiguration[],
  signingAlgorithm: (configuration: CredentialConfiguration) => string,
): JsonObject {
  const bound = configurations.some((configuration) => configuration.keyBinding);
  return compact({
    credential_issuer: issuer,
    credential_endpoint: `${issuer}/credential`,
    nonce_endpoint: bound ? `${issuer}/nonce` : undefined,
    // OpenID4VCI 1.0 section 12.2.4: at least 2, otherwise absent
    batch_credential_issuance: issuance.batchSize >= 2 ? { batch_size: issuance.batchSize } : undefined,
    display: issuance.display,
    credential_configurations_supported: Object.fromEntries(
      configurations.map((configuration) => [
        configuration.id,
        configurationMetadata(configuration, issuer, signingAlgorithm(configuration)),
      ]),
    ),
  });
}

function configurationMetadata(
  configuration: CredentialConfiguration,
  issuer: string,
  algorithm: string,
): JsonObject {
  const { config, keyBinding } = configuration;
  return compact({
    format: config.format,
    scope: scopeOf(configuration),
    vct: vctOf(configuration, issuer),
    credential_signing_alg_values_supported: [algorithm],
    cryptographic_binding_methods_supported: keyBinding ? ['jwk'] : undefined,
    proof_types_supported: keyBinding
      ? { jwt: { proof_signing_alg_values_supported: PROOF_ALGORITHMS } }
      : undefined,
    credential_metadata: compact({ display: config.display, claims: config.claims }),
  });
}

/** Authorization server metadata (RFC 8414 section 2) of the built-in server. */
export function authorizationServerMetadata(
  issuer: string,
  configurations: readonly CredentialConfiguration[],
  aggregation: boolean,
): JsonObject {
  return compact({
    issuer,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    grant_types_supported: [PRE_AUTHORIZED_CODE_GRANT],
    // RFC 8414 section 2 demands the member; without an authorization endpoint there is no response type.
    response_types_supported: undefined,
    token_endpoint_auth_methods_supported: ['none'],
    'pre-authorized_grant_anonymous_access_supported': true,
    dpop_signing_alg_values_supported: SIGNING_ALGORITHMS,
    authorization_details_types_supported: ['openid_credential'],
    scopes_supported: [...new Set(configurations.map(scopeOf))],
    status_list_aggregation_endpoint: aggregation ? `${issuer}/status-lists` : undefined,
  });
}

/** Type metadata that the service hosts (SD-JWT VC section 5). */
export function typeMetadata(configuration: CredentialConfiguration, issuer: string): JsonObject {
  const { vct, config } = configuration;
  const own = typeof vct === 'object' && vct !== null ? vct : {};
  return compact({
    name: config.display[0]?.name,
    display: config.display
      .filter((entry) => entry.locale !== undefined)
      .map((entry) => compact({ locale: entry.locale, name: entry.name, description: entry.description })),
    ...own,
    vct: vctOf(configuration, issuer),
  });
}
