import { PRE_AUTHORIZED_CODE_GRANT } from '../oauth/token-request.ts';
import type { Profile } from '../shared/finding.ts';
import type { JsonObject } from '../shared/json.ts';
import { compact } from './compact.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { EffectiveIssuance } from './issuance-configuration.ts';
import { scopeOf } from './metadata.ts';
import { publishedAlgorithms } from './wallet-algorithms.ts';

export type AuthorizationServerParts = {
  /** Credential Issuer Identifier. */
  readonly issuer: string;
  readonly issuance: Pick<
    EffectiveIssuance,
    'walletAttestationRequired' | 'walletProviderTrustLists' | 'walletClients' | 'refreshTokenSeconds' | 'algorithms'
  >;
  readonly configurations: readonly CredentialConfiguration[];
  readonly profile: Profile | null;
};

/**
 * Authorization server metadata (RFC 8414 section 2) of the built-in server.
 * @param aggregation true to publish the list of the tenant's status lists.
 */
export function authorizationServerMetadata(parts: AuthorizationServerParts & { readonly aggregation: boolean }): JsonObject {
  const { issuer, issuance, configurations, aggregation } = parts;
  const interactive = configurations.some(({ iaeActions }) => (iaeActions ?? []).length > 0)
    ? `${issuer}/interactive-authorization`
    : undefined;
  return compact({
    ...serverMetadata(issuer, parts, [PRE_AUTHORIZED_CODE_GRANT]),
    'pre-authorized_grant_anonymous_access_supported': !issuance.walletAttestationRequired,
    // The draft renamed the property; wallets look for either name.
    authorization_challenge_endpoint: interactive,
    interactive_authorization_endpoint: interactive,
    status_list_aggregation_endpoint: aggregation ? `${issuer}/status-lists` : undefined,
  });
}

/** Metadata of the chained server, which delegates the login to an upstream provider. It supports no pre-authorized codes. */
export function chainedAsMetadata(parts: AuthorizationServerParts): JsonObject {
  return compact(serverMetadata(`${parts.issuer}/chained-as`, parts, []));
}

function serverMetadata(
  server: string,
  { issuance, configurations, profile }: AuthorizationServerParts,
  grantTypes: readonly string[],
): Record<string, unknown> {
  const { walletAttestationRequired, walletProviderTrustLists, walletClients, refreshTokenSeconds } = issuance;
  const hasClients = walletClients.length > 0;
  const algorithms = publishedAlgorithms(issuance);
  // An attestation that is neither required nor trusted is not advertised, so that wallets do not send one.
  const attests = walletAttestationRequired || walletProviderTrustLists.length > 0;
  // HAIP 1.0 refers to draft 07, which defines the header only.
  const combines = attests && profile === null;
  return {
    issuer: server,
    authorization_endpoint: `${server}/authorize`,
    // RFC 9126 section 5
    pushed_authorization_request_endpoint: `${server}/par`,
    require_pushed_authorization_requests: true,
    token_endpoint: `${server}/token`,
    challenge_endpoint: `${server}/challenge`,
    jwks_uri: `${server}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    // RFC 8414 section 2: without this property the implicit grant would be supported, too
    grant_types_supported: ['authorization_code', ...grantTypes, ...(refreshTokenSeconds > 0 ? ['refresh_token'] : [])],
    code_challenge_methods_supported: ['S256'],
    // RFC 9207 section 3
    authorization_response_iss_parameter_supported: true,
    token_endpoint_auth_methods_supported: [
      ...(attests ? ['attest_jwt_client_auth'] : []),
      ...(combines ? ['attest_jwt_client_auth_dpop'] : []),
      ...(hasClients ? ['private_key_jwt'] : []),
      ...(walletAttestationRequired ? [] : ['none']),
    ],
    // RFC 8414 section 2: needed with private_key_jwt
    token_endpoint_auth_signing_alg_values_supported: hasClients ? algorithms : undefined,
    // Draft 10 of attestation-based client authentication, sections 8.3 and 10. Without dpop_combined it adds nothing to draft 07,
    // and wallets that follow the latter do not expect it.
    client_attestation_pop_methods_supported: combines
      ? ['attestation_pop_jwt', 'dpop_combined', ...(walletAttestationRequired ? [] : ['none'])]
      : undefined,
    client_attestation_signing_alg_values_supported: attests ? algorithms : undefined,
    client_attestation_pop_signing_alg_values_supported: attests ? algorithms : undefined,
    dpop_signing_alg_values_supported: algorithms,
    scopes_supported: [...new Set(configurations.map(scopeOf))],
    authorization_details_types_supported: ['openid_credential'],
  };
}
