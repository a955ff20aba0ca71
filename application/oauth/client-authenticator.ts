import { fitsKey } from '../../domain/formats/jose/compact.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import type { WalletClient } from '../../domain/issuance/issuance-configuration.ts';
import { isAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { registrationOf } from '../../domain/issuance/wallet-provider.ts';
import { assertAssertionClaims, type OpenedAssertion, parseAssertion } from '../../domain/oauth/client-assertion.ts';
import { assertAttestationClaims, instanceKeyOf, type OpenedAttestation, parseAttestation } from '../../domain/oauth/client-attestation.ts';
import { parseDpopProof } from '../../domain/oauth/dpop.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
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
import { acceptsChallenge, attestationChallenge } from './challenges.ts';
import { ClientKeys } from './client-keys.ts';
import { dpopNonceFor } from './dpop-proofs.ts';
import { WalletProviderTrust } from './wallet-provider-trust.ts';

/** What a request to an authorization server says about the client that sent it. */
export type ClientCredentials = {
  readonly form: Readonly<Record<string, string>>;
  /** Every `OAuth-Client-Attestation` header field as it came. */
  readonly attestation: readonly string[];
  /** Every `OAuth-Client-Attestation-PoP` header field as it came. */
  readonly attestationPop: readonly string[];
  /** Every `DPoP` header field as it came. */
  readonly dpop?: readonly string[];
};

export type AuthenticatedClient = {
  /** `public`: a `client_id` that nothing proves; `anonymous`: not even that. */
  readonly kind: 'attested' | 'registered' | 'public' | 'anonymous';
  readonly clientId: string | undefined;
  /** RFC 7638 thumbprint of the attested key of this installation. */
  readonly instance?: string;
  /** The nonce of the DPoP proof is a challenge, which was verified (draft 10 section 7.3). */
  readonly hasChallengeInDpop?: true;
  /** Of the client's registration, if it names any. */
  readonly redirectUris?: readonly string[];
  /** Those that its wallet provider is known to use; others are not refused. */
  readonly knownRedirectUris?: readonly string[];
  /** Where its attestation would be revoked; credentials may follow that. */
  readonly statuses?: readonly WalletStatus[];
  /**
   * To be spent by the commit that does what the client asked for, and not before: a wallet that is
   * told to use a DPoP nonce sends the same proof of possession again.
   */
  readonly used: readonly UsedValue[];
};

/** Where and when a client calls. */
type Call = {
  readonly configured: TenantConfiguration;
  /** Issuer of the authorization server. */
  readonly audience: string;
  readonly now: Date;
  /** `client_id` of the request. */
  readonly clientId: string | undefined;
};

const MAX_CLIENT_ID_LENGTH = 500;

const invalidClient = (message: string) => new Failure('invalid_client', message);
const invalidAttestation = (message: string) => new Failure('invalid_client_attestation', message);

/** Who calls an authorization server: by attestation, by a registered key, by name only, or nobody. */
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
    configured: TenantConfiguration,
    audience: string,
    { form, attestation, attestationPop, dpop = [] }: ClientCredentials,
    now: Date,
  ): Promise<AuthenticatedClient> {
    const { client_id: clientId, client_assertion: assertion, client_assertion_type: type } = form;
    if (clientId !== undefined && clientId.length > MAX_CLIENT_ID_LENGTH) throw new Failure('invalid_request', 'client_id is too long');
    const hasAssertion = assertion !== undefined || type !== undefined;
    // RFC 6749 section 2.3: one method per request
    if (hasAssertion && attestation.length + attestationPop.length > 0) {
      throw invalidClient('authenticate with an attestation or with an assertion, not with both');
    }
    const call = { configured, audience, now, clientId };
    // HAIP 1.0 goes by draft 07, which has the header only
    const mayCombine = dpop.length > 0 && configured.profile === null;
    const attested = parseAttestation(attestation, attestationPop, mayCombine);
    if (attested !== undefined && (await attests(configured))) return this.#attested(call, attested, dpop);
    const registered = parseAssertion(form);
    if (registered !== undefined) return this.#registered(call, registered);
    return unauthenticated(call);
  }

  async #attested(call: Call, opened: OpenedAttestation, dpop: readonly string[]): Promise<AuthenticatedClient> {
    const { configured, audience, now } = call;
    const { walletClients, walletProviders, attestationMaxAgeSeconds } = await configured.issuance();
    const provider = await this.ports.walletProviderTrust.verify(configured, chainOf(opened.attestation.header), now);
    if (!provider.trusted) throw invalidAttestation(provider.detail);
    const { attestation, pop } = opened;
    // Draft 10 section 7.1
    if (!fitsKey(attestation.header, provider.key) || !this.#verifies(attestation, provider.key)) {
      throw invalidAttestation('the signature of the attestation is wrong');
    }
    const instanceKey = instanceKeyOf(opened);
    // Draft 10 section 7.2
    if (pop !== undefined && !this.#verifies(pop, instanceKey)) {
      throw invalidAttestation('the signature of the proof of possession is wrong');
    }
    const issuance = await configured.issuance();
    if (!isAllowed(provider.key, issuance) || !isAllowed(instanceKey, issuance)) {
      throw invalidAttestation('this issuer does not take the alg of the attestation or of its proof');
    }
    const accepted = assertAttestationClaims(opened, instanceKey, {
      audience,
      now,
      clientId: call.clientId,
      // Draft 07 of attestation-based client authentication, sections 5.1 and 5.2, which HAIP 1.0 goes by
      issuerRequired: configured.profile !== null,
      ...(typeof attestationMaxAgeSeconds === 'number' && { maxAgeSeconds: attestationMaxAgeSeconds }),
    });
    // A registration binds the name to keys of its own, whatever a wallet provider says of it.
    if (findClient(walletClients, accepted.clientId) !== undefined) {
      throw invalidClient('this client is registered and authenticates with client_assertion');
    }
    // Other providers on the lists vouch for names of their own wallets, not for this one.
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
    // Last, since it asks an address that the attestation names
    const asked = await this.ports.walletProviderTrust.verifyStatuses(configured, provider.issuer, {
      what: 'the wallet attestation',
      payload: attestation.payload,
      now,
    });
    if (!('statuses' in asked)) throw new Failure('invalid_client_attestation', asked.told, { cause: new OperatorReason(asked.reason) });
    return {
      kind: 'attested',
      clientId: accepted.clientId,
      instance: accepted.instance,
      knownRedirectUris: registration.redirectUris,
      ...(asked.statuses.length > 0 && { statuses: asked.statuses }),
      ...(isCombined
        ? // The DPoP proof is spent as such.
          { ...(hasChallenge && { hasChallengeInDpop: true as const }), used: [] }
        : { used: [{ kind: 'client_jti', hash: proof.hash, expiresAt: proof.expiresAt }] }),
    };
  }

  /**
   * Draft 10 section 7.4: a server with a challenge endpoint demands its challenges. A tenant can make them optional for wallets
   * that cannot answer one; the proof then rests on its recent `iat` and on its `jti`, which the commit spends.
   * @param isCombined whether the challenge is the nonce of a DPoP proof, which may be a nonce for DPoP instead if it is optional.
   * @returns whether there is a challenge.
   * @throws Failure `use_attestation_challenge` with a challenge and a DPoP nonce: the next request needs both.
   */
  async #verifyChallenge(call: Call, challenge: string | undefined, isCombined: boolean): Promise<boolean> {
    const { configured, audience, now } = call;
    if (acceptsChallenge(this.ports.settings, configured.tenantId, audience, challenge, now)) return true;
    const { attestationChallenge: use, dPopNonce } = await configured.issuance();
    const mayBeDpopNonce = isCombined && dPopNonce !== 'off';
    if (use === 'optional' && (challenge === undefined || mayBeDpopNonce)) return false;
    const fresh = attestationChallenge(this.ports, configured.tenantId, audience, now);
    // The nonce of a combined proof is the challenge.
    const dpopNonce = isCombined ? fresh : await dpopNonceFor(this.ports, configured, { issuer: audience, now });
    throw new Failure('use_attestation_challenge', {
      message: 'the proof of possession needs the challenge of this response',
      attestationChallenge: fresh,
      ...defined({ dpopNonce }),
    });
  }

  async #registered(call: Call, opened: OpenedAssertion): Promise<AuthenticatedClient> {
    const { configured, audience, now } = call;
    const issuance = await configured.issuance();
    const client = findClient(issuance.walletClients, opened.clientId);
    const keys = client === undefined ? [] : await this.ports.clientKeys.candidates(configured.tenantId, client, opened);
    // RFC 7523 section 3; unknown clients and unknown keys look alike
    if (client === undefined || !keys.some((key) => isAllowed(key, issuance) && this.#verifies(opened.jws, key))) {
      throw invalidClient('no key of a registered client verifies client_assertion');
    }
    const { hash, expiresAt } = assertAssertionClaims(opened, audience, now);
    return {
      kind: 'registered',
      clientId: client.client_id,
      ...defined({ redirectUris: client.redirect_uris }),
      used: [{ kind: 'client_jti', hash, expiresAt }],
    };
  }

  #verifies(jws: OpenedAssertion['jws'], key: Parameters<Signatures['verify']>[0]): boolean {
    return this.ports.signatures.verify(key, jws.signingInput, jws.signature);
  }
}

/**
 * Without trust lists nobody can judge an attestation: where it is demanded all are refused, and where it is not, a
 * wallet that sends one by habit is as welcome as one that does not, and counts no more.
 */
async function attests(configured: TenantConfiguration): Promise<boolean> {
  const { walletAttestationRequired, walletProviderTrustLists } = await configured.issuance();
  return walletAttestationRequired || walletProviderTrustLists.length > 0;
}

async function unauthenticated({ configured, clientId }: Call): Promise<AuthenticatedClient> {
  const { walletAttestationRequired, walletClients } = await configured.issuance();
  if (clientId !== undefined && findClient(walletClients, clientId) !== undefined) {
    throw invalidClient('this client is registered and authenticates with client_assertion');
  }
  if (walletAttestationRequired) throw invalidClient('this issuer needs a wallet attestation');
  return { kind: clientId === undefined ? 'anonymous' : 'public', clientId, used: [] };
}

function findClient(clients: readonly WalletClient[], clientId: string): WalletClient | undefined {
  return clients.find((client) => client.client_id === clientId);
}

/** HAIP 1.0 section 4.4.1: the key of the wallet provider stands in `x5c`. */
function chainOf(header: JsonObject): readonly string[] {
  try {
    return parseCertificateChain(header);
  } catch (error) {
    if (error instanceof Refusal) throw invalidAttestation('the attestation has no x5c of certificates');
    throw error;
  }
}

/**
 * Whether a DPoP proof stands for the proof of possession of an attested key (attestation-based client authentication, draft 10
 * section 7.3). What else makes a DPoP proof good is looked at where every one is.
 * @param values every `DPoP` header field.
 * @returns its nonce, which is the challenge.
 * @throws Failure `invalid_client_attestation`, `invalid_dpop_proof`.
 */
function openCombined(signatures: Pick<Signatures, 'verify'>, values: readonly string[], instanceKey: PublicJwk): string | undefined {
  const { key, signingInput, signature, payload } = parseDpopProof(values);
  if (thumbprint(key) !== thumbprint(instanceKey) || !signatures.verify(key, signingInput, signature)) {
    throw new Failure(
      'invalid_client_attestation',
      'without an OAuth-Client-Attestation-PoP header the DPoP proof has to be by the attested key',
    );
  }
  const { nonce } = payload;
  // A nonce that is not a string is not one of ours, and not absent either.
  return nonce === undefined || typeof nonce === 'string' ? nonce : '';
}
