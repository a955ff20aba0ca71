import { createHash, createHmac } from 'node:crypto';
import {
  authorizationDetails,
  BEARER_LIFETIME_SECONDS,
  BOUND_LIFETIME_SECONDS,
  type WalletTokenClaims,
} from '../../domain/oauth/access-token.ts';
import { type AcceptedDpopProof, acceptDpopProof, openDpopProof } from '../../domain/oauth/dpop.ts';
import { MAX_TX_CODE_ATTEMPTS, redeem } from '../../domain/oauth/grant.ts';
import { narrow, readTokenRequest } from '../../domain/oauth/token-request.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { Store } from '../ports/store.ts';
import type { TenantViews } from '../steps/tenant-views.ts';
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
    const { store, tenantViews, walletTokens, clock, random, settings } = this.#ports;
    const request = readTokenRequest(form);
    const now = clock.now();
    const beats = store.beats(tenantId);
    const found = await beats.findGrant(createHash('sha256').update(request.code).digest('base64url'));
    const view = tenantViews.ofWallet(found?.head);
    const proof = this.#checkProof(
      tenantId,
      dpop,
      (await view.issuanceConfiguration())?.dPopRequired ?? true,
      now,
    );

    const { grant, outcome } = redeem(found?.grant, this.#hashTxCode(request.txCode), now);
    const configurationIds = narrow(grant.credentialConfigurationIds, request.wanted);
    // The attempt is taken before the comparison counts, so that many at once get no more guesses than one by one.
    if (grant.txCodeHash !== null && !(await beats.takeAttempt(grant.id, MAX_TX_CODE_ATTEMPTS))) {
      throw new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
    }
    if (outcome === 'wrong_tx_code') throw new Failure('invalid_grant', 'the tx_code is wrong');

    const used =
      proof === undefined
        ? []
        : [{ kind: 'dpop_jti' as const, hash: proof.hash, expiresAt: proof.expiresAt }];
    const claimed = await beats.consumeGrant(grant.id, used, now);
    // RFC 9449 section 11.1
    if (claimed === 'replayed') throw new Failure('invalid_dpop_proof', 'this proof was used before');
    if (claimed === 'spent')
      throw new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');

    const issuedAtSeconds = Math.floor(now.getTime() / 1000);
    const lifetime = proof === undefined ? BEARER_LIFETIME_SECONDS : BOUND_LIFETIME_SECONDS;
    const claims: WalletTokenClaims = {
      issuer: issuerIdentifier(settings, tenantId),
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

export function hashTxCode(settings: ServiceSettings, code: string): string {
  return createHmac('sha256', settings.txCodeKey).update(code).digest('base64url');
}
