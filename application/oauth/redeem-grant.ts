import { createHash, createHmac } from 'node:crypto';
import {
  authorizationDetails,
  BEARER_LIFETIME_SECONDS,
  BOUND_LIFETIME_SECONDS,
  type WalletTokenClaims,
} from '../../domain/oauth/access-token.ts';
import { type AcceptedDpopProof, acceptDpopProof, openDpopProof } from '../../domain/oauth/dpop.ts';
import { type Grant, MAX_TX_CODE_ATTEMPTS, redeem } from '../../domain/oauth/grant.ts';
import { narrow, type PreAuthorizedCodeRequest, readTokenRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store, UsedValue } from '../ports/store.ts';
import type { TenantView, TenantViews } from '../steps/tenant-views.ts';
import type { WalletTokens } from '../steps/wallet-tokens.ts';

type Ports = {
  readonly store: Store;
  readonly tenantViews: TenantViews;
  readonly walletTokens: WalletTokens;
  readonly signatures: Signatures;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

type Redeemed = {
  readonly view: TenantView;
  readonly grant: Grant;
  readonly proof: AcceptedDpopProof | undefined;
};

export type TokenResponse = {
  readonly access_token: string;
  readonly token_type: 'DPoP' | 'Bearer';
  readonly expires_in: number;
  readonly authorization_details?: readonly JsonObject[];
};

/** The built-in token endpoint: a pre-authorized code for an access token (OpenID4VCI 1.0 section 6). */
export class RedeemGrant {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @param dpop every `DPoP` header field of the request. */
  async execute(
    tenantId: TenantId,
    form: Readonly<Record<string, string>>,
    dpop: readonly string[],
  ): Promise<TokenResponse> {
    const request = readTokenRequest(form);
    const now = this.#ports.clock.now();
    const { view, grant, proof } =
      (await this.#redeemAtOnce(tenantId, request, dpop, now)) ??
      (await this.#redeemInSteps(tenantId, request, dpop, now));
    return this.#respond(view, grant, proof, request, now);
  }

  /**
   * The plain case, in one step of the database: no transaction code, nothing to narrow, and a tenant that this
   * process knows. @returns undefined when nothing happened and the steps have to tell why.
   */
  async #redeemAtOnce(
    tenantId: TenantId,
    request: PreAuthorizedCodeRequest,
    dpop: readonly string[],
    now: Date,
  ): Promise<Redeemed | undefined> {
    const { store, tenantViews } = this.#ports;
    const known = tenantViews.latest(tenantId);
    if (known === undefined || request.txCode !== undefined || request.wanted !== undefined) return undefined;
    const proof = await this.#proofFor(known, dpop, now);
    const redeemed = await store.beats(tenantId).redeemGrant(hashCode(request.code), usedBy(proof), now);
    if (redeemed === 'replayed') throw replayed();
    if (redeemed === undefined) return undefined;
    const view = tenantViews.ofWallet(redeemed.head);
    // The tenant may have begun to demand proofs since this process looked; then the code is lost, not the demand.
    if (view !== known) await this.#proofFor(view, dpop, now);
    return { view, grant: redeemed.grant, proof };
  }

  async #redeemInSteps(
    tenantId: TenantId,
    request: PreAuthorizedCodeRequest,
    dpop: readonly string[],
    now: Date,
  ): Promise<Redeemed> {
    const { store, tenantViews } = this.#ports;
    const beats = store.beats(tenantId);
    const found = await beats.findGrant(hashCode(request.code));
    const view = tenantViews.ofWallet(found?.head);
    const proof = await this.#proofFor(view, dpop, now);
    const { grant, outcome } = redeem(found?.grant, this.#hashTxCode(request.txCode), now);
    narrow(grant.credentialConfigurationIds, request.wanted);
    // The attempt is taken before the comparison counts, so that many at once get no more guesses than one by one.
    if (grant.txCodeHash !== null && !(await beats.takeAttempt(grant.id, MAX_TX_CODE_ATTEMPTS)))
      throw spent();
    if (outcome === 'wrong_tx_code') throw new Failure('invalid_grant', 'the tx_code is wrong');
    const claimed = await beats.consumeGrant(grant.id, usedBy(proof), now);
    if (claimed === 'replayed') throw replayed();
    if (claimed === 'spent') throw spent();
    return { view, grant, proof };
  }

  async #respond(
    view: TenantView,
    grant: Grant,
    proof: AcceptedDpopProof | undefined,
    request: PreAuthorizedCodeRequest,
    now: Date,
  ): Promise<TokenResponse> {
    const { walletTokens, random, settings } = this.#ports;
    const configurationIds = narrow(grant.credentialConfigurationIds, request.wanted);
    const issuedAtSeconds = Math.floor(now.getTime() / 1000);
    const lifetime = proof === undefined ? BEARER_LIFETIME_SECONDS : BOUND_LIFETIME_SECONDS;
    const claims: WalletTokenClaims = {
      issuer: issuerIdentifier(settings, view.tenantId),
      subject: grant.publicId,
      tokenId: random.token(),
      issuedAtSeconds,
      expiresAtSeconds: issuedAtSeconds + lifetime,
      credentialConfigurationIds: configurationIds,
      identifiers: request.wanted !== undefined,
      ...(proof === undefined ? {} : { keyThumbprint: proof.thumbprint }),
    };
    return {
      access_token: await walletTokens.issue(view, claims),
      token_type: proof === undefined ? 'Bearer' : 'DPoP',
      expires_in: lifetime,
      ...(claims.identifiers ? { authorization_details: authorizationDetails(configurationIds) } : {}),
    };
  }

  async #proofFor(
    view: TenantView,
    dpop: readonly string[],
    now: Date,
  ): Promise<AcceptedDpopProof | undefined> {
    const required = (await view.issuanceConfiguration())?.dPopRequired ?? true;
    return this.#checkProof(view.tenantId, dpop, required, now);
  }

  #checkProof(
    tenantId: TenantId,
    dpop: readonly string[],
    required: boolean,
    now: Date,
  ): AcceptedDpopProof | undefined {
    if (dpop.length === 0) {
      if (required)
        throw new Failure('invalid_dpop_proof', 'this issuer binds access tokens: send a DPoP proof');
      return undefined;
    }
    const opened = openDpopProof(dpop);
    // RFC 9449 section 4.3 check 7, before anything the signature covers is used
    if (!this.#ports.signatures.verify(opened.key, opened.signingInput, opened.signature)) {
      throw new Failure('invalid_dpop_proof', 'the signature of the proof is wrong');
    }
    const url = `${issuerIdentifier(this.#ports.settings, tenantId)}/token`;
    return acceptDpopProof(opened, { method: 'POST', url, now });
  }

  /** Transaction codes are short, so a plain hash could be undone; this one needs our key. */
  #hashTxCode(code: string | undefined): string | null {
    return code === undefined ? null : hashTxCode(this.#ports.settings, code);
  }
}

function hashCode(code: string): string {
  return createHash('sha256').update(code).digest('base64url');
}

function usedBy(proof: AcceptedDpopProof | undefined): readonly UsedValue[] {
  return proof === undefined ? [] : [{ kind: 'dpop_jti', hash: proof.hash, expiresAt: proof.expiresAt }];
}

/** RFC 9449 section 11.1 */
function replayed(): Failure {
  return new Failure('invalid_dpop_proof', 'this proof was used before');
}

function spent(): Failure {
  return new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
}

export function hashTxCode(settings: ServiceSettings, code: string): string {
  return createHmac('sha256', settings.txCodeKey).update(code).digest('base64url');
}
