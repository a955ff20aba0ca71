import { matchesKey } from '../../domain/formats/jose/compact.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import type { WalletClient } from '../../domain/issuance/issuance-configuration.ts';
import { isAlgorithmAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { registrationOf } from '../../domain/issuance/wallet-provider.ts';
import { assertAssertionClaims, type ParsedAssertion, parseAssertion } from '../../domain/oauth/client-assertion.ts';
import { assertAttestationClaims, instanceKeyOf, type ParsedAttestation, parseAttestation } from '../../domain/oauth/client-attestation.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import { parseDpopProof } from '../../domain/oauth/dpop.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { attestationChallenge, isValidChallenge } from './challenges.ts';
import { ClientKeys } from './client-keys.ts';
import { dpopNonceFor } from './dpop-proofs.ts';
import { WalletProviderTrust } from './wallet-provider-trust.ts';

/** Client credentials of a request to an authorization server. */
export type ClientCredentials = {
  readonly form: Readonly<Record<string, string>>;
  /** All `OAuth-Client-Attestation` header fields. */
  readonly attestation: readonly string[];
  /** All `OAuth-Client-Attestation-PoP` header fields. */
  readonly attestationPop: readonly string[];
  /** All `DPoP` header fields. */
  readonly dpop?: readonly string[];
};

export type AuthenticatedClient = {
  /** `public`: an unauthenticated `client_id`; `anonymous`: no `client_id`. */
  readonly kind: 'attested' | 'registered' | 'public' | 'anonymous';
  readonly clientId: string | undefined;
  /** RFC 7638 thumbprint of the attested instance key. */
  readonly instance?: string;
  /** The nonce of the DPoP proof is a verified challenge (draft 10 section 7.3). */
  readonly hasChallengeInDpop?: true;
  /** Registered redirect URIs, if the registration has any. */
  readonly redirectUris?: readonly string[];
  /** Redirect URIs that the wallet provider registered; others are not rejected. */
  readonly knownRedirectUris?: readonly string[];
  /** Status references of the wallet attestation; credentials may follow them. */
  readonly statuses?: readonly WalletStatus[];
  /**
   * Values that the commit of the requested operation consumes, and not earlier: after a request for a DPoP nonce
   * the wallet sends the same proof of possession again.
   */
  readonly used: readonly ConsumedValue[];
};

/** The context of a client's request. */
type ClientCall = {
  readonly tenant: TenantConfiguration;
  /** Issuer of the authorization server. */
  readonly audience: string;
  readonly now: Date;
  readonly clientId: string | undefined;
};

const MAX_CLIENT_ID_LENGTH = 500;

const invalidClient = (message: string) => new Failure('invalid_client', message);
const invalidAttestation = (message: string) => new Failure('invalid_client_attestation', message);

/** Authenticates clients of an authorization server: by attestation, by a registered key, by name only, or anonymous. */
export class ClientAuthenticator extends needs({
  walletProviderTrust: WalletProviderTrust,
  clientKeys: ClientKeys,
  signatures: Signatures,
  random: Random,
  settings: ServiceSettings,
}) {
  /**
   * @param audience the issuer of the authorization server that was called.
   * @throws Failure `invalid_client`, `invalid_client_attestation`, `use_attestation_challenge`,
   *   `use_fresh_attestation`, `invalid_request`.
   */
  async execute(
    tenant: TenantConfiguration,
    audience: string,
    { form, attestation, attestationPop, dpop = [] }: ClientCredentials,
    now: Date,
  ): Promise<AuthenticatedClient> {
    const { client_id: clientId, client_assertion: assertion, client_assertion_type: type } = form;
    if (clientId !== undefined && clientId.length > MAX_CLIENT_ID_LENGTH) throw new Failure('invalid_request', 'client_id is too long');
    const hasAssertion = assertion !== undefined || type !== undefined;
    // RFC 6749 section 2.3: one method per request
    if (hasAssertion && attestation.length + attestationPop.length > 0) {
      throw invalidClient('send an attestation or an assertion, not both');
    }
    const call = { tenant, audience, now, clientId };
    // HAIP 1.0 refers to draft 07, which has the header only
    const mayCombine = dpop.length > 0 && tenant.profile === null;
    const attested = parseAttestation(attestation, attestationPop, mayCombine);
    if (attested !== undefined && (await verifiesAttestations(tenant))) return this.#attested(call, attested, dpop);
    const registered = parseAssertion(form);
    if (registered !== undefined) return this.#registered(call, registered);
    return identifyUnauthenticated(call);
  }

  async #attested(call: ClientCall, parsedAttestation: ParsedAttestation, dpop: readonly string[]): Promise<AuthenticatedClient> {
    const { tenant, audience, now } = call;
    const { walletClients, walletProviders, attestationMaxAgeSeconds } = await tenant.issuance();
    const provider = await this.ports.walletProviderTrust.verify(tenant, chainOf(parsedAttestation.attestation.header), now);
    if (!provider.trusted) throw invalidAttestation(provider.detail);
    const { attestation, pop } = parsedAttestation;
    // Draft 10 section 7.1
    if (!matchesKey(attestation.header, provider.key) || !this.#verifies(attestation, provider.key)) {
      throw invalidAttestation('the signature of the attestation is invalid');
    }
    const instanceKey = instanceKeyOf(parsedAttestation);
    // Draft 10 section 7.2
    if (pop !== undefined && !this.#verifies(pop, instanceKey)) {
      throw invalidAttestation('the signature of the proof of possession is invalid');
    }
    const issuance = await tenant.issuance();
    if (!isAlgorithmAllowed(provider.key, issuance) || !isAlgorithmAllowed(instanceKey, issuance)) {
      throw invalidAttestation('this issuer does not accept the alg of the attestation or of its proof');
    }
    const accepted = assertAttestationClaims(parsedAttestation, instanceKey, {
      audience,
      now,
      clientId: call.clientId,
      // Draft 07 of attestation-based client authentication, sections 5.1 and 5.2, which HAIP 1.0 refers to
      issuerRequired: tenant.profile !== null,
      ...(typeof attestationMaxAgeSeconds === 'number' && { maxAgeSeconds: attestationMaxAgeSeconds }),
    });
    // A registration binds the client_id to its own keys, so a wallet provider cannot attest it.
    if (findClient(walletClients, accepted.clientId) !== undefined) {
      throw invalidClient('this client is registered and must authenticate with client_assertion');
    }
    // Other trusted providers may attest their own wallets, but not this one.
    const { chain, issuer } = provider.issuer;
    const registration = registrationOf(walletProviders, accepted.clientId, { chain, anchor: issuer.anchor });
    if (registration === undefined) throw invalidAttestation('the sub of the attestation belongs to another wallet provider');
    const { proof } = accepted;
    const isCombined = proof === undefined;
    const hasChallenge = await this.#verifyChallenge(
      call,
      isCombined ? openCombined(this.ports.signatures, dpop, instanceKey) : proof.challenge,
      isCombined,
    );
    // Last, since it calls an address from the attestation
    const statusAnswer = await this.ports.walletProviderTrust.verifyStatuses(tenant, provider.issuer, {
      what: 'the wallet attestation',
      payload: attestation.payload,
      now,
    });
    if (!('statuses' in statusAnswer))
      throw new Failure('invalid_client_attestation', statusAnswer.walletMessage, { cause: new OperatorReason(statusAnswer.reason) });
    return {
      kind: 'attested',
      clientId: accepted.clientId,
      instance: accepted.instance,
      knownRedirectUris: registration.redirectUris,
      ...(statusAnswer.statuses.length > 0 && { statuses: statusAnswer.statuses }),
      ...(isCombined
        ? // The DPoP proof is consumed as such.
          { ...(hasChallenge && { hasChallengeInDpop: true as const }), used: [] }
        : { used: [{ kind: 'client_jti', hash: proof.hash, expiresAt: proof.expiresAt }] }),
    };
  }

  /**
   * Draft 10 section 7.4: a server with a challenge endpoint requires its challenges. A tenant can make them optional for wallets
   * without support; the proof then relies on its recent `iat` and on its `jti`, which the commit consumes.
   * @param isCombined true if the challenge is the nonce of a DPoP proof; an optional challenge may be a DPoP nonce instead.
   * @returns true if there is a challenge.
   * @throws Failure `use_attestation_challenge` with a challenge and a DPoP nonce: the next request needs both.
   */
  async #verifyChallenge(call: ClientCall, challenge: string | undefined, isCombined: boolean): Promise<boolean> {
    const { tenant, audience, now } = call;
    if (isValidChallenge(this.ports.settings, tenant.tenantId, audience, challenge, now)) return true;
    const { attestationChallenge: challengeUse, dPopNonce } = await tenant.issuance();
    const mayBeDpopNonce = isCombined && dPopNonce !== 'off';
    if (challengeUse === 'optional' && (challenge === undefined || mayBeDpopNonce)) return false;
    const freshChallenge = attestationChallenge(this.ports, tenant.tenantId, audience, now);
    // The nonce of a combined proof is the challenge.
    const dpopNonce = isCombined ? freshChallenge : await dpopNonceFor(this.ports, tenant, { issuer: audience, now });
    throw new Failure('use_attestation_challenge', {
      message: 'the proof of possession requires the challenge of this response',
      attestationChallenge: freshChallenge,
      ...defined({ dpopNonce }),
    });
  }

  async #registered(call: ClientCall, parsedAssertion: ParsedAssertion): Promise<AuthenticatedClient> {
    const { tenant, audience, now } = call;
    const issuance = await tenant.issuance();
    const client = findClient(issuance.walletClients, parsedAssertion.clientId);
    const keys = client === undefined ? [] : await this.ports.clientKeys.candidates(tenant.tenantId, client, parsedAssertion);
    // RFC 7523 section 3; the response does not distinguish unknown clients from unknown keys
    if (client === undefined || !keys.some((key) => isAlgorithmAllowed(key, issuance) && this.#verifies(parsedAssertion.jws, key))) {
      throw invalidClient('no key of a registered client verifies client_assertion');
    }
    const { hash, expiresAt } = assertAssertionClaims(parsedAssertion, audience, now);
    return {
      kind: 'registered',
      clientId: client.client_id,
      ...defined({ redirectUris: client.redirect_uris }),
      used: [{ kind: 'client_jti', hash, expiresAt }],
    };
  }

  #verifies(jws: ParsedAssertion['jws'], key: Parameters<Signatures['verify']>[0]): boolean {
    return this.ports.signatures.verify(key, jws.signingInput, jws.signature);
  }
}

/**
 * True if attestations are verified. Without trust lists none can be: they are rejected if the tenant requires one, and ignored
 * otherwise.
 */
async function verifiesAttestations(tenant: TenantConfiguration): Promise<boolean> {
  const { walletAttestationRequired, walletProviderTrustLists } = await tenant.issuance();
  return walletAttestationRequired || walletProviderTrustLists.length > 0;
}

async function identifyUnauthenticated({ tenant, clientId }: ClientCall): Promise<AuthenticatedClient> {
  const { walletAttestationRequired, walletClients } = await tenant.issuance();
  if (clientId !== undefined && findClient(walletClients, clientId) !== undefined) {
    throw invalidClient('this client is registered and must authenticate with client_assertion');
  }
  if (walletAttestationRequired) throw invalidClient('this issuer requires a wallet attestation');
  return { kind: clientId === undefined ? 'anonymous' : 'public', clientId, used: [] };
}

function findClient(clients: readonly WalletClient[], clientId: string): WalletClient | undefined {
  return clients.find((client) => client.client_id === clientId);
}

/** HAIP 1.0 section 4.4.1: `x5c` contains the key of the wallet provider. */
function chainOf(header: JsonObject): readonly string[] {
  try {
    return parseCertificateChain(header);
  } catch (error) {
    if (error instanceof Refusal) throw invalidAttestation('the attestation has no x5c of certificates');
    throw error;
  }
}

/**
 * Verifies a DPoP proof that serves as proof of possession of an attested key (attestation-based client authentication, draft 10
 * section 7.3). The remaining DPoP checks happen with all other proofs.
 * @param values all `DPoP` header fields.
 * @returns its nonce, which is the challenge.
 * @throws Failure `invalid_client_attestation`, `invalid_dpop_proof`.
 */
function openCombined(signatures: Pick<Signatures, 'verify'>, values: readonly string[], instanceKey: PublicJwk): string | undefined {
  const { key, signingInput, signature, payload } = parseDpopProof(values);
  if (thumbprint(key) !== thumbprint(instanceKey) || !signatures.verify(key, signingInput, signature)) {
    throw new Failure(
      'invalid_client_attestation',
      'without an OAuth-Client-Attestation-PoP header the DPoP proof must be signed by the attested key',
    );
  }
  const { nonce } = payload;
  // A nonce that is not a string is neither valid nor absent.
  return nonce === undefined || typeof nonce === 'string' ? nonce : '';
}
